//! Which repository is asked for what of a transaction, where keys move.
//!
//! What is read is validated where it was read. What is written is locked at its owner; where it
//! moves, its new owner has its lock as well, and the value. A key that is deleted is locked at its
//! owner alone, which gives it back to its directory once it is.

use muesli_core::parts::transaction::TransactionSets;
use muesli_core::{Catalog, RepositoryId, SmallBytes, SpaceId};

use super::divide::{Parts, divide_scans, part_of};
use crate::two_phase::Variant;
use crate::two_phase::message::Prepare;
use crate::two_phase::message::moves::{ArrivingWrite, LeavingWrite};

/// A transaction's part for each repository that has a key it read or wrote, or comes to have one,
/// or could have seen one in a scan.
pub(super) fn divide_by_owner<V: Variant>(
    sets: &TransactionSets,
    owner: impl Fn(SpaceId, &SmallBytes) -> RepositoryId,
    new_owner: Option<RepositoryId>,
    empty: &Prepare<V>,
    catalog: &Catalog,
) -> Parts<Prepare<V>> {
    let mut parts = Parts::new();
    for read in &sets.reads {
        let part = part_of(&mut parts, read.repository, empty);
        part.reads.push((read.space, read.key.clone(), read.version));
    }
    let last_reads = sets.last_reads();
    for write in &sets.writes {
        let (space, key) = (write.space, &write.key);
        let read = last_reads.find(space, key);
        let from = read.map_or_else(|| owner(space, key), |read| read.repository);
        let to = new_owner.filter(|_| write.value.is_some()).unwrap_or(from);
        let whole = (space, key.clone(), write.value.clone());
        if to == from {
            part_of(&mut parts, from, empty).writes.push(whole);
            continue;
        }
        let leaving = part_of(&mut parts, from, empty);
        let place = leaving.writes.len() as u32;
        leaving.writes.push((space, key.clone(), None));
        leaving.leaving.push(LeavingWrite { place, to });
        let arriving = part_of(&mut parts, to, empty);
        let place = arriving.writes.len() as u32;
        arriving.writes.push(whole);
        arriving.arriving.push(ArrivingWrite { place, from });
    }
    divide_scans(&mut parts, &sets.scans, empty, catalog);
    assert!(parts.windows(2).all(|pair| pair[0].0 < pair[1].0), "a part for each repository");
    let (leave, arrive) = parts.iter().fold((0, 0), |(leave, arrive), (_, part)| {
        (leave + part.leaving.len(), arrive + part.arriving.len())
    });
    assert_eq!(leave, arrive, "what leaves arrives");
    parts
}
