//! Public bug reports about compaction in other agents, one test or more a row (`b01_…` is row B01).

mod calibration;
mod history;
mod markers;
mod oversize;
mod pairs;
mod scale;
mod summary;
mod thrash;
mod windows;
