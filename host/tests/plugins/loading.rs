//! What is not loaded, and what it is told.

use foreshorten::plugin::{Limits, LoadError, Loader, Settings, sha256, wasm::Outline, wasm::encode};

use crate::support::{loader, module};

fn refused(text: &str) -> LoadError {
    let component = wat::parse_str(text).unwrap();
    loader().stage_of(&component, "x", sha256(&component), &Settings::default()).unwrap_err()
}

#[test]
fn foreign_imports_are_named_one_by_one_with_what_to_do() {
    let error = refused(
        r#"(component
            (import "wasi:cli/environment@0.2.0" (instance (export "get-arguments" (func (result (list string))))))
            (import "wasi:sockets/tcp@0.2.0" (instance))
            (import "acme:secrets/store" (instance (export "read" (func)))))"#,
    );
    let LoadError::Imports(all) = &error else { panic!("{error}") };
    assert_eq!(all.len(), 3);
    assert!(all[0].contains("wasi:cli/environment@0.2.0") && all[0].contains("--stub-wasi"), "{error}");
    assert!(all[2].contains("acme:secrets/store"), "{error}");
}

#[test]
fn another_version_is_refused_before_anything_is_compiled_and_both_are_named() {
    let error = refused(
        r#"(component (import "foreshorten:plugin/env@0.2.0" (instance (export "config" (func (result string))))))"#,
    );
    assert!(matches!(error, LoadError::Version(..)));
    let text = error.to_string();
    assert!(text.contains("foreshorten:plugin@0.2.0") && text.contains("foreshorten:plugin@0.1.0"), "{text}");
}

#[test]
fn functions_and_interfaces_that_do_not_exist_are_named() {
    let error = refused(
        r#"(component (import "foreshorten:plugin/env@0.1.0" (instance (export "getenv" (func (result string))))))"#,
    );
    assert!(error.to_string().contains("there is no function `getenv`"), "{error}");
    let error = refused(r#"(component (import "foreshorten:plugin/shell@0.1.0" (instance)))"#);
    assert!(error.to_string().contains("there is no such interface"), "{error}");
}

#[test]
fn what_is_no_plugin_says_what_it_is_instead() {
    let core = module("", "(i32.const 16)");
    let of = |bytes: &[u8]| loader().stage_of(bytes, "x", String::new(), &Settings::default()).unwrap_err().to_string();
    assert!(of(&core).contains("plugin build"));
    assert!(of(b"\x7fELF\x02\x01\x01\0").contains("native library"));
    assert!(of(b"hello").contains("not WebAssembly"));
    assert!(of(b"\0asm\x0d\0\x01\0garbage that is no section").contains("no component"));
    assert!(refused("(component)").to_string().contains("neither stage nor summarizer"));
    let error = encode(&wat::parse_str("(module)").unwrap()).unwrap_err().to_string();
    assert!(error.contains("neither a stage nor a summarizer"), "{error}");
    let wasi = module(
        r#"(import "wasi_snapshot_preview1" "random_get" (func (param i32 i32) (result i32)))"#,
        "(i32.const 16)",
    );
    let error = encode(&wasi).unwrap_err().to_string();
    assert!(error.contains("wasi_snapshot_preview1"), "{error}");
}

#[test]
fn text_of_ones_own_needs_the_grant() {
    let import =
        r#"(import "foreshorten:plugin/condensing@0.1.0" "condense" (func $c (param i32 i32 i32) (result i32)))"#;
    let component =
        encode(&module(import, "(drop (call $c (i32.const 2) (i32.const 48) (i32.const 2))) (i32.const 16)")).unwrap();
    let error = loader().stage_of(&component, "x", String::new(), &Settings::default()).unwrap_err().to_string();
    assert!(error.contains("grants = [\"condensing\"]"), "{error}");
    let settings = Settings { grants: vec!["condensing".into()], ..Settings::default() };
    let digest = sha256(&component);
    assert!(loader().stage_of(&component, "x", digest, &settings).unwrap().may_condense());
}

#[test]
fn a_component_imports_only_what_it_uses() {
    let log = r#"(import "foreshorten:plugin/env@0.1.0" "log" (func $log (param i32 i32 i32)))"#;
    let component = encode(&module(log, "(i32.const 16)")).unwrap();
    let outline = Outline::read(&component).unwrap();
    assert_eq!(outline.imports.len(), 1);
    assert_eq!(outline.imports[0].functions, ["log"]);
    assert_eq!(outline.version.as_deref(), Some("0.1.0"));
    assert_eq!(encode(&component).unwrap(), component, "a component is left as it is");
}

#[test]
fn a_plugin_that_cannot_work_fails_when_it_is_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("loops.wasm");
    std::fs::write(&file, encode(&module("", "(loop $l (br $l)) (i32.const 16)")).unwrap()).unwrap();
    let error = loader().stage(&file).unwrap_err();
    assert_eq!(error.to_string(), "its run over a built-in record failed: it ran out of fuel");
    std::fs::write(&file, encode(&module("", "(i32.const 16)")).unwrap()).unwrap();
    let plugin = loader().stage(&file).unwrap();
    assert_eq!((plugin.name(), plugin.metrics().calls), ("loops", 0));
    let small = Loader::new(Limits { file_bytes: 100, ..Limits::caps() }).unwrap();
    assert!(matches!(small.stage(&file), Err(LoadError::Size(_, 100))));
    std::fs::write(folder.path().join("loops.wasm.sha256"), "00ff  loops.wasm").unwrap();
    assert!(matches!(loader().stage(&file), Err(LoadError::Digest(..))));
}
