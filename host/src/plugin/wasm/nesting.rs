//! How deep a component nests, seen before anything decodes it.
//!
//! Decoder and compiler read types within types by recursion, and components within components at a cost that grows with
//! the square of their depth. A file of some kilobytes could end the process (no panic: the stack is gone), or hold a core
//! for hours. What a toolchain makes is far below these bounds: components 4 deep, and 52 types within types.

use super::super::LoadError;

/// Components within components.
const COMPONENTS: usize = 32;
/// Types of components or instances that stand directly within others, all together: no fewer than they can be deep. So
/// many fit a stack of 2 MiB, that of a thread, in a program that is not optimised.
const TYPES: usize = 150;
/// Bytes before the first section.
const HEAD: usize = 8;

/// Refuses what nests too deep. Only the outline of the file is read, in one pass and without recursion.
pub(super) fn check(bytes: &[u8]) -> Result<(), LoadError> {
    const COMPONENT: u8 = 4;
    const TYPE: u8 = 7;
    let too =
        |what: String| LoadError::NotAComponent(format!("it nests too deep: {what}; no toolchain makes such a file"));
    let mut ends = vec![bytes.len()];
    let mut types = 0;
    let mut at = HEAD;
    while let Some(&end) = ends.last() {
        if at >= end {
            ends.pop();
            continue;
        }
        let id = bytes[at];
        let cut_off =
            || LoadError::NotAComponent(format!("its section at byte {at} has no length that fits; it is cut off"));
        let (length, start) = number(bytes, at + 1).ok_or_else(cut_off)?;
        let next = start.checked_add(length).filter(|&next| next <= end).ok_or_else(cut_off)?;
        at = match id {
            COMPONENT => {
                if ends.len() > COMPONENTS {
                    return Err(too(format!("more than {COMPONENTS} components within each other")));
                }
                ends.push(next);
                start.saturating_add(HEAD)
            }
            TYPE => {
                // A declaration (1) of a type of a component (0x41) or an instance (0x42). The same bytes may mean other
                // things, so this counts no fewer than there are.
                types += bytes[start..next].windows(2).filter(|pair| matches!(pair, [1, 0x41 | 0x42])).count();
                if types > TYPES {
                    return Err(too(format!("more than {TYPES} types of components or instances within others")));
                }
                next
            }
            _ => next,
        };
    }
    Ok(())
}

/// A number of up to 32 bits in LEB128, and where it ends.
fn number(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let mut value = 0u64;
    for (place, &byte) in bytes.get(at..)?.iter().take(5).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return Some((usize::try_from(value).ok()?, at + place + 1));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::Outline;
    use super::*;

    const START: [u8; HEAD] = *b"\0asm\x0d\0\x01\0";

    fn section(id: u8, content: &[u8]) -> Vec<u8> {
        let mut section = vec![id];
        let mut length = content.len();
        while length > 0x7f {
            section.push(length as u8 & 0x7f | 0x80);
            length >>= 7;
        }
        section.push(length as u8);
        section.extend_from_slice(content);
        section
    }

    /// Types within types, of components (0x41) or instances (0x42).
    fn types(kind: u8, depth: usize) -> Vec<u8> {
        let content = [&[1][..], &[kind, 1, 1].repeat(depth), &[kind, 0]].concat();
        [&START[..], &section(7, &content)].concat()
    }

    fn components(depth: usize) -> Vec<u8> {
        (0..depth).fold(START.to_vec(), |inner, _| [&START[..], &section(4, &inner)].concat())
    }

    /// Read as a loader reads it, on a thread with the usual stack.
    fn read(bytes: Vec<u8>) -> Result<(), String> {
        let read = move || Outline::read(&bytes).map(drop).map_err(|error| error.to_string());
        std::thread::Builder::new().stack_size(2 << 20).spawn(read).unwrap().join().unwrap()
    }

    #[test]
    fn what_would_use_up_the_stack_is_refused_and_what_is_below_is_read() {
        for kind in [0x41, 0x42] {
            assert_eq!(read(types(kind, TYPES - 1)), Ok(()));
            for depth in [TYPES, 5_000, 500_000] {
                assert!(read(types(kind, depth)).unwrap_err().contains("nests too deep"));
            }
        }
        assert_eq!(read(components(COMPONENTS)), Ok(()));
        for depth in [COMPONENTS + 1, 5_000] {
            assert!(read(components(depth)).unwrap_err().contains("nests too deep"));
        }
    }

    #[test]
    fn a_section_that_does_not_fit_is_no_way_around() {
        let whole = components(3);
        for length in HEAD + 1..whole.len() {
            assert!(check(&whole[..length]).is_err(), "the first {length}");
        }
        assert!(check(&[&START[..], &[4, 0xff, 0xff, 0xff, 0xff, 0xff]].concat()).is_err());
        assert!(
            check(&[&START[..], &section(4, b"\0asm")].concat()).is_ok(),
            "what is no component is the decoder's to say"
        );
    }
}
