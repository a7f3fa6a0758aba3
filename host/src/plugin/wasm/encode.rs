//! From a core module, as compilers make it, to a component: authors need no other tool.

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

use super::super::LoadError;
use super::world::{PACKAGE, WIT, World};

/// Makes a component of a core module that exports a stage or a summarizer. A component is given back as it is.
///
/// A module of another toolchain that carries its own description (as `wit-bindgen` makes them) keeps it.
///
/// # Errors
/// What the module lacks, or what it has too much.
pub fn encode(module: &[u8]) -> Result<Vec<u8>, LoadError> {
    if module.get(..8) == Some(b"\0asm\x0d\0\x01\0") {
        return Ok(module.to_vec());
    }
    if module.get(..4) != Some(b"\0asm") {
        return Err(LoadError::NotAComponent("not WebAssembly at all".into()));
    }
    let failed = |error: &dyn std::fmt::Display| LoadError::NotAComponent(format!("it cannot be made one: {error:#}"));
    let mut module = module.to_vec();
    if !contains(&module, b"component-type:") {
        // Names of exports stand in the module as they are.
        let exports = |world: World| contains(&module, format!("{PACKAGE}/{}@", world.exports().0).as_bytes());
        let world = [World::Stage, World::Summarizer].into_iter().find(|&world| exports(world)).ok_or_else(|| {
            LoadError::World("it exports neither a stage nor a summarizer of foreshorten:plugin".into())
        })?;
        let mut resolve = Resolve::default();
        let package = resolve.push_str("plugin.wit", WIT).map_err(|error| failed(&error))?;
        let world = resolve.select_world(&[package], Some(world.name())).map_err(|error| failed(&error))?;
        embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).map_err(|error| failed(&error))?;
    }
    let encoded = std::panic::catch_unwind(|| {
        let mut encoder = ComponentEncoder::default().validate(true);
        encoder = encoder.module(&module)?;
        encoder.encode()
    });
    match encoded {
        Ok(Ok(component)) => Ok(component),
        Ok(Err(error)) => Err(failed(&format!("{error:#}"))),
        Err(_) => Err(failed(&"the encoder gave up")),
    }
}

fn contains(bytes: &[u8], what: &[u8]) -> bool {
    memchr::memmem::find(bytes, what).is_some()
}
