//! Signatures of plugins: with trusted keys nothing else is loaded, without they are not looked at.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use foreshorten::plugin::dylib::DylibLoader;
use foreshorten::plugin::signature::{SecretKey, Subject};
use foreshorten::plugin::{Limits, LoadError, Loader, TrustedKeys, sha256, wasm::encode};

use crate::support::{loader, module};

fn idle() -> Vec<u8> {
    encode(&module("", "(i32.const 16)")).unwrap()
}

fn trusting(key: &SecretKey) -> Loader {
    Loader::new(Limits::caps()).unwrap().trusting(TrustedKeys::parse(&key.public_text()).unwrap())
}

fn said(loader: &Loader, path: &Path) -> String {
    let error = loader.stage(path).unwrap_err();
    assert!(matches!(error, LoadError::Signature(_)), "{error}");
    error.to_string()
}

#[test]
fn with_trusted_keys_only_what_they_signed_is_loaded() {
    let home = tempfile::tempdir().unwrap();
    let (file, sig) = (home.path().join("a.wasm"), home.path().join("a.wasm.sig"));
    fs::write(&file, idle()).unwrap();
    let (key, stranger) = (SecretKey::generate().unwrap(), SecretKey::generate().unwrap());
    let strict = trusting(&key);
    let text = said(&strict, &file);
    assert!(text.contains("not signed") && text.contains(&key.id()) && text.contains("plugin sign"), "{text}");
    // Without keys it is loaded, whatever lies beside it.
    fs::write(&sig, b"\xff\xfe not a signature").unwrap();
    loader().stage(&file).unwrap();
    let digest = sha256(&idle());
    let subject = Subject { sha256: &digest, name: "a", version: "" };
    for wrong in [stranger.sign(&subject), key.sign(&Subject { name: "b", ..subject }), "AAAA".into()] {
        fs::write(&sig, wrong).unwrap();
        let text = said(&strict, &file);
        assert!(text.contains("none of the trusted keys") && text.contains(&digest), "{text}");
    }
    fs::write(&sig, key.sign(&subject) + "\n").unwrap();
    strict.stage(&file).unwrap();
    assert!(matches!(strict.summarizer(&file), Err(LoadError::World(_))), "signed, and still no summarizer");
    // Another file under the same signature.
    fs::write(&file, encode(&module("", "(drop (i32.const 1)) (i32.const 16)")).unwrap()).unwrap();
    said(&strict, &file);
}

#[test]
fn a_signature_in_the_settings_is_of_their_name_and_version_and_comes_before_all_that_reads_the_file() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("a.wasm");
    fs::write(&file, idle()).unwrap();
    let key = SecretKey::generate().unwrap();
    let signature = key.sign(&Subject { sha256: &sha256(&idle()), name: "stage-of-mine", version: "1.2.0" });
    let settings = |version: &str| {
        let text = format!(
            "file = \"a.wasm\"\nname = \"stage-of-mine\"\nversion = \"{version}\"\nsignature = \"{signature}\""
        );
        fs::write(home.path().join("plugin.toml"), text).unwrap();
    };
    settings("1.2.0");
    assert_eq!(trusting(&key).stage(home.path()).unwrap().name(), "stage-of-mine");
    settings("1.2.1");
    said(&trusting(&key), home.path());
    // What nobody signed is not even read as a component.
    fs::write(&file, b"not a component at all").unwrap();
    said(&trusting(&key), home.path());
}

#[test]
fn a_library_needs_its_signature_besides_its_pin_before_any_of_it_is_loaded() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("a.so");
    fs::write(&file, b"not a library").unwrap();
    let digest = sha256(b"not a library");
    fs::write(home.path().join("a.so.sha256"), &digest).unwrap();
    let key = SecretKey::generate().unwrap();
    let loader = DylibLoader::new().trusting(TrustedKeys::parse(&key.public_text()).unwrap());
    assert!(matches!(loader.stage(&file), Err(LoadError::Signature(_))));
    // What is signed goes on to the linker of the system, which says what it thinks of it.
    fs::write(home.path().join("a.so.sig"), key.sign(&Subject { sha256: &digest, name: "a", version: "" })).unwrap();
    assert!(matches!(loader.stage(&file), Err(LoadError::Compile(_))));
}

fn program(args: &[&str], folder: &Path) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_foreshorten"));
    program.args(args).current_dir(folder).stdin(Stdio::null());
    program.env("XDG_CACHE_HOME", folder.join("cache")).env_remove("FORESHORTEN_PLUGIN_CACHE").output().unwrap()
}

#[test]
fn keys_are_made_a_plugin_is_signed_and_the_program_trusts_it() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path();
    fs::write(folder.join("a.wasm"), idle()).unwrap();
    let good = |args: &[&str]| {
        let out = program(args, folder);
        assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    };
    assert_eq!(good(&["plugin", "keys", "new", "me"]), "me.pub\n");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(fs::metadata(folder.join("me")).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let again = program(&["plugin", "keys", "new", "me"], folder);
    assert_eq!(again.status.code(), Some(2), "keys are never written over");
    assert!(good(&["plugin", "inspect", "a.wasm", "--trust", "me.pub"]).contains("not signed"));
    let session = crate::support::repository().join("testdata/sessions/coding-agent.claude-code.jsonl");
    let session = session.to_str().unwrap();
    let replay = ["replay", session, "--window", "32000", "--stage", "./a.wasm", "--trust", "me.pub"];
    let refused = program(&replay, folder);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("not signed"));
    assert_eq!(good(&["plugin", "sign", "a.wasm", "--key", "me"]), "a.wasm.sig\n");
    assert!(good(&["plugin", "inspect", "a.wasm", "--trust", "me.pub"]).contains("signed by trusted key"));
    let out = good(&replay);
    assert!(out.contains("plugin  a: "), "{out}");
    let json: serde_json::Value = serde_json::from_str(&good(&[&replay[..], &["--json"]].concat())).unwrap();
    let account = &json["sessions"][0]["plugins"]["a"];
    assert!(account["calls"].as_u64() > Some(0) && account["wall_us"].is_u64(), "{account}");
    // The secret key is told apart from a public one; a policy file trusts as a flag does, from where it lies.
    let wrong = program(&["plugin", "inspect", "a.wasm", "--trust", "me"], folder);
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("secret key"));
    fs::create_dir(folder.join("etc")).unwrap();
    fs::write(folder.join("etc/policy.toml"), "stage = [\"../a.wasm\"]\ntrust = [\"../me.pub\"]").unwrap();
    good(&["replay", session, "--window", "32000", "--config", "etc/policy.toml"]);
    fs::remove_file(folder.join("a.wasm.sig")).unwrap();
    let refused = program(&["replay", session, "--window", "32000", "--config", "etc/policy.toml"], folder);
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn the_program_keeps_compiled_plugins_where_it_is_told() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path();
    fs::write(folder.join("a.wasm"), idle()).unwrap();
    let session = crate::support::repository().join("testdata/sessions/coding-agent.claude-code.jsonl");
    let replay = |more: &[&str]| {
        let session = session.to_str().unwrap();
        let out = program(&[&["replay", session, "--window", "32000", "--stage", "./a.wasm"], more].concat(), folder);
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stderr).unwrap()
    };
    let code = |at: &str| {
        let files = fs::read_dir(folder.join(at)).map_or_else(|_| Vec::new(), |all| all.flatten().collect());
        files.iter().filter(|entry| entry.path().extension().is_some_and(|ending| ending == "code")).count()
    };
    replay(&["--plugin-cache", "off"]);
    assert!(!folder.join("cache").exists());
    replay(&[]);
    assert_eq!(code("cache/foreshorten/plugins"), 1);
    assert_eq!(replay(&["--plugin-cache", "mine"]), "");
    assert_eq!(code("mine"), 1);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(folder.join("mine"), fs::Permissions::from_mode(0o777)).unwrap();
        let warned = replay(&["--plugin-cache", "mine"]);
        assert_eq!(warned.matches("chmod 700").count(), 1, "{warned}");
    }
}
