//! The stages that come with Foreshorten, as a plugin: the core's own code, run against what the interface of plugins
//! shows. It proves that the interface shows enough, and it is one way to run a stage of an older release in a newer host.
//!
//! The configuration names the stage, and its parameters as the stage calls them:
//! `{"stage": "clear_tool_results", "keep_last": 3}`. What is not named has the stage's default.
#![cfg_attr(target_arch = "wasm32", no_std)]

extern crate alloc;

mod config;
mod desk;
mod facts;

use foreshorten_core::{budget::TokenBudget, plan::StageContext};
use foreshorten_plugin::{Pass, Stage, String};

/// Whichever stage the configuration names.
pub struct Builtin;

impl Stage for Builtin {
    fn check(config: &str) -> Result<(), String> {
        config::stage(config).map(drop)
    }

    fn plan(pass: &mut impl Pass) -> Result<(), String> {
        let stage = config::stage(&pass.config())?;
        let (window, usable, target) = (pass.window(), pass.usable(), pass.target());
        // Trigger and tail are the pass's business; no stage looks at them.
        let budget =
            TokenBudget { window, reserve: window.saturating_sub(usable), usable, trigger: usable, target, tail: 0 };
        let (aggressive, tail_start) = (pass.aggressive(), pass.tail_start() as usize);
        let facts = facts::Facts::read(pass);
        let columns = facts.columns();
        let pass = core::cell::RefCell::new(pass);
        let record = facts::Lazy::new(&facts, &pass);
        let mut desk = desk::Remote::new(&facts, &columns, &pass);
        stage.plan(&mut StageContext::new(&record, &columns, budget, aggressive, tail_start, &mut desk));
        Ok(())
    }
}

foreshorten_plugin::stage!(Builtin);

#[cfg(test)]
mod tests {
    use foreshorten_plugin::fake::{Did, Fake};

    use super::*;

    #[test]
    fn results_are_cleared_oldest_first_until_the_target_is_reached() {
        let mut fake = Fake::default();
        fake.user("go");
        for call in 0..6 {
            fake.call("read", &alloc::format!("{{\"path\":\"{call}\"}}"), &"x".repeat(4_000));
        }
        fake.tail(1).config = "{\"stage\": \"clear_tool_results\", \"keep_last\": 2}".into();
        fake.target = 4_000;
        Builtin::plan(&mut fake).unwrap();
        // Six results of 1,000 tokens; the target is met after two or three, and two stay for being new.
        assert_eq!(fake.did, [Did::Clear(2), Did::Clear(4), Did::Clear(6)]);
    }

    #[test]
    fn an_unknown_stage_or_parameter_is_refused_when_it_is_loaded() {
        assert!(Builtin::check("{\"stage\":\"drop_old_images\",\"keep_last\":0}").is_ok());
        for (config, told) in [
            ("{}", "stage"),
            ("{\"stage\":\"make_coffee\"}", "make_coffee"),
            ("{\"stage\":\"clear_reasoning\",\"keep\":1}", "keep"),
            ("{\"stage\":\"clear_reasoning\",\"keep_last\":\"all\"}", "number"),
        ] {
            let why = Builtin::check(config).unwrap_err();
            assert!(why.contains(told), "{why}");
        }
    }
}
