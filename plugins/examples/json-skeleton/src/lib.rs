//! Condenses large JSON results to their skeleton: all keys, short values, the first of every array. What was left out can
//! be recalled like any result.
//!
//! Needs the grant `condensing`.
#![cfg_attr(target_arch = "wasm32", no_std)]

extern crate alloc;

use alloc::format;

use foreshorten_plugin::{Kind, Pass, Stage, String, mark};

/// The stage.
pub struct JsonSkeleton;

/// Results of fewer bytes stay as they are.
const LEAST: u32 = 2_000;
/// Results of more bytes are not read.
const MOST: u32 = 4 << 20;
/// Bytes of a string that are kept.
const STRING: usize = 48;
/// How deep it looks.
const DEPTH: usize = 24;

struct Reader<'a> {
    bytes: &'a [u8],
    text: &'a str,
    at: usize,
    out: String,
}

impl Reader<'_> {
    fn space(&mut self) {
        while self.bytes.get(self.at).is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    fn eat(&mut self, byte: u8) -> Option<()> {
        self.space();
        let found = self.bytes.get(self.at) == Some(&byte);
        self.at += usize::from(found);
        found.then_some(())
    }

    fn peek(&mut self) -> Option<u8> {
        self.space();
        self.bytes.get(self.at).copied()
    }

    /// A string, quotes included.
    fn string(&mut self) -> Option<&str> {
        let start = self.at;
        self.eat(b'"')?;
        loop {
            match self.bytes.get(self.at)? {
                b'"' => break,
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        self.text.get(start..self.at)
    }

    /// One value; written only if `keep`. `None` for what is no JSON.
    fn value(&mut self, depth: usize, keep: bool) -> Option<()> {
        if depth > DEPTH {
            return None;
        }
        match self.peek()? {
            open @ (b'{' | b'[') => {
                let close = if open == b'{' { b'}' } else { b']' };
                self.at += 1;
                self.put(open, keep);
                let mut count = 0usize;
                while self.peek()? != close {
                    if count > 0 {
                        self.eat(b',')?;
                        self.space();
                    }
                    let shown = keep && (open == b'{' || count == 0);
                    if shown && count > 0 {
                        self.out.push(',');
                    }
                    if open == b'{' {
                        let key = String::from(self.string()?);
                        self.eat(b':')?;
                        if shown {
                            self.out.push_str(&key);
                            self.out.push(':');
                        }
                    }
                    self.value(depth + 1, shown)?;
                    count += 1;
                }
                self.at += 1;
                if keep && open == b'[' && count > 1 {
                    self.out.push_str(&format!(",\"… {} more\"", count - 1));
                }
                self.put(close, keep);
            }
            b'"' => {
                let text = String::from(self.string()?);
                if keep && text.len() <= STRING + 2 {
                    self.out.push_str(&text);
                } else if keep {
                    self.out.push_str(&format!("\"… {} bytes\"", text.len() - 2));
                }
            }
            _ => {
                let start = self.at;
                while self.bytes.get(self.at).is_some_and(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte))
                {
                    self.at += 1;
                }
                let word = self.text.get(start..self.at).filter(|word| !word.is_empty())?;
                if keep {
                    self.out.push_str(word);
                }
            }
        }
        Some(())
    }

    fn put(&mut self, byte: u8, keep: bool) {
        if keep {
            self.out.push(char::from(byte));
        }
    }
}

/// The skeleton of a JSON text; `None` when it is none.
#[must_use]
pub fn skeleton(text: &str) -> Option<String> {
    let mut reader = Reader { bytes: text.as_bytes(), text, at: 0, out: String::new() };
    if !matches!(reader.peek()?, b'{' | b'[') {
        return None;
    }
    reader.value(0, true)?;
    reader.peek().is_none().then_some(reader.out)
}

impl Stage for JsonSkeleton {
    fn plan(pass: &mut impl Pass) -> Result<(), String> {
        let kinds = pass.kinds(0, u32::MAX);
        let marks = pass.marks(0, u32::MAX);
        let levels = pass.levels(0, u32::MAX);
        let sizes = pass.sizes(0, u32::MAX);
        for entry in 0..kinds.len() {
            let no = mark::PROTECTED | mark::ORPHAN | mark::RECALL | mark::MEDIA;
            let open = Kind::from(kinds[entry]) == Kind::ToolResult && levels[entry] == 0 && marks[entry] & no == 0;
            if open && (LEAST..MOST).contains(&sizes[entry]) {
                if pass.reached_target() {
                    break;
                }
                let text = pass.text(entry as u32, 0, 0, MOST);
                if let Some(short) = skeleton(&text).filter(|short| short.len() * 2 < text.len()) {
                    pass.condense(entry as u32, &short);
                }
            }
        }
        Ok(())
    }
}

foreshorten_plugin::stage!(JsonSkeleton);

#[cfg(test)]
mod tests {
    use foreshorten_plugin::fake::{Did, Fake};

    use super::*;

    #[test]
    fn keys_stay_and_long_strings_and_later_elements_go() {
        let long = "y".repeat(60);
        let text = format!("{{\"a\": [1, 2, {{\"b\": 3}}], \"c\": \"{long}\", \"d\": {{\"e\": null, \"f\": -1.5e3}}}}");
        let short = "{\"a\":[1,\"… 2 more\"],\"c\":\"… 60 bytes\",\"d\":{\"e\":null,\"f\":-1.5e3}}";
        assert_eq!(skeleton(&text).as_deref(), Some(short));
        for no in ["", "no json", "{\"a\": }", "[1, 2", "[1] x", "\"text\"", "{\"a\" 1}", "{\"a\\"] {
            assert_eq!(skeleton(no), None, "{no}");
        }
        assert_eq!(skeleton(&"[".repeat(100_000)), None);
    }

    #[test]
    fn a_large_result_is_condensed_and_a_small_one_is_not() {
        let rows: Vec<String> = (0..200).map(|n| format!("{{\"id\":{n},\"name\":\"row\"}}")).collect();
        let mut fake = Fake::default();
        fake.call("query", "{}", &format!("[{}]", rows.join(","))).call("query", "{}", "[1]").user("and now?").tail(1);
        JsonSkeleton::plan(&mut fake).unwrap();
        assert_eq!(fake.did, [Did::Condense(1, "[{\"id\":0,\"name\":\"row\"},\"… 199 more\"]".into())]);
    }
}
