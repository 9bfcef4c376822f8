//! Which repository is asked for what of a transaction.

use muesli_core::parts::locator::Static;
use muesli_core::parts::transaction::TransactionSets;
use muesli_core::ranges::KeyRange;
use muesli_core::{Catalog, RepositoryId};
use smallvec::SmallVec;

use crate::two_phase::Variant;
use crate::two_phase::coordinator::delays::Delays;
use crate::two_phase::message::Prepare;

/// Something for each of a transaction's participants, by ascending repository.
pub(super) type Parts<T> = SmallVec<[(RepositoryId, T); 2]>;

/// A transaction's part for each repository that holds a key it read, wrote, or could have seen
/// in a scan.
pub(super) fn divide<V: Variant>(
    sets: &TransactionSets,
    delays: &Delays,
    empty: &Prepare<V>,
    catalog: &Catalog,
) -> Parts<Prepare<V>> {
    let mut parts = Parts::new();
    if V::POLICIES.participation.is_all() {
        let all = (0..catalog.repositories() as u16).map(RepositoryId);
        parts.extend(all.map(|repository| (repository, empty.clone())));
    }
    for read in &sets.reads {
        for replica in Static.replicas_of(catalog.partition(read.space, &read.key), catalog) {
            let part = part_of(&mut parts, replica, empty);
            part.reads.push((read.space, read.key.clone(), read.version));
        }
    }
    for write in &sets.writes {
        for replica in Static.replicas_of(catalog.partition(write.space, &write.key), catalog) {
            let part = part_of(&mut parts, replica, empty);
            part.writes.push((write.space, write.key.clone(), write.value.clone()));
        }
    }
    if !delays.is_empty() {
        divide_delays(&mut parts, delays, empty, catalog);
    }
    divide_scans(&mut parts, &sets.scans, empty, catalog);
    let all = catalog.repositories();
    assert!(
        !V::POLICIES.participation.is_all() || parts.len() == all,
        "{} of {all} take part",
        parts.len()
    );
    assert!(parts.windows(2).all(|pair| pair[0].0 < pair[1].0), "a part for each repository");
    parts
}

/// Ranges, for each repository where static placement puts a key of them.
pub(super) fn divide_scans<V: Variant>(
    parts: &mut Parts<Prepare<V>>,
    scans: &[KeyRange],
    empty: &Prepare<V>,
    catalog: &Catalog,
) {
    for range in scans {
        let partitions = catalog.partitions_of_range(range.space, &range.lo, range.hi.as_ref());
        let mut holders: Vec<_> = partitions.flat_map(|p| Static.replicas_of(p, catalog)).collect();
        holders.sort();
        holders.dedup();
        for holder in holders {
            part_of(parts, holder, empty).scans.push(range.clone());
        }
    }
}

/// What is left to the turn, for each repository that does it.
#[cold]
fn divide_delays<V: Variant>(
    parts: &mut Parts<Prepare<V>>,
    delays: &Delays,
    empty: &Prepare<V>,
    catalog: &Catalog,
) {
    let mut asked = delays.asked.iter().peekable();
    for (count, (space, key, action)) in delays.actions.iter().enumerate() {
        let number = asked.next_if(|(place, _)| *place == count).map(|(_, number)| *number);
        for replica in Static.replicas_of(catalog.partition(*space, key), catalog) {
            let part = part_of(parts, replica, empty);
            if let Some(number) = number {
                let place = part.delayed.len() as u32;
                part.extra.get_or_insert_default().asked.push((place, number));
            }
            if delays.result_bytes > 0 {
                part.extra.get_or_insert_default().result_bytes = delays.result_bytes;
            }
            part.delayed.push((*space, key.clone(), action.clone()));
        }
    }
    assert!(asked.next().is_none(), "an answer is asked for of an action that there is not");
    for (call, number) in &delays.calls {
        for replica in Static.replicas_of(call.partition, catalog) {
            let part = part_of(parts, replica, empty);
            let before = part.delayed.len();
            let extra = part.extra.get_or_insert_default();
            let place = (before + extra.calls.len()) as u32;
            extra.asked.extend(number.map(|number| (place, number)));
            extra.calls.push(call.clone());
        }
    }
}

/// The part of `repository`, made from `empty` if there is none.
pub(super) fn part_of<'a, V: Variant>(
    parts: &'a mut Parts<Prepare<V>>,
    repository: RepositoryId,
    empty: &Prepare<V>,
) -> &'a mut Prepare<V> {
    let place = match parts.binary_search_by_key(&repository, |(id, _)| *id) {
        Ok(place) => place,
        Err(place) => {
            parts.insert(place, (repository, empty.clone()));
            place
        }
    };
    &mut parts[place].1
}
