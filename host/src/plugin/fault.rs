//! How a plugin fails: in a call, or before it was ever called.

use std::fmt;
use std::path::PathBuf;

/// Why a call came to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// It trapped: a panic, an access out of bounds, unreachable code.
    Trap(String),
    /// It used up its instructions.
    Fuel,
    /// It took too long.
    WallClock,
    /// It wanted more memory, tables or instances than allowed.
    Memory,
    /// It used up its stack.
    Stack,
    /// It called the host too often.
    HostCalls,
    /// It read more text than allowed, or handed over more bytes.
    Text,
    /// It tried more decisions than allowed.
    Decisions,
    /// It answered with an error of its own.
    Refused(String),
    /// It asks a model, and there is none where it was called.
    NoModel,
    /// It neither asked nor wrote, or did both.
    NoAnswer,
    /// The host went away, or failed itself.
    Host(String),
}

impl Fault {
    /// The kind, as metrics count it.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Trap(_) => "trap",
            Self::Fuel => "fuel",
            Self::WallClock => "wall_clock",
            Self::Memory => "memory",
            Self::Stack => "stack",
            Self::HostCalls => "host_calls",
            Self::Text => "text",
            Self::Decisions => "decisions",
            Self::Refused(_) => "refused",
            Self::NoModel => "no_model",
            Self::NoAnswer => "no_answer",
            Self::Host(_) => "host",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Trap(why) => write!(f, "it trapped: {why}"),
            Self::Fuel => f.write_str("it ran out of fuel"),
            Self::WallClock => f.write_str("it took too long"),
            Self::Memory => f.write_str("it wanted more memory than allowed"),
            Self::Stack => f.write_str("it used up its stack"),
            Self::HostCalls => f.write_str("it called the host too often"),
            Self::Text => f.write_str("it moved more text than allowed"),
            Self::Decisions => f.write_str("it tried more decisions than allowed"),
            Self::Refused(why) => write!(f, "it answered: {why}"),
            Self::NoModel => f.write_str("it asks a model, and there is none here"),
            Self::NoAnswer => f.write_str("it must either ask a model or write sections"),
            Self::Host(why) => write!(f, "the host failed: {why}"),
        }
    }
}

impl std::error::Error for Fault {}

/// Why a plugin is not loaded.
#[derive(Debug)]
#[non_exhaustive]
pub enum LoadError {
    /// The file cannot be read.
    File(PathBuf, std::io::Error),
    /// Its settings are wrong.
    Settings(PathBuf, String),
    /// It is larger than allowed: bytes, and how many are.
    Size(u64, u64),
    /// It is not the file that was pinned: the digest it has, and the one that was expected.
    Digest(String, String),
    /// Nobody who is trusted vouches for it: why, and what to do.
    Signature(String),
    /// It is no component: what it is, and what to do.
    NotAComponent(String),
    /// It was built for another version of the interface: what it wants, and what is offered.
    Version(String, String),
    /// It imports what is not granted: a message for each.
    Imports(Vec<String>),
    /// It exports neither a stage nor a summarizer, or not the one asked for.
    World(String),
    /// The engine does not take it.
    Compile(String),
    /// Its `check` or the run over a built-in record failed.
    Check(&'static str, Fault),
    /// This build has no engine for it.
    Unsupported(&'static str),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Settings(path, why) => write!(f, "{}: {why}", path.display()),
            Self::Size(has, most) => write!(f, "it has {has} bytes; {most} are allowed"),
            Self::Digest(has, pinned) => {
                write!(f, "its SHA-256 is {has}, but {pinned} is pinned; if the change is meant, pin the new one")
            }
            Self::Signature(why) => f.write_str(why),
            Self::NotAComponent(why) => write!(f, "it is no component: {why}"),
            Self::Version(wants, offered) => write!(
                f,
                "it was built for {wants}, and this program offers {offered}; build it again, or use a program that \
                 offers that version"
            ),
            Self::Imports(all) => write!(f, "it imports what a plugin is not given: {}", all.join("; ")),
            Self::World(why) => f.write_str(why),
            Self::Compile(why) => write!(f, "the engine does not take it: {why}"),
            Self::Check(step, fault) => write!(f, "its {step} failed: {fault}"),
            Self::Unsupported(feature) => write!(f, "this build has no engine for it (feature `{feature}`)"),
        }
    }
}

impl std::error::Error for LoadError {}
