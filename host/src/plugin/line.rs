//! The line between a plugin that runs on a thread of its own, and the pass that waits for it.
//!
//! The pass lends the record, so it cannot leave its thread; a component may loop for ever, so it must not be on it. What a
//! plugin wants to know or decides goes over this line as an [`Ask`], and comes back as an [`Answer`].

use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, channel};

use foreshorten_core::plan::Proposal;

use super::{Done, Fault};

/// A column of the record: one number an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// What it is.
    Kinds,
    /// Facts about it, as bits.
    Marks,
    /// What the view shows of it.
    Levels,
    /// Its group.
    Groups,
    /// The matching call or result.
    Pairs,
    /// Its weight in the record.
    Weights,
    /// Its weight in the view.
    ViewWeights,
    /// Bytes of its text.
    Sizes,
    /// Its tool.
    ToolIds,
    /// The operator's rule for its tool.
    Rules,
}

/// A range of a column, as narrow as its numbers are: no answer is converted on its way to a plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cells {
    /// Kinds, levels and rules.
    Bytes(Vec<u8>),
    /// Marks.
    Halves(Vec<u16>),
    /// All others.
    Words(Vec<u32>),
}

/// What a plugin asks.
#[derive(Clone, Debug)]
pub enum Ask {
    /// A range of a column.
    Column(Column, Range<u32>),
    /// Names of the tools.
    Tools,
    /// The id of a call or result.
    CallId(u32),
    /// Number of parts of an entry.
    PartCount(u32),
    /// Kind of a part.
    PartKind(u32, u32),
    /// A range of a part's text: entry, part, offset, longest.
    Text(u32, u32, u32, u32),
    /// Beginnings of the text of several entries: entries, longest of each, longest of all. Of what is above the latter,
    /// nothing is sent: the answer has fewer strings than were asked for.
    Texts(Vec<u32>, u32, u64),
    /// The room.
    Room,
    /// Tokens as weights count them for calibrated ones.
    Raw(u64),
    /// Decisions to be made.
    Decide(Vec<Proposal>),
    /// Decisions to be weighed, and not made.
    WouldSave(Vec<Proposal>),
    /// A summary to be asked for.
    RequestSummary(u32),
    /// An entry to be pinned.
    Pin(u32),
}

/// What the pass answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A range of a column.
    Cells(Cells),
    /// What decisions would save, one number each.
    Words(Vec<u32>),
    /// One string.
    Text(String),
    /// Several.
    Texts(Vec<String>),
    /// One number.
    Word(u32),
    /// One number of tokens.
    Long(u64),
    /// The room.
    Room(Room),
    /// One code a decision.
    Codes(Vec<u8>),
}

/// The room in a view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// Number of entries.
    pub len: u32,
    /// The context window in tokens.
    pub window: u64,
    /// Without what is kept free for the answer.
    pub usable: u64,
    /// What the view should shrink to.
    pub target: u64,
    /// The view now.
    pub view_tokens: u64,
    /// The provider rejected the view.
    pub aggressive: bool,
    /// First group of the tail.
    pub tail_start: u32,
    /// Turns so far.
    pub turn: u64,
}

/// What comes over the line to the pass.
#[derive(Debug)]
pub enum Message {
    /// A question; an answer is due.
    Ask(Ask),
    /// The call is over.
    Done(Box<Done>),
}

/// The fault of a call that nobody waits for.
pub(super) fn gone() -> Fault {
    Fault::Host("nobody waits for this call any more".into())
}

/// How a pass answers a call in its own thread; `None`: nobody waits for the call any more.
pub type Answering<'a> = &'a mut dyn FnMut(Ask) -> Option<Answer>;

/// The plugin's end.
pub struct Line {
    send: Box<dyn Fn(Message) -> bool + Send>,
    answers: Receiver<Answer>,
}

impl std::fmt::Debug for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Line")
    }
}

impl Line {
    /// Both ends: this one for the plugin, and where the pass puts its answers. `send` brings a message to the pass; it
    /// says false when nobody is there any more.
    #[must_use]
    pub fn new(send: impl Fn(Message) -> bool + Send + 'static) -> (Self, Sender<Answer>) {
        let (answer, answers) = channel();
        (Self { send: Box::new(send), answers }, answer)
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// The pass is gone.
    pub fn ask(&self, ask: Ask) -> Result<Answer, Fault> {
        if !(self.send)(Message::Ask(ask)) {
            return Err(gone());
        }
        self.answers.recv().map_err(|_| gone())
    }

    /// Ends the call.
    pub fn done(self, done: Done) {
        (self.send)(Message::Done(Box::new(done)));
    }
}
