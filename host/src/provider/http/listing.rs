//! The context window that an endpoint's list of models names.

use futures_util::TryStreamExt as _;
use serde_json::Value;

use super::client::{Http, body};
use crate::provider::ProviderError;

/// Windows outside of this are not believed, in tokens.
const PLAUSIBLE: std::ops::RangeInclusive<u64> = 256..=20_000_000;
/// A list is read up to this many bytes. The longest met (OpenRouter's) has half a megabyte.
const MOST_BYTES: usize = 8 << 20;

/// Where servers name the window they serve, best first. Not among them: `meta.n_ctx_train` of llama.cpp, which is what
/// the model could have, not what it was given.
const FIELDS: [&str; 9] = [
    "/top_provider/context_length", // OpenRouter
    "/max_model_len",               // vLLM, SGLang
    "/context_window",              // Groq
    "/max_input_tokens",            // Anthropic
    "/loaded_context_length",       // LM Studio
    "/meta/n_ctx",                  // llama.cpp
    "/context_length",              // OpenRouter, Together
    "/max_context_length",          // LM Studio, Mistral
    "/contextLength",
];

/// Asks for the model itself, then for the whole list: not every server has both.
pub(super) async fn window(http: &Http, model: &str) -> Result<Option<u64>, ProviderError> {
    let time = http.options.listing_timeout;
    let asked = async {
        let one = document(http, &["models", model]).await;
        if let Ok(entry) = &one
            && let Some(window) = window_of(entry.get("data").filter(|data| data.is_object()).unwrap_or(entry))
        {
            return Ok(Some(window));
        }
        match (document(http, &["models"]).await, one) {
            (Ok(list), _) => Ok(find(&list, model).and_then(window_of)),
            // The model was found; that there is no list does not matter.
            (Err(_), Ok(_)) => Ok(None),
            (Err(error), Err(_)) => Err(error),
        }
    };
    let answer = tokio::time::timeout(time, asked).await.unwrap_or(Err(ProviderError::TimedOut(time)));
    answer.map_err(|error| http.redacted(error))
}

async fn document(http: &Http, path: &[&str]) -> Result<Value, ProviderError> {
    let time = http.options.listing_timeout;
    let response = http.get(http.endpoint.join(path), time).await?;
    if !response.status().is_success() {
        return Err(http.refusal(response).await);
    }
    let bytes = body(response, time, MOST_BYTES.min(http.options.most_bytes)).try_fold(
        Vec::new(),
        |mut all, chunk| async move {
            all.extend_from_slice(&chunk);
            Ok(all)
        },
    );
    serde_json::from_slice(&bytes.await?).map_err(|error| ProviderError::Garbled(error.to_string()))
}

/// The model's entry: by its name, by the name without the vendor's, or the only one whose own name without the vendor's
/// is that.
fn find<'a>(list: &'a Value, model: &str) -> Option<&'a Value> {
    let list = list.get("data").or_else(|| list.get("models")).unwrap_or(list).as_array()?;
    let id =
        |entry: &'a Value| entry.get("id").or_else(|| entry.get("name")).and_then(Value::as_str).unwrap_or_default();
    let literal = |name: &str| list.iter().find(|entry| id(entry) == name);
    let alike = || {
        let mut found = list.iter().filter(|entry| bare(id(entry)) == bare(model));
        found.next().filter(|_| found.next().is_none())
    };
    // What stands behind a colon may also be a tag (`llama3:8b`); then no model is called so.
    let behind_colon = || model.split_once(':').and_then(|(_, name)| literal(name));
    literal(model).or_else(behind_colon).or_else(|| literal(bare(model))).or_else(alike)
}

/// The name of a model without the vendor's in front.
fn bare(model: &str) -> &str {
    model.rsplit('/').next().unwrap_or(model)
}

fn window_of(entry: &Value) -> Option<u64> {
    FIELDS.iter().find_map(|field| {
        let value = entry.pointer(field)?;
        let window = value.as_u64().or_else(|| value.as_str().and_then(|text| text.parse().ok()))?;
        PLAUSIBLE.contains(&window).then_some(window)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_served_window_is_named_in_many_ways() {
        for (entry, window) in [
            (json!({"max_model_len": 8_192}), Some(8_192)),
            (json!({"meta": {"n_ctx_train": 131_072, "n_ctx": 4_096}}), Some(4_096)),
            (json!({"meta": {"n_ctx_train": 131_072}}), None),
            (json!({"loaded_context_length": 4_096, "max_context_length": 32_768}), Some(4_096)),
            (json!({"context_length": 200_000, "top_provider": {"context_length": 128_000}}), Some(128_000)),
            (json!({"top_provider": {"context_length": null}, "context_length": "32768"}), Some(32_768)),
            (json!({"max_model_len": 0, "context_window": 131_072}), Some(131_072)),
            (json!({"context_window": 99_000_000_000_u64}), None),
            (json!({"id": "x"}), None),
        ] {
            assert_eq!(window_of(&entry), window, "{entry}");
        }
    }

    #[test]
    fn a_model_is_found_literally_first() {
        let list = json!({"data": [
            {"id": "gpt-5", "n": 1}, {"id": "openai/gpt-5", "n": 2}, {"id": "a/m", "n": 3}, {"id": "b/m", "n": 4},
            {"name": "models/gem", "n": 5}, {},
        ]});
        let number = |model: &str| find(&list, model).and_then(|entry| entry["n"].as_u64());
        assert_eq!(number("openai/gpt-5"), Some(2));
        assert_eq!(number("azure/gpt-5"), Some(1));
        assert_eq!(number("azure:gpt-5"), Some(1));
        assert_eq!((number("m"), number("a/m"), number("gem"), number("none")), (None, Some(3), Some(5), None));
        assert_eq!(find(&json!(5), "m"), None);
    }
}
