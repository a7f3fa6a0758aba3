//! SWE-agent trajectories: `history` is what the model saw, as chat messages. Without function calling an action is
//! text of the assistant and what it gave is the next user message; that is then what the record says, too.

use std::collections::HashMap;
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
    let mut drafts: Vec<Draft> = Vec::new();
    let mut by_agent: HashMap<Option<&str>, usize> = HashMap::new();
    for message in history.items() {
        let agent = message.get("agent");
        let at = *by_agent.entry(agent.map(Json::raw)).or_insert_with(|| {
            let name = agent.and_then(Json::string).map_or_else(|| "main".into(), std::borrow::Cow::into_owned);
            drafts.push(Draft::new(text, name));
            drafts.len() - 1
        });
        chat::message(&mut drafts[at].b, message)?;
    }
    if drafts.is_empty() {
        drafts.push(Draft::new(text, "main"));
    }
    Ok(drafts.into_iter().map(|draft| draft.finish(Format::SweAgent)).collect())
}
