//! Stages and summarizers of others, loaded as components: good ones, built from source, and hostile ones, by hand.

mod guests;
mod hostile;
mod loading;
mod program;
mod sessions;
mod support;
