//! The keys of a range as a repository knows them: with versions, or with pointers to where they
//! went, or both.

use muesli_core::parts::versions::{Handle, Versions};
use muesli_core::ranges::KeyRange;
use muesli_core::{Catalog, RepositoryId, SmallBytes, Timestamp};

use super::Whereabouts;

/// A key of a range.
#[derive(Clone, Copy, Debug)]
pub(in crate::two_phase) struct RangeEntry<'a> {
    /// The key.
    pub key: &'a SmallBytes,
    /// Its entry, if it has versions here or a lock.
    pub handle: Option<Handle>,
    /// Where it went, and when, if it did.
    pub moved: Option<(RepositoryId, Timestamp)>,
}

/// The keys of a range in order, or from its end backwards.
pub(in crate::two_phase) fn range_entries<'a>(
    versions: &'a Versions,
    whereabouts: &'a Whereabouts,
    range: &'a KeyRange,
    reverse: bool,
    catalog: &'a Catalog,
) -> impl Iterator<Item = RangeEntry<'a>> {
    let KeyRange { space, lo, hi } = range;
    let mut here = versions.range(lo, hi.as_ref());
    let mut gone = whereabouts.moved_in(*space, (lo, hi.as_ref()), catalog);
    let (mut next_here, mut next_gone) = (None, None);
    std::iter::from_fn(move || {
        if next_here.is_none() {
            next_here = if reverse { here.next_back() } else { here.next() };
        }
        if next_gone.is_none() {
            next_gone = if reverse { gone.next_back() } else { gone.next() };
        }
        let is_first = |one: &SmallBytes, other: &SmallBytes| match reverse {
            true => one >= other,
            false => one <= other,
        };
        let first = match (next_here, next_gone) {
            (Some((one, _)), Some((other, _))) if is_first(one, other) => one,
            (Some((one, _)), None) => one,
            (_, Some((other, _))) => other,
            (None, None) => return None,
        };
        let handle = next_here.take_if(|(key, _)| *key == first).map(|(_, handle)| handle);
        let moved = next_gone.take_if(|(key, _)| *key == first).map(|(_, moved)| moved);
        Some(RangeEntry { key: first, handle, moved })
    })
}
