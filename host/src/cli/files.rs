//! Reading and writing files, and the state.

use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::process::ExitCode;

use foreshorten::core::CompactionState;

use super::failure::Failure;

/// Writes data to stdout.
pub(crate) fn print(data: &[u8]) -> Result<ExitCode, Failure> {
    let mut out = io::stdout().lock();
    out.write_all(data)?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// All of stdin.
pub(crate) fn stdin() -> Result<Vec<u8>, Failure> {
    let mut input = Vec::new();
    io::stdin().lock().read_to_end(&mut input)?;
    Ok(input)
}

/// All of a file; one that cannot be read is bad input.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| Failure::Input(format!("{}: {error}", path.display())))
}

/// The state in a file: none when there is no file, and what was wrong when it cannot be used.
pub(crate) fn state(path: Option<&Path>) -> Result<(Option<CompactionState>, Option<String>), Failure> {
    let Some(path) = path else { return Ok((None, None)) };
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((None, None)),
        Err(error) => return Err(Failure::Input(format!("{}: {error}", path.display()))),
    };
    if bytes.is_empty() {
        return Ok((None, None));
    }
    match CompactionState::decode(&bytes) {
        Ok(state) => Ok((Some(state), None)),
        Err(error) => Ok((None, Some(format!("{}: {error}; a new state is started", path.display())))),
    }
}
