//! What `plugin new` writes: a project that builds with what is in it.

use super::wasm::{WIT, World};

/// A language that plugins are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Language {
    /// Rust, with its SDK.
    Rust,
    /// C, without a C library.
    C,
    /// JavaScript; the component has QuickJS in it.
    JavaScript,
    /// Python; the component has CPython in it.
    Python,
}

impl Language {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Rust, Self::C, Self::JavaScript, Self::Python];

    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::C => "c",
            Self::JavaScript => "js",
            Self::Python => "python",
        }
    }
}

/// A file: its path below the project, and what is in it.
pub type File = (&'static str, &'static str);

macro_rules! template {
    ($path:literal) => {
        include_str!(concat!("../../../plugins/templates/", $path))
    };
}

/// The interface for C: a header, and what is linked to every plugin.
pub const HEADER: [File; 2] =
    [("foreshorten.h", template!("c/foreshorten.h")), ("foreshorten.c", template!("c/foreshorten.c"))];

/// The SDK, as it is vendored into a new project: a plugin needs nothing that is not there.
const SDK: [File; 7] = [
    ("sdk/Cargo.toml", include_str!("../../../plugins/sdk/Cargo.toml")),
    ("sdk/src/lib.rs", include_str!("../../../plugins/sdk/src/lib.rs")),
    ("sdk/src/host.rs", include_str!("../../../plugins/sdk/src/host.rs")),
    ("sdk/src/fake.rs", include_str!("../../../plugins/sdk/src/fake.rs")),
    ("sdk/src/abi.rs", include_str!("../../../plugins/sdk/src/abi.rs")),
    ("sdk/src/native.rs", include_str!("../../../plugins/sdk/src/native.rs")),
    ("sdk/src/wasm.rs", include_str!("../../../plugins/sdk/src/wasm.rs")),
];

/// What is the same for stages and summarizers.
const fn common(language: Language) -> &'static [File] {
    match language {
        Language::Rust => &[
            ("Cargo.toml", template!("rust/Cargo.toml.in")),
            ("README.md", template!("rust/README.md")),
            (".gitignore", "/target\n*.wasm\n"),
        ],
        Language::C => &[
            HEADER[0],
            HEADER[1],
            ("plugin.wit", WIT),
            ("README.md", template!("c/README.md")),
            (".gitignore", "/test\n*.wasm\n"),
        ],
        Language::JavaScript => &[
            ("package.json", template!("js/package.json.in")),
            ("test/host.mjs", template!("js/host.mjs")),
            ("wit/deps/foreshorten-plugin/plugin.wit", WIT),
            ("README.md", template!("js/README.md")),
            (".gitignore", "/node_modules\n*.wasm\n"),
        ],
        Language::Python => &[
            ("requirements.txt", template!("python/requirements.txt")),
            ("host.py", template!("python/host.py")),
            ("wit/deps/foreshorten-plugin/plugin.wit", WIT),
            ("README.md", template!("python/README.md")),
            (".gitignore", "/.venv\n__pycache__/\n*.wasm\n"),
        ],
    }
}

/// What is of the one or of the other.
const fn own(language: Language, world: World) -> &'static [File] {
    match (language, world) {
        (Language::Rust, World::Stage) => &[("src/lib.rs", template!("rust/stage.rs"))],
        (Language::Rust, World::Summarizer) => &[("src/lib.rs", template!("rust/summarizer.rs"))],
        (Language::C, World::Stage) => {
            &[("stage.c", template!("c/stage.c")), ("test_stage.c", template!("c/test_stage.c"))]
        }
        (Language::C, World::Summarizer) => {
            &[("summarizer.c", template!("c/summarizer.c")), ("test_summarizer.c", template!("c/test_summarizer.c"))]
        }
        (Language::JavaScript, World::Stage) => &[
            ("stage.js", template!("js/stage.js")),
            ("test/stage.test.js", template!("js/stage.test.js")),
            ("wit/world.wit", template!("wit/stage.wit")),
        ],
        (Language::JavaScript, World::Summarizer) => &[
            ("summarizer.js", template!("js/summarizer.js")),
            ("test/summarizer.test.js", template!("js/summarizer.test.js")),
            ("wit/world.wit", template!("wit/summarizer.wit")),
        ],
        (Language::Python, World::Stage) => &[
            ("app.py", template!("python/stage.py")),
            ("test_app.py", template!("python/test_stage.py")),
            ("wit/world.wit", template!("wit/stage.wit")),
        ],
        (Language::Python, World::Summarizer) => &[
            ("app.py", template!("python/summarizer.py")),
            ("test_app.py", template!("python/test_summarizer.py")),
            ("wit/world.wit", template!("wit/summarizer.wit")),
        ],
    }
}

/// The files of a new plugin: paths below its folder, and what is in them. `name` is of letters, digits, `-` and `_`.
///
/// # Examples
/// ```
/// use foreshorten::plugin::{scaffold::{Language, files}, wasm::World};
///
/// let files = files(Language::C, World::Stage, "my-stage");
/// assert!(files.iter().any(|(path, _)| path == "foreshorten.h"));
/// ```
#[must_use]
pub fn files(language: Language, world: World, name: &str) -> Vec<(String, String)> {
    let choice = match world {
        World::Stage => "--stage ./plugin.toml",
        World::Summarizer => "--summarizer ./plugin.toml",
    };
    let filled = |path: &str, text: &str| -> String {
        match path {
            // A package of the npm registry is named in lower case.
            "package.json" => text.replace("NAME", &name.to_lowercase()).replace("MAIN", world.name()),
            "README.md" => text.replace("NAME", name).replace("WORLD", world.name()).replace("USE", choice),
            "Cargo.toml" => text.replace("NAME", name),
            _ => text.to_owned(),
        }
    };
    let mut out: Vec<(String, String)> = common(language)
        .iter()
        .chain(own(language, world))
        .chain(if language == Language::Rust { &SDK[..] } else { &[] })
        .map(|&(path, text)| (path.to_owned(), filled(path, text)))
        .collect();
    let limits = match language {
        Language::JavaScript => template!("js/limits.toml"),
        Language::Python => template!("python/limits.toml"),
        Language::Rust | Language::C => "",
    };
    out.push(("plugin.toml".to_owned(), format!("{}{limits}", template!("plugin.toml.in").replace("NAME", name))));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugin::{Limits, Settings};

    #[test]
    fn every_project_is_whole_and_its_limits_are_within_those_of_an_operator() {
        for language in Language::ALL {
            for world in [World::Stage, World::Summarizer] {
                let folder = tempfile::tempdir().unwrap();
                let files = files(language, world, "my-plugin");
                for (path, text) in &files {
                    let path = folder.path().join(path);
                    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                    std::fs::write(&path, text).unwrap();
                    if path.ends_with("README.md") || path.ends_with("package.json") || path.ends_with("plugin.toml") {
                        let left = ["NAME", "MAIN", "WORLD", "USE"].into_iter().find(|left| text.contains(left));
                        assert_eq!(left, None, "{}", path.display());
                    }
                }
                let (file, settings) = Settings::find(folder.path()).unwrap();
                assert_eq!(file, folder.path().join("my-plugin.wasm"));
                assert_eq!(settings.limits, settings.limits.within(&Limits::caps()), "{language:?}");
                assert!(files.iter().any(|(path, _)| path == "README.md"));
            }
        }
    }

    /// The header is written by hand: every function of the interface is in it, under the interface it belongs to.
    #[test]
    fn the_header_for_c_has_every_function_of_the_interface() {
        let header = template!("c/foreshorten.h");
        let mut interface = String::new();
        let mut functions = 0;
        for line in WIT.lines() {
            if let Some(name) = line.strip_prefix("interface ").and_then(|rest| rest.strip_suffix(" {")) {
                interface = name.to_owned();
            }
            let Some((name, _)) = line.trim_start().split_once(": func(") else { continue };
            if interface.ends_with("-api") {
                continue;
            }
            functions += 1;
            let there = [
                format!("\"{interface}\", \"{name}\""),
                format!("FS_COLUMN(fs_bytes, \"{name}\""),
                format!("FS_COLUMN(fs_halves, \"{name}\""),
                format!("FS_COLUMN(fs_words, \"{name}\""),
                format!("FS_DECIDE(\"{name}\""),
            ];
            assert!(there.iter().any(|text| header.contains(text)), "{interface}.{name} is not in foreshorten.h");
        }
        assert!(functions > 45, "{functions}");
    }
}
