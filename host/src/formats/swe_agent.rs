//! SWE-agent trajectories: `history` is what the model saw, as chat messages. Without function calling an action is
//! text of the assistant and what it gave is the next user message; that is then what the record says, too.

use std::sync::Arc;

use super::error::FormatError;
use super::json::Json;
use super::parsed::Parsed;
use super::session::{Conversation, Draft};
use super::{Format, chat};

/// Reads a trajectory; several agents in one are several conversations.
pub(crate) fn read(text: &Arc<String>, parsed: &Parsed<'_>) -> Result<Vec<Conversation>, FormatError> {
    let root = parsed.root();
    let Some(history) = root.get("history").filter(|list| list.is_array()) else {
        return Err(FormatError::here(text.as_bytes(), root.start(), "a SWE-agent trajectory with a list `history`"));
    };
    let mut drafts: Vec<(Option<Json<'_>>, Draft)> = Vec::new();
    for message in history.items() {
        let agent = message.get("agent");
        let same = |other: &Option<Json<'_>>| other.map(Json::raw) == agent.map(Json::raw);
        let at = match drafts.iter().position(|(other, _)| same(other)) {
            Some(at) => at,
            None => {
                let name = agent.and_then(Json::string).map_or_else(|| "main".into(), std::borrow::Cow::into_owned);
                drafts.push((agent, Draft::new(text, name)));
                drafts.len() - 1
            }
        };
        chat::message(&mut drafts[at].1.b, message)?;
    }
    if drafts.is_empty() {
        drafts.push((None, Draft::new(text, "main")));
    }
    Ok(drafts.into_iter().map(|(_, draft)| draft.finish(Format::SweAgent)).collect())
}
