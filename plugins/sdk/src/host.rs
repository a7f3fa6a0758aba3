//! What a plugin sees of its host, as traits, so that tests can stand in for it.

use alloc::{string::String, vec::Vec};

/// The answer to a decision: 0 accepted, else why not (`plugins/wit` lists the codes).
pub type Code = u8;

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// Instructions.
    System,
    /// What the user said.
    User,
    /// What the model said.
    Assistant,
    /// What it thought.
    Reasoning,
    /// A call of a tool.
    ToolCall,
    /// The answer to a call.
    ToolResult,
    /// A kind of a later host.
    Other,
}

impl From<u8> for Kind {
    fn from(code: u8) -> Self {
        match code {
            0 => Self::System,
            1 => Self::User,
            2 => Self::Assistant,
            3 => Self::Reasoning,
            4 => Self::ToolCall,
            5 => Self::ToolResult,
            _ => Self::Other,
        }
    }
}

/// Bits of [`History::marks`].
pub mod mark {
    /// The tool reported a failure.
    pub const ERROR: u16 = 1;
    /// It has images or files.
    pub const MEDIA: u16 = 2;
    /// In the tail, or pinned: what is proposed about it is refused.
    pub const PROTECTED: u16 = 4;
    /// Signed or encrypted.
    pub const SEALED: u16 = 8;
    /// Call or result of the recall tool.
    pub const RECALL: u16 = 16;
    /// A result without a call.
    pub const ORPHAN: u16 = 32;
    /// A call that waits for its result.
    pub const PENDING: u16 = 64;
    /// Shown beside the note that covers what stands around it: left as it is.
    pub const KEPT: u16 = 128;
}

/// A decision to be weighed by [`Pass::would_save`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reduction {
    /// [`Pass::clear`].
    Clear,
    /// [`Pass::clear_superseded`].
    ClearSuperseded,
    /// [`Pass::offload`].
    Offload {
        /// Bytes of the beginning that stay.
        head: u32,
        /// Bytes of the end that stay.
        tail: u32,
    },
    /// [`Pass::elide_media`].
    ElideMedia,
    /// [`Pass::elide_part`].
    ElidePart {
        /// The part.
        part: u32,
    },
    /// [`Pass::clip_arguments`].
    ClipArguments,
    /// [`Pass::omit_reasoning`].
    OmitReasoning,
    /// [`Pass::persist`].
    Persist {
        /// Bytes of the preview.
        head: u32,
    },
}

impl Reduction {
    /// Its number in the interface, and the two numbers beside it.
    #[cfg_attr(not(any(target_arch = "wasm32", feature = "dylib")), allow(dead_code, reason = "for a real host"))]
    pub(crate) const fn codes(self) -> (u32, u32, u32) {
        match self {
            Self::Clear => (0, 0, 0),
            Self::ClearSuperseded => (1, 0, 0),
            Self::Offload { head, tail } => (2, head, tail),
            Self::ElideMedia => (3, 0, 0),
            Self::ElidePart { part } => (4, part, 0),
            Self::ClipArguments => (5, 0, 0),
            Self::OmitReasoning => (6, 0, 0),
            Self::Persist { head } => (7, head, 0),
        }
    }
}

/// The transcript of this call. Columns cover `start .. start + count`, clipped: `(0, u32::MAX)` is all.
pub trait History {
    /// The plugin's configuration as JSON.
    fn config(&self) -> String;
    /// Says something to people: 0 error … 4 trace.
    fn log(&self, level: u8, message: &str);
    /// Number of entries.
    fn len(&self) -> u32;
    /// Codes of [`Kind`].
    fn kinds(&self, start: u32, count: u32) -> Vec<u8>;
    /// Facts, as bits of [`mark`].
    fn marks(&self, start: u32, count: u32) -> Vec<u16>;
    /// What the view shows: 0 verbatim, 1 elided, 2 condensed, 3 preview, 4 cleared, 5 covered.
    fn levels(&self, start: u32, count: u32) -> Vec<u8>;
    /// Groups.
    fn groups(&self, start: u32, count: u32) -> Vec<u32>;
    /// The matching call or result; `u32::MAX` where there is none.
    fn pairs(&self, start: u32, count: u32) -> Vec<u32>;
    /// Estimated tokens in the transcript.
    fn weights(&self, start: u32, count: u32) -> Vec<u32>;
    /// Estimated tokens in the view.
    fn view_weights(&self, start: u32, count: u32) -> Vec<u32>;
    /// Bytes of text.
    fn sizes(&self, start: u32, count: u32) -> Vec<u32>;
    /// Places in [`tools`](Self::tools); `u32::MAX` for other entries.
    fn tool_ids(&self, start: u32, count: u32) -> Vec<u32>;
    /// The operator's rule for the tool of a call or result: 0 ordinary, 1 never reduced, 2 arguments stay, 3 dropped
    /// first.
    fn rules(&self, start: u32, count: u32) -> Vec<u8>;
    /// Names of the tools.
    fn tools(&self) -> Vec<String>;
    /// Id of a call or result.
    fn call_id(&self, entry: u32) -> String;
    /// Number of parts.
    fn part_count(&self, entry: u32) -> u32;
    /// 0 text, 1 image, 2 file, 3 opaque.
    fn part_kind(&self, entry: u32, part: u32) -> u8;
    /// A range of a part's text.
    fn text(&self, entry: u32, part: u32, offset: u32, max: u32) -> String;
    /// The first `max` bytes of the text of each.
    fn texts(&self, entries: &[u32], max: u32) -> Vec<String>;
    /// Whether there are no entries.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A pass: what a stage sees and decides. Decisions stand only if the stage returns `Ok`.
pub trait Pass: History {
    /// The context window in tokens.
    fn window(&self) -> u64;
    /// Without what is kept free for the answer.
    fn usable(&self) -> u64;
    /// What the view should shrink to.
    fn target(&self) -> u64;
    /// The view now.
    fn view_tokens(&self) -> u64;
    /// The provider rejected the view.
    fn aggressive(&self) -> bool;
    /// First group of the tail.
    fn tail_start(&self) -> u32;
    /// Turns so far.
    fn turn(&self) -> u64;
    /// Tokens as weights count them that this many calibrated ones buy.
    fn raw(&self, tokens: u64) -> u64;
    /// Results give way to markers.
    fn clear(&mut self, entries: &[u32]) -> Vec<Code>;
    /// Likewise, because a newer call has the current result.
    fn clear_superseded(&mut self, entries: &[u32]) -> Vec<Code>;
    /// Results give way to previews.
    fn offload(&mut self, entries: &[u32], head: u32, tail: u32) -> Vec<Code>;
    /// Results give way to the marker of a persisted result, with a preview.
    fn persist(&mut self, entries: &[u32], head: u32) -> Vec<Code>;
    /// Tokens, as weights count them, that decisions would save, without making them; 0 where they would be refused.
    fn would_save(&self, what: Reduction, entries: &[u32]) -> Vec<u32>;
    /// Images and files give way to markers.
    fn elide_media(&mut self, entries: &[u32]) -> Vec<Code>;
    /// One of them does.
    fn elide_part(&mut self, entry: u32, part: u32) -> Code;
    /// Arguments of calls give way to a marker.
    fn clip_arguments(&mut self, entries: &[u32]) -> Vec<Code>;
    /// Reasoning is left out.
    fn omit_reasoning(&mut self, entries: &[u32]) -> Vec<Code>;
    /// Groups give way to a note.
    fn snip(&mut self, start: u32, end: u32) -> Code;
    /// The summary stage that comes next covers the groups before `end`.
    fn request_summary(&mut self, end: u32) -> Code;
    /// An entry stays verbatim.
    fn pin(&mut self, entry: u32) -> Code;
    /// The plugin's own text in place of a result. Needs the grant `condensing`.
    fn condense(&mut self, entry: u32, text: &str) -> Code;
    /// A line for the notice.
    fn explain(&mut self, line: &str);
    /// What was kept last.
    fn load_memo(&self) -> Vec<u8>;
    /// Keeps these bytes instead; false when they are too many.
    fn store_memo(&mut self, bytes: &[u8]) -> bool;

    /// Whether the view is small enough.
    fn reached_target(&self) -> bool {
        self.view_tokens() <= self.target()
    }
}

/// What a summarizer is asked for.
pub trait Task: History {
    /// Entries to be summarized.
    fn span(&self) -> Vec<u32>;
    /// Their text as a prompt can hold it.
    fn span_text(&self, offset: u32, max: u32) -> String;
    /// The summary so far.
    fn prior(&self) -> String;
    /// Headings it must have.
    fn sections(&self) -> Vec<String>;
    /// Longest summary in characters.
    fn max_chars(&self) -> u32;
    /// Tokens an answer may take.
    fn max_output_tokens(&self) -> u32;
    /// Answers so far.
    fn replies(&self) -> Vec<String>;
    /// Asks a model, to be answered in the next step.
    fn ask(&mut self, system: &str, user: &str, max_output_tokens: u32);
    /// Writes a section.
    fn section(&mut self, heading: &str, text: &str);
    /// A line for the notice.
    fn explain(&mut self, line: &str);
}

/// A stage.
pub trait Stage {
    /// Looks at the configuration when the plugin is loaded.
    ///
    /// # Errors
    /// What is wrong with it; the plugin is not loaded then.
    fn check(config: &str) -> Result<(), String> {
        let _ = config;
        Ok(())
    }

    /// Makes decisions.
    ///
    /// # Errors
    /// Why it cannot; all decisions of the call are dropped then.
    fn plan(pass: &mut impl Pass) -> Result<(), String>;
}

/// A summarizer.
pub trait Summarizer {
    /// As [`Stage::check`].
    ///
    /// # Errors
    /// What is wrong with the configuration.
    fn check(config: &str) -> Result<(), String> {
        let _ = config;
        Ok(())
    }

    /// Asks, or writes sections.
    ///
    /// # Errors
    /// Why it cannot.
    fn step(task: &mut impl Task) -> Result<(), String>;
}

/// At most `max` bytes from byte `offset`, both moved down to character boundaries.
#[cfg_attr(target_arch = "wasm32", allow(dead_code, reason = "there the host cuts"))]
pub(crate) fn cut(text: &str, offset: u32, max: u32) -> String {
    let floor = |text: &str, at: u32| {
        let mut at = (at as usize).min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let rest = &text[floor(text, offset)..];
    rest[..floor(rest, max)].into()
}
