//! What a component may import: the functions of `plugins/wit`, and no others.

use foreshorten_core::plan::Proposal;
use wasmtime::component::{Linker, LinkerInstance};
use wasmtime::{Engine, Result, StoreContextMut};

use super::super::line::{Ask, Cells, Column};
use super::super::{Fault, ModelAsk, SummaryJob, desk::single};
use super::call::State;
use super::world::interface;

type Store<'a> = StoreContextMut<'a, State>;

/// Everything, granted or not: what a component imports was compared with its grants before.
pub(super) fn linker(engine: &Engine) -> Result<Linker<State>> {
    let mut linker = Linker::new(engine);
    env(&mut linker.instance(&interface("env"))?)?;
    history(&mut linker.instance(&interface("history"))?)?;
    budget(&mut linker.instance(&interface("budget"))?)?;
    decisions(&mut linker.instance(&interface("decisions"))?)?;
    condensing(&mut linker.instance(&interface("condensing"))?)?;
    memo(&mut linker.instance(&interface("memo"))?)?;
    summarizing(&mut linker.instance(&interface("summarizing"))?)?;
    Ok(linker)
}

fn env(at: &mut LinkerInstance<'_, State>) -> Result<()> {
    at.func_wrap("config", |mut store: Store<'_>, (): ()| Ok((store.data_mut().enter()?.job.config.to_string(),)))?;
    at.func_wrap("log", |mut store: Store<'_>, (level, message): (u8, String)| {
        Ok(store.data_mut().log(level, &message)?)
    })
}

/// A column of bytes, of half words, of words.
macro_rules! column {
    ($at:ident, $name:literal, $column:ident, $cells:ident) => {
        $at.func_wrap($name, |mut store: Store<'_>, (start, count): (u32, u32)| {
            match store.data_mut().column(Column::$column, start, count)? {
                Cells::$cells(cells) => Ok((cells,)),
                _ => Err(Fault::Host(concat!("a column of the wrong width: ", $name).into()).into()),
            }
        })?;
    };
}

fn history(at: &mut LinkerInstance<'_, State>) -> Result<()> {
    at.func_wrap("len", |mut store: Store<'_>, (): ()| Ok((store.data_mut().room()?.len,)))?;
    column!(at, "kinds", Kinds, Bytes);
    column!(at, "marks", Marks, Halves);
    column!(at, "levels", Levels, Bytes);
    column!(at, "groups", Groups, Words);
    column!(at, "pairs", Pairs, Words);
    column!(at, "weights", Weights, Words);
    column!(at, "view-weights", ViewWeights, Words);
    column!(at, "sizes", Sizes, Words);
    column!(at, "tool-ids", ToolIds, Words);
    column!(at, "rules", Rules, Bytes);
    at.func_wrap("tools", |mut store: Store<'_>, (): ()| Ok((store.data_mut().tools()?,)))?;
    at.func_wrap("call-id", |mut store: Store<'_>, (entry,): (u32,)| {
        Ok((store.data_mut().string(Ask::CallId(entry))?,))
    })?;
    at.func_wrap("part-count", |mut store: Store<'_>, (entry,): (u32,)| {
        Ok((store.data_mut().word(Ask::PartCount(entry))?,))
    })?;
    at.func_wrap("part-kind", |mut store: Store<'_>, (entry, part): (u32, u32)| {
        Ok((store.data_mut().word(Ask::PartKind(entry, part))? as u8,))
    })?;
    at.func_wrap("text", |mut store: Store<'_>, (entry, part, offset, max): (u32, u32, u32, u32)| {
        Ok((store.data_mut().string(Ask::Text(entry, part, offset, max))?,))
    })?;
    at.func_wrap("texts", |mut store: Store<'_>, (entries, max): (Vec<u32>, u32)| {
        Ok((store.data_mut().strings(entries, max)?,))
    })
}

fn budget(at: &mut LinkerInstance<'_, State>) -> Result<()> {
    at.func_wrap("window", |mut store: Store<'_>, (): ()| Ok((store.data_mut().room()?.window,)))?;
    at.func_wrap("usable", |mut store: Store<'_>, (): ()| Ok((store.data_mut().room()?.usable,)))?;
    at.func_wrap("target", |mut store: Store<'_>, (): ()| Ok((store.data_mut().room()?.target,)))?;
    at.func_wrap("view-tokens", |mut store: Store<'_>, (): ()| Ok((store.data_mut().room()?.view_tokens,)))?;
    at.func_wrap("aggressive", |mut store: Store<'_>, (): ()| Ok((store.data_mut().room()?.aggressive,)))?;
    at.func_wrap("tail-start", |mut store: Store<'_>, (): ()| Ok((store.data_mut().room()?.tail_start,)))?;
    at.func_wrap("turn", |mut store: Store<'_>, (): ()| Ok((store.data_mut().room()?.turn,)))?;
    at.func_wrap("raw", |mut store: Store<'_>, (tokens,): (u64,)| Ok((store.data_mut().raw(tokens)?,)))
}

/// Decisions about several entries, one code each.
fn each(
    at: &mut LinkerInstance<'_, State>,
    name: &str,
    proposal: impl Fn(usize) -> Proposal + Send + Sync + 'static,
) -> Result<()> {
    at.func_wrap(name, move |mut store: Store<'_>, (entries,): (Vec<u32>,)| {
        store.data_mut().affords(entries.len())?;
        let proposals = entries.into_iter().map(|entry| proposal(entry as usize)).collect();
        Ok((store.data_mut().decide(Ask::Decide(proposals))?,))
    })
}

/// One decision, one code.
fn one(store: &mut Store<'_>, ask: Ask) -> Result<(u8,)> {
    Ok((store.data_mut().decide(ask)?.first().copied().unwrap_or(u8::MAX),))
}

fn decisions(at: &mut LinkerInstance<'_, State>) -> Result<()> {
    each(at, "clear", |entry| Proposal::Clear { entry })?;
    each(at, "clear-superseded", |entry| Proposal::ClearSuperseded { entry })?;
    each(at, "elide-media", |entry| Proposal::ElideMedia { entry, parts: None })?;
    each(at, "clip-arguments", |entry| Proposal::ClipArguments { entry })?;
    each(at, "omit-reasoning", |entry| Proposal::OmitReasoning { entry })?;
    at.func_wrap("offload", |mut store: Store<'_>, (entries, head, tail): (Vec<u32>, u32, u32)| {
        store.data_mut().affords(entries.len())?;
        let offload = |entry: u32| Proposal::Offload { entry: entry as usize, head, tail };
        Ok((store.data_mut().decide(Ask::Decide(entries.into_iter().map(offload).collect()))?,))
    })?;
    at.func_wrap("persist", |mut store: Store<'_>, (entries, head): (Vec<u32>, u32)| {
        store.data_mut().affords(entries.len())?;
        let persist = |entry: u32| Proposal::Persist { entry: entry as usize, head };
        Ok((store.data_mut().decide(Ask::Decide(entries.into_iter().map(persist).collect()))?,))
    })?;
    at.func_wrap("would-save", |mut store: Store<'_>, (what, entries, a, b): (u8, Vec<u32>, u32, u32)| {
        store.data_mut().affords(entries.len())?;
        let proposals = entries.iter().map(|&entry| single(what, entry, a, b)).collect::<Option<Vec<_>>>();
        Ok((match proposals {
            Some(proposals) => store.data_mut().would_save(proposals)?,
            // A decision of a later host.
            None => store.data_mut().enter().map(|_| vec![0; entries.len()])?,
        },))
    })?;
    at.func_wrap("elide-part", |mut store: Store<'_>, (entry, part): (u32, u32)| {
        let proposal = Proposal::ElideMedia { entry: entry as usize, parts: Some(vec![part]) };
        one(&mut store, Ask::Decide(vec![proposal]))
    })?;
    at.func_wrap("snip", |mut store: Store<'_>, (start, end): (u32, u32)| {
        one(&mut store, Ask::Decide(vec![Proposal::Snip { from: start as usize, to: end as usize }]))
    })?;
    at.func_wrap("request-summary", |mut store: Store<'_>, (end,): (u32,)| one(&mut store, Ask::RequestSummary(end)))?;
    at.func_wrap("pin", |mut store: Store<'_>, (entry,): (u32,)| one(&mut store, Ask::Pin(entry)))?;
    at.func_wrap("explain", |mut store: Store<'_>, (line,): (String,)| Ok(store.data_mut().explain(&line)?))
}

fn condensing(at: &mut LinkerInstance<'_, State>) -> Result<()> {
    at.func_wrap("condense", |mut store: Store<'_>, (entry, text): (u32, String)| {
        // A component without the grant is not loaded; should it be, it is refused here.
        let Some(by) = store.data_mut().job.condenses_as.clone() else {
            store.data_mut().enter()?;
            return Ok((super::super::code_of(Err(foreshorten_core::plan::Refusal::NotGranted)),));
        };
        one(&mut store, Ask::Decide(vec![Proposal::Condense { entry: entry as usize, by, text }]))
    })
}

fn memo(at: &mut LinkerInstance<'_, State>) -> Result<()> {
    at.func_wrap("load", |mut store: Store<'_>, (): ()| {
        let state = store.data_mut().enter()?;
        Ok((state.memo.clone().unwrap_or_else(|| state.job.memo.clone()),))
    })?;
    at.func_wrap("store", |mut store: Store<'_>, (bytes,): (Vec<u8>,)| Ok((store.data_mut().keep(bytes)?,)))
}

/// What is to be summarized; nothing in a call that is about no summary.
fn task(store: &mut Store<'_>) -> Result<std::sync::Arc<SummaryJob>, Fault> {
    Ok(store.data_mut().enter()?.job.summary.clone().unwrap_or_default())
}

fn summarizing(at: &mut LinkerInstance<'_, State>) -> Result<()> {
    at.func_wrap("span", |mut store: Store<'_>, (): ()| Ok((task(&mut store)?.span.clone(),)))?;
    at.func_wrap("span-text", |mut store: Store<'_>, (offset, max): (u32, u32)| {
        Ok((super::super::desk::cut(&task(&mut store)?.text, offset, max).to_owned(),))
    })?;
    at.func_wrap("prior", |mut store: Store<'_>, (): ()| Ok((task(&mut store)?.prior.clone(),)))?;
    at.func_wrap("sections", |mut store: Store<'_>, (): ()| Ok((task(&mut store)?.sections.clone(),)))?;
    at.func_wrap("max-chars", |mut store: Store<'_>, (): ()| Ok((task(&mut store)?.max_chars,)))?;
    at.func_wrap("max-output-tokens", |mut store: Store<'_>, (): ()| Ok((task(&mut store)?.max_output_tokens,)))?;
    at.func_wrap("replies", |mut store: Store<'_>, (): ()| Ok((task(&mut store)?.replies.clone(),)))?;
    at.func_wrap("ask", |mut store: Store<'_>, (system, user, max_output_tokens): (String, String, u32)| {
        store.data_mut().enter()?.asked = Some(ModelAsk { system, user, max_output_tokens });
        Ok(())
    })?;
    at.func_wrap("section", |mut store: Store<'_>, (heading, text): (String, String)| {
        Ok(store.data_mut().write(heading, text)?)
    })?;
    at.func_wrap("explain", |mut store: Store<'_>, (line,): (String,)| Ok(store.data_mut().explain(&line)?))
}
