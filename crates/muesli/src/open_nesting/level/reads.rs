//! What transactions have read and what they found, for whoever waits for a change of it.
//!
//! An attempt that asks for a retry would do so again as long as all that it went by is as it was.
//! So for each key and each range the notes say what was found; when all is undone that the attempt
//! and its children did, [`is_found_again`](ReadNotes::is_found_again) says whether the same is
//! there.
//!
//! What an attempt finds of its own (a child reads what one before it has committed) follows from
//! the rest, as long as nobody else has written it: of that nothing is compared.

use std::collections::{BTreeMap, BTreeSet};

use muesli_core::{Row, Scan, SmallBytes, SpaceId};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

pub(in crate::open_nesting) type SpaceKey = (SpaceId, SmallBytes);

/// A value, or rows, of which no more is to be known than whether others are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::open_nesting) struct FoundDigest(u128);

impl FoundDigest {
    pub fn of_value(value: Option<&SmallBytes>) -> FoundDigest {
        let mut hash = Xxh3::new();
        if let Some(value) = value {
            hash.update(&[1]);
            hash.update(value.as_slice());
        }
        FoundDigest(hash.digest128())
    }

    fn of_rows<'a>(rows: impl Iterator<Item = &'a Row>) -> FoundDigest {
        let mut hash = Xxh3::new();
        for (key, value) in rows {
            for part in [key, value] {
                hash.update(&(part.len() as u64).to_le_bytes());
                hash.update(part.as_slice());
            }
        }
        FoundDigest(hash.digest128())
    }
}

/// So many finds of one range are told apart at most.
const RANGE_NOTES: usize = 8;

/// What an attempt wrote to a key last; `None`: that is not known here.
pub(in crate::open_nesting) type OwnValue = Option<FoundDigest>;

/// What was found of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyFound {
    /// Not answered yet, or never.
    Asked,
    /// What the attempt itself had written.
    Own,
    /// What others had written, the same each time.
    Same(FoundDigest),
    /// Now this and now that, or what others have made of what the attempt had written.
    Mixed,
}

impl KeyFound {
    fn of(value: Option<&SmallBytes>, own: Option<OwnValue>) -> KeyFound {
        let digest = FoundDigest::of_value(value);
        match own {
            None => KeyFound::Same(digest),
            Some(own) if own == Some(digest) => KeyFound::Own,
            Some(_) => KeyFound::Mixed,
        }
    }

    /// Both were found, one after the other.
    fn and(self, other: KeyFound) -> KeyFound {
        match (self, other) {
            (KeyFound::Asked | KeyFound::Own, it) | (it, KeyFound::Asked | KeyFound::Own) => it,
            (one, other) if one == other => one,
            _ => KeyFound::Mixed,
        }
    }
}

/// What was found in a range.
#[derive(Clone, Debug, PartialEq, Eq)]
enum RangeFound {
    Asked,
    /// These rows, and beside them what the attempt itself had written to some keys.
    Same(FoundDigest, BTreeSet<SmallBytes>),
    /// Others have written to these, too, or the range was cut where it has such.
    Mixed,
}

impl RangeFound {
    fn of(scan: &Scan, rows: &[Row], own: &BTreeMap<SmallBytes, OwnValue>) -> RangeFound {
        let found: BTreeMap<&SmallBytes, &SmallBytes> = match own.is_empty() {
            true => BTreeMap::new(),
            false => rows.iter().map(|(key, value)| (key, value)).collect(),
        };
        let is_own = |(key, value): (&SmallBytes, &OwnValue)| {
            *value == Some(FoundDigest::of_value(found.get(key).copied()))
        };
        let is_cut = !own.is_empty() && rows.len() >= scan.limit;
        if is_cut || !own.iter().all(is_own) {
            return RangeFound::Mixed;
        }
        let others = rows.iter().filter(|(key, _)| !own.contains_key(key));
        RangeFound::Same(FoundDigest::of_rows(others), own.keys().cloned().collect())
    }

    /// Whether these rows are the same to who found this.
    fn is(&self, scan: &Scan, rows: &[Row]) -> bool {
        let RangeFound::Same(digest, own) = self else { return false };
        let is_cut = !own.is_empty() && rows.len() >= scan.limit;
        let others = rows.iter().filter(|(key, _)| !own.contains(key));
        !is_cut && *digest == FoundDigest::of_rows(others)
    }
}

/// What was read: keys and ranges of them.
#[derive(Clone, Debug, Default)]
pub(in crate::open_nesting) struct ReadNotes {
    keys: BTreeMap<SpaceKey, KeyFound>,
    scans: Vec<(Scan, RangeFound)>,
}

impl ReadNotes {
    /// A key is asked for.
    pub fn ask(&mut self, key: SpaceKey) {
        self.keys.entry(key).or_insert(KeyFound::Asked);
    }

    /// A range is asked for.
    pub fn ask_range(&mut self, scan: &Scan) {
        self.add_range(scan.clone(), RangeFound::Asked);
    }

    /// A key was asked for and has this value; with what the attempt wrote to it, if it did.
    pub fn found(&mut self, key: SpaceKey, value: Option<&SmallBytes>, own: Option<OwnValue>) {
        self.add_key(key, KeyFound::of(value, own));
    }

    /// A range was asked for and has these rows; with what the attempt wrote within it.
    pub fn found_range(&mut self, scan: &Scan, rows: &[Row], own: &BTreeMap<SmallBytes, OwnValue>) {
        let asked = |(of, found): &(Scan, RangeFound)| of == scan && *found == RangeFound::Asked;
        if let Some(place) = self.scans.iter().position(asked) {
            self.scans.swap_remove(place);
        }
        self.add_range(scan.clone(), RangeFound::of(scan, rows, own));
    }

    fn add_key(&mut self, key: SpaceKey, found: KeyFound) {
        let known = self.keys.entry(key).or_insert(KeyFound::Asked);
        *known = known.and(found);
    }

    /// Rows that differ where the attempt has written the same can never both be found again.
    fn add_range(&mut self, scan: Scan, found: RangeFound) {
        let of_scan = |(of, _): &&(Scan, RangeFound)| *of == scan;
        let known: Vec<&RangeFound> = self.scans.iter().filter(of_scan).map(|it| &it.1).collect();
        if known.contains(&&found) || known.contains(&&RangeFound::Mixed) {
            return;
        }
        let differs = known.iter().any(|known| match (known, &found) {
            (RangeFound::Same(_, own), RangeFound::Same(_, other)) => own == other,
            _ => false,
        });
        let is_mixed = differs || found == RangeFound::Mixed || known.len() >= RANGE_NOTES;
        if is_mixed {
            self.scans.retain(|(of, _)| *of != scan);
        }
        self.scans.push((scan, if is_mixed { RangeFound::Mixed } else { found }));
    }

    /// So was this.
    pub fn append(&mut self, other: ReadNotes) {
        other.keys.into_iter().for_each(|(key, found)| self.add_key(key, found));
        other.scans.into_iter().for_each(|(scan, found)| self.add_range(scan, found));
    }

    pub fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.scans.is_empty()
    }

    /// The keys that were asked for.
    pub fn keys(&self) -> impl Iterator<Item = &SpaceKey> {
        self.keys.keys()
    }

    /// Whether this key was asked for.
    pub fn has_key(&self, key: &SpaceKey) -> bool {
        self.keys.contains_key(key)
    }

    /// Whether a range was asked for that this key is in.
    pub fn has_around(&self, key: &SpaceKey) -> bool {
        self.scans.iter().any(|(scan, _)| covers(scan, key))
    }

    /// Whether it can be told if the same is there: what was found is one thing.
    pub fn can_be_compared(&self) -> bool {
        let keys = || self.keys.values().all(|it| matches!(it, KeyFound::Own | KeyFound::Same(_)));
        keys() && self.scans.iter().all(|(_, found)| matches!(found, RangeFound::Same(..)))
    }

    /// The keys of which somebody else's value was found, by their spaces.
    pub fn keys_of_others(&self) -> BTreeMap<SpaceId, Vec<SmallBytes>> {
        let mut by_space = BTreeMap::<SpaceId, Vec<SmallBytes>>::new();
        for ((space, key), found) in &self.keys {
            if *found != KeyFound::Own {
                by_space.entry(*space).or_default().push(key.clone());
            }
        }
        by_space
    }

    /// The ranges, each once.
    pub fn scans(&self) -> Vec<&Scan> {
        let mut scans: Vec<&Scan> = Vec::new();
        for (scan, _) in &self.scans {
            if !scans.contains(&scan) {
                scans.push(scan);
            }
        }
        scans
    }

    /// Whether a key has the value that was found.
    pub fn is_found_again(&self, key: &SpaceKey, value: Option<&SmallBytes>) -> bool {
        self.keys.get(key) == Some(&KeyFound::Same(FoundDigest::of_value(value)))
    }

    /// Whether a range has the rows that were found, each time.
    pub fn is_range_found_again(&self, scan: &Scan, rows: &[Row]) -> bool {
        let mut of = self.scans.iter().filter(|(of, _)| of == scan);
        of.all(|(_, found)| found.is(scan, rows))
    }
}

/// Whether a key is in a range.
pub(super) fn covers(scan: &Scan, (space, key): &SpaceKey) -> bool {
    let below = scan.hi.as_ref().is_none_or(|hi| key < hi);
    scan.space == *space && scan.lo <= *key && below
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> SpaceKey {
        (SpaceId(1), name.into())
    }

    fn value(name: &str) -> Option<SmallBytes> {
        (!name.is_empty()).then(|| name.into())
    }

    fn rows(all: &[(&str, &str)]) -> Vec<Row> {
        all.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect()
    }

    fn scan(limit: usize) -> Scan {
        let (lo, hi) = ("a".into(), Some("n".into()));
        Scan { space: SpaceId(1), lo, hi, reverse: false, limit }
    }

    fn wrote(name: &str) -> OwnValue {
        Some(FoundDigest::of_value(value(name).as_ref()))
    }

    /// What was found of a key one after the other, with what the attempt itself had written; and
    /// what is there when all is undone.
    #[test]
    fn a_key_is_found_again_where_others_have_left_it_as_it_was() {
        type Reads<'a> = &'a [(&'a str, Option<OwnValue>)];
        let cases: [(Reads<'_>, &str, bool); 8] = [
            (&[("1", None)], "1", true),
            (&[("1", None)], "2", false),
            (&[("1", None)], "", false),
            (&[("", None)], "", true),
            (&[("1", None), ("2", Some(wrote("2")))], "1", true),
            (&[("1", None), ("2", None)], "1", false),
            (&[("1", None), ("3", Some(wrote("2")))], "1", false),
            (&[("2", Some(None))], "2", false),
        ];
        for (reads, there, again) in cases {
            let mut notes = ReadNotes::default();
            for (found, own) in reads {
                notes.ask(key("k"));
                notes.found(key("k"), value(found).as_ref(), *own);
            }
            let same = notes.is_found_again(&key("k"), value(there).as_ref());
            assert_eq!(notes.can_be_compared() && same, again, "{reads:?}, then `{there}`");
        }
    }

    #[test]
    fn a_key_that_was_written_and_then_read_is_nobody_elses() {
        let mut notes = ReadNotes::default();
        notes.found(key("k"), value("2").as_ref(), Some(wrote("2")));
        assert!(notes.can_be_compared());
        assert!(notes.keys_of_others().is_empty());
    }

    #[test]
    fn what_was_asked_and_not_answered_cannot_be_compared() {
        let mut notes = ReadNotes::default();
        notes.ask(key("k"));
        assert!(!notes.can_be_compared());
        let mut notes = ReadNotes::default();
        notes.ask_range(&scan(9));
        assert!(!notes.can_be_compared());
        notes.found_range(&scan(9), &[], &BTreeMap::new());
        assert!(notes.can_be_compared());
    }

    /// The rows that were found, those of them that the attempt has written itself, what is there
    /// when all is undone, and whether that is the same to it.
    #[test]
    fn a_range_is_found_again_but_for_what_the_attempt_has_written_itself() {
        type Rows<'a> = &'a [(&'a str, &'a str)];
        let cases: [(Rows<'_>, Rows<'_>, Rows<'_>, bool); 8] = [
            (&[("b", "1")], &[], &[("b", "1")], true),
            (&[("b", "1")], &[], &[("b", "2")], false),
            (&[("b", "1")], &[], &[("b", "1"), ("c", "1")], false),
            (&[("b", "1"), ("c", "5")], &[("c", "5")], &[("b", "1")], true),
            (&[("b", "1"), ("c", "5")], &[("c", "5")], &[("b", "1"), ("c", "3")], true),
            (&[("b", "1")], &[("c", "")], &[("b", "1"), ("c", "3")], true),
            (&[("b", "1"), ("c", "6")], &[("c", "5")], &[("b", "1")], false),
            (&[("b", "1")], &[("c", "5")], &[("b", "1")], false),
        ];
        for (found, own, there, again) in cases {
            let mut notes = ReadNotes::default();
            let own = own.iter().map(|(key, value)| ((*key).into(), wrote(value))).collect();
            notes.found_range(&scan(9), &rows(found), &own);
            let same = notes.is_range_found_again(&scan(9), &rows(there));
            assert_eq!(notes.can_be_compared() && same, again, "{found:?}, then {there:?}");
        }
    }

    /// Which rows a range that was cut would have had without those of the attempt is not known.
    #[test]
    fn a_range_that_was_cut_where_the_attempt_has_written_cannot_be_compared() {
        let own = BTreeMap::from([("c".into(), wrote("5"))]);
        let found = rows(&[("b", "1"), ("c", "5")]);
        let mut notes = ReadNotes::default();
        notes.found_range(&scan(2), &found, &own);
        assert!(!notes.can_be_compared());
        let mut notes = ReadNotes::default();
        notes.found_range(&scan(3), &found, &own);
        let there = rows(&[("b", "1"), ("d", "1"), ("e", "1")]);
        assert!(!notes.is_range_found_again(&scan(3), &there), "it may have been cut now");
        let mut notes = ReadNotes::default();
        notes.found_range(&scan(2), &found, &BTreeMap::new());
        assert!(notes.is_range_found_again(&scan(2), &found));
    }

    #[test]
    fn notes_that_are_put_together_are_as_if_made_by_one() {
        let mut notes = ReadNotes::default();
        notes.found(key("k"), value("1").as_ref(), None);
        let mut other = ReadNotes::default();
        other.found(key("k"), value("2").as_ref(), None);
        other.found(key("l"), value("2").as_ref(), None);
        notes.append(other.clone());
        assert!(!notes.can_be_compared());
        let mut ranges = ReadNotes::default();
        for value in 0..100 {
            let rows = rows(&[("b", &value.to_string())]);
            ranges.ask_range(&scan(9));
            ranges.found_range(&scan(9), &rows, &BTreeMap::new());
        }
        assert_eq!((ranges.scans.len(), ranges.can_be_compared()), (1, false));
        let mut same = other.clone();
        same.append(other);
        assert!(same.is_found_again(&key("k"), value("2").as_ref()) && same.can_be_compared());
    }
}
