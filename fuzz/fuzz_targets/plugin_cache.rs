#![no_main]

#[path = "../../host/tests/oracles/plugins.rs"]
mod plugins;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plugins::plugin_cache(bytes));
