//! The one table: goal, measured, asked, pass.

use std::fmt;

/// A row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Number of the goal, and in words what is measured.
    pub goal: String,
    /// What came out.
    pub measured: String,
    /// What was asked for.
    pub asked: String,
    /// Whether it is met; `None` where nothing was asked, or nothing measured.
    pub pass: Option<bool>,
}

impl Row {
    /// A row with a verdict.
    pub fn new(goal: impl Into<String>, measured: impl Into<String>, asked: impl Into<String>, pass: bool) -> Self {
        Self { goal: goal.into(), measured: measured.into(), asked: asked.into(), pass: Some(pass) }
    }

    /// A row that is only told.
    pub fn told(goal: impl Into<String>, measured: impl Into<String>) -> Self {
        Self { goal: goal.into(), measured: measured.into(), asked: "–".into(), pass: None }
    }

    /// A row of something that was not measured, and why.
    pub fn missing(goal: impl Into<String>, asked: impl Into<String>, why: impl fmt::Display) -> Self {
        Self { goal: goal.into(), measured: format!("not measured: {why}"), asked: asked.into(), pass: None }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pass = match self.pass {
            Some(true) => "yes",
            Some(false) => "**no**",
            None => "",
        };
        write!(f, "| {} | {} | {} | {pass} |", self.goal, self.measured, self.asked)
    }
}

/// Prints rows as they come and remembers whether one failed.
#[derive(Debug, Default)]
pub struct Table {
    failed: Vec<String>,
}

impl Table {
    /// The head of a table, for who prints one alone.
    pub const HEAD: &'static str = "| goal | measured | asked | pass |\n|---|---|---|---|";

    /// Prints a row.
    pub fn row(&mut self, row: &Row) {
        println!("{row}");
        if row.pass == Some(false) {
            self.failed.push(row.goal.clone());
        }
    }

    /// Goals that are not met.
    #[must_use]
    pub fn failed(&self) -> &[String] {
        &self.failed
    }
}

/// A number with commas between its thousands.
///
/// ```
/// assert_eq!(foreshorten_benches::table::thousands(1_234_567), "1,234,567");
/// ```
#[must_use]
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
