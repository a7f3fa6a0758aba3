//! The address of an endpoint.

use std::fmt;

use reqwest::Url;

use super::options::SetupError;

/// Where the paths of a protocol lie.
#[derive(Clone)]
pub(super) struct Endpoint {
    url: Url,
    shown: String,
}

impl fmt::Debug for Endpoint {
    /// Without the query, which may hold a key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Endpoint({})", self.shown)
    }
}

/// What a protocol does to an address that does not say its version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    /// `/v1` is added when there is no path at all.
    WhenBare,
    /// `/v1` is added unless the path ends in a version.
    Always,
}

impl Endpoint {
    pub(super) fn parse(text: &str, own_path: &str, version: Version) -> Result<Self, SetupError> {
        let mut url = Url::parse(text.trim()).map_err(|error| SetupError(format!("its address is none: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return Err(SetupError("its address must begin with http:// or https:// and name a host".into()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(SetupError("its address holds a user name or password; give them as a header".into()));
        }
        url.set_fragment(None);
        let path = url.path().trim_end_matches('/');
        let path = path.strip_suffix(own_path).and_then(|path| path.strip_suffix('/')).unwrap_or(path);
        let mut path = path.trim_end_matches('/').to_owned();
        let versioned = path.rsplit('/').next().is_some_and(is_version);
        if (version == Version::WhenBare && path.is_empty()) || (version == Version::Always && !versioned) {
            path.push_str("/v1");
        }
        url.set_path(&path);
        let mut shown = url.clone();
        shown.set_query(None);
        let shown = shown.as_str().trim_end_matches('/').to_owned();
        Ok(Self { url, shown })
    }

    /// What tells this endpoint from others, without query.
    pub(super) fn shown(&self) -> &str {
        &self.shown
    }

    pub(super) fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    pub(super) fn port(&self) -> u16 {
        self.url.port_or_known_default().unwrap_or_default()
    }

    pub(super) fn is_plain(&self) -> bool {
        self.url.scheme() == "http"
    }

    /// The address of one path below; each segment is escaped as needed.
    pub(super) fn join(&self, segments: &[&str]) -> Url {
        let mut url = self.url.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(segments);
        }
        url
    }
}

/// `v1`, `v4`, `v1beta`.
fn is_version(segment: &str) -> bool {
    segment.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str, own: &str, version: Version) -> String {
        let endpoint = Endpoint::parse(text, own, version).unwrap();
        endpoint.join(&own.split('/').collect::<Vec<_>>()).to_string()
    }

    #[test]
    fn an_address_is_understood_with_and_without_version_slash_and_path() {
        let chat = "chat/completions";
        for (given, sent) in [
            ("https://api.openai.com", "https://api.openai.com/v1/chat/completions"),
            ("https://api.openai.com/v1", "https://api.openai.com/v1/chat/completions"),
            ("https://api.openai.com/v1//", "https://api.openai.com/v1/chat/completions"),
            ("https://x.ai/api/v4", "https://x.ai/api/v4/chat/completions"),
            ("http://h:8080/openai", "http://h:8080/openai/chat/completions"),
            ("http://h/v1/chat/completions", "http://h/v1/chat/completions"),
            ("http://h/d?api-version=1", "http://h/d/chat/completions?api-version=1"),
        ] {
            assert_eq!(url(given, chat, Version::WhenBare), sent, "{given}");
        }
        for (given, sent) in [
            ("https://api.anthropic.com", "https://api.anthropic.com/v1/messages"),
            ("https://api.anthropic.com/v1/", "https://api.anthropic.com/v1/messages"),
            ("https://h/anthropic", "https://h/anthropic/v1/messages"),
            ("https://h/anthropic/v1/messages", "https://h/anthropic/v1/messages"),
        ] {
            assert_eq!(url(given, "messages", Version::Always), sent, "{given}");
        }
    }

    #[test]
    fn what_is_shown_of_an_address_holds_no_secret() {
        let endpoint = Endpoint::parse("https://h/v1?key=abc#f", "responses", Version::WhenBare).unwrap();
        assert_eq!(endpoint.shown(), "https://h/v1");
        assert_eq!(endpoint.join(&["models", "a/b c"]).as_str(), "https://h/v1/models/a%2Fb%20c?key=abc");
        for refused in ["", "api.openai.com", "ftp://h", "https://user:pw@h/v1", "file:///etc"] {
            assert!(Endpoint::parse(refused, "responses", Version::WhenBare).is_err(), "{refused}");
        }
    }
}
