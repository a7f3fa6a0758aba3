//! The content of one entry, as stores keep it.

use foreshorten_core::transcript::{Part, PartRef, Transcript};

/// The content of one entry: its texts joined by line feeds, then every other payload after a NUL. Its digest is
/// [`Digest::of_entry`](foreshorten_core::digest::Digest::of_entry).
///
/// ```
/// use foreshorten::core::digest::Digest;
/// use foreshorten::record::{Message, Record};
/// use foreshorten::stores::Stored;
///
/// let record: Record = [Message::result("c1", "hello")].into_iter().collect();
/// let stored = Stored::of(&record, 0);
/// assert_eq!(stored.text(), b"hello");
/// assert_eq!(Digest::of(stored.content()), Digest::of_entry(&record, 0));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    content: Vec<u8>,
    parts: Vec<StoredPart>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct StoredPart {
    kind: Kind,
    from: usize,
    to: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Image(String),
    File(String, String),
    Opaque,
}

impl StoredPart {
    const fn is_text(&self) -> bool {
        matches!(self.kind, Kind::Text)
    }
}

impl Stored {
    /// The content of an entry of a record.
    #[must_use]
    pub fn of(transcript: &dyn Transcript, entry: usize) -> Self {
        let count = transcript.entry(entry).parts as usize;
        let parts: Vec<PartRef<'_>> = (0..count).map(|at| transcript.part(entry, at)).collect();
        let mut stored = Self { content: Vec::new(), parts: Vec::with_capacity(count) };
        for part in &parts {
            let kind = match part {
                PartRef::Text(_) => Kind::Text,
                PartRef::Image(media) => Kind::Image(media.media_type.into()),
                PartRef::File(media) => Kind::File(media.media_type.into(), media.name.into()),
                PartRef::Opaque(_) => Kind::Opaque,
            };
            stored.parts.push(StoredPart { kind, from: 0, to: 0 });
        }
        let mut seen = false;
        for text in [true, false] {
            for (at, part) in parts.iter().enumerate() {
                let data = match part {
                    PartRef::Text(text) => text.as_bytes(),
                    PartRef::Image(media) | PartRef::File(media) => media.data,
                    PartRef::Opaque(data) => data,
                };
                if stored.parts[at].is_text() != text {
                    continue;
                }
                match text {
                    true if seen => stored.content.push(b'\n'),
                    true => seen = true,
                    false => stored.content.push(0),
                }
                let from = stored.content.len();
                stored.content.extend_from_slice(data);
                (stored.parts[at].from, stored.parts[at].to) = (from, stored.content.len());
            }
        }
        stored
    }

    /// Content of one text part, whatever its bytes.
    #[must_use]
    pub fn whole(content: Vec<u8>) -> Self {
        let to = content.len();
        Self { content, parts: vec![StoredPart { kind: Kind::Text, from: 0, to }] }
    }

    /// Content with the [`shape`](Self::shape) it was kept with; one text when the two do not add up.
    #[must_use]
    pub fn shaped(content: Vec<u8>, shape: &str) -> Self {
        match cut(&content, shape) {
            Some(parts) => Self { content, parts },
            None => Self::whole(content),
        }
    }

    /// All of it.
    #[must_use]
    pub fn content(&self) -> &[u8] {
        &self.content
    }

    /// The text parts, joined by a line feed: what recall prints.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        let end = self.parts.iter().filter(|part| part.is_text()).map(|part| part.to).max().unwrap_or(0);
        &self.content[..end]
    }

    /// One part as recorded, and whether it is text.
    #[must_use]
    pub fn part(&self, at: usize) -> Option<(&[u8], bool)> {
        self.parts.get(at).map(|part| (&self.content[part.from..part.to], part.is_text()))
    }

    /// The parts that are no text, as parts of an entry, in order.
    #[must_use]
    pub fn media(&self) -> Vec<Part> {
        let part = |part: &StoredPart| {
            let data = self.content[part.from..part.to].to_vec();
            match &part.kind {
                Kind::Text => None,
                Kind::Image(kind) => Some(Part::Image(kind.clone(), data)),
                Kind::File(kind, name) => Some(Part::File(kind.clone(), name.clone(), data)),
                Kind::Opaque => Some(Part::Opaque(data)),
            }
        };
        self.parts.iter().filter_map(part).collect()
    }

    /// Number of parts.
    #[must_use]
    pub const fn parts(&self) -> usize {
        self.parts.len()
    }

    /// What a store keeps beside the content to give the parts back: a line for each, its kind, its bytes, and as JSON
    /// its media type and name. Empty when it is one text.
    #[must_use]
    pub fn shape(&self) -> String {
        if let [StoredPart { kind: Kind::Text, .. }] = self.parts.as_slice() {
            return String::new();
        }
        let line = |part: &StoredPart| {
            let length = part.to - part.from;
            match &part.kind {
                Kind::Text => format!("text {length}\n"),
                Kind::Image(kind) => format!("image {length} {}\n", serde_json::json!([kind])),
                Kind::File(kind, name) => format!("file {length} {}\n", serde_json::json!([kind, name])),
                Kind::Opaque => format!("data {length}\n"),
            }
        };
        self.parts.iter().map(line).collect()
    }
}

/// The parts that `shape` says content is made of; `None` unless they add up to it.
fn cut(content: &[u8], shape: &str) -> Option<Vec<StoredPart>> {
    let lines: Vec<(Kind, usize)> = shape.lines().map(line).collect::<Option<_>>()?;
    let mut parts: Vec<StoredPart> =
        lines.iter().map(|(kind, _)| StoredPart { kind: kind.clone(), from: 0, to: 0 }).collect();
    let (mut at, mut seen) = (0usize, false);
    for text in [true, false] {
        for (part, (_, length)) in lines.iter().enumerate().filter(|(_, line)| (line.0 == Kind::Text) == text) {
            if seen || !text {
                let separator = if text { b'\n' } else { 0 };
                (content.get(at) == Some(&separator)).then_some(())?;
                at += 1;
            }
            seen |= text;
            let to = at.checked_add(*length).filter(|&to| to <= content.len())?;
            (parts[part].from, parts[part].to) = (at, to);
            at = to;
        }
    }
    (at == content.len() && !parts.is_empty()).then_some(parts)
}

fn line(line: &str) -> Option<(Kind, usize)> {
    let mut words = line.splitn(3, ' ');
    let (kind, length, facts) = (words.next()?, words.next()?.parse().ok()?, words.next().unwrap_or("[]"));
    let mut facts = serde_json::from_str::<Vec<String>>(facts).ok()?.into_iter();
    let mut fact = || facts.next().unwrap_or_default();
    let kind = match kind {
        "text" => Kind::Text,
        "image" => Kind::Image(fact()),
        "file" => Kind::File(fact(), fact()),
        "data" => Kind::Opaque,
        _ => return None,
    };
    Some((kind, length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use foreshorten_core::digest::Digest;
    use foreshorten_core::transcript::{Entry, OwnedTranscript};

    #[test]
    fn parts_of_every_kind_come_back_from_content_and_shape() {
        let mut entry = Entry::tool_result("c", "a\0b");
        entry.parts.insert(0, Part::Image("image/png".into(), b"aGk=".to_vec()));
        entry.parts.push(Part::File("text/x \n\"y".into(), "na me\n".into(), b"\0\n".to_vec()));
        entry.parts.push(Part::Text("last".into()));
        entry.parts.push(Part::Opaque(Vec::new()));
        let record = OwnedTranscript::from(vec![entry.clone()]);
        let stored = Stored::of(&record, 0);
        assert_eq!(Digest::of(stored.content()), Digest::of_entry(&record, 0));
        assert_eq!(Stored::shaped(stored.content().to_vec(), &stored.shape()), stored);
        assert_eq!(stored.text(), b"a\0b\nlast");
        let media: Vec<Part> = entry.parts.into_iter().filter(|part| !matches!(part, Part::Text(_))).collect();
        assert_eq!(stored.media(), media);
    }

    #[test]
    fn a_shape_that_does_not_add_up_leaves_the_content_whole() {
        for wrong in
            ["", "text 3", "text 99999999999999999999999", "data 5\ntext 2", "image 4 {}", "image 1 [\"a\"]x", "x 4"]
        {
            let stored = Stored::shaped(b"abcd".to_vec(), wrong);
            assert_eq!((stored.parts(), stored.text()), (1, &b"abcd"[..]), "{wrong:?}");
        }
    }

    #[test]
    fn an_entry_without_parts_is_empty() {
        let record = OwnedTranscript::from(vec![Entry { parts: Vec::new(), ..Entry::user("") }]);
        assert_eq!(Stored::of(&record, 0).content(), b"");
        assert_eq!(Stored::of(&record, 0).shape(), "");
    }
}
