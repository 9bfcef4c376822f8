//! Pages of ranges, and absences, as a snapshot sees them.

use muesli_core::limits::{Limits, write_bytes};
use muesli_core::parts::versions::{Handle, Versions};
use muesli_core::{KeyRange, SmallBytes, Timestamp};

use crate::certified::message::FoundKey;

/// Rows of a range, and up to where it was seen; `None`: to its end.
pub type FoundPage = (Vec<(SmallBytes, FoundKey)>, Option<SmallBytes>);

/// A page of a range, of which `version` says what a snapshot sees of an entry.
pub fn page(
    store: &Versions,
    (range, reverse, limit): (&KeyRange, bool, u64),
    limits: &Limits,
    version: impl Fn(&SmallBytes, Handle) -> FoundKey,
) -> FoundPage {
    let ordered = store.range(&range.lo, range.hi.as_ref());
    let mut ordered: Box<dyn Iterator<Item = (&SmallBytes, Handle)>> =
        if reverse { Box::new(ordered.rev()) } else { Box::new(ordered) };
    let (mut rows, mut seen_to) = (Vec::new(), None);
    let (mut live, mut looked, mut bytes) = (0, 0, 0);
    for (key, handle) in ordered.by_ref() {
        let one = version(key, handle);
        live += u64::from(one.value.is_some());
        looked += 1;
        bytes += write_bytes(key, one.value.as_ref());
        if one.recorded() != Timestamp::ZERO {
            rows.push((key.clone(), one));
        }
        if live >= limit || looked >= limits.page_rows || bytes >= limits.page_bytes {
            seen_to = Some(key.clone());
            break;
        }
    }
    if ordered.next().is_none() {
        seen_to = None;
    }
    add_collected(&mut rows, store, &range.seen(reverse, seen_to.as_ref()), reverse);
    (rows, seen_to)
}

/// For histories: the deletions that were collected in what was seen of a range.
fn add_collected(
    rows: &mut Vec<(SmallBytes, FoundKey)>,
    store: &Versions,
    seen: &KeyRange,
    reverse: bool,
) {
    let collected = store.collected_in(&seen.lo, seen.hi.as_ref(), Timestamp::MAX);
    let unseen = collected.filter(|(key, _)| store.find(key).is_none());
    let before = rows.len();
    rows.extend(
        unseen.map(|(key, collected)| (key.clone(), FoundKey { collected, ..FoundKey::ABSENT })),
    );
    if rows.len() > before {
        rows.sort_by(|(a, _), (b, _)| if reverse { b.cmp(a) } else { a.cmp(b) });
    }
}

/// Where a snapshot sees no version of a key; for histories, with the deletion that it sees.
pub fn absent(store: &Versions, key: &SmallBytes, upto: Timestamp) -> FoundKey {
    FoundKey { collected: store.collected(key, upto), ..FoundKey::ABSENT }
}
