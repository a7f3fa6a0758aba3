//! Prints the fingerprint that the wasm module must give too.
fn main() {
    println!("{}", purity::play(60));
}
