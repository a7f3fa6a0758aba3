//! How single values are written, on a command line and in a file.

use foreshorten_core::{
    budget::{CachePrice, Watermark},
    plan::ToolRule,
};
use serde::{Deserialize, Deserializer};

pub(super) fn watermark(text: &str) -> Result<Watermark, String> {
    Watermark::parse(text).ok_or_else(|| "expected a fraction in (0, 1] such as 0.85, or a number of tokens".into())
}

pub(super) fn cache_price(text: &str) -> Result<CachePrice, String> {
    let wrong =
        || "expected WRITE,READ or WRITE,READ,OUTPUT in units of the plain input price, such as 1.25,0.1".to_owned();
    let units = |text: &str| {
        let price = text.trim().parse::<f64>().ok().filter(|price| (0.0..=1_000.0).contains(price))?;
        Some((price * 10_000.0).round() as u32)
    };
    let prices: Option<Vec<u32>> = text.split(',').map(units).collect();
    match prices.as_deref() {
        Some(&[write, read]) => Ok(CachePrice { write, read, ..CachePrice::default() }),
        Some(&[write, read, output]) => Ok(CachePrice { write, read, output }),
        _ => Err(wrong()),
    }
}

pub(super) fn price<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<CachePrice>, D::Error> {
    cache_price(&String::deserialize(deserializer)?).map(Some).map_err(serde::de::Error::custom)
}

pub(super) fn level<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Watermark>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Tokens(u64),
        Fraction(f64),
        Text(String),
    }
    let text = match Written::deserialize(deserializer)? {
        Written::Tokens(tokens) => tokens.to_string(),
        Written::Fraction(fraction) => format!("{fraction:.4}"),
        Written::Text(text) => text,
    };
    watermark(&text).map(Some).map_err(serde::de::Error::custom)
}

pub(super) fn tool_rule(text: &str) -> Result<(String, ToolRule), String> {
    let (name, rule) = text.split_once('=').ok_or("expected NAME=RULE")?;
    Ok((name.into(), rule_of(rule)?))
}

fn rule_of(rule: &str) -> Result<ToolRule, String> {
    match rule.replace('-', "_").as_str() {
        "never" => Ok(ToolRule::Never),
        "keep_arguments" => Ok(ToolRule::KeepArguments),
        "drop_first" => Ok(ToolRule::DropFirst),
        "ordinary" => Ok(ToolRule::Ordinary),
        _ => Err(format!("`{rule}` is no rule; known are never, keep-arguments, drop-first, ordinary")),
    }
}

/// Data must not switch on what only an operator may.
pub(super) fn only_a_flag<'de, D: Deserializer<'de>>(_: D) -> Result<bool, D::Error> {
    Err(serde::de::Error::custom("allow_native is no setting of a file: give --allow-native on the command line"))
}

pub(super) fn tool_rules<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(String, ToolRule)>, D::Error> {
    let table = std::collections::BTreeMap::<String, String>::deserialize(deserializer)?;
    table
        .into_iter()
        .map(|(name, rule)| rule_of(&rule).map(|rule| (name, rule)).map_err(serde::de::Error::custom))
        .collect()
}
