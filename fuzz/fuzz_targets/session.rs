#![no_main]

use std::sync::Once;

use foreshorten_testkit::{play, turns_checked};

static REPORT: Once = Once::new();

extern "C" fn report() {
    eprintln!("stat::turns: {}", turns_checked());
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    // SAFETY: `report` touches nothing but an atomic and standard error.
    REPORT.call_once(|| {
        let _ = unsafe { libc::atexit(report) };
    });
    let _ = play(bytes);
});
