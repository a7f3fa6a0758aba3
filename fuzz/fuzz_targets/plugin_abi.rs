#![no_main]

#[path = "../../host/tests/oracles/plugin_abi.rs"]
mod plugin_abi;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plugin_abi::plugin_abi(bytes));
