//! What repeats costs less.
//!
//! A tokenizer has tokens for rules of signs (`-----`, `=====`, `─────`, `aaaa`), the longest of them a hundred
//! bytes long. The automaton of the bytes cannot see that neighbours are *equal*, only that they are of a class. So
//! each byte that repeats is charged (as a rule: refunded) something besides, by its kind.
//!
//! Two patterns are known. An ASCII byte, not a space, a line feed or a digit (which the automaton counts well),
//! that the three bytes before it equal. And a character of three bytes that the two before it equal.

use super::automaton::CLASSES;

/// How far a pattern looks back.
const BACK: usize = 8;
/// Positions looked at side by side.
const LANES: usize = 32;

/// The signs that long tokens are made of have a kind each; so have those of drawn boxes and bars, by their last
/// byte. A kind is a column of the last row of a family's table.
const fn kind_of(last: u8) -> u8 {
    match last {
        b'a'..=b'z' => 0,
        b'A' => 1,
        b'B'..=b'Z' => 2,
        b'-' => 3,
        b'=' => 4,
        b'*' => 5,
        b'#' => 6,
        b'.' => 7,
        b'_' => 8,
        b'/' => 9,
        b'~' => 10,
        b'+' => 11,
        b',' => 12,
        b':' | b';' | b'!' | b'?' => 13,
        b'"' | b'\'' | b'`' => 14,
        b'(' | b')' | b'[' | b']' | b'{' | b'}' => 15,
        b'|' => 16,
        b'<' | b'>' => 17,
        b'\\' => 18,
        b'$' | b'%' | b'&' | b'@' | b'^' => 19,
        b'\t' | b'\r' => 20,
        // NUL and other control characters; nothing else below 0x80 is left.
        0..0x80 => 21,
        0x80 => 22,
        0x81..=0x83 => 23,
        0x84..=0x8f => 24,
        0x90 | 0x91 => 25,
        0x92 | 0x93 => 26,
        0x94..=0xa3 => 27,
        0xa4..=0xff => 28,
    }
}

// Characters of three bytes that are told apart by more than their last one: those that do not begin with E2, the
// byte of punctuation, boxes and symbols, and the blocks (E2 96) that bars are drawn with.
const LETTER: usize = 29;
const FULL_BLOCK: usize = 30;
const LIGHT_SHADE: usize = 31;
const OTHER_BLOCK: usize = 32;

/// The kind of the repetition that ends at `at`, if one does.
fn repeated(bytes: &[u8], at: usize) -> Option<usize> {
    let byte = |back: usize| at.checked_sub(back).and_then(|at| bytes.get(at)).copied();
    let last = byte(0)?;
    let kind = usize::from(kind_of(last));
    if last < 0x80 {
        let counted = !matches!(last, b' ' | b'\n' | b'0'..=b'9');
        return if counted && (1..=3).all(|back| byte(back) == Some(last)) { Some(kind) } else { None };
    }
    let lead = byte(2).filter(|lead| (0xe0..0xf0).contains(lead))?;
    if (0..6).all(|back| byte(back + 3).is_some() && byte(back) == byte(back + 3)) {
        Some(match (lead, byte(1)?, last) {
            (0xe2, 0x96, 0x88) => FULL_BLOCK,
            (0xe2, 0x96, 0x91) => LIGHT_SHADE,
            (0xe2, 0x96, _) => OTHER_BLOCK,
            (0xe2, ..) => kind,
            _ => LETTER,
        })
    } else {
        None
    }
}

/// Whether a repetition may end in the last `LANES` bytes of `window`. Written so that a compiler makes vector
/// instructions of it; most texts have none, and then this is all there is to do.
#[inline(always)]
fn suspicious(window: &[u8; BACK + LANES]) -> bool {
    let mut found = 0;
    for lane in BACK..BACK + LANES {
        let last = window[lane];
        let one = (last ^ window[lane - 1]) | (last ^ window[lane - 2]) | (last ^ window[lane - 3]);
        let three = (last ^ window[lane - 3])
            | (window[lane - 1] ^ window[lane - 4])
            | (window[lane - 2] ^ window[lane - 5])
            | (!last & 0x80);
        found |= u8::from(one == 0) & u8::from(last != b' ') | u8::from(three == 0);
    }
    found != 0
}

/// What the repetitions in `bytes` cost besides, in 1/64 token.
pub(super) fn weigh(costs: &[i8; CLASSES], bytes: &[u8]) -> i64 {
    let cost = |at: usize| repeated(bytes, at).map_or(0, |kind| i64::from(costs[kind]));
    let mut sum: i64 = (0..bytes.len().min(BACK)).map(cost).sum();
    let mut done = bytes.len().min(BACK);
    for window in bytes.windows(BACK + LANES).step_by(LANES) {
        if window.first_chunk().is_none_or(suspicious) {
            sum += (done..done + LANES).map(cost).sum::<i64>();
        }
        done += LANES;
    }
    sum + (done..bytes.len()).map(cost).sum::<i64>()
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use proptest::prelude::*;

    use super::*;

    const ONE: [i8; CLASSES] = [1; CLASSES];

    fn count(text: &str) -> i64 {
        weigh(&ONE, text.as_bytes())
    }

    #[test]
    fn from_the_fourth_equal_sign_on() {
        assert_eq!([count(""), count("-"), count("---"), count("----"), count("-----")], [0, 0, 0, 1, 2]);
        assert_eq!(count("aaaa==== --__AAAA"), 3);
    }

    #[test]
    fn from_the_third_equal_character_on() {
        assert_eq!([count("──"), count("───"), count("─────"), count("─━─━─━")], [0, 1, 3, 0]);
        assert_eq!(count("看看看"), 1);
    }

    #[test]
    fn blanks_and_digits_are_the_automatons() {
        assert_eq!([count("        "), count("\n\n\n\n\n"), count("00000000")], [0, 0, 0]);
    }

    proptest! {
        /// Looking at one position after the other is the rule; looking at many at once is only faster.
        #[test]
        fn side_by_side_is_one_by_one(
            text in "([a-z]{1,3}|-{1,40}|─{1,30}|(ab){1,9}| {1,20}|0{1,9}|é{1,5}|看{1,5}|\\PC{1,3}){0,40}"
        ) {
            let bytes = text.as_bytes();
            let plainly = (0..bytes.len()).filter(|&at| repeated(bytes, at).is_some()).count();
            prop_assert_eq!(weigh(&ONE, bytes), i64::try_from(plainly).unwrap());
        }

        #[test]
        fn any_bytes_have_a_cost(bytes in proptest::collection::vec(prop_oneof![Just(0xe2_u8), Just(0x80), any::<u8>()], 0..300)) {
            let plainly = (0..bytes.len()).filter(|&at| repeated(&bytes, at).is_some()).count();
            prop_assert_eq!(weigh(&ONE, &bytes), i64::try_from(plainly).unwrap());
        }

        #[test]
        fn a_line_feed_ends_what_repeats(one in "[-a]{0,40}", two in "[-a]{0,40}") {
            let joined: String = one.clone() + "\n" + &two;
            prop_assert_eq!(count(&joined), count(&one) + count(&two));
        }
    }
}
