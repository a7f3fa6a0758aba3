//! What must hold for any text of a `plugin.toml`, and any bytes of a file in the cache of compiled plugins.

use std::path::Path;

use foreshorten::plugin::sealed::{Key, Secret, open, seal};
use foreshorten::plugin::{Limits, Settings};

/// Reads any text as a `plugin.toml`.
///
/// # Panics
/// When what is accepted has a grant that there is not, a bound above the operator's, no JSON as configuration, or is not
/// read the same from the text that says the same.
#[allow(dead_code, reason = "every user of this file has a part of its own")]
pub(crate) fn plugin_manifest(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let at = Path::new("plugins/plugin.toml");
    let Ok((file, settings)) = Settings::parse(text, at) else { return };
    assert!(settings.grants.iter().all(|grant| grant == "condensing"), "a grant that there is not: {settings:?}");
    let caps = Limits::caps();
    let within = settings.limits.within(&caps);
    assert_eq!(within.within(&caps), within);
    for (has, most) in [
        (within.fuel, caps.fuel),
        (within.fuel_per_entry, caps.fuel_per_entry),
        (within.wall_ms, caps.wall_ms),
        (within.memory_bytes as u64, caps.memory_bytes as u64),
        (within.table_elements as u64, caps.table_elements as u64),
        (within.instances as u64, caps.instances as u64),
        (within.stack_bytes as u64, caps.stack_bytes as u64),
        (within.host_calls, caps.host_calls),
        (within.text_bytes, caps.text_bytes),
        (within.call_bytes as u64, caps.call_bytes as u64),
        (within.decisions, caps.decisions),
        (within.memo_bytes as u64, caps.memo_bytes as u64),
        (within.log_lines.into(), caps.log_lines.into()),
        (within.file_bytes, caps.file_bytes),
        (within.steps.into(), caps.steps.into()),
    ] {
        assert!(has <= most, "{has} above {most}");
    }
    if let Some(config) = &settings.config {
        let value: serde_json::Value = serde_json::from_str(config).expect("the configuration is JSON");
        assert!(value.is_object());
    }
    assert!(!settings.version.contains(char::is_control));
    let name = settings.name_for(&file);
    assert!((1..=64).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b)));
    // Twice the same, and a comment more changes nothing. It goes behind a byte order mark, which is one only in front.
    let (mark, rest) = text.split_at(if text.starts_with('\u{FEFF}') { 3 } else { 0 });
    let (again, same) =
        Settings::parse(&format!("{mark}# said again\n{rest}"), at).expect("a comment in front is no mistake");
    assert_eq!((again, format!("{same:?}")), (file, format!("{settings:?}")));
}

/// Tampers with a sealed file in every way that the bytes say, and opens any bytes as one.
///
/// # Panics
/// When anything is opened but what this secret sealed for this key, unchanged.
#[allow(dead_code, reason = "every user of this file has a part of its own")]
pub(crate) fn plugin_cache(bytes: &[u8]) {
    let (mine, theirs) = (Secret([0x5a; 32]), Secret([0xa5; 32]));
    let key = Key([7; 32]);
    assert!(open(&mine, &key, bytes).is_err(), "nobody could have sealed this");
    let &[how, at, what, ref content @ ..] = bytes else { return };
    let file = seal(&mine, &key, content);
    assert_eq!(open(&mine, &key, &file), Ok(content));
    assert!(open(&theirs, &key, &file).is_err() && open(&mine, &Key([8; 32]), &file).is_err());
    assert!(open(&mine, &key, &seal(&theirs, &key, content)).is_err());
    let mut other = file;
    let at = usize::from(at) * 257 % other.len();
    match how % 6 {
        0 => other[at] ^= what | 1,
        1 => other.truncate(at),
        2 => other.insert(at, what),
        3 => other.extend_from_slice(&[what; 40][..1 + at % 40]),
        4 => drop(other.remove(at)),
        _ => {
            // The length that it says, made another.
            let length = (content.len() as u64) ^ (u64::from(what | 1) << (8 * (at % 8)));
            other[44..52].copy_from_slice(&length.to_le_bytes());
        }
    }
    assert!(open(&mine, &key, &other).is_err(), "changed in way {how} at {at}");
}
