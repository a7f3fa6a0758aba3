//! Integer facts about every entry, kept as columns that are only appended to.
//!
//! This is all the core remembers of a transcript: kind, weight, pair, group, identity and chain,
//! 41 bytes an entry by length ([`Columns::bytes_per_entry`]). Content stays with the host.

use alloc::vec::Vec;

use hashbrown::HashMap;

use super::{Chain, EntryKind, Identity, PartRef, Transcript, identity_of};
use crate::error::OutOfMemory;

/// "No entry": the pair of a call without result, or of a result without call.
pub const NONE: u32 = u32::MAX;

/// Calls of this tool bring back what was dropped; their results are not offloaded again.
pub const RECALL_TOOL: &str = "recall_tool_result";

const KIND: u8 = 0b0000_0111;
const ERROR: u8 = 1 << 3;
const MEDIA: u8 = 1 << 4;
const SEALED: u8 = 1 << 5;
const RECALL: u8 = 1 << 6;
const TEXT: u8 = 1 << 7;

/// How far back a result looks among waiting calls that share its id, so that a hostile transcript
/// with one id on every call stays linear.
const SAME_ID_REACH: usize = 64;

/// The columns. Built by [`push`](Self::push), never rewritten.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    facts: Vec<u8>,
    weight: Vec<u32>,
    /// `prefix[i]` is the weight of everything before entry `i`.
    prefix: Vec<u64>,
    pair: Vec<u32>,
    group: Vec<u32>,
    identity: Vec<Identity>,
    chain: Vec<Chain>,
    group_start: Vec<u32>,
    /// Results that arrived after their group had been followed by another: (group, entry), in order of arrival.
    late: Vec<(u32, u32)>,
    orphans: Vec<u32>,
    system_weight: u64,
    /// Groups that an assistant message begins.
    turns: u32,
    newest_user: u32,
    waiting: Waiting,
    /// Hash of every call id seen, and whether it was seen more than once.
    ids: HashMap<u64, bool>,
}

/// Calls that wait for a result, as linked lists by call id: newest first.
#[derive(Clone, Debug, Default)]
struct Waiting {
    heads: HashMap<u64, u32>,
    /// (call, next older waiting slot of the same id hash)
    slots: Vec<(u32, u32)>,
    free: Vec<u32>,
}

impl Columns {
    /// Columns over nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self { newest_user: NONE, ..Self::default() }
    }

    /// Makes room for `additional` entries, so that pushing them allocates nothing.
    pub fn reserve(&mut self, additional: usize) {
        self.facts.reserve(additional);
        self.weight.reserve(additional);
        self.prefix.reserve(additional);
        self.pair.reserve(additional);
        self.group.reserve(additional);
        self.identity.reserve(additional);
        self.chain.reserve(additional);
        self.group_start.reserve(additional);
        self.ids.reserve(additional);
        self.waiting.heads.reserve(additional);
        self.waiting.slots.reserve(additional);
        self.waiting.free.reserve(additional);
        self.late.reserve(additional);
        self.orphans.reserve(additional);
    }

    /// As [`reserve`](Self::reserve), for who must not abort when memory is short.
    ///
    /// # Errors
    /// There is no room for all of it. Nothing is lost; some columns may have got theirs.
    pub fn try_reserve(&mut self, additional: usize) -> Result<(), OutOfMemory> {
        self.facts.try_reserve(additional)?;
        self.weight.try_reserve(additional)?;
        self.prefix.try_reserve(additional)?;
        self.pair.try_reserve(additional)?;
        self.group.try_reserve(additional)?;
        self.identity.try_reserve(additional)?;
        self.chain.try_reserve(additional)?;
        self.group_start.try_reserve(additional)?;
        self.ids.try_reserve(additional)?;
        self.waiting.heads.try_reserve(additional)?;
        self.waiting.slots.try_reserve(additional)?;
        self.waiting.free.try_reserve(additional)?;
        self.late.try_reserve(additional)?;
        self.orphans.try_reserve(additional)?;
        Ok(())
    }

    /// Appends the facts of entry `self.len()` of `transcript`, which weighs `weight` tokens.
    ///
    /// A result is paired with the nearest earlier call of its id that still waits: within the newest
    /// group that has one, the first in order.
    pub fn push(&mut self, transcript: &dyn Transcript, weight: u32) {
        let index = self.len();
        let at = u32::try_from(index).unwrap_or(NONE);
        let entry = transcript.entry(index);
        let mut facts = entry.kind as u8;
        if entry.is_error {
            facts |= ERROR;
        }
        if entry.sealed {
            facts |= SEALED;
        }
        for part in 0..entry.parts as usize {
            match transcript.part(index, part) {
                PartRef::Text(text) if !text.is_empty() => facts |= TEXT,
                PartRef::Image(_) | PartRef::File(_) => facts |= MEDIA,
                PartRef::Text(_) | PartRef::Opaque(_) => {}
            }
        }
        let mut pair = NONE;
        let mut group = None;
        let follows_assistant = index > 0 && self.kind(index - 1).is_assistant_side();
        match entry.kind {
            EntryKind::ToolCall => {
                if entry.name == RECALL_TOOL {
                    facts |= RECALL;
                }
                let id = hash_id(entry.call_id);
                self.ids.entry(id).and_modify(|reused| *reused = true).or_insert(false);
                self.waiting.add(id, at);
            }
            EntryKind::ToolResult => {
                let groups = &self.group;
                let found = self.waiting.take(hash_id(entry.call_id), |call| {
                    (transcript.entry(call as usize).call_id == entry.call_id).then(|| groups[call as usize])
                });
                if let Some(call) = found {
                    pair = call;
                    self.pair[call as usize] = at;
                    facts |= self.facts[call as usize] & RECALL;
                    group = Some(self.group[call as usize]);
                } else {
                    self.orphans.push(at);
                }
            }
            EntryKind::User if facts & TEXT != 0 => self.newest_user = at,
            EntryKind::System => self.system_weight += u64::from(weight),
            _ => {}
        }
        if entry.kind.is_assistant_side() && follows_assistant {
            group = self.group.last().copied();
        }
        let group = group.unwrap_or_else(|| {
            self.turns += u32::from(entry.kind.is_assistant_side());
            self.group_start.push(at);
            (self.group_start.len() - 1) as u32
        });
        if group as usize + 1 != self.group_start.len() {
            self.late.push((group, at));
        }
        let call = (pair != NONE).then(|| self.identity[pair as usize]);
        let identity = identity_of(transcript, index, call);
        let before = self.chain.last().copied().unwrap_or_default();
        self.facts.push(facts);
        self.prefix.push(self.total_weight());
        self.weight.push(weight);
        self.pair.push(pair);
        self.group.push(group);
        self.identity.push(identity);
        self.chain.push(if entry.kind == EntryKind::System { before } else { before.then(identity) });
    }

    /// Number of entries seen.
    #[must_use]
    pub fn len(&self) -> usize {
        self.facts.len()
    }

    /// Whether nothing was pushed yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.facts.is_empty()
    }

    /// Kind of an entry.
    #[must_use]
    pub fn kind(&self, index: usize) -> EntryKind {
        EntryKind::ALL[usize::from(self.facts[index] & KIND).min(5)]
    }

    /// Whether a result is flagged as an error.
    #[must_use]
    pub fn is_error(&self, index: usize) -> bool {
        self.facts[index] & ERROR != 0
    }

    /// Whether an entry has an image or file among its parts.
    #[must_use]
    pub fn has_media(&self, index: usize) -> bool {
        self.facts[index] & MEDIA != 0
    }

    /// Whether an entry is signed or encrypted.
    #[must_use]
    pub fn is_sealed(&self, index: usize) -> bool {
        self.facts[index] & SEALED != 0
    }

    /// Whether an entry has non-empty text.
    #[must_use]
    pub fn has_text(&self, index: usize) -> bool {
        self.facts[index] & TEXT != 0
    }

    /// Whether an entry is a call of the recall tool, or its result.
    #[must_use]
    pub fn is_recall(&self, index: usize) -> bool {
        self.facts[index] & RECALL != 0
    }

    /// Weight of an entry in tokens, as it stands in the record.
    #[must_use]
    pub fn weight(&self, index: usize) -> u32 {
        self.weight[index]
    }

    /// Weights of all entries.
    #[must_use]
    pub fn weights(&self) -> &[u32] {
        &self.weight
    }

    /// Pairs of all entries, as [`pair`](Self::pair) answers them.
    #[must_use]
    pub fn pairs(&self) -> &[u32] {
        &self.pair
    }

    /// Groups of all entries.
    #[must_use]
    pub fn group_of_each(&self) -> &[u32] {
        &self.group
    }

    /// Weight of the entries `from..to`, by one subtraction.
    #[must_use]
    pub fn range_weight(&self, from: usize, to: usize) -> u64 {
        self.weight_before(to).saturating_sub(self.weight_before(from))
    }

    fn weight_before(&self, index: usize) -> u64 {
        self.prefix.get(index).copied().unwrap_or_else(|| self.total_weight())
    }

    /// Weight of all entries.
    #[must_use]
    pub fn total_weight(&self) -> u64 {
        match (self.prefix.last(), self.weight.last()) {
            (Some(&before), Some(&last)) => before + u64::from(last),
            _ => 0,
        }
    }

    /// Weight of all system entries.
    #[must_use]
    pub fn system_weight(&self) -> u64 {
        self.system_weight
    }

    /// Assistant messages: how often the model was asked.
    #[must_use]
    pub const fn turns(&self) -> u32 {
        self.turns
    }

    /// The result of a call, or the call of a result; [`NONE`] where there is none (yet).
    #[must_use]
    pub fn pair(&self, index: usize) -> u32 {
        self.pair[index]
    }

    /// The group an entry belongs to.
    #[must_use]
    pub fn group(&self, index: usize) -> usize {
        self.group[index] as usize
    }

    /// The first group that begins at or after entry `index`. That is not always the entry's own: it may have joined one that
    /// began before.
    pub(crate) fn group_from(&self, index: usize) -> usize {
        match self.group.get(index) {
            None => self.groups(),
            Some(&group) if self.group_start(group as usize) == index => group as usize,
            Some(_) => self.group_start.partition_point(|&start| (start as usize) < index),
        }
    }

    /// Number of groups.
    #[must_use]
    pub fn groups(&self) -> usize {
        self.group_start.len()
    }

    /// First entry of a group; `len()` for the group after the last.
    #[must_use]
    pub fn group_start(&self, group: usize) -> usize {
        self.group_start.get(group).map_or(self.len(), |&start| start as usize)
    }

    /// Entries of a group in the order in which a view shows them: the assistant message, then its results.
    ///
    /// Results that arrived late, after another group had begun, are among them.
    pub fn members(&self, group: usize) -> impl Iterator<Item = usize> + '_ {
        let run = self.group_start(group)..self.group_start(group + 1);
        let late = if self.late.is_empty() { &[][..] } else { &self.late[..] };
        let first = late.partition_point(|&(_, entry)| (entry as usize) < run.end);
        run.filter(move |&index| self.group[index] as usize == group)
            .chain(late[first..].iter().filter(move |&&(of, _)| of as usize == group).map(|&(_, entry)| entry as usize))
    }

    /// Results that arrived after another group had begun, as (group, entry), in order of arrival.
    #[must_use]
    pub fn late_results(&self) -> &[(u32, u32)] {
        &self.late
    }

    /// The first group that had been closed when there were `known` entries and got a result since.
    #[must_use]
    pub fn reopened_since(&self, known: usize) -> Option<usize> {
        let first = self.late.partition_point(|&(_, entry)| (entry as usize) < known);
        let groups = self.late[first..].iter().map(|&(group, _)| group as usize);
        groups.filter(|&group| self.group_start(group + 1) < known).min()
    }

    /// Results without a call.
    #[must_use]
    pub fn orphans(&self) -> &[u32] {
        &self.orphans
    }

    /// Whether an entry is a result whose call is not in the record.
    #[must_use]
    pub fn is_orphan(&self, index: usize) -> bool {
        self.kind(index) == EntryKind::ToolResult && self.pair[index] == NONE
    }

    /// Whether a call has no result and stands in the newest group, so that its result may still come.
    #[must_use]
    pub fn is_pending(&self, index: usize) -> bool {
        self.kind(index) == EntryKind::ToolCall
            && self.pair[index] == NONE
            && self.group[index] as usize + 1 == self.group_start.len()
    }

    /// Whether no other call seen so far has this id.
    #[must_use]
    pub fn is_unique_id(&self, call_id: &str) -> bool {
        self.ids.get(&hash_id(call_id)) == Some(&false)
    }

    /// The newest entry in which the user wrote text, or [`NONE`].
    #[must_use]
    pub fn newest_user(&self) -> u32 {
        self.newest_user
    }

    /// Identity of an entry.
    #[must_use]
    pub fn identity(&self, index: usize) -> Identity {
        self.identity[index]
    }

    /// Fingerprint of the record up to and including an entry.
    #[must_use]
    pub fn chain(&self, index: usize) -> Chain {
        self.chain[index]
    }

    /// Bytes of columns an entry costs, by length; what the allocator adds, and the map of waiting calls, is left out.
    #[must_use]
    pub const fn bytes_per_entry() -> usize {
        1 + 4 + 8 + 4 + 4 + 8 + 8 + 4
    }
}

impl Waiting {
    fn add(&mut self, id: u64, call: u32) {
        let next = self.heads.get(&id).copied().unwrap_or(NONE);
        let slot = if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = (call, next);
            slot
        } else {
            self.slots.push((call, next));
            (self.slots.len() - 1) as u32
        };
        self.heads.insert(id, slot);
    }

    /// Takes the first call, in order, of the newest group that has one with this id. `matches` answers a
    /// call's group when its id is really equal.
    fn take(&mut self, id: u64, matches: impl Fn(u32) -> Option<u32>) -> Option<u32> {
        let mut best: Option<(u32, u32, u32)> = None; // (slot, slot before it in the list, group)
        let mut before = NONE;
        let mut slot = self.heads.get(&id).copied().unwrap_or(NONE);
        for _ in 0..SAME_ID_REACH {
            if slot == NONE {
                break;
            }
            let (call, next) = self.slots[slot as usize];
            if let Some(group) = matches(call) {
                match best {
                    Some((_, _, of)) if of != group => break,
                    _ => best = Some((slot, before, group)),
                }
            }
            before = slot;
            slot = next;
        }
        let (slot, before, _) = best?;
        let (call, next) = self.slots[slot as usize];
        if before != NONE {
            self.slots[before as usize].1 = next;
        } else if next == NONE {
            self.heads.remove(&id);
        } else {
            self.heads.insert(id, next);
        }
        self.free.push(slot);
        Some(call)
    }
}

/// FNV-1a: deterministic everywhere, and only a pre-filter, since ids are compared when they meet.
fn hash_id(id: &str) -> u64 {
    id.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::super::{Entry, OwnedTranscript};
    use super::*;

    fn columns(entries: Vec<Entry>) -> Columns {
        let transcript = OwnedTranscript::from(entries);
        let mut columns = Columns::new();
        for _ in 0..transcript.len() {
            columns.push(&transcript, 10);
        }
        columns
    }

    #[test]
    fn parallel_results_in_any_order_join_their_calls_group() {
        let columns = columns(alloc::vec![
            Entry::user("u"),
            Entry::tool_call("a", "t", "{}"),
            Entry::tool_call("b", "t", "{}"),
            Entry::tool_result("b", "2"),
            Entry::tool_result("a", "1"),
            Entry::assistant("done"),
        ]);
        assert_eq!((columns.pair(1), columns.pair(2)), (4, 3));
        assert_eq!(columns.groups(), 3);
        assert_eq!(columns.members(1).collect::<Vec<_>>(), [1, 2, 3, 4]);
        assert_eq!(columns.range_weight(1, 5), 40);
        assert_eq!(columns.total_weight(), 60);
    }

    #[test]
    fn a_reused_id_pairs_with_the_nearest_waiting_call() {
        let columns = columns(alloc::vec![
            Entry::tool_call("call_0", "t", "1"),
            Entry::user("aborted"),
            Entry::tool_call("call_0", "t", "2"),
            Entry::tool_result("call_0", "r2"),
            Entry::tool_call("", "t", "x"),
            Entry::tool_call("", "t", "y"),
            Entry::tool_result("", "rx"),
            Entry::tool_result("", "ry"),
            Entry::tool_result("nobody", "?"),
        ]);
        assert_eq!(columns.pair(0), NONE);
        assert_eq!(columns.pair(2), 3);
        assert_eq!((columns.pair(4), columns.pair(5)), (6, 7));
        assert_eq!(columns.orphans(), [8]);
    }

    #[test]
    fn a_late_result_stays_in_its_calls_group() {
        let columns = columns(alloc::vec![
            Entry::tool_call("a", "t", "{}"),
            Entry::user("are you there?"),
            Entry::tool_result("a", "yes"),
            Entry::assistant("ok"),
        ]);
        assert_eq!(columns.members(0).collect::<Vec<_>>(), [0, 2]);
        assert_eq!(columns.members(1).collect::<Vec<_>>(), [1]);
        assert_eq!(columns.late_results().len(), 1);
    }
}
