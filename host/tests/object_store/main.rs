//! Results in object storage, against a server that speaks S3 over a real socket.
//!
//! The server is moto, in a virtual environment under the folder for temporary files, made once for each state of
//! `requirements.txt`. Where it cannot be made (no Python, no network) the tests say `SKIPPED`; with `CI=true` they fail.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should stop")]

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use foreshorten::core::digest::Digest;
use foreshorten::core::transcript::{Entry, OwnedTranscript, Part};
use foreshorten::stores::{ObjectStore, ResultStore, Stored};
use object_store::aws::AmazonS3Builder;
use object_store::{ObjectStoreExt as _, RetryConfig};

const BUCKET: &str = "results";

/// Listens on a port of its own choosing, says which, and goes when its standard input does.
const SERVER: &str = r#"
import sys, threading, os
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
import urllib.request
host, port = server.get_host_and_port()
urllib.request.urlopen(urllib.request.Request(f"http://{host}:{port}/results", method="PUT")).read()
print("PORT", port, flush=True)
sys.stdin.read()
os._exit(0)
"#;

/// A server for one test.
struct Server {
    child: Child,
    port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The Python of the virtual environment, or why there is none.
fn python() -> Result<PathBuf, String> {
    let requirements = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/object_store/requirements.txt");
    let wanted = std::fs::read(&requirements).map_err(|error| error.to_string())?;
    let venv = std::env::temp_dir().join(format!("foreshorten-s3-{}", Digest::of(&wanted)));
    let python = venv.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    std::fs::create_dir_all(&venv).map_err(|error| error.to_string())?;
    // Tests of several processes may come at once.
    let lock = std::fs::File::create(venv.join("lock")).map_err(|error| error.to_string())?;
    lock.lock().map_err(|error| error.to_string())?;
    let ready = venv.join("ready");
    if !ready.exists() {
        run(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"];
        run(Command::new(&python).args(pip).arg(&requirements))?;
        std::fs::write(ready, "").map_err(|error| error.to_string())?;
    }
    Ok(python)
}

fn run(command: &mut Command) -> Result<(), String> {
    let done = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let said = String::from_utf8_lossy(&done.stderr);
    if done.status.success() { Ok(()) } else { Err(format!("{command:?}: {said}")) }
}

fn server() -> Option<Server> {
    let started = python().and_then(|python| {
        let mut command = Command::new(python);
        command.args(["-c", SERVER]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let out = BufReader::new(child.stdout.take().ok_or("the server has no output")?);
        let port = out.lines().map_while(Result::ok).find_map(|line| line.strip_prefix("PORT ")?.parse().ok());
        // Made first, so that a child that said nothing goes as well.
        let server = Server { child, port: port.unwrap_or(0) };
        port.map(|_| server).ok_or_else(|| "the server did not start".into())
    });
    match started {
        Ok(server) => Some(server),
        Err(why) if std::env::var("CI").is_ok_and(|ci| ci == "true") => panic!("no S3 server: {why}"),
        Err(why) => {
            println!("SKIPPED: no S3 server: {why}");
            None
        }
    }
}

fn builder(port: u16) -> AmazonS3Builder {
    let retry = RetryConfig { max_retries: 1, retry_timeout: Duration::from_secs(2), ..RetryConfig::default() };
    AmazonS3Builder::new()
        .with_endpoint(format!("http://127.0.0.1:{port}"))
        .with_allow_http(true)
        .with_region("us-east-1")
        .with_access_key_id("id")
        .with_secret_access_key("secret")
        .with_bucket_name(BUCKET)
        .with_retry(retry)
}

fn contents() -> Vec<(Digest, Stored)> {
    let image = Part::Image("image/png".into(), b"aGk=".to_vec());
    let record = OwnedTranscript::from(vec![
        Entry::tool_result("c", "a\r\nb\rc"),
        Entry::tool_result("c", ""),
        Entry::tool_result("c", "漢🙂\0"),
        Entry::tool_result("c", "x".repeat(5 << 20)),
        Entry::tool_result("c", "seen").with(image).with(Part::Text("more".into())),
    ]);
    (0..5).map(|index| (Digest::of_entry(&record, index), Stored::of(&record, index))).collect()
}

#[tokio::test]
async fn contents_come_back_from_s3_byte_for_byte() {
    let Some(server) = server() else { return };
    let store = ObjectStore::built(builder(server.port), "some/prefix").unwrap();
    for (digest, content) in contents() {
        assert_eq!(store.get(&digest).await.unwrap(), None);
        store.put(&digest, &content).await.unwrap();
        store.put(&digest, &content).await.unwrap();
        assert_eq!(store.get(&digest).await.unwrap(), Some(content));
    }
}

#[tokio::test]
async fn an_object_that_is_there_is_not_written_again_and_a_wrong_one_is_not_given_out() {
    let Some(server) = server() else { return };
    let store = ObjectStore::built(builder(server.port), "").unwrap();
    // After the store, which chose the process's TLS.
    let raw = builder(server.port).build().unwrap();
    let (digest, content) = (Digest::of(b"kept"), Stored::whole(b"kept".to_vec()));
    let name = digest.to_string();
    let key = object_store::path::Path::from(format!("{}/{name}", &name[..2]));
    store.put(&digest, &content).await.unwrap();
    let before = raw.head(&key).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    store.put(&digest, &content).await.unwrap();
    assert_eq!(raw.head(&key).await.unwrap().last_modified, before.last_modified);
    for wrong in ["gone", "longer than before"] {
        raw.put(&key, wrong.into()).await.unwrap();
        assert_eq!(store.get(&digest).await.unwrap(), None);
    }
    store.put(&digest, &content).await.unwrap();
    assert_eq!(store.get(&digest).await.unwrap(), Some(content));
}

#[tokio::test]
async fn writers_of_the_same_content_do_not_disturb_one_another() {
    let Some(server) = server() else { return };
    let store = ObjectStore::built(builder(server.port), "p").unwrap();
    let content = Stored::whole(vec![b'x'; 100_000]);
    let digest = Digest::of(content.content());
    let puts = (0..8).map(|_| store.put(&digest, &content));
    for done in futures_util::future::join_all(puts).await {
        done.unwrap();
    }
    assert_eq!(store.get(&digest).await.unwrap(), Some(content));
}

#[tokio::test]
async fn a_server_that_is_away_is_an_error_that_names_the_object_within_seconds() {
    let Some(server) = server() else { return };
    let store: Arc<dyn ResultStore> = Arc::new(ObjectStore::built(builder(server.port), "p").unwrap());
    drop(server);
    let digest = Digest::of(b"x");
    let start = Instant::now();
    let error = store.get(&digest).await.unwrap_err().to_string();
    assert!(error.contains(&digest.to_string()), "{error}");
    assert!(store.put(&digest, &Stored::whole(b"x".to_vec())).await.is_err());
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
}
