//! The engine: lean, deterministic, and with a clock that stops what runs too long.

use std::time::Duration;

use wasmtime::{Config, Engine};

use super::super::{Limits, LoadError};

/// Milliseconds between two ticks of the clock that bounds calls.
pub(super) const TICK_MS: u64 = 10;

/// An engine with fuel and epochs. Whatever could differ between two machines is off or made equal.
pub(super) fn engine(caps: &Limits) -> Result<Engine, LoadError> {
    let mut config = Config::new();
    config
        .consume_fuel(true)
        .epoch_interruption(true)
        .cranelift_nan_canonicalization(true)
        .relaxed_simd_deterministic(true)
        .max_wasm_stack(caps.stack_bytes);
    let failed = |why: String| LoadError::Compile(why);
    let engine = Engine::new(&config).map_err(|error| failed(format!("{error:#}")))?;
    let weak = engine.weak();
    // The thread ends with the engine.
    std::thread::Builder::new()
        .name("plugin-clock".into())
        .spawn(move || {
            while let Some(engine) = weak.upgrade() {
                engine.increment_epoch();
                drop(engine);
                std::thread::sleep(Duration::from_millis(TICK_MS));
            }
        })
        .map_err(|error| failed(error.to_string()))?;
    Ok(engine)
}
