//! The linker script, and the size of the heap from the environment.
use std::env;

fn main() {
    let here = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    let heap = env::var("GOLDEN_HEAP_KIB").unwrap_or_else(|_| "256".into());
    println!("cargo:rustc-link-search={here}");
    println!("cargo:rustc-link-arg=-Tlink.x");
    println!("cargo:rustc-env=GOLDEN_HEAP_KIB={heap}");
    println!("cargo:rerun-if-env-changed=GOLDEN_HEAP_KIB");
    println!("cargo:rerun-if-changed=memory.x");
}
