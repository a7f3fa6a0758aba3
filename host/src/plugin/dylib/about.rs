//! What a library says about itself.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::super::LoadError;
use super::super::manifest::Settings;
use super::abi::{ABI_MAJOR, ABI_MINOR, Entry, MAGIC, STAGE, SUMMARIZER, Str};
use super::{MOST_BYTES, is_private, load, open};

/// What a library says about itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct About {
    /// Bytes of the file.
    pub bytes: u64,
    /// Its SHA-256.
    pub sha256: String,
    /// Its name; "" when it has none of this program's ABI.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The ABI it was built for: major and minor number.
    pub abi: (u32, u32),
    /// The ABI of this program.
    pub offered: (u32, u32),
    /// What it offers: `stage/0.1`, `summarizer/0.1`.
    pub offers: Vec<String>,
}

impl About {
    /// Loads the library that `path` means, which runs code of it in this process, and asks it. It must be pinned, as for
    /// a [`DylibLoader`](super::DylibLoader).
    ///
    /// # Errors
    /// Why it is not loaded, or that it is no plugin.
    pub fn read(path: &Path) -> Result<Self, LoadError> {
        let (file, settings) = Settings::find(path)?;
        let Some(pinned) = settings.sha256.as_deref() else {
            let why = "a native library must be pinned: write sha256 in its plugin.toml, or FILE.sha256 beside it";
            return Err(LoadError::Settings(file, why.into()));
        };
        is_private(&file)?;
        let (bytes, sha256) = load::read(&file, Some(pinned), MOST_BYTES)?;
        let entry = open(&bytes)?;
        if entry.is_null() || !entry.is_aligned() {
            return Err(LoadError::World("its entry is empty".into()));
        }
        // SAFETY: what a library answers can be read for eight bytes; the magic number tells whether it is a table.
        let (magic, size) = unsafe { ((*entry).magic, (*entry).struct_size as usize) };
        if magic != MAGIC || size < std::mem::offset_of!(Entry, name) {
            return Err(LoadError::World(format!("its entry is none: it begins with {magic:#x}, not {MAGIC:#x}")));
        }
        // SAFETY: both lie below the size that the table states.
        let abi = unsafe { ((*entry).abi_major, (*entry).abi_minor) };
        let offered = (ABI_MAJOR, ABI_MINOR);
        let mut about = Self {
            bytes: bytes.len() as u64,
            sha256,
            name: String::new(),
            version: String::new(),
            abi,
            offered,
            offers: Vec::new(),
        };
        // What follows is of this shape in this version alone.
        if abi != offered || size < size_of::<Entry>() {
            return Ok(about);
        }
        // SAFETY: the table is as large as our idea of it, and of our version. Its texts and its function are as the header
        // says: texts hold for as long as the library is loaded, and the function takes a key that is lent for the call.
        unsafe {
            about.name = text(&(*entry).name);
            about.version = text(&(*entry).version);
            if let Some(get) = (*entry).get_factory {
                let offers = |key: &&'static str| !get(Str::of(key)).is_null();
                about.offers = [STAGE, SUMMARIZER].iter().filter(|key| offers(key)).map(|key| (*key).into()).collect();
            }
        }
        Ok(about)
    }
}

/// A text of the library's, cut to what people read.
///
/// # Safety
/// It points to as many bytes as it says, or is empty.
unsafe fn text(text: &Str) -> String {
    if text.ptr.is_null() {
        return String::new();
    }
    // SAFETY: as the caller promises; of a length that is a mistake, little is believed.
    let bytes = unsafe { std::slice::from_raw_parts(text.ptr, text.len.min(200)) };
    String::from_utf8_lossy(bytes).chars().filter(|c| !c.is_control()).collect()
}
