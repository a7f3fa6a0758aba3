//! A finite automaton over bytes that guesses what a tokenizer would count.
//!
//! Each byte falls in one of 44 classes; a shared table moves between 38 states (position in a word, in
//! a number, in a run of spaces, the script one is in), and a table per tokenizer family says what the
//! step costs in 1/64 token, possibly less than nothing. Summing that, and what repeats ([`repeats`]), is all
//! there is: no floats, no allocation, and no answer but one for the same bytes.

use super::repeats;

pub(super) const CLASSES: usize = 44;
const STATES: usize = 38;
const CELLS: usize = CLASSES * STATES;

/// Texts shorter than this are walked in one go: what starting four walks costs would not come back.
const SPLIT_FROM: usize = 256;
/// What is walked at a time, so that four sums of `i8` fit in `i32` with room to spare.
const BLOCK: usize = 1 << 16;
/// The row a text begins at: that of a new line.
const NEW_TEXT: usize = NEWLINE * CLASSES;

/// What each step costs, in 1/64 token: `weights[state * CLASSES + class]`. The last rows are what repetitions
/// cost besides, by their length and kind.
pub(super) type Weights = [i8; CELLS + repeats::COSTS];

// The states that transitions name. Those of the scripts are only ever reached by their lead bytes.
const NEWLINE: usize = 0;
const SPACE: usize = 1;
const SPACES: usize = 2;
const TAB: usize = 3;
/// Letters of a word: the first, the second, and two stretches that a vowel ends. Then `LONG_WORD`.
const WORD: usize = 4;
const LONG_WORD: usize = 8;
const UPPER: usize = 9;
const UPPERS: usize = 10;
/// Digits by position modulo three: 11, 12, 13.
const DIGIT: usize = 11;
const THIRD_DIGIT: usize = 13;
const PUNCTUATION: usize = 14;
const PUNCTUATIONS: usize = 15;
/// Letters and digits in one run: hexadecimal, base64, identifiers.
const MIXED_LETTER: usize = 16;
const MIXED_DIGIT: usize = 17;
const LATIN: usize = 18;
/// Greek, and signs of two bytes.
const GREEK: usize = 19;
const CYRILLIC: usize = 20;
const CYRILLICS: usize = 21;
const ARMENIAN_HEBREW: usize = 22;
const ARABIC: usize = 23;
const ARABICS: usize = 24;
/// The leads E0, E1, E2, E3 have a state for the lead and, one above it, a state for what follows.
const E0: usize = 25;
const E1: usize = 27;
const E2: usize = 29;
const E3: usize = 31;
const HAN: usize = 33;
/// Hangul, and what begins with EE and EF: wide punctuation, mostly.
const HANGUL: usize = 34;
/// Emoji, mostly: the lead, and what follows.
const FOUR_BYTE: usize = 35;
const FOUR_BYTES: usize = 36;
/// An underscore within a name: tokenizers have many words with one before them.
const SNAKE: usize = 37;

const fn class_of(byte: u8) -> u8 {
    match byte {
        b'a' | b'e' | b'i' | b'o' | b'u' => 0,
        b't' | b'n' | b's' | b'r' | b'l' | b'd' | b'c' | b'm' => 1,
        b'b' | b'f' | b'g' | b'h' | b'p' | b'y' => 2,
        // Rare in English, frequent in many other languages; and rare in most.
        b'k' | b'j' | b'z' | b'w' => 3,
        b'q' | b'v' | b'x' => 4,
        b'A'..=b'Z' => 5,
        b'0'..=b'9' => 6,
        b' ' => 7,
        b'\n' => 8,
        b'\t' | b'\r' => 9,
        b'"' | b'\'' | b'`' => 10,
        b'(' | b'[' | b'{' | b')' | b']' | b'}' => 11,
        b'.' | b',' | b';' | b':' | b'!' | b'?' => 12,
        b'_' => 13,
        b'-' | b'/' | b'\\' => 14,
        // The rest of ASCII, control characters among it.
        0..0x80 => 15,
        // Continuation bytes. After E0 they tell the scripts of India apart, from Devanagari (A4) to Sinhala (B6);
        // after other leads, Thai, Georgian, kana.
        0x80..=0x83 => 16,
        0x84..=0x8f => 17,
        0x90..=0xa3 => 18,
        0xa4 | 0xa5 => 19,
        0xa6 | 0xa7 => 20,
        0xa8 | 0xa9 => 21,
        0xaa | 0xab => 22,
        0xac..=0xaf => 23,
        0xb0 | 0xb1 => 24,
        0xb2 | 0xb3 => 25,
        0xb4 | 0xb5 => 26,
        0xb6 | 0xb7 => 27,
        0xb8..=0xbb => 28,
        0xbc..=0xbf => 29,
        // Lead bytes, by script.
        0xc0..=0xc2 => 30,
        0xc3..=0xca => 31,
        0xcb..=0xcf => 32,
        0xd0..=0xd3 => 33,
        0xd4..=0xd7 => 34,
        0xd8..=0xdf => 35,
        0xe0 => 36,
        0xe1 => 37,
        0xe2 => 38,
        0xe3 => 39,
        0xe4..=0xe9 => 40,
        0xea..=0xed => 41,
        0xee | 0xef => 42,
        0xf0..=0xff => 43,
    }
}

const fn next_of(state: usize, class: usize) -> usize {
    match class {
        // A vowel ends each of the two middle stretches of a word, which keeps the count finite.
        0..=4 => match state {
            4 | 5 => state + 1,
            6 | 7 => state + (class == 0) as usize,
            LONG_WORD => LONG_WORD,
            UPPER | UPPERS => WORD + 1,
            DIGIT..=THIRD_DIGIT | MIXED_LETTER | MIXED_DIGIT => MIXED_LETTER,
            LATIN => WORD + 2,
            _ => WORD,
        },
        5 => match state {
            UPPER | UPPERS => UPPERS,
            DIGIT..=THIRD_DIGIT | MIXED_LETTER | MIXED_DIGIT => MIXED_LETTER,
            _ => UPPER,
        },
        6 => match state {
            DIGIT..THIRD_DIGIT => state + 1,
            WORD..=UPPERS | MIXED_LETTER | MIXED_DIGIT => MIXED_DIGIT,
            _ => DIGIT,
        },
        7 => match state {
            SPACE | SPACES => SPACES,
            _ => SPACE,
        },
        8 => NEWLINE,
        9 => TAB,
        13 if matches!(state, WORD..=THIRD_DIGIT | MIXED_LETTER | MIXED_DIGIT) => SNAKE,
        10..=15 => match state {
            PUNCTUATION | PUNCTUATIONS | SNAKE => PUNCTUATIONS,
            _ => PUNCTUATION,
        },
        16..=29 => match state {
            E0 | E1 | E2 | E3 => state + 1,
            FOUR_BYTE => FOUR_BYTES,
            _ => state,
        },
        31 => LATIN,
        30 | 32 => GREEK,
        33 => match state {
            CYRILLIC | CYRILLICS => CYRILLICS,
            _ => CYRILLIC,
        },
        34 => ARMENIAN_HEBREW,
        35 => match state {
            ARABIC | ARABICS => ARABICS,
            _ => ARABIC,
        },
        36 => E0,
        37 => E1,
        38 => E2,
        39 => E3,
        40 => HAN,
        41 | 42 => HANGUL,
        _ => FOUR_BYTE,
    }
}

static CLASS: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = class_of(byte as u8);
        byte += 1;
    }
    table
};

/// The class of `byte`, below [`CLASSES`].
#[inline(always)]
fn class(byte: u8) -> usize {
    usize::from(CLASS[usize::from(byte)])
}

/// Where the next state's row begins: `NEXT[state * CLASSES + class]` is already multiplied by
/// `CLASSES`, which keeps a multiplication out of the one chain of dependent steps.
static NEXT: [u16; CELLS] = {
    let mut table = [0; CELLS];
    let mut cell = 0;
    while cell < CELLS {
        let next = next_of(cell / CLASSES, cell % CLASSES);
        assert!(next < STATES);
        table[cell] = (next * CLASSES) as u16;
        cell += 1;
    }
    table
};

/// One step from `row` (where a state's row begins): the next row, and what the step costs.
#[inline(always)]
fn step(weights: &Weights, row: usize, byte: u8) -> (usize, i32) {
    let cell = row + class(byte);
    // Always so; said here, it keeps two checks and their panics out of the loops.
    if cell < CELLS { (usize::from(NEXT[cell]), i32::from(weights[cell])) } else { (row, 0) }
}

/// Walks `bytes` from `row`: where it ends, and the sum.
fn walk(weights: &Weights, mut row: usize, bytes: &[u8]) -> (usize, i32) {
    let mut sum = 0;
    for &byte in bytes {
        let (next, cost) = step(weights, row, byte);
        (row, sum) = (next, sum + cost);
    }
    (row, sum)
}

/// What has to be added to the sum of a walk over `bytes` that began at `wrong` and should have begun at
/// `right`, and where the right one ends if it is not where the wrong one did. Two walks over the same
/// bytes soon meet, and from there on they are one.
fn correction(weights: &Weights, mut wrong: usize, mut right: usize, bytes: &[u8]) -> (Option<usize>, i32) {
    let mut sum = 0;
    for &byte in bytes {
        if wrong == right {
            return (None, sum);
        }
        let (wrong_next, too_much) = step(weights, wrong, byte);
        let (right_next, cost) = step(weights, right, byte);
        (wrong, right, sum) = (wrong_next, right_next, sum + cost - too_much);
    }
    (Some(right), sum)
}

/// What `bytes` cost, in 1/64 token, as one text walked from its beginning.
pub(super) fn weigh(weights: &Weights, bytes: &[u8]) -> i64 {
    let mut row = NEW_TEXT;
    let mut sum = weights.last_chunk().map_or(0, |costs| repeats::weigh(costs, bytes));
    for block in bytes.chunks(BLOCK) {
        let (end, cost) = if block.len() < SPLIT_FROM { walk(weights, row, block) } else { four(weights, row, block) };
        (row, sum) = (end, sum + i64::from(cost));
    }
    sum
}

/// [`walk`], faster. A walk is a chain of loads, each waiting for the one before. Four quarters walked
/// side by side fill the waiting, three of them from a guessed state; what the guess changed is then
/// put right, so that the sum is that of the single walk to the last digit. At worst (nothing but digits,
/// where walks out of step never meet) that takes as long as the single walk.
fn four(weights: &Weights, row: usize, bytes: &[u8]) -> (usize, i32) {
    let quarter = bytes.len() / 4;
    let (first, rest) = bytes.split_at(quarter);
    let (second, rest) = rest.split_at(quarter);
    let (third, rest) = rest.split_at(quarter);
    let (fourth, rest) = rest.split_at(quarter);
    let (mut a, mut b, mut c, mut d) = (row, NEW_TEXT, NEW_TEXT, NEW_TEXT);
    let mut sum = 0;
    for (((&in_a, &in_b), &in_c), &in_d) in first.iter().zip(second).zip(third).zip(fourth) {
        let (next_a, cost_a) = step(weights, a, in_a);
        let (next_b, cost_b) = step(weights, b, in_b);
        let (next_c, cost_c) = step(weights, c, in_c);
        let (next_d, cost_d) = step(weights, d, in_d);
        (a, b, c, d) = (next_a, next_b, next_c, next_d);
        sum += cost_a + cost_b + cost_c + cost_d;
    }
    let mut end = a;
    for (guessed_end, quarter) in [(b, second), (c, third), (d, fourth)] {
        let (true_end, missing) = correction(weights, NEW_TEXT, end, quarter);
        (end, sum) = (true_end.unwrap_or(guessed_end), sum + missing);
    }
    let (end, cost) = walk(weights, end, rest);
    (end, sum + cost)
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;
    use crate::estimate::tables::{O200K, QWEN35};

    fn plainly(weights: &Weights, bytes: &[u8]) -> i64 {
        i64::from(walk(weights, NEW_TEXT, bytes).1) + repeats::weigh(weights.last_chunk().unwrap(), bytes)
    }

    #[test]
    fn a_line_feed_and_a_tab_forget_all_that_was_before() {
        for row in NEXT.chunks(CLASSES) {
            assert_eq!(usize::from(row[class(b'\n')]), NEWLINE * CLASSES);
            assert_eq!(usize::from(row[class(b'\t')]), TAB * CLASSES);
        }
    }

    #[test]
    fn four_walks_are_one_even_where_they_never_meet() {
        for len in [255, 256, 257, 258, 259, 1000, 4096, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 300] {
            for pattern in ["1", "ab12 ", "x", "\u{0905}", "the word\n", "0123456789abcdef"] {
                let bytes: Vec<u8> = pattern.bytes().cycle().take(len).collect();
                assert_eq!(weigh(&O200K, &bytes), plainly(&O200K, &bytes), "{len} bytes of {pattern:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn four_walks_are_one(text in "([a-z]{1,12}|[A-Z]{1,4}|[0-9]{1,90}|[ -/]{1,3}|\\PC{1,9}|\n| ){0,400}") {
            prop_assert_eq!(weigh(&O200K, text.as_bytes()), plainly(&O200K, text.as_bytes()));
        }

        #[test]
        fn four_walks_are_one_over_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..3000)) {
            prop_assert_eq!(weigh(&QWEN35, &bytes), plainly(&QWEN35, &bytes));
        }
    }
}
