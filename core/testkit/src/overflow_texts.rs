//! What a provider says when it refuses, or anything else.

use foreshorten_core::overflow::{ErrorClass, explain};

use crate::Script;

/// Any text under any status is given a class, and a window only when its digits stand in the text.
///
/// # Panics
/// When a window is made up (I14), or a text is read two ways.
pub fn overflow_text(bytes: &[u8]) {
    let mut script = Script::new(bytes);
    let status = match script.below(8) {
        0 => None,
        1 => Some(400),
        2 => Some(413),
        3 => Some(429),
        4 => Some(200),
        5 => Some(500),
        _ => Some(u16::from_le_bytes([script.byte(), script.byte()])),
    };
    let text = String::from_utf8_lossy(script.rest());
    let found = explain(status, &text);
    assert_eq!(found, explain(status, &text), "I2: one text, two readings");
    assert!(!found.why.is_empty());
    if status.is_some_and(|status| (200..300).contains(&status)) {
        assert_eq!((found.class, found.window), (ErrorClass::None, None));
    }
    let Some(window) = found.window else {
        assert!(!found.input_limit, "a limit without a number");
        return;
    };
    assert!(window > 0 && (found.is_overflow() || found.class == ErrorClass::OutputCap));
    assert!(!found.body_missing);
    // Escapes can write digits as letters (`\u0031`), so only plain text is held to the digits it shows.
    if !text.contains(['\\', '&']) && text.is_ascii() {
        let digits: String = text.chars().filter(|c| c.is_ascii_digit()).collect();
        assert!(digits.contains(&window.to_string()), "I14: {window} does not stand in {text:?}");
    }
    let none: String = text.chars().filter(|c| !c.is_numeric()).collect();
    assert_eq!(explain(status, &none).window, None, "I14: a window without a digit in {none:?}");
}
