//! What a subscriber of `tracing` is told about a call.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use foreshorten::core::Turn;
use foreshorten::plugin::Settings;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Metadata, Subscriber};

use crate::support::{alone, plugin, policy, talk, turn};

/// Keeps the fields of spans of the plugins.
#[derive(Clone, Default)]
struct Keeps(Arc<Mutex<Vec<BTreeMap<String, String>>>>);

impl Visit for BTreeMapVisit<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}").trim_matches('"').to_owned());
    }
}

struct BTreeMapVisit<'a>(&'a mut BTreeMap<String, String>);

impl Subscriber for Keeps {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "foreshorten::plugin" && metadata.is_span()
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = BTreeMap::new();
        span.record(&mut BTreeMapVisit(&mut fields));
        let mut spans = self.0.lock().unwrap();
        spans.push(fields);
        Id::from_u64(spans.len() as u64)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let mut spans = self.0.lock().unwrap();
        let at = usize::try_from(span.into_u64()).unwrap() - 1;
        values.record(&mut BTreeMapVisit(&mut spans[at]));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &tracing::Event<'_>) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn every_call_is_a_span_with_what_it_did_and_cost() {
    let clear = r#"(import "foreshorten:plugin/decisions@0.1.0" "clear" (func $clear (param i32 i32 i32)))"#;
    let body = r#"
      (i32.store (i32.const 1024) (i32.const 2)) (i32.store (i32.const 1028) (i32.const 4))
      (i32.store (i32.const 1032) (i32.const 0))
      (call $clear (i32.const 1024) (i32.const 3) (i32.const 64)) (i32.const 16)"#;
    let good = plugin(clear, body, &Settings::default());
    let bad = plugin("", "unreachable", &Settings::default());
    let keeps = Keeps::default();
    let mut metrics = Vec::new();
    tracing::subscriber::with_default(keeps.clone(), || {
        for plugin in [good, bad] {
            let (stages, plugin) = alone(plugin);
            // A pass that was asked for has one round, so one call.
            let policy = policy(Some(plugin.name()));
            turn(&policy, &stages, &talk(60), None, |turn| Turn { manual: true, ..turn }).unwrap();
            metrics.push(plugin.metrics());
        }
    });
    let spans = keeps.0.lock().unwrap();
    assert_eq!(spans.len(), 2, "{spans:?}");
    for (span, metrics) in spans.iter().zip(&metrics) {
        assert_eq!((span["plugin"].as_str(), span["call"].as_str(), span["digest"].len()), ("hostile", "plan", 16));
        assert_eq!(span["turn"], "1");
        assert_eq!(span["fuel"], metrics.fuel.to_string());
        assert_eq!(span["peak_memory"], metrics.peak_memory.to_string());
        assert_eq!(span["host_calls"], metrics.host_calls.to_string());
        assert_eq!(span["text_bytes"], "0");
        assert!(span.contains_key("wall_us"), "{span:?}");
        assert_eq!(span["accepted"], metrics.accepted.to_string());
        assert_eq!(span["refused"], metrics.refused_count().to_string());
    }
    assert_eq!((spans[0]["outcome"].as_str(), spans[1]["outcome"].as_str()), ("ok", "trap"));
    assert_eq!((spans[0]["accepted"].as_str(), spans[0]["refused"].as_str()), ("2", "1"));
    assert_eq!(spans[0]["tokens_saved"], metrics[0].tokens_saved.to_string());
    assert!(metrics[0].tokens_saved > 0);
}
