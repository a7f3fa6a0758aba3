//! What every session store must do. Each scenario gets a way to open the same store again, as another process would.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use foreshorten::core::transcript::Entry;
use foreshorten::formats::Format;
use foreshorten::record::Message;
use foreshorten::session::{Commit, CommitError, Meta, RewriteSessions, Segment, Version};

/// Opens the store that a scenario works on; each call as if from another process.
pub(crate) type Open<'a> = &'a (dyn Fn() -> Arc<dyn RewriteSessions> + Send + Sync);

type Scenario = for<'a> fn(Open<'a>) -> Pin<Box<dyn Future<Output = ()> + 'a>>;

/// All scenarios, by name.
pub(crate) const SCENARIOS: [(&str, Scenario); 13] = [
    ("nothing is there before the first commit", |open| Box::pin(nothing(open))),
    ("messages come back byte for byte and in order", |open| Box::pin(messages(open))),
    ("a checkpoint replaces the one before", |open| Box::pin(checkpoints(open))),
    ("the end of a run moves its state into its segment", |open| Box::pin(ends(open))),
    ("a segment without state keeps the older state visible", |open| Box::pin(older_state(open))),
    ("a run that ends without saying its state keeps that of the checkpoint", |open| Box::pin(silent_end(open))),
    ("a conflict writes nothing", |open| Box::pin(conflict(open))),
    ("runs that take turns have segments in the order of their commits", |open| Box::pin(turns(open))),
    ("two writers lose nothing and keep their order", |open| Box::pin(race(open))),
    ("any id is a session of its own", |open| Box::pin(ids(open))),
    ("a rewrite replaces the messages and leaves the checkpoint", |open| Box::pin(rewrite(open))),
    ("a rewrite of another version writes nothing", |open| Box::pin(rewrite_conflict(open))),
    ("a commit without anything in it counts", |open| Box::pin(empty(open))),
];

pub(crate) fn said(text: &str) -> Arc<Message> {
    Arc::new(Message::user(text))
}

pub(crate) fn meta(text: &str) -> Meta {
    Meta(BTreeMap::from([("compaction".into(), text.as_bytes().to_vec()), ("odd\n\"".into(), vec![0, 255])]))
}

fn texts(segments: &[Segment]) -> Vec<(String, Vec<String>, bool)> {
    let text = |message: &Arc<Message>| message.text_of(foreshorten::core::transcript::EntryKind::User);
    segments
        .iter()
        .map(|segment| (segment.run.clone(), segment.messages.iter().map(text).collect(), segment.meta.is_some()))
        .collect()
}

async fn nothing(open: Open<'_>) {
    assert_eq!(open().load("s").await.unwrap(), None);
    let late = open().commit("s", Commit::new(3, "r").appending(&[said("x")])).await;
    assert!(matches!(late, Err(CommitError::Conflict(0))), "{late:?}");
    assert_eq!(open().load("s").await.unwrap(), None);
}

async fn messages(open: Open<'_>) {
    let raw = r#"{"role":"assistant","content":"x","n": 1.50,"lone":"\ud800"}"#;
    let all = [
        said("a\nb\u{2028}\0\r\n"),
        Arc::new(Message::raw(Format::OpenAiChat, raw).unwrap()),
        Arc::new(Message::of(vec![Entry::tool_call("c", "t", "{}"), Entry::assistant("")])),
        Arc::new(Message::of(Vec::new())),
        said("{\"commit\":{}}"),
    ];
    let mut version = 0;
    for (number, message) in all.iter().enumerate() {
        let one = [Arc::clone(message)];
        version = open().commit("s", Commit::new(version, "r").appending(&one)).await.unwrap();
        assert_eq!(version, number as Version + 1);
    }
    version = open().commit("s", Commit::new(version, "r").appending(&all)).await.unwrap();
    let stored = open().load("s").await.unwrap().unwrap();
    assert_eq!(stored.version, version);
    assert_eq!(stored.segments.len(), 1);
    assert_eq!(stored.record().messages(), [all.clone(), all].concat());
}

async fn checkpoints(open: Open<'_>) {
    for (number, state) in ["one", "a longer state than before", "3"].into_iter().enumerate() {
        let (messages, meta) = ([said("x")], meta(state));
        open().commit("s", Commit::new(number as u64, "r").appending(&messages).with_meta(&meta)).await.unwrap();
        let stored = open().load("s").await.unwrap().unwrap();
        let checkpoint = stored.checkpoint.as_ref().unwrap();
        assert_eq!((checkpoint.run.as_str(), checkpoint.messages), ("r", number + 1));
        assert_eq!(stored.meta(), Some(&meta));
    }
    // A commit without state leaves the last one.
    open().commit("s", Commit::new(3, "r").appending(&[said("x")])).await.unwrap();
    let stored = open().load("s").await.unwrap().unwrap();
    assert_eq!(stored.meta(), Some(&meta("3")));
    assert_eq!(stored.checkpoint.unwrap().messages, 3);
}

async fn ends(open: Open<'_>) {
    let (first, last) = (meta("first"), meta("last"));
    open().commit("s", Commit::new(0, "r").appending(&[said("a")]).with_meta(&first)).await.unwrap();
    open().commit("s", Commit::new(1, "r").appending(&[said("b")]).with_meta(&last).ending()).await.unwrap();
    let stored = open().load("s").await.unwrap().unwrap();
    assert_eq!(stored.checkpoint, None);
    assert_eq!(stored.segments, [Segment { run: "r".into(), messages: vec![said("a"), said("b")], meta: Some(last) }]);
    // A later run of that name has a segment of its own.
    open().commit("s", Commit::new(2, "r").appending(&[said("c")])).await.unwrap();
    let stored = open().load("s").await.unwrap().unwrap();
    assert_eq!(texts(&stored.segments)[1], ("r".into(), vec!["c".into()], false));
}

async fn older_state(open: Open<'_>) {
    let state = meta("state");
    open().commit("s", Commit::new(0, "a").appending(&[said("x")]).with_meta(&state).ending()).await.unwrap();
    open().commit("s", Commit::new(1, "b").appending(&[said("y")])).await.unwrap();
    open().commit("s", Commit::new(2, "b").ending()).await.unwrap();
    open().commit("s", Commit::new(3, "c").appending(&[said("z")]).ending()).await.unwrap();
    let stored = open().load("s").await.unwrap().unwrap();
    assert_eq!(stored.meta(), Some(&state));
    let runs: Vec<_> = texts(&stored.segments).into_iter().map(|segment| (segment.0, segment.2)).collect();
    assert_eq!(runs, [("a".into(), true), ("b".into(), false), ("c".into(), false)]);
}

async fn silent_end(open: Open<'_>) {
    let state = meta("state");
    open().commit("s", Commit::new(0, "a").appending(&[said("x")]).with_meta(&state)).await.unwrap();
    open().commit("s", Commit::new(1, "a").ending()).await.unwrap();
    let stored = open().load("s").await.unwrap().unwrap();
    assert_eq!(stored.checkpoint, None);
    assert_eq!(stored.segments[0].meta, Some(state.clone()));
    // A run that added nothing but a state has a segment for it.
    open().commit("s", Commit::new(2, "b").with_meta(&meta("other")).ending()).await.unwrap();
    let stored = open().load("s").await.unwrap().unwrap();
    assert_eq!(texts(&stored.segments)[1], ("b".into(), vec![], true));
    assert_eq!(stored.meta(), Some(&meta("other")));
}

async fn conflict(open: Open<'_>) {
    let state = meta("state");
    open().commit("s", Commit::new(0, "a").appending(&[said("x")]).with_meta(&state)).await.unwrap();
    let before = open().load("s").await.unwrap();
    for expected in [0, 2, u64::MAX] {
        let (messages, other) = ([said("y")], meta("other"));
        let late = Commit::new(expected, "b").appending(&messages).with_meta(&other).ending();
        let refused = open().commit("s", late).await;
        assert!(matches!(refused, Err(CommitError::Conflict(1))), "{refused:?}");
        assert_eq!(open().load("s").await.unwrap(), before);
    }
}

async fn turns(open: Open<'_>) {
    for (number, run) in ["a", "a", "b", "a", "b", "b"].into_iter().enumerate() {
        let messages = [said(&number.to_string())];
        open().commit("s", Commit::new(number as u64, run).appending(&messages)).await.unwrap();
    }
    let stored = open().load("s").await.unwrap().unwrap();
    let segments: Vec<_> = texts(&stored.segments).into_iter().map(|s| (s.0, s.1.concat())).collect();
    let expected = [("a", "01"), ("b", "2"), ("a", "3"), ("b", "45")];
    assert_eq!(segments, expected.map(|(run, texts)| (run.to_owned(), texts.to_owned())));
}

async fn race(open: Open<'_>) {
    const EACH: usize = 25;
    let writer = async |run: &'static str, sessions: Arc<dyn RewriteSessions>| {
        let mut version = 0;
        for number in 0..EACH {
            let (messages, meta) = ([said(&format!("{run}{number}"))], meta(run));
            loop {
                let commit = Commit::new(version, run).appending(&messages).with_meta(&meta);
                match sessions.commit("s", commit).await {
                    Ok(next) => break version = next,
                    Err(CommitError::Conflict(now)) => version = now,
                    Err(error) => panic!("{error}"),
                }
                tokio::task::yield_now().await;
            }
        }
    };
    let (one, two) = (open(), open());
    let one = tokio::spawn(async move { writer("a", one).await });
    let two = tokio::spawn(async move { writer("b", two).await });
    one.await.unwrap();
    two.await.unwrap();
    let stored = open().load("s").await.unwrap().unwrap();
    assert_eq!(stored.version, 2 * EACH as u64);
    let all: Vec<String> = texts(&stored.segments).into_iter().flat_map(|segment| segment.1).collect();
    for run in ["a", "b"] {
        let own: Vec<&String> = all.iter().filter(|text| text.starts_with(run)).collect();
        let expected: Vec<String> = (0..EACH).map(|number| format!("{run}{number}")).collect();
        assert_eq!(own, expected.iter().collect::<Vec<_>>());
    }
}

async fn ids(open: Open<'_>) {
    let long = "x".repeat(3_000);
    let ids =
        ["a", "A", "", ".", "..", "../a", "a/b", "a\\b", "a\0", "a\n", "con", "漢", "%2e", "'; drop table", &long];
    for id in ids {
        let messages = [said(id)];
        assert_eq!(open().commit(id, Commit::new(0, id).appending(&messages).ending()).await.unwrap(), 1, "{id:?}");
    }
    for id in ids {
        let stored = open().load(id).await.unwrap().unwrap();
        assert_eq!((stored.segments[0].run.as_str(), stored.record().messages()), (id, &[said(id)][..]));
    }
}

async fn rewrite(open: Open<'_>) {
    let (old, now) = (meta("old"), meta("now"));
    open().commit("s", Commit::new(0, "a").appending(&[said("x"), said("y")]).with_meta(&old).ending()).await.unwrap();
    open().commit("s", Commit::new(1, "b").appending(&[said("z")]).with_meta(&now)).await.unwrap();
    let before = open().load("s").await.unwrap().unwrap();
    let mut segments = before.segments;
    segments[0].messages[0] = said("shorter");
    segments.insert(1, Segment { run: "a".into(), ..Segment::default() });
    assert_eq!(open().rewrite("s", 2, &segments).await.unwrap(), 3);
    let after = open().load("s").await.unwrap().unwrap();
    assert_eq!((after.version, &after.segments, &after.checkpoint), (3, &segments, &before.checkpoint));
    // The run goes on in a segment of its own, and the count of messages with it.
    let later = meta("later");
    open().commit("s", Commit::new(3, "b").appending(&[said("w")]).with_meta(&later)).await.unwrap();
    let after = open().load("s").await.unwrap().unwrap();
    assert_eq!((after.segments.len(), after.checkpoint.unwrap().messages), (4, 4));
    assert_eq!(open().rewrite("s", 4, &[]).await.unwrap(), 5);
    assert_eq!(open().load("s").await.unwrap().unwrap().segments, []);
    assert_eq!(open().commit("s", Commit::new(5, "c").appending(&[said("v")])).await.unwrap(), 6);
}

async fn rewrite_conflict(open: Open<'_>) {
    assert!(matches!(open().rewrite("s", 0, &[]).await, Err(CommitError::Conflict(0))));
    open().commit("s", Commit::new(0, "a").appending(&[said("x")])).await.unwrap();
    let before = open().load("s").await.unwrap();
    assert!(matches!(open().rewrite("s", 2, &[]).await, Err(CommitError::Conflict(1))));
    assert_eq!(open().load("s").await.unwrap(), before);
}

async fn empty(open: Open<'_>) {
    assert_eq!(open().commit("s", Commit::new(0, "a")).await.unwrap(), 1);
    assert_eq!(open().commit("s", Commit::new(1, "a").ending()).await.unwrap(), 2);
    let stored = open().load("s").await.unwrap().unwrap();
    assert_eq!((stored.version, stored.segments, stored.checkpoint), (2, vec![], None));
}
