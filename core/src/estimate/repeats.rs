//! What repeats costs less.
//!
//! A tokenizer has tokens for rules of signs (`-----`, `=====`, `─────`, `aaaa`), the longest of them a hundred
//! bytes long. The automaton of the bytes cannot see that neighbours are *equal*, only that they are of a class. So
//! each byte that repeats is charged (as a rule: refunded) something besides, by its kind and by how long the run is
//! up to there: some signs have tokens of every length, others none beyond two or four.
//!
//! Three patterns are known, each from the third in a row on. An ASCII byte, not a space, a line feed or a digit
//! (which the automaton counts well); a character of two bytes; and one of three.

use super::automaton::CLASSES;

/// How far back a look at many positions at once reaches.
const BACK: usize = 8;
/// Positions looked at side by side.
const LANES: usize = 32;

/// The lengths that are told apart: the third of a run, the fourth, the fifth to eighth, the ninth to sixteenth, the
/// seventeenth to 32nd, and all later ones. Each is a row of a family's table, after those of the states.
pub(super) const LENGTHS: usize = 6;
pub(super) const COSTS: usize = LENGTHS * CLASSES;

/// Which row counts for the `count`th of a run, if one does.
const fn length_of(count: usize) -> Option<usize> {
    match count {
        0..=2 => None,
        3 => Some(0),
        4 => Some(1),
        5..=8 => Some(2),
        9..=16 => Some(3),
        17..=32 => Some(4),
        _ => Some(5),
    }
}

/// Positions that a look back need not go beyond: so many equal the ones three before them in the longest run that
/// is told apart, of characters of three bytes.
const LONGEST: usize = 96;

/// The signs that long tokens are made of have a kind each. A kind is a column of the rows of lengths.
const fn kind_of(last: u8) -> usize {
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
        // NUL and other control characters; blanks and digits are not asked for.
        _ => 21,
    }
}

// Characters of two bytes, and those that begin with C2, signs rather than letters.
const TWO_BYTES: usize = 22;
const TWO_BYTE_SIGN: usize = 23;

/// The kind of a character of three bytes.
const fn kind_of_three(lead: u16, middle: u16, last: u8) -> usize {
    match (lead, middle, last) {
        // The rules that boxes are drawn with, light, heavy and double; the other signs of boxes.
        (0xe2, 0x94, 0x80) => 24,
        (0xe2, 0x94, 0x81) => 25,
        (0xe2, 0x95, 0x90) => 26,
        (0xe2, 0x94 | 0x95, _) => 27,
        // The blocks of bars: the lowest, the others that are as wide, the full one, the light shade, other shades.
        (0xe2, 0x96, 0x81) => 28,
        (0xe2, 0x96, 0x80..=0x87) => 29,
        (0xe2, 0x96, 0x88) => 30,
        (0xe2, 0x96, 0x91) => 31,
        (0xe2, 0x96, 0x89..=0x9f) => 32,
        // Squares, circles, stars.
        (0xe2, 0x96..=0x9b, _) => 33,
        // Dashes, bullets, ellipses.
        (0xe2, 0x80, _) => 34,
        // Arrows and other symbols.
        (0xe2, ..) => 35,
        _ => 36,
    }
}

/// What runs there are up to a position.
#[derive(Clone, Copy)]
struct Runs {
    /// The bytes one, two and three before the position; no byte, where the text begins.
    before: [u16; 3],
    /// How many in a row, up to there, equal the byte one, two and three before them.
    same: [usize; 3],
}

impl Runs {
    /// At the end of `bytes`.
    fn after(bytes: &[u8]) -> Self {
        let nth = |back: usize| bytes.len().checked_sub(back).and_then(|at| bytes.get(at)).copied();
        let same = |period: usize| {
            (1..=LONGEST).take_while(|&back| nth(back + period).is_some_and(|byte| nth(back) == Some(byte))).count()
        };
        Self { before: [1, 2, 3].map(|back| nth(back).map_or(u16::MAX, u16::from)), same: [same(1), same(2), same(3)] }
    }

    /// One byte on. Its place in the table of costs, if it repeats what was before.
    #[inline(always)]
    fn step(&mut self, byte: u8) -> Option<usize> {
        let [one, two, _] = self.before;
        let this = u16::from(byte);
        for (same, before) in self.same.iter_mut().zip(self.before) {
            *same = if before == this { *same + 1 } else { 0 };
        }
        self.before = [this, one, two];
        let (count, kind) = if byte < 0x80 {
            let counted = !matches!(byte, b' ' | b'\n' | b'0'..=b'9');
            (if counted { self.same[0] + 1 } else { 0 }, kind_of(byte))
        } else if (0xe0..0xf0).contains(&two) && self.same[2] >= 6 {
            (self.same[2] / 3 + 1, kind_of_three(two, one, byte))
        } else if (0xc0..0xe0).contains(&one) && self.same[1] >= 4 {
            (self.same[1] / 2 + 1, if one == 0xc2 { TWO_BYTE_SIGN } else { TWO_BYTES })
        } else {
            (0, 0)
        };
        length_of(count).map(|length| length * CLASSES + kind)
    }
}

/// Whether a repetition may end in the last `LANES` bytes of `window`. Written so that a compiler makes vector
/// instructions of it; most texts have none, and then this is all there is to do.
#[inline(always)]
fn suspicious(window: &[u8; BACK + LANES]) -> bool {
    let mut found = 0;
    for lane in BACK..BACK + LANES {
        let last = window[lane];
        let one = (last ^ window[lane - 1]) | (last ^ window[lane - 2]);
        let blank = u8::from(last == b' ') | u8::from(last == b'\n') | u8::from(last.wrapping_sub(b'0') < 10);
        let two = (last ^ window[lane - 2])
            | (window[lane - 1] ^ window[lane - 3])
            | (window[lane - 2] ^ window[lane - 4])
            | (window[lane - 3] ^ window[lane - 5])
            | (!last & 0x80);
        let three = (last ^ window[lane - 3])
            | (window[lane - 1] ^ window[lane - 4])
            | (window[lane - 2] ^ window[lane - 5])
            | (window[lane - 3] ^ window[lane - 6])
            | (!last & 0x80);
        found |= u8::from(one == 0) & (blank ^ 1) | u8::from(two == 0) | u8::from(three == 0);
    }
    found != 0
}

/// What the repetitions in `bytes` cost besides, in 1/64 token.
pub(super) fn weigh(costs: &[i8; COSTS], bytes: &[u8]) -> i64 {
    let mut sum = 0;
    let mut stretch = |mut runs: Runs, bytes: &[u8]| {
        for &byte in bytes {
            sum += runs.step(byte).and_then(|at| costs.get(at)).map_or(0, |&cost| i64::from(cost));
        }
        runs
    };
    let (mut done, rest) = bytes.split_at(bytes.len().min(BACK));
    let mut runs = Some(stretch(Runs::after(&[]), done));
    for (window, lanes) in bytes.windows(BACK + LANES).step_by(LANES).zip(rest.chunks(LANES)) {
        // The runs up to here are known when the lanes before were looked at one by one.
        runs = if window.first_chunk().is_none_or(suspicious) {
            Some(stretch(runs.unwrap_or_else(|| Runs::after(done)), lanes))
        } else {
            None
        };
        done = bytes.split_at(done.len() + lanes.len()).0;
    }
    stretch(runs.unwrap_or_else(|| Runs::after(done)), &bytes[done.len()..]);
    sum
}

#[cfg(test)]
mod tests {
    use alloc::string::String;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    const ONE: [i8; COSTS] = [1; COSTS];

    fn count(text: &str) -> i64 {
        weigh(&ONE, text.as_bytes())
    }

    /// The costs of one length, one each.
    fn only(length: usize) -> [i8; COSTS] {
        core::array::from_fn(|at| i8::from(at / CLASSES == length))
    }

    /// The rule, said once more: how many equal characters end at `at`, if it ends one, and its kind.
    fn repeated(bytes: &[u8], at: usize) -> (usize, usize) {
        let character = |width: usize, end: usize| (end + 1).checked_sub(width).and_then(|at| bytes.get(at..=end));
        let run = |width: usize| {
            let last = character(width, at);
            (0..).take_while(|n| at.checked_sub(n * width).is_some_and(|end| character(width, end) == last)).count()
        };
        let last = bytes[at];
        match (character(3, at), character(2, at)) {
            _ if last < 0x80 => match last {
                b' ' | b'\n' | b'0'..=b'9' => (0, 0),
                _ => (run(1), kind_of(last)),
            },
            (Some(&[lead @ 0xe0..0xf0, middle, _]), _) if run(3) > 2 => {
                (run(3), kind_of_three(lead.into(), middle.into(), last))
            }
            (_, Some(&[0xc2, _])) => (run(2), TWO_BYTE_SIGN),
            (_, Some(&[0xc0..0xe0, _])) => (run(2), TWO_BYTES),
            _ => (0, 0),
        }
    }

    fn plainly(costs: &[i8; COSTS], bytes: &[u8]) -> i64 {
        let at = |at| {
            let (count, kind) = repeated(bytes, at);
            length_of(count).map_or(0, |length| i64::from(costs[length * CLASSES + kind]))
        };
        (0..bytes.len()).map(at).sum()
    }

    /// Costs that tell every length and kind apart.
    fn various() -> [i8; COSTS] {
        core::array::from_fn(|at| i8::try_from(at * 37 % 251).unwrap_or(-1))
    }

    #[test]
    fn from_the_third_equal_sign_on() {
        assert_eq!([count(""), count("-"), count("--"), count("---"), count("-----")], [0, 0, 0, 1, 3]);
        assert_eq!(count("aaaa==== --__AAAA"), 6);
    }

    #[test]
    fn from_the_third_equal_character_on() {
        assert_eq!([count("──"), count("───"), count("─────"), count("─━─━─━")], [0, 1, 3, 0]);
        assert_eq!([count("看看看"), count("··"), count("····"), count("ééé")], [1, 0, 2, 1]);
    }

    #[test]
    fn a_run_passes_through_the_lengths() {
        for sign in ["=", "·", "─"] {
            let of = |length| weigh(&only(length), sign.repeat(100).as_bytes());
            assert_eq!([0, 1, 2, 3, 4, 5].map(of), [1, 1, 4, 8, 16, 68], "{sign}");
        }
    }

    #[test]
    fn blanks_and_digits_are_the_automatons() {
        assert_eq!([count("        "), count("\n\n\n\n\n"), count("00000000")], [0, 0, 0]);
    }

    #[test]
    fn every_kind_is_a_column() {
        assert!((0..=255).all(|last| kind_of(last) < TWO_BYTES));
        assert!((0..=255).all(|middle| (0..=255).all(|last| kind_of_three(0xe2, middle, last) < CLASSES)));
    }

    #[test]
    fn where_a_run_begins_does_not_matter() {
        for sign in ["=", "x", "·", "▇", "─", "看"] {
            for before in 0..70 {
                for length in [2, 3, 4, 9, 33, 70] {
                    let text = "ab".repeat(before)
                        + &sign.repeat(length)
                        + " and what follows, long enough for a look at many";
                    assert_eq!(weigh(&various(), text.as_bytes()), plainly(&various(), text.as_bytes()), "{text}");
                }
            }
        }
    }

    proptest! {
        /// Looking at one position after the other is the rule; looking at many at once is only faster.
        #[test]
        fn side_by_side_is_one_by_one(
            text in "([a-z]{1,3}|-{1,40}|─{1,60}|(ab){1,9}| {1,20}|0{1,9}|é{1,40}|看{1,5}|\\PC{1,3}){0,40}"
        ) {
            prop_assert_eq!(weigh(&various(), text.as_bytes()), plainly(&various(), text.as_bytes()));
        }

        #[test]
        fn any_bytes_have_a_cost(
            bytes in proptest::collection::vec(prop_oneof![Just(0xe2_u8), Just(0xc2), Just(0x80), any::<u8>()], 0..300),
            times in 1..40_usize,
        ) {
            let bytes: Vec<u8> = bytes.iter().flat_map(|&byte| core::iter::repeat_n(byte, if byte == 0x80 { 1 } else { times % 5 + 1 })).collect();
            prop_assert_eq!(weigh(&various(), &bytes), plainly(&various(), &bytes));
        }

        #[test]
        fn a_line_feed_ends_what_repeats(one in "[-a]{0,40}", two in "[-a]{0,40}") {
            let joined: String = one.clone() + "\n" + &two;
            prop_assert_eq!(count(&joined), count(&one) + count(&two));
        }
    }
}
