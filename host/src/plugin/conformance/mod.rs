//! The conformance kit: what a plugin must do on records of every sort, and what it costs.
//!
//! Every check can be run alone ([`Kit::run`] with its id), which is how native libraries are checked: each in a process of
//! its own, since nothing bounds what they do.

mod play;
mod records;
mod report;
mod stage;
mod summary;

pub use report::{Check, Costs, Report, Verdict};

use std::path::Path;

use super::manifest::Settings;
use super::wasm::{Outline, World};
use super::{Limits, LoadError, Loader, StagePlugin, SummaryPlugin};
use report::Finding;

/// A loaded plugin.
#[derive(Debug)]
enum Subject {
    Stage(Box<StagePlugin>),
    Summarizer(Box<SummaryPlugin>),
    /// It was not loaded.
    None(LoadError),
}

/// A plugin, ready to be checked.
#[derive(Debug)]
pub struct Kit {
    subject: Subject,
    world: World,
    bytes: u64,
    sha256: String,
}

impl Kit {
    /// Loads a component. That it is refused is the finding of its first check, not an error.
    ///
    /// # Errors
    /// There is no component to be loaded: the file or its settings cannot be read.
    pub fn component(loader: &Loader, path: &Path) -> Result<Self, LoadError> {
        let (file, settings) = Settings::find(path)?;
        let (bytes, sha256) = super::load::read(&file, settings.sha256.as_deref(), Limits::caps().file_bytes)?;
        let outline = Outline::read(&bytes)?;
        let world = outline.worlds.first().copied().unwrap_or(World::Stage);
        let subject = match world {
            World::Stage => loader.stage(path).map(|plugin| Subject::Stage(Box::new(plugin))),
            World::Summarizer => loader.summarizer(path).map(|plugin| Subject::Summarizer(Box::new(plugin))),
        };
        let subject = subject.unwrap_or_else(Subject::None);
        Ok(Self { subject, world, bytes: bytes.len() as u64, sha256 })
    }

    /// Loads a native library: code that nothing bounds, in this process.
    ///
    /// # Errors
    /// There is no library to be loaded: the file or its settings cannot be read, or it is not pinned.
    #[cfg(feature = "dylib")]
    pub fn library(loader: &super::dylib::DylibLoader, path: &Path) -> Result<Self, LoadError> {
        let (file, _) = Settings::find(path)?;
        let (bytes, sha256) = super::load::read(&file, None, MOST_LIBRARY)?;
        let (subject, world) = match loader.stage(path) {
            Ok(plugin) => (Subject::Stage(Box::new(plugin)), World::Stage),
            Err(error @ (LoadError::File(..) | LoadError::Settings(..) | LoadError::Digest(..))) => return Err(error),
            Err(LoadError::World(why)) => match loader.summarizer(path) {
                Ok(plugin) => (Subject::Summarizer(Box::new(plugin)), World::Summarizer),
                // It is neither: what it lacks as a stage says more.
                Err(LoadError::World(_)) => (Subject::None(LoadError::World(why)), World::Stage),
                Err(error) => (Subject::None(error), World::Summarizer),
            },
            Err(error) => (Subject::None(error), World::Stage),
        };
        Ok(Self { subject, world, bytes: bytes.len() as u64, sha256 })
    }

    /// Ids of the checks of a world, in the order in which they are run.
    #[must_use]
    pub fn ids(world: World) -> Vec<&'static str> {
        let rest: Vec<&str> = match world {
            World::Stage => stage::CHECKS.iter().map(|check| check.id).collect(),
            World::Summarizer => summary::CHECKS.iter().map(|check| check.id).collect(),
        };
        std::iter::once(LOADS.0).chain(rest).collect()
    }

    /// What is checked under an id.
    #[must_use]
    pub fn name_of(world: World, id: &str) -> &'static str {
        let rest = match world {
            World::Stage => stage::CHECKS.iter().find(|check| check.id == id).map(|check| check.name),
            World::Summarizer => summary::CHECKS.iter().find(|check| check.id == id).map(|check| check.name),
        };
        rest.unwrap_or(LOADS.1)
    }

    /// Runs the checks; `only` is the id of the one that is to be run.
    #[must_use]
    pub fn run(&self, only: Option<&str>) -> Report {
        let mut report = Report::new(self.world, self.bytes, self.sha256.clone());
        let wanted = |id: &str| only.is_none_or(|only| only == id);
        let (id, name) = LOADS;
        match &self.subject {
            Subject::None(error) => report.add(id, name, Finding::failed(error.to_string())),
            Subject::Stage(plugin) => {
                if wanted(id) {
                    report.add(id, name, Finding::passed(plugin.name().to_owned()));
                }
                let bench = stage::Bench::new(plugin);
                for check in stage::CHECKS.iter().filter(|check| wanted(check.id)) {
                    report.add(check.id, check.name, (check.run)(&bench));
                }
                report.costs = bench.costs();
            }
            Subject::Summarizer(plugin) => {
                if wanted(id) {
                    report.add(id, name, Finding::passed(plugin.name().to_owned()));
                }
                let bench = summary::Bench::new(plugin);
                for check in summary::CHECKS.iter().filter(|check| wanted(check.id)) {
                    report.add(check.id, check.name, (check.run)(&bench));
                }
                report.costs = bench.costs();
            }
        }
        report
    }
}

/// Bytes of a library at most, as its loader has it.
#[cfg(feature = "dylib")]
const MOST_LIBRARY: u64 = 256 << 20;

/// The first check: id and name.
const LOADS: (&str, &str) =
    ("loads", "it loads: imports nothing foreign, its check agrees, and it runs over a built-in record");

/// Loads a component and runs every check.
///
/// # Errors
/// There is no component to be loaded.
pub fn check(loader: &Loader, path: &Path) -> Result<Report, LoadError> {
    Ok(Kit::component(loader, path)?.run(None))
}
