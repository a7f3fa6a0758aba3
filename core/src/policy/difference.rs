//! Where two states over one record differ.

use core::cmp::Ordering;

use crate::{state::CompactionState, transcript::Columns};

/// The first group whose rendering differs between two states over one record.
///
/// A late result belongs to an earlier group than its neighbours, so the order of entries is not that of groups.
pub(super) fn first_difference(a: &CompactionState, b: &CompactionState, columns: &Columns) -> Option<usize> {
    let known = |index: &u32| (*index as usize) < columns.len();
    let records = differing(a.records(), b.records()).map(|record| record.place.index);
    let notes = differing(a.notes(), b.notes()).map(|note| note.from);
    records.chain(notes).filter(known).map(|index| columns.group(index as usize)).min()
}

/// What stands in only one of two sorted lists, without repetitions each; in one walk over both.
fn differing<'a, T: Ord>(mut a: &'a [T], mut b: &'a [T]) -> impl Iterator<Item = &'a T> {
    core::iter::from_fn(move || {
        loop {
            let (first, second) = (a.split_first(), b.split_first());
            let order = match (first, second) {
                (Some((first, _)), Some((second, _))) => first.cmp(second),
                (Some(_), None) => Ordering::Less,
                (None, _) => Ordering::Greater,
            };
            if order.is_le() {
                a = first.map(|(_, others)| others)?;
            }
            if order.is_ge() {
                b = second.map(|(_, others)| others)?;
            }
            match order {
                Ordering::Less => return first.map(|(one, _)| one),
                Ordering::Greater => return second.map(|(one, _)| one),
                Ordering::Equal => {}
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use alloc::{collections::BTreeSet, vec::Vec};

    use super::*;

    proptest::proptest! {
        #[test]
        fn what_differs_is_what_one_list_alone_has(a: BTreeSet<u8>, b: BTreeSet<u8>) {
            let lists = (a.iter().copied().collect::<Vec<_>>(), b.iter().copied().collect::<Vec<_>>());
            let only: Vec<u8> = differing(&lists.0, &lists.1).copied().collect();
            let expected: Vec<u8> = a.symmetric_difference(&b).copied().collect();
            proptest::prop_assert_eq!(only, expected);
        }
    }
}
