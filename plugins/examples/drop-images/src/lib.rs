//! Drops the images and files of all but the newest three entries that have any; of all, when the view was rejected.
//!
//! Configuration: `{"keep_last": 3}`.
#![cfg_attr(target_arch = "wasm32", no_std)]

use foreshorten_plugin::{Pass, Stage, String, Vec, mark};

/// The stage.
pub struct DropImages;

/// Entries with media that stay.
const KEEP: usize = 3;

/// The number after `"key":` in a flat JSON object.
fn number(config: &str, key: &str) -> Option<usize> {
    let after = config.split_once(key)?.1.strip_prefix('"')?.trim_start().strip_prefix(':')?.trim_start();
    let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
    after[..digits].parse().ok()
}

impl Stage for DropImages {
    fn check(config: &str) -> Result<(), String> {
        if config.contains("keep_last") && number(config, "keep_last").is_none() {
            return Err(String::from("keep_last: expected a number"));
        }
        Ok(())
    }

    fn plan(pass: &mut impl Pass) -> Result<(), String> {
        let keep = if pass.aggressive() { 0 } else { number(&pass.config(), "keep_last").unwrap_or(KEEP) };
        let tail = pass.tail_start();
        let marks = pass.marks(0, u32::MAX);
        let groups = pass.groups(0, u32::MAX);
        let levels = pass.levels(0, u32::MAX);
        let with_media = (0..marks.len()).filter(|&at| marks[at] & mark::MEDIA != 0);
        let in_tail = with_media.clone().filter(|&at| groups[at] >= tail).count();
        let mut entries: Vec<u32> =
            with_media.filter(|&at| groups[at] < tail && levels[at] == 0).map(|at| at as u32).collect();
        entries.truncate(entries.len().saturating_sub(keep.saturating_sub(in_tail)));
        for entry in entries {
            if pass.reached_target() {
                break;
            }
            pass.elide_media(&[entry]);
        }
        Ok(())
    }
}

foreshorten_plugin::stage!(DropImages);

#[cfg(test)]
mod tests {
    use foreshorten_plugin::fake::{Did, Fake};

    use super::*;

    fn talk() -> Fake {
        let mut fake = Fake::default();
        for _ in 0..5 {
            fake.user("look").image();
        }
        fake
    }

    #[test]
    fn all_but_the_newest_three_go_oldest_first() {
        let mut fake = talk();
        DropImages::plan(&mut fake).unwrap();
        assert_eq!(fake.did, [Did::Elide(0, None), Did::Elide(1, None)]);
        assert!(DropImages::check("{\"keep_last\": \"x\"}").is_err());
    }

    #[test]
    fn it_stops_at_the_target_and_heeds_its_configuration() {
        let mut fake = Fake { target: 4 * 1_600 + 100, ..talk() };
        DropImages::plan(&mut fake).unwrap();
        assert_eq!(fake.did, [Did::Elide(0, None)]);
        let mut fake = Fake { config: "{\"keep_last\": 1}".into(), ..talk() };
        DropImages::plan(&mut fake).unwrap();
        assert_eq!(fake.did.len(), 4);
    }
}
