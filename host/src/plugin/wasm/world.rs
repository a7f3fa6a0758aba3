//! What a file is, read before any of it is compiled: its world, its version, what it imports.

use wit_component::{DecodedWasm, decode};
use wit_parser::{Resolve, WorldItem};

use super::super::LoadError;

/// The interface of plugins, as text: bindings are made from it, and components encoded with it.
pub const WIT: &str = include_str!("../../../../plugins/wit/0.1.0/plugin.wit");
/// Its version.
pub const WIT_VERSION: &str = "0.1.0";
/// Its package.
pub(super) const PACKAGE: &str = "foreshorten:plugin";

/// Full name of one of its interfaces.
pub(super) fn interface(name: &str) -> String {
    format!("{PACKAGE}/{name}@{WIT_VERSION}")
}

/// The two kinds of plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum World {
    /// A stage.
    Stage,
    /// A summarizer.
    Summarizer,
}

impl World {
    /// The interface it exports, and the function of it that does the work.
    pub(super) const fn exports(self) -> (&'static str, &'static str) {
        match self {
            Self::Stage => ("stage-api", "plan"),
            Self::Summarizer => ("summarizer-api", "step"),
        }
    }

    /// Its name in the package.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stage => "stage",
            Self::Summarizer => "summarizer",
        }
    }
}

/// An imported or exported interface.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Item {
    /// Its name, with package and version.
    pub name: String,
    /// Functions of it.
    pub functions: Vec<String>,
}

/// What a component says about itself.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Outline {
    /// Worlds it exports, in the order of this program's preference.
    pub worlds: Vec<World>,
    /// The version of `foreshorten:plugin` it was built for.
    pub version: Option<String>,
    /// What it imports.
    pub imports: Vec<Item>,
    /// What it exports.
    pub exports: Vec<Item>,
}

impl Outline {
    /// Reads a component. Nothing of it is compiled or run.
    ///
    /// # Errors
    /// It is no component.
    pub fn read(bytes: &[u8]) -> Result<Self, LoadError> {
        match bytes.get(..8) {
            Some([0, b'a', b's', b'm', 0x0d, 0, 1, 0]) => {}
            Some([0, b'a', b's', b'm', 1, 0, 0, 0]) => {
                let why = "a core module; `foreshorten plugin build` makes a component of it";
                return Err(LoadError::NotAComponent(why.into()));
            }
            Some([0x7f, b'E', b'L', b'F', ..]) => {
                let why = "a native library or precompiled code, which this program does not load as a component";
                return Err(LoadError::NotAComponent(why.into()));
            }
            _ => return Err(LoadError::NotAComponent("not WebAssembly at all".into())),
        }
        super::nesting::check(bytes)?;
        // A decoder of hostile bytes may have bugs of its own.
        let decoded = std::panic::catch_unwind(|| decode(bytes));
        let (resolve, world) = match decoded {
            Ok(Ok(DecodedWasm::Component(resolve, world))) => (resolve, world),
            Ok(Ok(DecodedWasm::WitPackage(..))) => return Err(LoadError::NotAComponent("an interface package".into())),
            Ok(Err(error)) => return Err(LoadError::NotAComponent(format!("{error:#}"))),
            Err(_) => return Err(LoadError::NotAComponent("it cannot be read".into())),
        };
        let world = &resolve.worlds[world];
        let items = |list: &mut dyn Iterator<Item = (String, &WorldItem)>| -> Vec<Item> {
            list.map(|(key, item)| item_of(&resolve, key, item)).collect()
        };
        let name = |key: &wit_parser::WorldKey| resolve.name_world_key(key);
        let imports = items(&mut world.imports.iter().map(|(key, item)| (name(key), item)));
        let exports = items(&mut world.exports.iter().map(|(key, item)| (name(key), item)));
        let version = imports.iter().chain(&exports).find_map(|item| version_of(&item.name)).map(str::to_owned);
        let has = |world: &World| exports.iter().any(|item| is_own(&item.name, world.exports().0));
        let worlds = [World::Stage, World::Summarizer].into_iter().filter(has).collect();
        Ok(Self { worlds, version, imports, exports })
    }

    /// Checks what a loader would check before it compiles anything, for any of its worlds: the version, that it imports
    /// nothing but what is granted, and that it exports all of a world.
    ///
    /// # Errors
    /// The first of these that is wrong, and how to mend it.
    pub fn verify(&self, grants: &[String]) -> Result<(), LoadError> {
        self.check(self.worlds.first().copied().unwrap_or(World::Stage), grants).map(drop)
    }

    /// Checks the version, what is imported against what is granted, and that `world` is exported. Answers the name of
    /// the interface exported.
    ///
    /// # Errors
    /// The first of these that is wrong.
    pub(super) fn check(&self, world: World, grants: &[String]) -> Result<String, LoadError> {
        if let Some(version) = &self.version
            && !offers(version)
        {
            let offered = format!("{PACKAGE}@{WIT_VERSION}");
            return Err(LoadError::Version(format!("{PACKAGE}@{version}"), offered));
        }
        let own = own_functions();
        let mut wrong = Vec::new();
        for item in &self.imports {
            let short = item.name.strip_prefix(PACKAGE).and_then(|rest| rest.strip_prefix('/'));
            let Some(short) = short.map(|rest| rest.split('@').next().unwrap_or(rest)) else {
                wrong.push(foreign(&item.name));
                continue;
            };
            let Some((_, functions)) = own.iter().find(|(known, _)| known == short) else {
                wrong.push(format!("`{}`: there is no such interface", item.name));
                continue;
            };
            if short == "condensing" && !grants.iter().any(|grant| grant == "condensing") {
                wrong.push(format!(
                    "`{}`: it would put text of its own into the view; if that is meant, write grants = [\"condensing\"] \
                     in its plugin.toml",
                    item.name
                ));
            }
            for unknown in item.functions.iter().filter(|name| !functions.contains(name)) {
                wrong.push(format!("`{}`: there is no function `{unknown}`", item.name));
            }
        }
        if !wrong.is_empty() {
            return Err(LoadError::Imports(wrong));
        }
        let (interface, main) = world.exports();
        let exported = self.exports.iter().find(|item| is_own(&item.name, interface));
        match exported {
            Some(item) if ["check", main].iter().all(|name| item.functions.iter().any(|has| has == name)) => {
                Ok(item.name.clone())
            }
            _ => {
                let is = self.worlds.first().map_or("neither stage nor summarizer", |world| world.name());
                let all: Vec<&str> = self.exports.iter().map(|item| item.name.as_str()).collect();
                let all = if all.is_empty() { "nothing".to_owned() } else { all.join(", ") };
                Err(LoadError::World(format!("it is no {}: it is a {is}, and exports {all}", world.name())))
            }
        }
    }
}

fn item_of(resolve: &Resolve, name: String, item: &WorldItem) -> Item {
    let functions = match item {
        WorldItem::Interface { id, .. } => resolve.interfaces[*id].functions.keys().cloned().collect(),
        _ => Vec::new(),
    };
    Item { name, functions }
}

fn version_of(name: &str) -> Option<&str> {
    name.strip_prefix(PACKAGE)?.strip_prefix('/')?.split_once('@').map(|(_, version)| version)
}

fn is_own(name: &str, interface: &str) -> bool {
    let short = name.strip_prefix(PACKAGE).and_then(|rest| rest.strip_prefix('/'));
    short.is_some_and(|rest| rest.split('@').next() == Some(interface))
}

/// Whether this program can run what was built for `version`: before 1.0 the minor number must be the same.
fn offers(version: &str) -> bool {
    let numbers = |text: &str| -> Option<(u64, u64)> {
        let mut parts = text.split(['.', '-', '+']);
        Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    };
    match (numbers(version), numbers(WIT_VERSION)) {
        (Some((0, minor)), Some((0, own))) => minor == own,
        (Some((major, _)), Some((own, _))) => major == own,
        _ => false,
    }
}

/// The interfaces of the package, and the functions of each.
fn own_functions() -> Vec<(String, Vec<String>)> {
    let mut resolve = Resolve::default();
    // The text is part of this program, and a test reads it.
    if resolve.push_str("plugin.wit", WIT).is_err() {
        return Vec::new();
    }
    let of = |(_, interface): (_, &wit_parser::Interface)| {
        Some((interface.name.clone()?, interface.functions.keys().cloned().collect()))
    };
    resolve.interfaces.iter().filter_map(of).collect()
}

/// What a foreign import is, and how to get rid of it.
fn foreign(name: &str) -> String {
    let how = if name.starts_with("wasi:") || name.starts_with("wasi_") {
        "plugins have no WASI; for Rust build for wasm32-unknown-unknown, for JavaScript and Python use --stub-wasi"
    } else {
        "only interfaces of foreshorten:plugin can be imported"
    };
    format!("`{name}`: {how}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interface_text_is_read_and_versions_before_one_need_the_same_minor_number() {
        let own = own_functions();
        assert_eq!(own.len(), 9);
        assert!(own.iter().any(|(name, functions)| name == "decisions" && functions.len() == 13));
        assert!(offers("0.1.0") && offers("0.1.7"));
        assert!(!offers("0.2.0") && !offers("1.0.0") && !offers("x"));
    }
}
