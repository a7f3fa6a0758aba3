//! Session stores: one suite for all, then what is particular to each.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should stop")]

mod conformance;
mod crash;
mod damage;
mod trim;

use std::sync::Arc;

use conformance::{Open, SCENARIOS};
use foreshorten::session::{FileSessions, MemorySessions, RewriteSessions};

/// Plays all scenarios, each on a store of its own, which `make` makes in a folder of its own.
fn conform(make: impl Fn(&std::path::Path) -> Box<dyn Fn() -> Arc<dyn RewriteSessions> + Send + Sync>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    for (name, scenario) in SCENARIOS {
        println!("{name}");
        let folder = tempfile::tempdir().unwrap();
        let open = make(folder.path());
        let open: Open<'_> = &*open;
        runtime.block_on(scenario(open));
    }
}

#[test]
fn memory_sessions_conform() {
    conform(|_| {
        let sessions = Arc::new(MemorySessions::new());
        Box::new(move || Arc::clone(&sessions) as _)
    });
}

#[test]
fn file_sessions_conform() {
    conform(|folder| {
        let folder = folder.join("sessions");
        Box::new(move || Arc::new(FileSessions::open(&folder).unwrap()))
    });
}

#[test]
fn sqlite_sessions_conform() {
    conform(|folder| {
        let path = folder.join("sessions.db");
        Box::new(move || Arc::new(foreshorten::session::SqliteSessions::open(&path).unwrap()))
    });
}
