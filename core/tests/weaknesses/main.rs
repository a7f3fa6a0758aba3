//! What was found wrong with the reference system (`a6_…` is entry A6).

mod cost;
mod estimates;
mod planning;
mod recall;
mod view;
