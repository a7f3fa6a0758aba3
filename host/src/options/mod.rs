//! Policy parameters as people write them: flags, or a TOML file with the same names.

mod stages;
mod values;

use std::path::Path;
use std::str::FromStr;

use clap::Args;
use foreshorten_core::{
    CompactionState, ConfigError, PipelineStage, Policy, PolicyConfig,
    budget::{CachePrice, Economy, Watermark},
    estimate::{ByteEstimator, Weigher},
    marker::MarkerStyle,
    plan::ToolRule,
};
use serde::Deserialize;

use crate::drive::is_plugin;
use crate::economics::PriceRow;
use crate::plugin::{CodeCache, Limits, LoadError, Loader, Loaders, Stages, TrustedKeys};

pub use stages::STAGES;
use values::{cache_price, level, only_a_flag, price, tool_rule, tool_rules, watermark};

/// Declares the options once: as flags, as keys of a TOML table, and how one set overrides another.
macro_rules! options {
    ($($(#[$meta:meta])* $name:ident : $kind:ty),* $(,)?) => {
        /// Parameters of a policy. What is not given keeps the default of the policy.
        #[derive(Args, Clone, Debug, Default, Deserialize)]
        #[serde(deny_unknown_fields, default, rename_all = "snake_case")]
        pub struct PolicyOptions {
            $($(#[$meta])* pub $name: Option<$kind>,)*
            /// Rule for one tool, NAME=never|keep-arguments|drop-first|ordinary; may be given again.
            #[arg(long = "tool-rule", value_name = "NAME=RULE", value_parser = tool_rule, help_heading = "Policy")]
            #[serde(deserialize_with = "tool_rules")]
            pub tool_rules: Vec<(String, ToolRule)>,
            /// Load plugins that are native libraries too, where their SHA-256 is pinned. They are trusted: nothing
            /// bounds what they do. Only a flag, never a key of a file.
            #[arg(long, help_heading = "Plugins")]
            #[serde(deserialize_with = "only_a_flag")]
            pub allow_native: bool,
            /// Plugins among the stages, by the path given: filled by [`PolicyOptions::load_plugins`].
            #[arg(skip)]
            #[serde(skip)]
            loaded: Loaded,
        }

        impl PolicyOptions {
            /// These options, and what `other` says where they say nothing.
            #[must_use]
            pub fn or(mut self, other: Self) -> Self {
                $(self.$name = self.$name.or(other.$name);)*
                for (tool, rule) in other.tool_rules {
                    if !self.tool_rules.iter().any(|(name, _)| *name == tool) {
                        self.tool_rules.push((tool, rule));
                    }
                }
                self
            }
        }
    };
}

options! {
    /// What to start from: `default` (offload, clear, summarize; 0.85 to 0.60), `steady` (rare and deep: 0.88 to 0.25),
    /// `economy` (the lowest bill by --cache-price, with the newest 6,000 tokens verbatim), or `five-stage` (the earlier
    /// proposal's pipeline).
    #[arg(long, value_name = "NAME", help_heading = "Policy")]
    preset: String,
    /// Stages in order, by name (see the list under `foreshorten stages`) or as files of plugins.
    #[arg(long, value_name = "A,B,C", value_delimiter = ',', help_heading = "Policy")]
    stages: Vec<String>,
    /// One stage more, before those of --stages or the preset: a name, or the file of a plugin. May be given again.
    #[arg(long, value_name = "STAGE", help_heading = "Policy")]
    stage: Vec<String>,
    /// Folder for compiled plugins, or `off`. Default: $FORESHORTEN_PLUGIN_CACHE, else foreshorten/plugins in
    /// $XDG_CACHE_HOME or ~/.cache. It must be yours alone (mode 0700).
    #[arg(long, value_name = "DIR", help_heading = "Plugins")]
    plugin_cache: String,
    /// File of public keys: only plugins that one of them signed are loaded. May be given again.
    #[arg(long, value_name = "FILE", help_heading = "Plugins")]
    trust: Vec<String>,
    /// Trigger: a fraction of the usable window (0.85) or tokens (150000). Default 0.85, steady 0.88, five-stage 0.80.
    #[arg(long, alias = "trigger-ratio", value_name = "LEVEL", value_parser = watermark, help_heading = "Policy")]
    #[serde(deserialize_with = "level", alias = "trigger_ratio", alias = "compact_at_ratio")]
    compact_at: Watermark,
    /// Target of a pass: a fraction of the usable window or tokens. Default 0.60, steady 0.25.
    #[arg(long, value_name = "LEVEL", value_parser = watermark, help_heading = "Policy")]
    #[serde(deserialize_with = "level")]
    compact_to: Watermark,
    /// Size of the protected tail in tokens. Default: a fifth of the usable window, with economy no more than 6,000.
    #[arg(long, value_name = "TOKENS", help_heading = "Policy")]
    keep_recent_tokens: u64,
    /// Economy: prices of a token written to the prompt cache, read from it, and of output, in units of the plain input
    /// price. Default 1.25,0.1,5; replay takes those of its price row.
    #[arg(long, value_name = "WRITE,READ[,OUTPUT]", value_parser = cache_price, help_heading = "Economy")]
    #[serde(deserialize_with = "price")]
    cache_price: CachePrice,
    /// Economy: tokens a turn adds. Default: the mean over the session so far.
    #[arg(long, value_name = "TOKENS", help_heading = "Economy")]
    growth_tokens: u64,
    /// Economy: turns the session will have in all. Default: many.
    #[arg(long, value_name = "N", help_heading = "Economy")]
    expected_turns: u32,
    /// Tokens kept free for the answer. Default 16384, no more than half the window.
    #[arg(long, value_name = "TOKENS", help_heading = "Policy")]
    reserve_output_tokens: u64,
    /// Flat cost of an image. Default 1600.
    #[arg(long, value_name = "TOKENS", help_heading = "Estimate")]
    image_tokens: u32,
    /// Flat cost of a file. Default 2000.
    #[arg(long, value_name = "TOKENS", help_heading = "Estimate")]
    file_tokens: u32,
    /// Tokens of framing around every entry. Default 8.
    #[arg(long, value_name = "TOKENS", help_heading = "Estimate")]
    entry_overhead: u32,
    /// How text becomes tokens: auto (the tokenizer family of the model that is named, for as long as the state goes
    /// on), a family (o200k, cl100k, claude, llama3, qwen2.5, gemma3, …), or bytes4. Default auto.
    #[arg(long, value_name = "NAME", help_heading = "Estimate")]
    weigher: String,
    /// Least gain of a proactive pass in per cent of the view. Default 10.
    #[arg(long, value_name = "PERCENT", help_heading = "Policy")]
    min_gain_percent: u8,
    /// Offload: least length of a result in characters. Default 4000.
    #[arg(long, value_name = "CHARS", help_heading = "Stages")]
    offload_min_chars: u32,
    /// Offload: newest results left alone. Default 2.
    #[arg(long, value_name = "N", help_heading = "Stages")]
    offload_keep_last: u32,
    /// Offload: length of the preview in characters. Default 400.
    #[arg(long, value_name = "CHARS", help_heading = "Stages")]
    preview_chars: u32,
    /// Clear: newest results left alone. Default 3.
    #[arg(long, value_name = "N", help_heading = "Stages")]
    clear_keep_last: u32,
    /// Clear: shorter results stay. Default 200 characters.
    #[arg(long, value_name = "CHARS", help_heading = "Stages")]
    clear_min_chars: u32,
    /// Clear: nothing unless this many tokens are freed.
    #[arg(long, value_name = "TOKENS", help_heading = "Stages")]
    clear_at_least_tokens: u64,
    /// Summary: least saving as a share of the view, 0 to below 1. Default 0.10.
    #[arg(long, value_name = "RATIO", help_heading = "Stages")]
    min_savings_ratio: f64,
    /// Summary: failures in a row that open the breaker. Default 3.
    #[arg(long, alias = "max-summary-failures", value_name = "N", help_heading = "Stages")]
    #[serde(alias = "max_summary_failures")]
    max_failures: u32,
    /// Summary: longest accepted. Default 16000 characters.
    #[arg(long, value_name = "CHARS", help_heading = "Stages")]
    max_summary_chars: u32,
    /// Summary: a later one becomes a note of its own as long as all together take so many per cent of the target. Default
    /// 0: a later one takes the earlier in.
    #[arg(long, value_name = "PERCENT", help_heading = "Stages")]
    layers_percent: u8,
    /// Images: newest entries with media left alone. Default 3.
    #[arg(long, value_name = "N", help_heading = "Stages")]
    images_keep_last: u32,
    /// Arguments: least length that is clipped. Default 2000 bytes.
    #[arg(long, value_name = "BYTES", help_heading = "Stages")]
    clip_min_bytes: u32,
    /// Five-stage: most entries of a view; 0 for no limit. Default 80.
    #[arg(long, value_name = "N", help_heading = "Five-stage pipeline")]
    max_entries: u32,
    /// Five-stage: entries kept at the beginning. Default 3.
    #[arg(long, value_name = "N", help_heading = "Five-stage pipeline")]
    keep_initial_entries: u32,
    /// Five-stage: entries kept at the end. Default 40.
    #[arg(long, alias = "keep-recent-messages", value_name = "N", help_heading = "Five-stage pipeline")]
    #[serde(alias = "keep_recent_messages")]
    keep_recent_entries: u32,
    /// Five-stage: entries kept at the end after a rejection. Default 8.
    #[arg(long, alias = "reactive-keep-recent-messages", value_name = "N", help_heading = "Five-stage pipeline")]
    #[serde(alias = "reactive_keep_recent_messages")]
    reactive_keep_recent_entries: u32,
    /// Five-stage: newest tool results kept. Default 3.
    #[arg(long, value_name = "N", help_heading = "Five-stage pipeline")]
    keep_recent_tool_results: u32,
    /// Five-stage: characters the results of one batch may have. Default 200000.
    #[arg(long, value_name = "CHARS", help_heading = "Five-stage pipeline")]
    tool_result_budget_chars: u32,
    /// Five-stage: characters one result may have. Default 20000.
    #[arg(long, value_name = "CHARS", help_heading = "Five-stage pipeline")]
    large_tool_result_chars: u32,
    /// Five-stage: length of the preview. Default 2000 characters.
    #[arg(long, value_name = "CHARS", help_heading = "Five-stage pipeline")]
    tool_result_preview_chars: u32,
}

/// What is wrong with options.
#[derive(Debug)]
#[non_exhaustive]
pub enum OptionError {
    /// A parameter that cannot be meant.
    Config(ConfigError),
    /// A name that is not known: parameter, value, what would have been right.
    Name(&'static str, String, String),
    /// A file that cannot be read.
    File(std::path::PathBuf, std::io::Error),
    /// A file that is not a table of options.
    Toml(std::path::PathBuf, String),
    /// A plugin that is not loaded.
    Plugin(String, LoadError),
}

/// Plugins of a pipeline, and the paths under which they were asked for.
#[derive(Clone, Debug, Default)]
struct Loaded {
    paths: Vec<(String, String)>,
    stages: Stages,
}

impl std::fmt::Display for OptionError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Config(error) => error.fmt(f),
            Self::Name(parameter, value, known) => {
                write!(f, "`{parameter}` does not know `{value}`; known are {known}")?;
                // A name without a slash or an ending of a file is never looked for on the disk.
                if *parameter == "stages" && !is_plugin(value) {
                    write!(f, "; the folder of a plugin is written ./{value}")
                } else {
                    Ok(())
                }
            }
            Self::File(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Toml(path, message) => write!(f, "{}: {message}", path.display()),
            Self::Plugin(path, error) => write!(f, "{path}: {error}"),
        }
    }
}

impl std::error::Error for OptionError {}

impl PolicyOptions {
    /// Reads a TOML file. Unknown keys are refused, with their place.
    ///
    /// # Errors
    /// What cannot be read, and where.
    pub fn read(path: &Path) -> Result<Self, OptionError> {
        let text = std::fs::read_to_string(path).map_err(|error| OptionError::File(path.into(), error))?;
        let mut options: Self =
            toml::from_str(&text).map_err(|error| OptionError::Toml(path.into(), error.to_string()))?;
        // A file names its plugins from where it lies, not from where the program was started.
        let folder = path.parent().unwrap_or_else(|| Path::new(""));
        for name in [&mut options.stages, &mut options.stage].into_iter().flatten().flatten() {
            if is_plugin(name) {
                *name = folder.join(&*name).to_string_lossy().into_owned();
            }
        }
        let cache = options.plugin_cache.as_mut().filter(|cache| *cache != "off");
        for path in options.trust.iter_mut().flatten().chain(cache) {
            *path = folder.join(&*path).to_string_lossy().into_owned();
        }
        Ok(options)
    }

    /// Loads the plugins among the stages. Needed before [`build`](Self::build) when there are any.
    ///
    /// # Errors
    /// The first that is not loaded, and why.
    pub fn load_plugins(&mut self) -> Result<(), OptionError> {
        let paths: Vec<String> = self.names()?.into_iter().filter(|name| is_plugin(name)).collect();
        let mut loaders = None;
        for path in paths {
            let failed = |error| OptionError::Plugin(path.clone(), error);
            let loaders = match &mut loaders {
                Some(loaders) => loaders,
                none => none.insert(self.loaders().map_err(failed)?),
            };
            let plugin = loaders.stage(Path::new(&path)).map_err(failed)?;
            let name = self.loaded.stages.push(plugin).name().to_owned();
            self.loaded.paths.push((path, name));
        }
        Ok(())
    }

    /// A loader by these options: its cache, the keys it trusts, the usual caps. Where they say nothing of a cache there is
    /// none; the program sets one.
    ///
    /// # Errors
    /// A file of keys that cannot be read, or an engine that does not start.
    pub fn loader(&self) -> Result<Loader, LoadError> {
        let mut loader = Loader::new(Limits::caps())?.trusting(self.trusted_keys()?);
        if let Some(folder) = self.plugin_cache.as_deref().filter(|folder| *folder != "off") {
            loader = loader.cached(CodeCache::at(folder));
        }
        Ok(loader)
    }

    /// The loaders of components and of native libraries by these options. That of components is made when the first
    /// one is met.
    ///
    /// # Errors
    /// A file of keys that cannot be read.
    pub fn loaders(&self) -> Result<Loaders, LoadError> {
        let cache = self.plugin_cache.as_deref().filter(|folder| *folder != "off").map(CodeCache::at);
        Ok(Loaders::new(Limits::caps(), cache, self.trusted_keys()?, self.allow_native))
    }

    /// The keys that these options trust.
    ///
    /// # Errors
    /// A file of keys that cannot be read.
    pub fn trusted_keys(&self) -> Result<TrustedKeys, LoadError> {
        let mut keys = TrustedKeys::default();
        for path in self.trust.iter().flatten() {
            keys.extend(TrustedKeys::read(Path::new(path))?);
        }
        Ok(keys)
    }

    /// The plugins that were loaded.
    #[must_use]
    pub const fn plugins(&self) -> &Stages {
        &self.loaded.stages
    }

    /// Lets a session that has begun go on as it was weighed before, whatever the model, unless a rule is named.
    ///
    /// Decisions are measured by one rule for as long as a session lives, and what the provider counted is worth more
    /// than another table.
    pub fn go_on(&mut self, state: &CompactionState) {
        if matches!(self.weigher.as_deref(), None | Some("auto"))
            && let Some(begun) = state.estimator()
        {
            self.weigher = Some(begun.name().to_owned());
        }
    }

    /// Builds the policy.
    ///
    /// # Errors
    /// The first parameter that cannot be meant.
    pub fn build(
        &self,
        window: Option<u64>,
        model: &str,
        recall_tool: bool,
        archive: bool,
    ) -> Result<Policy, OptionError> {
        let defaults = self.defaults();
        let stages = self.pipeline()?;
        let bytes = match self.weigher.as_deref() {
            None | Some("auto") => ByteEstimator::for_model(model),
            Some(name) => ByteEstimator::parse(name).ok_or_else(|| {
                let known: Vec<&str> = ByteEstimator::all().map(ByteEstimator::name).collect();
                OptionError::Name("weigher", name.into(), format!("auto, {}", known.join(", ")))
            })?,
        };
        let weigher = Weigher {
            bytes,
            image_tokens: self.image_tokens.unwrap_or(defaults.weigher.image_tokens),
            file_tokens: self.file_tokens.unwrap_or(defaults.weigher.file_tokens),
            entry_overhead: self.entry_overhead.unwrap_or(defaults.weigher.entry_overhead),
            exact: None,
        };
        PolicyConfig {
            context_window: window,
            compact_at: self.compact_at.unwrap_or(defaults.compact_at),
            compact_to: self.compact_to.unwrap_or(defaults.compact_to),
            keep_recent_tokens: self.keep_recent_tokens,
            reserve_output_tokens: self.reserve_output_tokens,
            stages,
            weigher,
            style: MarkerStyle { recall_tool },
            tools: self.tool_rules.clone(),
            may_condense: self.loaded.stages.may_condense(),
            min_gain_percent: self.min_gain_percent.unwrap_or(defaults.min_gain_percent),
            archive,
            ..defaults
        }
        .build()
        .map_err(OptionError::Config)
    }

    /// The parameters that a preset starts from; its pipeline aside.
    fn defaults(&self) -> PolicyConfig {
        match self.preset.as_deref() {
            // The earlier proposal triggers at 0.8 (its `trigger_ratio`).
            Some("five-stage") => PolicyConfig { compact_at: Watermark::BasisPoints(8_000), ..PolicyConfig::default() },
            Some("steady") => PolicyConfig::steady(),
            Some("economy") => PolicyConfig::economy(Economy {
                price: self.cache_price.unwrap_or_default(),
                growth_tokens: self.growth_tokens,
                expected_turns: self.expected_turns,
                ..Economy::default()
            }),
            _ => PolicyConfig::default(),
        }
    }

    /// The prices of a row for `economy`, where these options name none.
    pub fn price_by(&mut self, row: &PriceRow) {
        let relative = |price: u64| {
            let units = u128::from(price) * 10_000 / u128::from(row.input.max(1));
            u32::try_from(units).unwrap_or(u32::MAX)
        };
        let output = row.output.map_or_else(|| CachePrice::default().output, relative);
        let price = CachePrice { write: relative(row.write), read: relative(row.read), output };
        self.cache_price = self.cache_price.or(Some(price));
    }

    /// The policy in a few words, for reports.
    #[must_use]
    pub fn describe(&self, policy: &Policy) -> String {
        let config = policy.config();
        let stages: Vec<&str> = config.stages.iter().map(PipelineStage::name).collect();
        let stages = stages.join(" → ");
        let Some(Economy { price, .. }) = config.economy else {
            return format!("{stages} at {} to {}", level_words(config.compact_at), level_words(config.compact_to));
        };
        let [write, read, output] = [price.write, price.read, price.output].map(|price| f64::from(price) / 10_000.0);
        format!(
            "{stages} by cache prices of {write}, {read} and {output}, at {} at the latest",
            level_words(config.compact_at)
        )
    }
}

fn level_words(level: Watermark) -> String {
    match level {
        Watermark::BasisPoints(points) => format!("{}%", f64::from(points) / 100.0),
        Watermark::Tokens(tokens) => format!("{tokens} tokens"),
    }
}

impl FromStr for PolicyOptions {
    type Err = toml::de::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        toml::from_str(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_and_flags_name_the_same_parameters() {
        let file: PolicyOptions =
            "compact_at = 0.8\ncompact_to = 120_000\nstages = [\"clear\", \"middle-snip\"]\n[tool_rules]\nread = \"never\""
                .parse()
                .unwrap();
        assert_eq!(file.compact_at, Some(Watermark::BasisPoints(8_000)));
        assert_eq!(file.compact_to, Some(Watermark::Tokens(120_000)));
        let flags = PolicyOptions { compact_at: Some(Watermark::BasisPoints(9_000)), ..PolicyOptions::default() };
        let both = flags.or(file);
        assert_eq!(both.compact_at, Some(Watermark::BasisPoints(9_000)));
        let policy = both.build(Some(200_000), "", true, false).unwrap();
        let names: Vec<&str> = policy.config().stages.iter().map(PipelineStage::name).collect();
        assert_eq!(names, ["clear_tool_results", "middle_snip"]);
    }

    #[test]
    fn mistakes_are_named() {
        assert!("compact_att = 0.8".parse::<PolicyOptions>().unwrap_err().to_string().contains("compact_att"));
        let wrong = PolicyOptions { stages: Some(vec!["nope".into()]), ..PolicyOptions::default() };
        assert!(wrong.build(None, "", true, false).unwrap_err().to_string().contains("nope"));
        let wrong = PolicyOptions { reserve_output_tokens: Some(9_000), ..PolicyOptions::default() };
        let error = wrong.build(Some(8_192), "", true, false).unwrap_err().to_string();
        assert!(error.contains("reserve_output_tokens"), "{error}");
    }
}
