//! The price table: a dated file with a source for every row.

use std::fmt;
use std::path::Path;

use serde::Deserialize;

use super::money::{Money, parse_millionths};

/// The table that ships with the program.
const BUILTIN: &str = include_str!("../../../testdata/prices.toml");

/// How a provider finds a request's prefix in its cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheRule {
    /// The longest prefix of any request still alive, rounded down to the row's granularity. No marks needed.
    Automatic,
    /// Entries exist only where a request placed a mark, and are found from a mark of the new request, at most
    /// `lookback` segments further back (Anthropic).
    Breakpoints {
        /// Marks a request may carry, the one at its end included.
        max_marks: usize,
        /// How many segments before a mark are searched for an entry.
        lookback: usize,
    },
    /// A prefix is read exactly where an earlier request placed a mark, however far back, among the newest
    /// `remembered` entries; no shorter prefix is tried (OpenAI from GPT-5.6 on).
    Exact {
        /// Marks a request may carry, the one at its end included.
        max_marks: usize,
        /// How many entries are remembered.
        remembered: usize,
    },
}

impl CacheRule {
    /// The name used in the price file.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Automatic => "automatic",
            Self::Breakpoints { .. } => "breakpoints",
            Self::Exact { .. } => "exact",
        }
    }
}

/// A price cliff: above so many input tokens the whole request costs more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongContext {
    /// Requests with more input tokens than this are on the other side.
    pub above_tokens: u64,
    /// Factor on everything on the input side, in millionths.
    pub input_factor: u64,
    /// Factor on output, in millionths.
    pub output_factor: u64,
}

/// One row of the price table. Prices are picodollars per token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriceRow {
    /// Short name, chosen with `--price-row`.
    pub id: String,
    /// Who bills.
    pub provider: String,
    /// Models this row describes.
    pub models: Vec<String>,
    /// When the figures were read, `YYYY-MM-DD`.
    pub date: String,
    /// Where the figures come from.
    pub source: String,
    /// What is assumed rather than sourced, or `""`.
    pub note: String,
    /// A plain input token.
    pub input: u64,
    /// An input token read from the cache.
    pub read: u64,
    /// An input token written to the cache; equal to `input` where writing is free.
    pub write: u64,
    /// An output token; `None` where the source gives none: output is then not billed.
    pub output: Option<u64>,
    /// Shortest prefix that is cached, in tokens.
    pub min_tokens: u64,
    /// Step in which a longer prefix counts, in tokens (at least 1).
    pub granularity: u64,
    /// Seconds without use after which an entry is gone. A use refreshes it.
    pub ttl_seconds: u64,
    /// How a prefix is found.
    pub rule: CacheRule,
    /// The price cliff, if there is one.
    pub long_context: Option<LongContext>,
}

impl PriceRow {
    /// The input side of one request: tokens read from the cache, written to it, and neither.
    #[must_use]
    pub fn input_cost(&self, cached: u64, written: u64, uncached: u64) -> Money {
        let part = |tokens: u64, price: u64| u128::from(tokens) * u128::from(price);
        let plain = part(cached, self.read)
            .saturating_add(part(written, self.write))
            .saturating_add(part(uncached, self.input));
        let sent = cached.saturating_add(written).saturating_add(uncached);
        match self.long_context {
            Some(cliff) if sent > cliff.above_tokens => scaled(plain, cliff.input_factor),
            _ => Money::from_picodollars(plain),
        }
    }

    /// The output side of one request that had `sent` input tokens.
    #[must_use]
    pub fn output_cost(&self, output: u64, sent: u64) -> Money {
        let plain = u128::from(output) * u128::from(self.output.unwrap_or(0));
        match self.long_context {
            Some(cliff) if sent > cliff.above_tokens => scaled(plain, cliff.output_factor),
            _ => Money::from_picodollars(plain),
        }
    }

    /// Whether a write costs something other than plain input, so that written tokens are told apart.
    #[must_use]
    pub const fn bills_writes(&self) -> bool {
        self.write != self.input
    }
}

fn scaled(picodollars: u128, millionths: u64) -> Money {
    Money::from_picodollars(picodollars.saturating_mul(u128::from(millionths)) / 1_000_000)
}

/// All rows of a price file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriceTable {
    /// When the file was last checked as a whole.
    pub date: String,
    /// The row used when none is named.
    pub default: String,
    /// The rows, in the order of the file; never empty.
    pub rows: Vec<PriceRow>,
}

/// What is wrong with a price file, or with the row asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PriceError {
    /// The file could not be read: its path and the reason.
    Unreadable(String, String),
    /// Not TOML, or not of this form; the message names line and column.
    Form(String),
    /// A row's field has a value that makes no sense: row, field, value.
    Value(String, &'static str, String),
    /// There is no row of that name; the second field lists those there are.
    NoSuchRow(String, String),
    /// Two rows share this name.
    Twice(String),
    /// The file has no rows.
    Empty,
}

impl fmt::Display for PriceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(path, why) => write!(f, "cannot read the price file {path}: {why}"),
            Self::Form(why) => write!(f, "price file: {why}"),
            Self::Value(row, field, value) => write!(f, "price row `{row}`: `{field}` cannot be `{value}`"),
            Self::NoSuchRow(row, known) => write!(f, "no price row `{row}`; there are: {known}"),
            Self::Twice(row) => write!(f, "price row `{row}` stands twice in the file"),
            Self::Empty => f.write_str("price file: no rows"),
        }
    }
}

impl std::error::Error for PriceError {}

impl PriceTable {
    /// The table that ships with the program.
    ///
    /// # Errors
    /// None in a released program: a test reads it.
    pub fn builtin() -> Result<Self, PriceError> {
        Self::parse(BUILTIN)
    }

    /// The table in the file at `path`.
    ///
    /// # Errors
    /// When the file cannot be read or is not a price file.
    pub fn load(path: &Path) -> Result<Self, PriceError> {
        let text = std::fs::read_to_string(path)
            .map_err(|why| PriceError::Unreadable(path.display().to_string(), why.to_string()))?;
        Self::parse(&text)
    }

    /// The table in `text`.
    ///
    /// # Errors
    /// When `text` is not a price file.
    pub fn parse(text: &str) -> Result<Self, PriceError> {
        let file: File = toml::from_str(text).map_err(|why| PriceError::Form(why.to_string()))?;
        if file.format != 1 {
            return Err(PriceError::Form(format!("format {} is not known here; this program reads 1", file.format)));
        }
        let mut rows: Vec<PriceRow> = Vec::with_capacity(file.row.len());
        for row in file.row {
            if rows.iter().any(|known| known.id == row.id) {
                return Err(PriceError::Twice(row.id));
            }
            rows.push(row.checked()?);
        }
        if rows.is_empty() {
            return Err(PriceError::Empty);
        }
        let table = Self { date: file.date, default: file.default, rows };
        table.row(&table.default)?;
        Ok(table)
    }

    /// The row named `id`.
    ///
    /// # Errors
    /// When there is none; the error lists those there are.
    pub fn row(&self, id: &str) -> Result<&PriceRow, PriceError> {
        self.rows.iter().find(|row| row.id == id).ok_or_else(|| {
            let known: Vec<&str> = self.rows.iter().map(|row| row.id.as_str()).collect();
            PriceError::NoSuchRow(id.to_owned(), known.join(", "))
        })
    }
}

/// A number as people write it: `5`, `0.10`, or `"0.10"`.
#[derive(Deserialize)]
#[serde(untagged)]
enum Decimal {
    Integer(u64),
    Float(f64),
    Text(String),
}

impl Decimal {
    /// The text whose millionths count; a float prints as the shortest decimal that reads back as itself.
    fn text(&self) -> String {
        match self {
            Self::Integer(value) => value.to_string(),
            Self::Float(value) => value.to_string(),
            Self::Text(text) => text.clone(),
        }
    }

    fn millionths(&self, row: &str, field: &'static str) -> Result<u64, PriceError> {
        let text = self.text();
        parse_millionths(&text).ok_or_else(|| PriceError::Value(row.to_owned(), field, text))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: u32,
    date: String,
    default: String,
    #[serde(default)]
    row: Vec<RawRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRow {
    id: String,
    provider: String,
    models: Vec<String>,
    date: String,
    source: String,
    #[serde(default)]
    note: String,
    input: Decimal,
    output: Option<Decimal>,
    read: Decimal,
    write: Decimal,
    min_tokens: u64,
    #[serde(default = "one")]
    granularity: u64,
    ttl_seconds: u64,
    rule: String,
    max_marks: Option<usize>,
    lookback: Option<usize>,
    remembered: Option<usize>,
    long_context: Option<RawCliff>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCliff {
    above_tokens: u64,
    input: Decimal,
    output: Decimal,
}

const fn one() -> u64 {
    1
}

impl RawRow {
    fn checked(self) -> Result<PriceRow, PriceError> {
        let bad = |field, value: String| PriceError::Value(self.id.clone(), field, value);
        let input = self.input.millionths(&self.id, "input")?;
        let times = |factor: u64| {
            u64::try_from((u128::from(input) * u128::from(factor) + 500_000) / 1_000_000)
                .map_err(|_| bad("input", self.input.text()))
        };
        let read = times(self.read.millionths(&self.id, "read")?)?;
        let write = times(self.write.millionths(&self.id, "write")?)?;
        let output = self.output.as_ref().map(|price| price.millionths(&self.id, "output")).transpose()?;
        if self.granularity == 0 {
            return Err(bad("granularity", "0".to_owned()));
        }
        let at_least_one = |field, value: Option<usize>, default: usize| match value {
            Some(0) => Err(bad(field, "0".to_owned())),
            Some(value) => Ok(value),
            None => Ok(default),
        };
        let max_marks = at_least_one("max_marks", self.max_marks, 4)?;
        let rule = match self.rule.as_str() {
            "automatic" => CacheRule::Automatic,
            "breakpoints" => CacheRule::Breakpoints { max_marks, lookback: self.lookback.unwrap_or(20) },
            "exact" => {
                CacheRule::Exact { max_marks, remembered: at_least_one("remembered", self.remembered, 80)?.min(1024) }
            }
            other => return Err(bad("rule", other.to_owned())),
        };
        let long_context = match &self.long_context {
            None => None,
            Some(cliff) => Some(LongContext {
                above_tokens: cliff.above_tokens,
                input_factor: cliff.input.millionths(&self.id, "long_context.input")?,
                output_factor: cliff.output.millionths(&self.id, "long_context.output")?,
            }),
        };
        Ok(PriceRow {
            id: self.id,
            provider: self.provider,
            models: self.models,
            date: self.date,
            source: self.source,
            note: self.note,
            input,
            read,
            write,
            output,
            min_tokens: self.min_tokens,
            granularity: self.granularity,
            ttl_seconds: self.ttl_seconds,
            rule,
            long_context,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = r#"
        format = 1
        date = "2026-11-29"
        default = "a"
        [[row]]
        id = "a"
        provider = "P"
        models = []
        date = "2026-11-29"
        source = "s"
        input = 0.14
        read = "0.02"
        write = 1
        min_tokens = 64
        ttl_seconds = 60
        rule = "automatic"
    "#;

    #[test]
    fn the_shipped_table_reads_and_names_its_sources() {
        let table = PriceTable::builtin().unwrap();
        for id in ["anthropic-5m", "anthropic-1h", "openai-5.5", "openai-5.6", "deepseek", "gemini"] {
            assert!(table.row(id).is_ok(), "{id}");
        }
        for row in &table.rows {
            assert!(!row.source.is_empty() && !row.models.is_empty() && row.date.len() == 10, "{}", row.id);
            assert!(row.read <= row.input && row.write >= row.input, "{}", row.id);
        }
    }

    #[test]
    fn numbers_may_be_written_any_plain_way() {
        let row = &PriceTable::parse(SMALL).unwrap().rows[0];
        assert_eq!((row.input, row.read, row.write, row.output), (140_000, 2_800, 140_000, None));
        assert_eq!(row.granularity, 1);
        assert!(!row.bills_writes());
    }

    #[test]
    fn nonsense_is_refused_by_name() {
        let with = |from: &str, to: &str| PriceTable::parse(&SMALL.replace(from, to)).unwrap_err().to_string();
        assert_eq!(with("0.14", "-1.0"), "price row `a`: `input` cannot be `-1`");
        assert_eq!(with("0.14", "nan"), "price row `a`: `input` cannot be `NaN`");
        assert_eq!(with("\"automatic\"", "\"psychic\""), "price row `a`: `rule` cannot be `psychic`");
        assert_eq!(with("default = \"a\"", "default = \"b\""), "no price row `b`; there are: a");
        assert!(with("min_tokens", "min_token").contains("min_token"));
        assert!(with("format = 1", "format = 2").contains("format 2"));
        assert_eq!(PriceTable::parse("format=1\ndate=''\ndefault=''").unwrap_err(), PriceError::Empty);
        let twice = format!("{SMALL}{}", &SMALL[SMALL.find("[[row]]").unwrap()..]);
        assert_eq!(PriceTable::parse(&twice).unwrap_err(), PriceError::Twice("a".into()));
    }
}
