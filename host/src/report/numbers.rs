//! Numbers and foreign text as people read them.

/// `1234567` as `1,234,567`.
#[must_use]
pub fn thousands(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `part` of `whole` with one decimal: `96.1 %`; `–` when there is no whole. Rounded down, so that only all is 100 %.
#[must_use]
pub fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "–".to_owned();
    }
    let thousandths = u128::from(part) * 1000 / u128::from(whole);
    format!("{}.{} %", thousandths / 10, thousandths % 10)
}

/// A number of tokens on an axis: `850`, `1.5k`, `120k`, `2M`.
pub(super) fn short(value: u64) -> String {
    let (unit, suffix) = match value {
        0..1_000 => return value.to_string(),
        1_000..1_000_000 => (1_000, "k"),
        1_000_000..1_000_000_000 => (1_000_000, "M"),
        _ => (1_000_000_000, "G"),
    };
    let tenths = (value.saturating_add(unit / 20)) / (unit / 10);
    if tenths.is_multiple_of(10) || tenths >= 1_000 {
        format!("{}{suffix}", (tenths + 5) / 10)
    } else {
        format!("{}.{}{suffix}", tenths / 10, tenths % 10)
    }
}

/// Factor in thousandths as a comparison: `+4 %`, `−31 %`, `2.9×`.
pub(super) fn versus(thousandths: u64) -> String {
    match thousandths {
        1_000 => "±0 %".to_owned(),
        0..1_000 => format!("−{} %", (1_000 - thousandths + 5) / 10),
        1_001..2_000 => format!("+{} %", (thousandths - 1_000 + 5) / 10),
        _ => format!("{}.{}×", (thousandths + 50) / 1_000, (thousandths + 50) % 1_000 / 100),
    }
}

/// `text` on one line, without anything a terminal would obey.
pub(super) fn plain(text: &str) -> String {
    let harmless = |c: char| {
        let bidi = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        match c {
            '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}' => ' ',
            c if c.is_control() || bidi => '\u{fffd}',
            c => c,
        }
    };
    text.chars().map(harmless).collect()
}

/// Columns a character takes in a terminal, near enough for file names and reason codes.
pub(super) fn columns_of(c: char) -> usize {
    match c {
        '\u{300}'..='\u{36f}' | '\u{200b}'..='\u{200d}' | '\u{fe00}'..='\u{fe0f}' => 0,
        '\u{1100}'..='\u{115f}'
        | '\u{2e80}'..='\u{a4cf}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe6f}'
        | '\u{ff00}'..='\u{ff60}'
        | '\u{ffe0}'..='\u{ffe6}'
        | '\u{1f300}'..='\u{1faff}'
        | '\u{20000}'..='\u{3fffd}' => 2,
        _ => 1,
    }
}

/// Columns `text` takes in a terminal.
pub(super) fn width(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

/// `text` for the inside of an HTML element or a quoted attribute.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\0' => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!((percent(1, 3), percent(2, 2), percent(1, 0)), ("33.3 %".into(), "100.0 %".into(), "–".into()));
        assert_eq!(percent(9_999, 10_000), "99.9 %");
        assert_eq!([7, 1_000, 1_549, 183_616, 2_000_000].map(short), ["7", "1k", "1.5k", "184k", "2M"]);
        assert_eq!([1_000, 690, 1_042, 2_949, 12_000].map(versus), ["±0 %", "−31 %", "+4 %", "2.9×", "12.0×"]);
    }

    #[test]
    fn foreign_text_is_tame() {
        assert_eq!(plain("a\x1b[31m\nb\u{202e}"), "a\u{fffd}[31m b\u{fffd}");
        assert_eq!(width("日本 ok"), 7);
        assert_eq!(escape("<a href='x'>&\"\0"), "&lt;a href=&#39;x&#39;&gt;&amp;&quot;\u{fffd}");
    }
}
