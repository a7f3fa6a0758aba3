//! The planner in a Rust host: what `core/component/hosts` do with the component, here with the library itself. Prints one
//! digest over all views and states; `tools/planner` compares them.
//!
//!     cargo run --release --example planner -- testdata/sessions/support.openai-chat.json

use foreshorten::core::summary::extractive_summary;
use foreshorten::core::{
    Compactor, Effect, PolicyConfig, Step, Turn,
    transcript::{Entry, EntryKind, OwnedTranscript, Transcript as _},
    view::Piece,
};
use foreshorten::formats::read_session;
use sha2::{Digest as _, Sha256};

/// SHA-256 over fields, each with its length.
#[derive(Default)]
struct Fields(Sha256);

impl Fields {
    fn bytes(&mut self, data: &[u8]) {
        self.0.update(u32::try_from(data.len()).unwrap_or(u32::MAX).to_le_bytes());
        self.0.update(data);
    }

    fn number(&mut self, value: usize) {
        self.bytes(&u32::try_from(value).unwrap_or(u32::MAX).to_le_bytes());
    }

    fn piece(&mut self, piece: &Piece<'_>) {
        let (tag, entry, text) = match *piece {
            Piece::Entry { entry } => ("entry", Some(entry), None),
            Piece::Text { entry, text } => ("text", Some(entry), Some(text)),
            Piece::Elided { entry, text, .. } => ("elided", Some(entry), Some(text)),
            Piece::Arguments { entry, json } => ("arguments", Some(entry), Some(json)),
            Piece::Note { text } => ("note", None, Some(text)),
            Piece::StandIn { call, text } => ("stand-in", Some(call), Some(text)),
        };
        self.bytes(tag.as_bytes());
        if let Some(entry) = entry {
            self.number(entry);
        }
        if let Some(text) = text {
            self.bytes(text.as_bytes());
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("which session? a body in the format of OpenAI Chat Completions")?;
    let conversations = read_session(std::fs::read(path)?, None)?;
    let conversation = &conversations.first().ok_or("an empty file")?.transcript;
    let config = PolicyConfig {
        context_window: Some(8_000),
        reserve_output_tokens: Some(1_000),
        archive: true,
        ..PolicyConfig::default()
    };
    let mut compactor = Compactor::new(config.build()?);
    let mut record = OwnedTranscript::default();
    let (mut fields, mut turns, mut passes) = (Fields::default(), 0, 0);
    let mut next = 0;
    while next < conversation.len() {
        // One message a turn: what a model said, thought and called is one.
        let said = |at: usize| conversation.entry(at).kind.is_assistant_side();
        let mut end = next + 1;
        while said(next)
            && end < conversation.len()
            && said(end)
            && conversation.entry(end).kind != EntryKind::Reasoning
        {
            end += 1;
        }
        for at in next..end {
            record.push(Entry::copy_of(conversation, at));
        }
        next = end;
        compactor.sync(&record);
        compactor.begin(&record, Turn { can_summarize: true, ..Turn::default() });
        loop {
            match compactor.poll(&record) {
                Step::Effect(Effect::Summarize(request)) => {
                    let guard = compactor.guard(&record);
                    let chars = request.max_chars.min(1_500) as usize;
                    let text = extractive_summary(&guard, &request.entries, request.prior.as_deref(), chars);
                    compactor.handle_extract(&record, text);
                }
                Step::Effect(_) => compactor.handle_archived(true),
                Step::Done(outcome) => {
                    turns += 1;
                    passes += usize::from(outcome.compacted);
                    break;
                }
            }
        }
        for piece in compactor.view().pieces() {
            fields.piece(&piece);
        }
        fields.bytes(&compactor.state().encode());
    }
    let digest: String = fields.0.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    println!("digest {digest}\n{turns} turns, {passes} passes, Rust");
    Ok(())
}
