//! Sessions and request bodies of every format, read and written.

#[path = "../oracles/formats.rs"]
mod oracle;

mod corpus;
mod kept;
mod props;
mod read;
mod review;
mod write;
