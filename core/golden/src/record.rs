//! A record whose texts may be borrowed from the program itself.

use alloc::{borrow::Cow, vec::Vec};

use foreshorten_core::transcript::{EntryKind, EntryRef, Media, PartRef, Transcript};

pub(crate) type Text = Cow<'static, str>;

#[derive(Debug)]
pub(crate) enum Part {
    Text(Text),
    Image { media_type: Text, data: Text },
    File { media_type: Text, name: Text, data: Text },
    Opaque(Text),
}

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) kind: EntryKind,
    pub(crate) call_id: Text,
    pub(crate) name: Text,
    pub(crate) is_error: bool,
    pub(crate) sealed: bool,
    pub(crate) parts: Vec<Part>,
}

#[derive(Debug, Default)]
pub(crate) struct Record {
    pub(crate) entries: Vec<Entry>,
}

impl Transcript for Record {
    fn len(&self) -> usize {
        self.entries.len()
    }

    fn entry(&self, index: usize) -> EntryRef<'_> {
        let entry = &self.entries[index];
        EntryRef {
            kind: entry.kind,
            call_id: &entry.call_id,
            name: &entry.name,
            is_error: entry.is_error,
            sealed: entry.sealed,
            parts: entry.parts.len() as u32,
        }
    }

    fn part(&self, index: usize, part: usize) -> PartRef<'_> {
        match &self.entries[index].parts[part] {
            Part::Text(text) => PartRef::Text(text),
            Part::Image { media_type, data } => PartRef::Image(Media { media_type, name: "", data: data.as_bytes() }),
            Part::File { media_type, name, data } => PartRef::File(Media { media_type, name, data: data.as_bytes() }),
            Part::Opaque(data) => PartRef::Opaque(data.as_bytes()),
        }
    }
}
