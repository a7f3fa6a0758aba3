//! `recall_tool_result`: brings back what a view no longer shows.

mod find;
#[cfg(test)]
mod tests;
mod words;

use std::sync::Arc;

use async_trait::async_trait;
use foreshorten_core::digest::Digest;
use foreshorten_core::marker::RECALL_TOOL_DESCRIPTION;
use foreshorten_core::recall::{occurrences, page};
use foreshorten_core::transcript::{Part, RECALL_TOOL, Transcript as _};
use serde_json::{Value, json};

use super::{Tool, ToolCall, ToolOutput, ToolSpec};
use crate::formats::{Format, recall_tool_schema};
use crate::stores::{ResultStore, Stored};
use find::{Session, Target};

/// The recall tool over a store, if there is one, for any policy that drops content. See [`RecallTool`].
///
/// ```
/// use foreshorten::record::{Message, Record};
/// use foreshorten::tool::{ToolCall, ToolOutput, make_recall_tool};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let record: Record = [Message::result("c1", "what the tool printed")].into_iter().collect();
/// let tool = make_recall_tool(None);
/// let output = tool.call(ToolCall::new("c2", r#"{"ref": "c1"}"#, &record)).await;
/// assert_eq!(output, ToolOutput::text("what the tool printed"));
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use]
pub fn make_recall_tool(store: Option<Arc<dyn ResultStore>>) -> Arc<dyn Tool> {
    Arc::new(RecallTool::new(store))
}

/// `recall_tool_result`: brings back what a marker, preview or note stands for, byte for byte.
///
/// | argument | |
/// |---|---|
/// | `ref` | a call id, the digest of some content, or the reference of a note, as it stands in the view |
/// | `offset` | first byte of the page; default 0 |
/// | `limit` | most bytes of the page; default [`PAGE_BYTES`](Self::PAGE_BYTES), at most [`MAX_PAGE_BYTES`](Self::MAX_PAGE_BYTES) |
/// | `search` | list the places where this text occurs, whatever its case: within what `ref` names, or, when that is empty or unknown, in everything that was removed |
///
/// The store is asked first, where the decisions of the session, or an output that was trimmed, name a digest; then the
/// record. What the store gives is taken only if it has that digest, and a store that fails does not stand in the way of
/// the record. The first part of an answer is the content and nothing else; images and files follow as such with
/// the first page; what the tool itself has to say stands last, in brackets.
///
/// Reached is the session's own content only: its record, and what its own state or a trimmed output names.
/// [`over_all_sessions`](Self::over_all_sessions) lifts that.
///
/// Each call reads the whole record once.
pub struct RecallTool {
    store: Option<Arc<dyn ResultStore>>,
    page_bytes: usize,
    widened: bool,
}

/// Most places a search lists.
const PLACES: usize = 50;

impl RecallTool {
    /// Default of the most bytes of one page: 16 KiB, some 4,000 tokens. A view that was just made smaller has room for
    /// a page, and most tool outputs are one.
    pub const PAGE_BYTES: usize = 16 << 10;
    /// Most bytes a page may be asked to have: 64 KiB, some 16,000 tokens.
    pub const MAX_PAGE_BYTES: usize = 64 << 10;

    /// The tool over a store, if there is one.
    #[must_use]
    pub fn new(store: Option<Arc<dyn ResultStore>>) -> Self {
        Self { store, page_bytes: Self::PAGE_BYTES, widened: false }
    }

    /// The same tool with another page: 1 to [`MAX_PAGE_BYTES`](Self::MAX_PAGE_BYTES).
    #[must_use]
    pub fn with_page_bytes(mut self, bytes: usize) -> Self {
        self.page_bytes = bytes.clamp(1, Self::MAX_PAGE_BYTES);
        self
    }

    /// The same tool, which gives out whatever the store has under a digest, whichever session put it there.
    #[must_use]
    pub const fn over_all_sessions(mut self) -> Self {
        self.widened = true;
        self
    }

    /// What the store has under a digest, if it is what it should be.
    async fn stored(&self, digest: &Digest) -> Result<Option<Stored>, String> {
        let Some(store) = &self.store else { return Ok(None) };
        match store.get(digest).await {
            Ok(stored) => Ok(stored.filter(|stored| Digest::of(stored.content()) == *digest)),
            Err(error) => {
                tracing::warn!(%digest, %error, "the result store failed");
                Err(words::store_failed(&error))
            }
        }
    }

    async fn content(&self, call: &ToolCall<'_>, target: Target, reference: &str) -> Result<Content, String> {
        Ok(match target {
            Target::Note(text) => Content { text, ..Content::default() },
            Target::Content(digest) => match self.stored(&digest).await? {
                Some(stored) => Content::of(&stored),
                None => return Err(words::unknown(reference)),
            },
            Target::Entry { entry, digest, exact, stored } => {
                let found = if stored { self.stored(&digest).await } else { Ok(None) };
                let is_error = call.record.entry(entry).is_error;
                match found {
                    Ok(Some(stored)) => Content { is_error, ..Content::of(&stored) },
                    _ if exact => Content { is_error, ..Content::of(&Stored::of(call.record, entry)) },
                    found => {
                        let left = Content::of(&Stored::of(call.record, entry));
                        let Some(trimmed) = foreshorten_core::marker::trimmed(&left.text) else {
                            return Err(found.err().unwrap_or_else(|| words::gone(reference, self.store.is_some())));
                        };
                        let (text, notice) = (trimmed.head.to_owned(), words::trimmed(found.err()));
                        Content { text, is_error, notice: Some(notice), ..Content::default() }
                    }
                }
            }
            Target::Ambiguous(lines, left_out) => return Err(words::ambiguous(reference, &lines, left_out)),
            Target::Unknown => return Err(words::unknown(reference)),
        })
    }

    async fn answer(&self, call: &ToolCall<'_>) -> Result<ToolOutput, String> {
        let asked = Asked::read(call.arguments)?;
        let reference = asked.reference.as_str();
        let (target, everywhere) = {
            let session = Session::of(call);
            let target = match reference {
                "" => Target::Unknown,
                reference => session.find(reference, self.widened),
            };
            let everywhere = asked.search.as_deref().filter(|_| target == Target::Unknown);
            let everywhere = everywhere.map(|needle| {
                let (lines, more) = session.search(needle, PLACES);
                words::places(needle, &lines, more, "what was removed from this conversation")
            });
            (target, everywhere)
        };
        if let Some(places) = everywhere {
            return Ok(ToolOutput::text(places));
        }
        if reference.is_empty() {
            return Err(words::usage("There is no reference."));
        }
        let content = self.content(call, target, reference).await?;
        Ok(match &asked.search {
            Some(needle) => content.places(reference, needle),
            None => content.page(asked.offset, asked.limit.unwrap_or(self.page_bytes)),
        })
    }
}

impl std::fmt::Debug for RecallTool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let store = self.store.is_some();
        f.debug_struct("RecallTool")
            .field("store", &store)
            .field("page_bytes", &self.page_bytes)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Tool for RecallTool {
    fn spec(&self) -> ToolSpec {
        let schema = recall_tool_schema(Format::AnthropicMessages, RECALL_TOOL, RECALL_TOOL_DESCRIPTION);
        let schema: Value = serde_json::from_str(&schema).unwrap_or_default();
        let parameters = schema.get("input_schema").cloned().unwrap_or_else(|| json!({"type": "object"}));
        ToolSpec::new(RECALL_TOOL, RECALL_TOOL_DESCRIPTION, parameters)
    }

    async fn call(&self, call: ToolCall<'_>) -> ToolOutput {
        self.answer(&call).await.unwrap_or_else(ToolOutput::error)
    }
}

/// The arguments of a call.
struct Asked {
    reference: String,
    offset: usize,
    limit: Option<usize>,
    search: Option<String>,
}

impl Asked {
    /// Reads arguments. Numbers may stand in quotes, as some models write them.
    fn read(arguments: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(arguments)
            .map_err(|error| words::usage(&format!("The arguments are no JSON object ({error}).")))?;
        let Value::Object(fields) = value else {
            return Err(words::usage("The arguments are no JSON object."));
        };
        let text = |name: &str| match fields.get(name) {
            Some(Value::String(text)) => Ok(text.trim().to_owned()),
            Some(Value::Number(number)) => Ok(number.to_string()),
            None | Some(Value::Null) => Ok(String::new()),
            Some(_) => Err(words::usage(&format!("`{name}` is no text."))),
        };
        let number = |name: &str| match text(name)?.as_str() {
            "" => Ok(None),
            number => match number.parse::<usize>() {
                Ok(number) => Ok(Some(number)),
                Err(_) => Err(words::usage(&format!("`{name}` is no number of bytes."))),
            },
        };
        let limit = number("limit")?.filter(|&limit| limit > 0);
        // White space may be what is looked for.
        let search = fields.get("search").and_then(Value::as_str).filter(|search| !search.is_empty());
        Ok(Self {
            reference: text("ref")?,
            offset: number("offset")?.unwrap_or(0),
            limit: limit.map(|limit| limit.min(RecallTool::MAX_PAGE_BYTES)),
            search: search.map(Into::into),
        })
    }
}

/// What is brought back.
#[derive(Default)]
struct Content {
    text: String,
    media: Vec<Part>,
    is_error: bool,
    notice: Option<String>,
}

impl Content {
    fn of(stored: &Stored) -> Self {
        let text = String::from_utf8_lossy(stored.text()).into_owned();
        Self { text, media: stored.media(), ..Self::default() }
    }

    fn page(self, offset: usize, limit: usize) -> ToolOutput {
        let page = page(&self.text, offset, limit);
        let mut parts = Vec::new();
        let mut said = Vec::new();
        if !page.text.is_empty() || (self.media.is_empty() && self.notice.is_none()) {
            parts.push(Part::Text(page.text.into()));
        }
        if offset == 0 {
            for part in self.media {
                match part {
                    Part::Opaque(data) => said.push(words::opaque(data.len())),
                    media => parts.push(media),
                }
            }
        }
        said.extend(words::page(&page));
        if self.is_error {
            said.push(words::WAS_ERROR.into());
        }
        // What is missing is said where the end of what is left is shown.
        said.extend(self.notice.filter(|_| page.next.is_none()));
        if !said.is_empty() {
            parts.push(Part::Text(said.join("\n")));
        }
        ToolOutput { parts, is_error: false }
    }

    fn places(&self, reference: &str, needle: &str) -> ToolOutput {
        let mut found = occurrences(&self.text, needle, true, PLACES + 1);
        let more = found.len() > PLACES;
        found.truncate(PLACES);
        let line = |(offset, excerpt): (usize, String)| format!("{reference:?} offset {offset}: {excerpt}");
        let lines: Vec<String> = found.into_iter().map(line).collect();
        let mut text = words::places(needle, &lines, more, &format!("{reference:?}"));
        if let Some(notice) = &self.notice {
            text.push('\n');
            text.push_str(notice);
        }
        ToolOutput::text(text)
    }
}
