//! What goes out on the wire, step by step, so that it can go wrong on the way.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use serde_json::Value;
use tokio::time::{Sleep, sleep};

/// Long enough for what was written to leave before a reset.
const FLUSH: Duration = Duration::from_millis(20);

/// The connection is reset, on purpose.
#[derive(Debug)]
pub(crate) struct ResetOnPurpose;

impl fmt::Display for ResetOnPurpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("reset on purpose")
    }
}

impl std::error::Error for ResetOnPurpose {}

/// One step of an answer.
#[derive(Debug)]
pub(crate) enum Step {
    Send(Bytes),
    Wait(Duration),
    Reset,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Reply {
    /// 0: no answer, only steps before a reset.
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) steps: VecDeque<Step>,
}

impl Reply {
    pub(crate) fn new(status: u16, content_type: &str, body: impl Into<Bytes>) -> Self {
        let headers = vec![("content-type", content_type.to_owned())];
        Self { status, headers, steps: VecDeque::from([Step::Send(body.into())]) }
    }

    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self::new(status, "application/json", body.to_string())
    }

    /// A stream of pieces.
    pub(crate) fn stream(pieces: impl IntoIterator<Item = String>) -> Self {
        let headers =
            vec![("content-type", "text/event-stream; charset=utf-8".to_owned()), ("cache-control", "no-cache".into())];
        Self { status: 200, headers, steps: pieces.into_iter().map(|piece| Step::Send(piece.into())).collect() }
    }

    /// No answer: a pause, then a reset.
    pub(crate) fn nothing(pause: Duration) -> Self {
        Self { status: 0, headers: Vec::new(), steps: VecDeque::from([Step::Wait(pause), Step::Reset]) }
    }

    pub(crate) fn header(mut self, name: &'static str, value: impl ToString) -> Self {
        self.headers.retain(|(known, _)| *known != name);
        self.headers.push((name, value.to_string()));
        self
    }

    /// Replaces everything after the first half: of a stream its events, of a plain body its bytes.
    pub(crate) fn half(mut self, then: impl IntoIterator<Item = Step>) -> Self {
        if self.steps.len() > 1 {
            self.steps.truncate(self.steps.len() / 2);
        } else if let Some(Step::Send(bytes)) = self.steps.front_mut() {
            bytes.truncate(bytes.len() / 2);
        }
        // A body of known length cannot end early: the second step makes it one of unknown length.
        self.steps.push_back(Step::Wait(FLUSH));
        self.steps.extend(then);
        self
    }

    /// A pause before every piece.
    pub(crate) fn slow(mut self, pause: Duration) -> Self {
        self.steps = self.steps.into_iter().flat_map(|step| [Step::Wait(pause), step]).collect();
        self
    }

    /// Every piece's bytes changed.
    pub(crate) fn map_bytes(mut self, change: impl Fn(&[u8]) -> Vec<u8>) -> Self {
        for step in &mut self.steps {
            if let Step::Send(bytes) = step {
                *bytes = change(bytes).into();
            }
        }
        self
    }

    /// The pieces cut again, into this many bytes each.
    pub(crate) fn cut(mut self, size: usize) -> Self {
        let mut steps = VecDeque::new();
        let mut pending = Vec::new();
        for step in self.steps {
            match step {
                Step::Send(bytes) => {
                    pending.extend_from_slice(&bytes);
                    let whole = pending.len() / size.max(1) * size.max(1);
                    let rest = pending.split_off(whole);
                    steps.extend(pending.chunks(size.max(1)).flat_map(|piece| {
                        // Else hyper writes neighbours together.
                        [Step::Send(Bytes::copy_from_slice(piece)), Step::Wait(Duration::ZERO)]
                    }));
                    pending = rest;
                }
                other => {
                    steps.push_back(Step::Send(std::mem::take(&mut pending).into()));
                    steps.push_back(other);
                }
            }
        }
        steps.push_back(Step::Send(pending.into()));
        self.steps = steps;
        self
    }

    pub(crate) fn into_body(self) -> StepBody {
        StepBody { steps: self.steps, sleep: None }
    }
}

/// A body that sends, waits and fails as told.
#[derive(Debug)]
pub(crate) struct StepBody {
    steps: VecDeque<Step>,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Body for StepBody {
    type Data = Bytes;
    type Error = ResetOnPurpose;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ResetOnPurpose>>> {
        loop {
            if let Some(pause) = &mut self.sleep {
                match pause.as_mut().poll(context) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(()) => self.sleep = None,
                }
            }
            match self.steps.pop_front() {
                None => return Poll::Ready(None),
                Some(Step::Send(bytes)) if bytes.is_empty() => {}
                Some(Step::Send(bytes)) => return Poll::Ready(Some(Ok(Frame::data(bytes)))),
                Some(Step::Wait(pause)) => self.sleep = Some(Box::pin(sleep(pause))),
                Some(Step::Reset) => return Poll::Ready(Some(Err(ResetOnPurpose))),
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.steps.is_empty() && self.sleep.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        match self.steps.iter().collect::<Vec<_>>()[..] {
            [] => SizeHint::with_exact(0),
            [Step::Send(bytes)] => SizeHint::with_exact(bytes.len() as u64),
            _ => SizeHint::default(),
        }
    }
}
