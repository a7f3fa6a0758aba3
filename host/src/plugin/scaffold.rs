//! What `plugin new` writes: a project that builds with what is in it.

/// The SDK, as it is vendored into a new project: a plugin needs nothing that is not there.
const SDK: [(&str, &str); 7] = [
    ("sdk/Cargo.toml", include_str!("../../../plugins/sdk/Cargo.toml")),
    ("sdk/src/lib.rs", include_str!("../../../plugins/sdk/src/lib.rs")),
    ("sdk/src/host.rs", include_str!("../../../plugins/sdk/src/host.rs")),
    ("sdk/src/fake.rs", include_str!("../../../plugins/sdk/src/fake.rs")),
    ("sdk/src/abi.rs", include_str!("../../../plugins/sdk/src/abi.rs")),
    ("sdk/src/native.rs", include_str!("../../../plugins/sdk/src/native.rs")),
    ("sdk/src/wasm.rs", include_str!("../../../plugins/sdk/src/wasm.rs")),
];

const MANIFEST: &str = include_str!("../../../plugins/templates/rust/Cargo.toml.in");
const STAGE: &str = include_str!("../../../plugins/templates/rust/stage.rs");
const SUMMARIZER: &str = include_str!("../../../plugins/templates/rust/summarizer.rs");

/// The files of a new plugin in Rust: paths below its folder, and what is in them.
#[must_use]
pub fn rust(name: &str, stage: bool) -> Vec<(String, String)> {
    let mut files = vec![
        ("Cargo.toml".to_owned(), MANIFEST.replace("NAME", name)),
        ("src/lib.rs".to_owned(), if stage { STAGE } else { SUMMARIZER }.to_owned()),
        (".gitignore".to_owned(), "/target\n*.wasm\n".to_owned()),
    ];
    files.extend(SDK.iter().map(|&(path, text)| (path.to_owned(), text.to_owned())));
    files
}
