//! An endpoint that plays a script: the n-th request gets the n-th answer, and all are kept.
#![allow(dead_code, reason = "every test binary uses its own part of it")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should stop")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// Request line and headers.
    pub(crate) head: String,
    /// The body.
    pub(crate) body: String,
}

impl Asked {
    /// The body as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// The first line.
    pub(crate) fn line(&self) -> &str {
        self.head.lines().next().unwrap()
    }

    /// Whether a header of this name came, with this value.
    pub(crate) fn has(&self, name: &str, value: &str) -> bool {
        let wanted = format!("{name}: {value}").to_ascii_lowercase();
        self.head.lines().any(|line| line.to_ascii_lowercase() == wanted)
    }
}

/// One answer.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// Bytes, then the end of the connection.
    Bytes(Vec<u8>),
    /// Bytes, then nothing for as long as the client waits.
    Hang(Vec<u8>),
    /// What was asked, sent back as the body of a 400.
    Echo,
}

/// An answer with this status, type and body.
pub(crate) fn answer(status: u16, kind: &str, body: &str) -> Answer {
    with(status, &[("content-type", kind)], body)
}

/// An answer with these headers.
pub(crate) fn with(status: u16, headers: &[(&str, &str)], body: &str) -> Answer {
    let mut text = format!("HTTP/1.1 {status} Whatever\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    Answer::Bytes(format!("{text}\r\n{body}").into_bytes())
}

/// A stream of server-sent events without a length, ended by the end of the connection.
pub(crate) fn sse(body: &str) -> Answer {
    Answer::Bytes(format!("{SSE}{body}").into_bytes())
}

/// The same, that falls silent in place of ending.
pub(crate) fn silent(body: &str) -> Answer {
    Answer::Hang(format!("{SSE}{body}").into_bytes())
}

const SSE: &str = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream; charset=utf-8\r\n\r\n";

/// A recorded stream.
pub(crate) fn recorded(name: &str) -> Answer {
    let path = format!("{}/../testdata/streams/{name}.sse", env!("CARGO_MANIFEST_DIR"));
    sse(&std::fs::read_to_string(path).unwrap())
}

/// A running script.
#[derive(Debug)]
pub(crate) struct Script {
    /// `http://127.0.0.1:…`
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Script {
    /// Plays these answers, and 599 after the last.
    pub(crate) async fn play(answers: Vec<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, answers.clone(), Arc::clone(&log)));
            }
        });
        Self { url, asked, task }
    }

    /// What was asked so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut stream: TcpStream, answers: Vec<Answer>, log: Arc<Mutex<Vec<Asked>>>) {
    let Some(asked) = read(&mut stream).await else { return };
    let number = {
        let mut log = log.lock().unwrap();
        log.push(asked.clone());
        log.len() - 1
    };
    let (bytes, hang) = match answers.get(number) {
        Some(Answer::Bytes(bytes)) => (bytes.clone(), false),
        Some(Answer::Hang(bytes)) => (bytes.clone(), true),
        Some(Answer::Echo) => {
            let body = format!("{}\n{}", asked.head, asked.body);
            let Answer::Bytes(bytes) = answer(400, "text/plain", &body) else { return };
            (bytes, false)
        }
        None => (
            b"HTTP/1.1 599 No\r\nconnection: close\r\ncontent-length: 0\r\nx-should-retry: false\r\n\r\n".to_vec(),
            false,
        ),
    };
    drop(stream.write_all(&bytes).await);
    drop(stream.flush().await);
    if hang {
        tokio::time::sleep(Duration::from_secs(30)).await;
    }
}

async fn read(stream: &mut TcpStream) -> Option<Asked> {
    let mut all = Vec::new();
    let mut chunk = [0; 65_536];
    loop {
        let read = stream.read(&mut chunk).await.ok().filter(|&read| read > 0)?;
        all.extend_from_slice(&chunk[..read]);
        let Some(end) = all.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&all[..end]).into_owned();
        let length =
            head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
        if all.len() >= end + 4 + length.unwrap_or(0_usize) {
            return Some(Asked { head, body: String::from_utf8_lossy(&all[end + 4..]).into_owned() });
        }
    }
}
