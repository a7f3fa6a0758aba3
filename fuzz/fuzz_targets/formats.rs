#![no_main]

#[path = "../../host/tests/oracles/formats.rs"]
mod formats;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| formats::formats(bytes));
