//! Reading what a library points to: nothing beyond the size that a table states, and no table that is not one.

use super::super::LoadError;
use super::abi::{ABI_MAJOR, ABI_MINOR, Entry, Factory, MAGIC, Str};

/// The entry that a library answered.
///
/// # Errors
/// It is null, not aligned, no entry, too short, or of another version.
///
/// # Safety
/// `entry` is null, or points to eight bytes that can be read; when the first four are [`MAGIC`], to as many as the second
/// four say.
pub(super) unsafe fn entry(entry: *const Entry) -> Result<Entry, LoadError> {
    let wrong = |why: String| LoadError::World(why);
    if entry.is_null() {
        return Err(wrong("its entry is empty".into()));
    }
    if !entry.is_aligned() {
        return Err(wrong(format!("its entry is at {entry:p}, where no table can be")));
    }
    // SAFETY: the caller promises these eight bytes; they are aligned, and any bits are numbers.
    let (magic, size) = unsafe { ((&raw const (*entry).magic).read(), (&raw const (*entry).struct_size).read()) };
    if magic != MAGIC {
        return Err(wrong(format!("its entry is none: it begins with {magic:#x}, not {MAGIC:#x}")));
    }
    // The version stands before what may differ between versions, so it is looked at first.
    const UP_TO_VERSION: usize = std::mem::offset_of!(Entry, name);
    if size as usize >= UP_TO_VERSION {
        // SAFETY: the caller promises the bytes that the entry states, and these are among them.
        let (major, minor) =
            unsafe { ((&raw const (*entry).abi_major).read(), (&raw const (*entry).abi_minor).read()) };
        if major != ABI_MAJOR || minor != ABI_MINOR {
            return Err(LoadError::Version(format!("plugin ABI {major}.{minor}"), format!("{ABI_MAJOR}.{ABI_MINOR}")));
        }
    }
    if (size as usize) < size_of::<Entry>() {
        return Err(wrong(format!("its entry has {size} bytes; {} are needed", size_of::<Entry>())));
    }
    // SAFETY: it is as large as our idea of it. Its function is a nullable pointer, and its texts are not looked at.
    Ok(unsafe { entry.read() })
}

/// The table of a key.
///
/// # Errors
/// It is offered by none, too short, or lacks a function.
///
/// # Safety
/// `entry.get_factory` may be called with a key. What it answers is null, or points to a word that can be read, and to as
/// many bytes as this word says.
pub(super) unsafe fn factory(entry: &Entry, key: &'static str) -> Result<Factory, LoadError> {
    let wrong = |why: String| LoadError::World(why);
    let none = || LoadError::World(format!("it offers no {key}"));
    let get = entry.get_factory.ok_or_else(none)?;
    // SAFETY: as the caller promises; the key is lent for the call.
    let factory: *const Factory = unsafe { get(Str::of(key)) }.cast();
    if factory.is_null() {
        return Err(none());
    }
    if !factory.is_aligned() {
        return Err(wrong(format!("its {key} is at {factory:p}, where no table can be")));
    }
    // SAFETY: the caller promises the first word.
    let size = unsafe { (&raw const (*factory).struct_size).read() };
    if size < size_of::<Factory>() {
        return Err(wrong(format!("its {key} has {size} bytes; {} are needed", size_of::<Factory>())));
    }
    // SAFETY: the caller promises the bytes that the table states. Its functions are nullable pointers.
    let factory = unsafe { factory.read() };
    if factory.check.is_none() || factory.main.is_none() {
        return Err(wrong(format!("its {key} lacks a function")));
    }
    Ok(factory)
}
