//! What the program assumes about plugins where nobody says otherwise, and how it loads them.

use std::path::PathBuf;

use foreshorten::drive::{Summaries, SummarizerChoice};
use foreshorten::options::PolicyOptions;
use foreshorten::plugin::CodeCache;

use super::failure::Failure;

/// Loads the stages and the summarizer that were asked for.
pub(crate) fn load(options: &mut PolicyOptions, choice: &SummarizerChoice) -> Result<Summaries, Failure> {
    let cache = options.plugin_cache.get_or_insert_with(default_cache).clone();
    options.load_plugins()?;
    let loaded = choice.load(|| options.loaders());
    let summarizer = loaded.map_err(|error| Failure::Usage(format!("--summarizer {choice}: {error}")))?;
    // Known from the run over a built-in record: no pass need be wasted to find it out.
    if let Some(why) = summarizer.lacks_model() {
        return Err(Failure::Usage(format!("--summarizer {choice}: {why}")));
    }
    let any = options.plugins().iter().next().is_some() || matches!(summarizer, Summaries::Plugin(_));
    if any
        && cache != "off"
        && let Err(error) = CodeCache::at(cache).prepare()
    {
        say!("--plugin-cache: {error}");
    }
    Ok(summarizer)
}

/// `FORESHORTEN_PLUGIN_CACHE`, else the user's own folder for caches; `off` where there is none.
fn default_cache() -> String {
    let var = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(folder) = var("FORESHORTEN_PLUGIN_CACHE") {
        return folder.to_string_lossy().into_owned();
    }
    // A relative path is to be ignored, the specification of these folders says.
    let home = || var(if cfg!(windows) { "LOCALAPPDATA" } else { "HOME" });
    let base = var("XDG_CACHE_HOME").filter(|path| path.is_absolute());
    let base = base.or_else(|| home().map(|home| if cfg!(windows) { home } else { home.join(".cache") }));
    base.map_or_else(|| "off".into(), |base| base.join("foreshorten").join("plugins").to_string_lossy().into_owned())
}
