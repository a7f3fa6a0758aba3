//! The ten-line blocking loop around the core, and what it answers with.

use foreshorten_core::{
    Compactor, Effect, Finish, Policy, Step, SummaryFailure, SummaryReply, summary::extractive_summary,
    transcript::Transcript,
};

use crate::store::FileStore;

/// Who writes summaries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
#[non_exhaustive]
pub enum SummarizerKind {
    /// Nobody: old stretches give way to a note that says what was left out.
    #[default]
    None,
    /// Lines taken from the record, without a model.
    Extractive,
}

/// Polls until the view is ready, answering effects in this thread.
pub fn settle<P: std::borrow::Borrow<Policy>>(
    compactor: &mut Compactor<P>,
    transcript: &dyn Transcript,
    summarizer: SummarizerKind,
    store: Option<&FileStore>,
) {
    loop {
        match compactor.poll(transcript) {
            Step::Done(_) => return,
            Step::Effect(Effect::Summarize(request)) => {
                let reply = match summarizer {
                    SummarizerKind::None => Err(SummaryFailure::Failed),
                    SummarizerKind::Extractive => {
                        let guard = compactor.guard(transcript);
                        let most = (request.max_chars as usize).min(EXTRACT_CHARS);
                        let text = extractive_summary(&guard, &request.entries, request.prior.as_deref(), most);
                        Ok(SummaryReply { text, finish: Finish::Complete })
                    }
                };
                compactor.handle_summary(transcript, reply);
            }
            Step::Effect(Effect::Archive { entry, digest }) => {
                let stored = store.is_some_and(|store| store.put_entry(&digest, transcript, entry).is_ok());
                compactor.handle_archived(stored);
            }
            Step::Effect(_) => compactor.handle_proposals(transcript, Vec::new()),
        }
    }
}

/// Length of an extract: long enough to carry on, a tenth of a small window.
const EXTRACT_CHARS: usize = 4_000;
