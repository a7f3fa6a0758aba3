//! Why a command did not do what was asked, and the exit code for it.

use std::fmt;
use std::io;
use std::process::ExitCode;

use foreshorten::options::OptionError;

/// A failed command.
#[derive(Debug)]
pub(crate) enum Failure {
    /// 2: the command line cannot be meant.
    Usage(String),
    /// 3: the input cannot be read; nothing was written.
    Input(String),
    /// 5: there is nothing of that name.
    NotFound(String),
    /// 6: there is more than one.
    Ambiguous(String),
    /// 1: the system failed, for instance a file could not be written.
    Io(io::Error),
}

impl Failure {
    pub(crate) fn report(self) -> ExitCode {
        // A reader that has seen enough (`| head`) is no failure.
        if matches!(&self, Self::Io(error) if error.kind() == io::ErrorKind::BrokenPipe) {
            return ExitCode::SUCCESS;
        }
        say!("{self}");
        ExitCode::from(match self {
            Self::Usage(_) => 2,
            Self::Input(_) => 3,
            Self::NotFound(_) => 5,
            Self::Ambiguous(_) => 6,
            Self::Io(_) => 1,
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(text) | Self::Input(text) | Self::NotFound(text) | Self::Ambiguous(text) => f.write_str(text),
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<OptionError> for Failure {
    fn from(error: OptionError) -> Self {
        // The window comes from its flag alone.
        Self::Usage(error.to_string().replace("`context_window`", "`--window`"))
    }
}
