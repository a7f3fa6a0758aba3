//! Ids from outside as names of files.
//!
//! An id is shown as it is when it is plain. Any other becomes what of it is plain, a tilde, and its digest: two ids
//! never have one name, and no name leads out of its folder.

use foreshorten_core::digest::Digest;

/// Longest part of an id that is shown.
const SHOWN: usize = 64;

/// Names that mean a device on some systems.
const DEVICES: [&str; 6] = ["con", "prn", "aux", "nul", "com", "lpt"];

/// A name that differs from that of any other id also where file systems ignore letter case.
pub(crate) fn strict_name(id: &str) -> String {
    name(id, id.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-')))
}

/// A name that may differ from others in letter case alone; for files that are never overwritten.
pub(crate) fn loose_name(id: &str) -> String {
    name(id, id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')))
}

/// The name with the digest of what is in the file, for a second file of that name.
pub(crate) fn with_digest(name: &str, digest: &Digest) -> String {
    format!("{name}~{digest}")
}

fn name(id: &str, plain: bool) -> String {
    let device = DEVICES.iter().any(|device| {
        let rest = id.get(..3).filter(|start| start.eq_ignore_ascii_case(device)).map(|_| &id[3..]);
        rest.is_some_and(|rest| rest.len() <= 1)
    });
    if plain && !device && !id.is_empty() && id.len() <= SHOWN {
        return id.into();
    }
    let shown = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c.to_ascii_lowercase() } else { '_' };
    let shown: String = id.chars().take(SHOWN / 2).map(shown).collect();
    with_digest(&shown, &Digest::of(id.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_id_has_a_name_of_its_own_and_none_leads_elsewhere() {
        let long = "x".repeat(5_000);
        let ids = [
            "a",
            "A",
            "",
            ".",
            "..",
            "../a",
            "a/b",
            "a\\b",
            "a\0b",
            "a_b",
            "con",
            "com1",
            "ä",
            "漢字",
            "-",
            "a ",
            &long,
            &long[1..],
        ];
        let mut seen = HashSet::new();
        for id in ids {
            let name = strict_name(id);
            assert!(name.len() <= 100 && !name.is_empty() && !name.starts_with('.'), "{name}");
            assert!(
                name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_-~".contains(&b)),
                "{name}"
            );
            assert!(seen.insert(name.clone()), "{id:?} and another are {name}");
            // A name given as an id is not that name.
            assert!(!name.contains('~') || strict_name(&name) != name);
        }
        assert_eq!(strict_name("run-7_b"), "run-7_b");
        assert_eq!(loose_name("call_AbC"), "call_AbC");
    }
}
