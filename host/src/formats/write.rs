//! Puts the pieces of a view back into messages.

use std::ops::Range;

use foreshorten_core::transcript::{EntryKind, Transcript as _};
use foreshorten_core::view::Piece;

use super::body::Body;
use super::edit::{Edit, Edits};
use super::escape::quoted;
use super::json::{Json, Span};
use super::wire::{Content, EntryMeta, OUTSIDE, Slot};
use super::{Format, made};

/// What to do with the request's list of tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolsEdit<'a> {
    /// Nothing.
    #[default]
    Keep,
    /// Add this tool at the end, unless one of its name is there. A bare list has no place for it.
    Append {
        /// Name of the tool.
        name: &'a str,
        /// Its schema, in the shape of the protocol's list ([`recall_tool_schema`](super::recall_tool_schema)).
        schema: &'a str,
    },
}

/// A written body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// The body.
    pub bytes: Vec<u8>,
    /// For every piece, the index of its message in the view's list; `None` for a system prompt outside of it.
    pub message_of_piece: Vec<Option<usize>>,
    /// Byte offset of every message of the view in `bytes`.
    pub message_starts: Vec<usize>,
}

/// One message of the view, while it is put together.
enum Message {
    /// A message of the record: the pieces that stand for (some of) its entries, and results to add to it.
    Recorded { unit: u32, pieces: Range<usize>, stand_ins: Vec<String> },
    /// A message made here.
    Made(String),
}

/// The entry of the record that a piece shows.
const fn shown(piece: &Piece<'_>) -> Option<usize> {
    match *piece {
        Piece::Entry { entry }
        | Piece::Text { entry, .. }
        | Piece::Elided { entry, .. }
        | Piece::Arguments { entry, .. } => Some(entry),
        Piece::Note { .. } | Piece::StandIn { .. } => None,
    }
}

impl Body {
    /// Writes the body with the view that `pieces` are.
    ///
    /// A message all of whose entries stand verbatim and in order is copied. In any other only what a piece changes
    /// is written anew. Around and between messages the original bytes stay, so that a view without decisions is
    /// the body itself, and a view that only grew has the one before it as a prefix, up to the closing bracket.
    ///
    /// Messages are never merged and never put into another order than that of the pieces.
    #[must_use]
    pub fn write(&self, pieces: &[Piece<'_>], tools: ToolsEdit<'_>) -> Written {
        let source = self.transcript.source();
        let mut written = Written::default();
        let edit = self.tools_edit(tools);
        let mut out = String::with_capacity(source.len() + 1024);
        let copy = |out: &mut String, from: usize, to: usize| match &edit {
            Some((range, text)) if from <= range.start && range.end <= to => {
                out.push_str(source.get(from..range.start).unwrap_or_default());
                out.push_str(text);
                out.push_str(source.get(range.end..to).unwrap_or_default());
            }
            _ => out.push_str(source.get(from..to).unwrap_or_default()),
        };
        if self.conversation.is_none() {
            copy(&mut out, 0, source.len());
            written.message_of_piece = vec![None; pieces.len()];
        } else {
            copy(&mut out, 0, self.conversation.start as usize);
            self.write_conversation(pieces, &mut out, &mut written);
            copy(&mut out, self.conversation.end as usize, source.len());
        }
        written.bytes = out.into_bytes();
        written
    }

    fn write_conversation(&self, pieces: &[Piece<'_>], out: &mut String, written: &mut Written) {
        let source = self.transcript.source();
        if Json::spanning(source, self.conversation).is_string() {
            let messages = self.assemble(pieces, &mut written.message_of_piece);
            self.write_string(pieces, &messages, out, written);
            return;
        }
        out.push('[');
        self.write_messages(pieces, 0, out, written);
        let (start, end) = (self.conversation.start + 1, self.conversation.end);
        let last = self.transcript.units.last().map_or(start, |last| last.end);
        out.push_str(Span { start: last, end }.of(source));
    }

    /// Writes the messages of a list after the first `before`, each with what stands before it.
    pub(super) fn write_messages(&self, pieces: &[Piece<'_>], before: usize, out: &mut String, written: &mut Written) {
        let source = self.transcript.source();
        let messages = self.assemble(pieces, &mut written.message_of_piece);
        written.message_of_piece.iter_mut().flatten().for_each(|message| *message += before);
        let start = self.conversation.start + 1;
        let units = &self.transcript.units;
        let between = |from: u32, to: u32| Span { start: from, end: to }.of(source);
        // What stands before a message is its own, so that it does not depend on what follows.
        let lead = |unit: usize| match unit.checked_sub(1) {
            Some(before) => between(units[before].end, units[unit].start),
            None => units.first().map_or("", |first| between(start, first.start)),
        };
        for (at, message) in messages.iter().enumerate() {
            match message {
                _ if before + at == 0 => out.push_str(lead(0)),
                Message::Recorded { unit, .. } if *unit > 0 => out.push_str(lead(*unit as usize)),
                _ => out.push(','),
            }
            written.message_starts.push(out.len());
            self.write_message(message, pieces, out);
        }
    }

    /// A conversation that is one string stays one unless something stands beside it.
    fn write_string(&self, pieces: &[Piece<'_>], messages: &[Message], out: &mut String, written: &mut Written) {
        let raw = self.conversation.of(self.transcript.source());
        if let [Message::Recorded { pieces: range, .. }] = messages
            && matches!(pieces[range.start], Piece::Entry { .. })
        {
            written.message_starts.push(out.len());
            out.push_str(raw);
            return;
        }
        out.push('[');
        for (at, message) in messages.iter().enumerate() {
            if at > 0 {
                out.push(',');
            }
            written.message_starts.push(out.len());
            match message {
                Message::Recorded { pieces: range, .. } => {
                    let said = match pieces[range.start] {
                        Piece::Text { text, .. } => quoted(text),
                        _ => raw.to_owned(),
                    };
                    out.push_str(&format!(r#"{{"role":"user","content":{said}}}"#));
                }
                made @ Message::Made(_) => self.write_message(made, pieces, out),
            }
        }
        out.push(']');
    }

    /// Sorts pieces into messages. Only pieces of one message that stand together, in order, share one.
    fn assemble(&self, pieces: &[Piece<'_>], message_of_piece: &mut Vec<Option<usize>>) -> Vec<Message> {
        let mut messages: Vec<Message> = Vec::new();
        let mut newest = None;
        // Anthropic blocks for calls without result, until the message they go into is known.
        let mut waiting: Vec<(usize, String)> = Vec::new();
        for (at, piece) in pieces.iter().enumerate() {
            message_of_piece.push(None);
            let meta = shown(piece).and_then(|entry| self.transcript.entries.get(entry));
            if !waiting.is_empty()
                && meta.is_none_or(|meta| meta.kind != EntryKind::ToolResult)
                && !matches!(piece, Piece::StandIn { .. })
            {
                self.settle(&mut waiting, pieces, &mut messages, message_of_piece);
            }
            match *piece {
                Piece::Note { text } => messages.push(Message::Made(made::note(self.format, text))),
                Piece::StandIn { call, text } => match self.stand_in(call, text) {
                    block if self.format == Format::AnthropicMessages => {
                        waiting.push((at, block));
                        continue;
                    }
                    message => messages.push(Message::Made(message)),
                },
                _ => {
                    let Some(meta) = meta.filter(|meta| meta.unit != OUTSIDE) else { continue };
                    let entry = shown(piece);
                    match messages.last_mut() {
                        Some(Message::Recorded { unit, pieces, .. }) if *unit == meta.unit && newest < entry => {
                            pieces.end = at + 1;
                        }
                        _ => messages.push(Message::Recorded {
                            unit: meta.unit,
                            pieces: at..at + 1,
                            stand_ins: Vec::new(),
                        }),
                    }
                    newest = entry;
                }
            }
            message_of_piece[at] = messages.len().checked_sub(1);
        }
        self.settle(&mut waiting, pieces, &mut messages, message_of_piece);
        messages
    }

    /// The block, message or item that answers a call which never got a result.
    fn stand_in(&self, call: usize, text: &str) -> String {
        let record = &self.transcript;
        let Some(meta) = record.entries.get(call) else { return made::failed_block("", text) };
        let facts = record.entry(call);
        if self.format == Format::AnthropicMessages {
            return made::failed_block(facts.call_id, text);
        }
        let raw = if meta.item.is_none() { record.message(meta.unit as usize) } else { meta.item.of(record.source()) };
        made::answer(self.format, raw, facts.call_id, facts.name, text)
    }

    /// Puts waiting blocks at the end of the results that were written last, or into a message of their own.
    fn settle(
        &self,
        waiting: &mut Vec<(usize, String)>,
        pieces: &[Piece<'_>],
        messages: &mut Vec<Message>,
        message_of_piece: &mut [Option<usize>],
    ) {
        if waiting.is_empty() {
            return;
        }
        let ends_in_result = |range: &Range<usize>| {
            let last = pieces.get(range.end.wrapping_sub(1)).and_then(shown);
            last.is_some_and(|entry| self.transcript.entries[entry].kind == EntryKind::ToolResult)
        };
        let at = match messages.last() {
            Some(Message::Recorded { pieces, .. }) if ends_in_result(pieces) => messages.len() - 1,
            _ => messages.len(),
        };
        for (piece, _) in waiting.iter() {
            message_of_piece[*piece] = Some(at);
        }
        let blocks = waiting.drain(..).map(|(_, block)| block);
        match messages.get_mut(at) {
            Some(Message::Recorded { stand_ins, .. }) => stand_ins.extend(blocks),
            _ => {
                let blocks: Vec<_> = blocks.collect();
                messages.push(Message::Made(format!(r#"{{"role":"user","content":[{}]}}"#, blocks.join(","))));
            }
        }
    }

    fn write_message(&self, message: &Message, pieces: &[Piece<'_>], out: &mut String) {
        let (unit, range, stand_ins) = match message {
            Message::Made(text) => return out.push_str(text),
            Message::Recorded { unit, pieces, stand_ins } => (*unit, pieces, stand_ins),
        };
        let record = &self.transcript;
        let of_unit = |entry: &usize| record.entries.get(*entry).is_some_and(|meta| meta.unit == unit);
        let ours = |piece: &&Piece<'_>| shown(piece).is_some_and(|entry| of_unit(&entry));
        let mut shown_pieces = pieces[range.clone()].iter().filter(ours).peekable();
        let Some(first) = shown_pieces.peek().and_then(|piece| shown(piece)) else { return };
        let begin = (0..first).rev().take_while(of_unit).last().unwrap_or(first);
        let mut edits = Edits::default();
        let mut last_result = Span::NONE;
        for entry in (begin..).take_while(of_unit) {
            let meta = &record.entries[entry];
            match shown_pieces.next_if(|piece| shown(piece) == Some(entry)) {
                None => self.drop_entry(meta, &mut edits),
                Some(piece) => {
                    self.change(meta, piece, &mut edits);
                    if meta.kind == EntryKind::ToolResult {
                        last_result = meta.item;
                    }
                }
            }
        }
        for block in stand_ins {
            edits.push(last_result, Edit::After(block.clone()));
        }
        edits.write(Json::spanning(record.source(), record.units[unit as usize]), out);
    }

    fn drop_entry(&self, meta: &EntryMeta, edits: &mut Edits) {
        edits.push(meta.item, Edit::Drop);
        for part in &self.transcript.parts[meta.parts.0 as usize..meta.parts.1 as usize] {
            if !meta.item.contains(part.item) {
                edits.push(part.item, Edit::Drop);
            }
        }
    }

    fn change(&self, meta: &EntryMeta, piece: &Piece<'_>, edits: &mut Edits) {
        let source = self.transcript.source();
        let parts = &self.transcript.parts[meta.parts.0 as usize..meta.parts.1 as usize];
        match *piece {
            Piece::Text { text, .. } => match meta.slot {
                Slot::String(span) | Slot::Json(span) => edits.push(span, Edit::Replace(quoted(text))),
                Slot::After(span, name) => edits.push(span, Edit::After(format!(r#""{name}":{}"#, quoted(text)))),
                Slot::Screenshot(span) => edits.push(span, Edit::Replace(made::screenshot())),
                Slot::Shell(span) => edits.push(span, Edit::Replace(made::shell_output(text))),
                Slot::None => {
                    // One part becomes the text and the others go.
                    for (at, part) in parts.iter().enumerate() {
                        let edit = if at == 0 {
                            Edit::Replace(made::text_part(self.format, text, Json::spanning(source, part.item)))
                        } else {
                            Edit::Drop
                        };
                        edits.push(part.item, edit);
                    }
                }
            },
            Piece::Elided { parts: elided, text, .. } => {
                for part in elided.iter().filter_map(|&at| parts.get(at as usize)) {
                    if !matches!(part.content, Content::Image(_) | Content::File(_)) {
                        continue;
                    }
                    match meta.slot {
                        Slot::Screenshot(span) => edits.push(span, Edit::Replace(made::screenshot())),
                        _ if part.item.is_none() => {}
                        _ => {
                            let made = made::text_part(self.format, text, Json::spanning(source, part.item));
                            edits.push(part.item, Edit::Replace(made));
                        }
                    }
                }
            }
            Piece::Arguments { json, .. } => match meta.slot {
                Slot::String(span) => edits.push(span, Edit::Replace(quoted(json))),
                Slot::Json(span) => edits.push(span, Edit::Replace(json.to_owned())),
                _ => {}
            },
            _ => {}
        }
    }

    /// The stretch of the source to replace, and by what.
    pub(super) fn tools_edit(&self, edit: ToolsEdit<'_>) -> Option<(Range<usize>, String)> {
        let ToolsEdit::Append { name, schema } = edit else { return None };
        let root = Json::spanning(self.transcript.source(), self.root);
        if !root.is_object() {
            return None;
        }
        let [tools, functions] = root.fields(["tools", "functions"]);
        let named = |tool: Json<'_>| {
            tool.get("name").or_else(|| tool.path(&["function", "name"])).is_some_and(|given| given.is(name))
        };
        // A legacy request lists bare functions, and may not have both.
        let legacy = functions.filter(|list| list.is_array() && tools.is_none() && self.format == Format::OpenAiChat);
        let schema = match legacy {
            Some(_) => Json::at(schema, 0).get("function").map_or(schema, Json::raw),
            None => schema,
        };
        match legacy.or(tools) {
            Some(list) if list.is_array() => {
                let mut last = None;
                for tool in list.items() {
                    if named(tool) {
                        return None;
                    }
                    last = Some(tool.end());
                }
                let at = last.unwrap_or_else(|| list.start() + 1);
                Some((at..at, if last.is_some() { format!(",{schema}") } else { schema.to_owned() }))
            }
            Some(list) if list.is_null() => Some((list.start()..list.end(), format!("[{schema}]"))),
            Some(_) => None,
            None => {
                let last = root.members().last();
                let at = last.map_or_else(|| root.start() + 1, |last| last.value.end());
                Some((at..at, format!(r#"{}"tools":[{schema}]"#, if last.is_some() { "," } else { "" })))
            }
        }
    }
}
