//! The rows of the fixtures, their variants, and hostile input.

mod fixture;
mod hostile;
mod variants;
