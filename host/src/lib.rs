//! Host library of Foreshorten: what runs the core's decisions in the world.
//!
//! | to | look at |
//! |---|---|
//! | run an agent whose context never overflows | [`runner`], with an agent's [`provider`], [`tool`]s and [`session`]s |
//! | keep a loop of your own | [`context`]: a policy is one method, from [`record`] to [`view`] |
//! | keep what views drop | [`stores`] |
//! | know the context window | [`window`] |
//! | have summaries written | [`summarizer`] |
//! | read and write other people's JSON | [`formats`] |
//! | see what a policy would have done to a recorded session | [`replay`], [`economics`], [`report`] |
//!
//! `docs/agent.md` shows it in ten lines. The program `foreshorten` is a thin shell over this library. Features: `http`
//! (providers over HTTP), `sqlite` (sessions in a SQLite file), `object-store` (results in S3 and the like).

pub mod context;
pub mod drive;
pub mod economics;
pub mod formats;
pub mod options;
pub mod plugin;
pub mod provider;
pub mod record;
pub mod replay;
pub mod report;
pub mod runner;
pub mod session;
pub mod stores;
pub mod summarizer;
pub mod tool;
pub mod view;
pub mod window;

pub use foreshorten_core as core;

/// The examples of the guide, run as tests.
#[cfg(all(doctest, feature = "http"))]
#[doc = include_str!("../../docs/agent.md")]
struct Guide;
