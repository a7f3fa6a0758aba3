//! Windows of models at the large providers' own endpoints.

/// The day on which the table was last checked.
pub const TABLE_DATE: &str = "2026-08-08";

/// Host, beginning of the model's name, tokens. The longest beginning wins.
const TABLE: &[(&str, &str, u64)] = &[
    ("api.openai.com", "gpt-4.1", 1_047_576),
    ("api.openai.com", "gpt-4o", 128_000),
    ("api.openai.com", "gpt-5", 400_000),
    ("api.openai.com", "gpt-5.4", 1_050_000),
    ("api.openai.com", "gpt-5.4-mini", 400_000),
    ("api.openai.com", "gpt-5.5", 1_050_000),
    ("api.openai.com", "o3", 200_000),
    ("api.openai.com", "o4-mini", 200_000),
    ("api.anthropic.com", "claude-3", 200_000),
    ("api.anthropic.com", "claude-opus-", 200_000),
    ("api.anthropic.com", "claude-sonnet-", 200_000),
    ("api.anthropic.com", "claude-haiku-", 200_000),
    ("api.anthropic.com", "claude-opus-4-6", 1_000_000),
    ("api.anthropic.com", "claude-opus-4-7", 1_000_000),
    ("api.anthropic.com", "claude-sonnet-4-6", 1_000_000),
    ("api.anthropic.com", "claude-opus-5", 1_000_000),
    ("api.anthropic.com", "claude-sonnet-5", 1_000_000),
    ("api.deepseek.com", "deepseek-v4-pro", 1_048_565),
];

/// The window that the table gives for a model at an endpoint (its base URL), in tokens.
///
/// ```
/// use foreshorten::window::table_window;
/// assert_eq!(table_window("https://api.openai.com/v1", "gpt-4.1-mini"), Some(1_047_576));
/// assert_eq!(table_window("https://proxy.example.org/v1", "gpt-4.1-mini"), None);
/// ```
#[must_use]
pub fn table_window(endpoint: &str, model: &str) -> Option<u64> {
    let rest = endpoint.split_once("://").map_or(endpoint, |(_, rest)| rest);
    let host = rest.split(['/', ':', '?']).next().unwrap_or_default();
    let name = model.rsplit('/').next().unwrap_or(model);
    let fits = |known: &str| {
        // `gpt-5` is not the beginning of `gpt-50`, nor of `gpt-5.4`.
        name.strip_prefix(known).is_some_and(|rest| {
            known.ends_with('-') || !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '.')
        })
    };
    let rows = TABLE.iter().filter(|(at, known, _)| at.eq_ignore_ascii_case(host) && fits(known));
    rows.max_by_key(|(_, known, _)| known.len()).map(|&(.., tokens)| tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_known_beginning_wins_and_other_hosts_are_unknown() {
        let openai = |model| table_window("https://api.openai.com/v1", model);
        assert_eq!(openai("gpt-5"), Some(400_000));
        assert_eq!(openai("gpt-5-codex"), Some(400_000));
        assert_eq!(openai("gpt-5.4-2026-01-01"), Some(1_050_000));
        assert_eq!(openai("gpt-5.4-mini"), Some(400_000));
        assert_eq!(openai("gpt-50"), None);
        let anthropic = |model| table_window("https://api.anthropic.com", model);
        assert_eq!(anthropic("claude-sonnet-4-20250514"), Some(200_000));
        assert_eq!(anthropic("claude-opus-4-6"), Some(1_000_000));
        assert_eq!(table_window("http://127.0.0.1:8000/v1", "gpt-5"), None);
    }
}
