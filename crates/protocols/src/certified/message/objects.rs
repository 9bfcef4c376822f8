//! The objects of a command: keys and ranges as numbers, so many at most.
//!
//! A key is one of [`KEY_OBJECTS`] objects, by its hash: two commands of different keys may be
//! ordered for nothing, and are certified by their keys all the same. A range is of one or all of
//! the [`RANGE_OBJECTS`] of its space, by the first bytes of its keys: who writes a key writes
//! within the object of these, and who reads a range reads those that it may lie in. A procedure
//! that may write more than keys that it names writes [`EVERYTHING`], within which all others are,
//! and so does a command of very many keys.

use std::ops::Range;
use std::sync::Arc;

use muesli_broadcast::{Command, ObjectAccess, ObjectSet, TouchedObject};
use muesli_core::parts::execution::{footprint, unknown};
use muesli_core::procedure::Touched;
use muesli_core::{Catalog, Index, KeyRange, Settings, SmallBytes, SpaceId, Stop};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::command::{CertifiedCommand, ReplicatedCall};

/// So many objects stand for all keys.
const KEY_OBJECTS: u64 = 1 << 16;
/// So many stand for the ranges of a space.
const RANGE_OBJECTS: u64 = 64;
/// All keys together.
pub const EVERYTHING: u64 = 1 << 48;
/// A command that touches more objects than these touches everything: that is one object, by which
/// it waits for more, and it costs members less.
const OBJECTS_MOST: usize = 128;
/// So many objects of a command are gathered at most, some perhaps twice, where it reads ranges.
const OBJECTS_GATHERED_MOST: usize = 1 << 20;
/// Objects of ranges begin here.
const RANGES: u64 = 1 << 32;
/// Ranges are told apart by so many bytes at the beginning of their keys.
const PREFIX_BYTES: usize = 4;

/// The object of a key.
pub fn key_object(space: SpaceId, key: &SmallBytes) -> u64 {
    xxh3_64_with_seed(key.as_slice(), u64::from(space.0)) % KEY_OBJECTS
}

/// The first object of the ranges of a space.
fn first_range_object(space: SpaceId) -> u64 {
    RANGES + u64::from(space.0) * RANGE_OBJECTS
}

/// The object of the ranges that hold a key and are told apart.
pub fn range_object(space: SpaceId, key: &SmallBytes) -> u64 {
    let bytes = key.as_slice();
    let prefix = &bytes[..bytes.len().min(PREFIX_BYTES)];
    first_range_object(space) + xxh3_64_with_seed(prefix, 1) % RANGE_OBJECTS
}

/// All objects that keys of a range may be within.
pub fn range_objects(range: &KeyRange) -> Range<u64> {
    let first = first_range_object(range.space);
    match has_one_prefix(range) {
        true => {
            let only = range_object(range.space, &range.lo);
            only..only + 1
        }
        false => first..first + RANGE_OBJECTS,
    }
}

/// Whether all keys of a range begin alike, for as long as that counts.
fn has_one_prefix(range: &KeyRange) -> bool {
    let (lo, Some(hi)) = (range.lo.as_slice(), range.hi.as_ref()) else { return false };
    let Some(prefix) = lo.get(..PREFIX_BYTES) else { return false };
    let hi = hi.as_slice();
    let next = u32::from_be_bytes(prefix.try_into().expect("four bytes")).checked_add(1);
    hi.starts_with(prefix) || next.is_some_and(|next| hi <= next.to_be_bytes().as_slice())
}

/// The objects of a command as they are gathered.
struct GatheredObjects<'a> {
    catalog: &'a Catalog,
    objects: Vec<TouchedObject>,
}

impl GatheredObjects<'_> {
    fn touch(&mut self, number: u64, access: ObjectAccess) {
        self.objects.push(TouchedObject { number, access });
    }

    fn read(&mut self, space: SpaceId, key: &SmallBytes) {
        self.touch(key_object(space, key), ObjectAccess::Read);
    }

    fn read_range(&mut self, range: &KeyRange) {
        range_objects(range).for_each(|number| self.touch(number, ObjectAccess::Read));
    }

    /// Writes of a space that has no order are within no range.
    fn write(&mut self, space: SpaceId, key: &SmallBytes) {
        self.touch(key_object(space, key), ObjectAccess::Write);
        if self.is_ordered(space) {
            self.touch(range_object(space, key), ObjectAccess::WriteWithin);
        }
    }

    fn is_ordered(&self, space: SpaceId) -> bool {
        let space = self.catalog.space(space);
        space.is_some_and(|space| space.options.index == Index::Ordered)
    }

    /// What a procedure declares; false: that it may write more than keys, or read all of a space
    /// without an order, of which no ranges are told apart.
    fn call(&mut self, call: &ReplicatedCall, settings: &Settings) -> Result<bool, Stop> {
        let known = settings.procedures.get(&call.procedure);
        let procedure = known.ok_or_else(|| unknown(&call.procedure, settings))?;
        let declared = footprint(procedure, self.catalog, &call.arguments)?;
        let Some(declared) = declared else { return Ok(false) };
        for read in &declared.reads {
            match read {
                Touched::Key(space, key) => self.read(*space, key),
                Touched::Range(space, ..) | Touched::Space(space) if !self.is_ordered(*space) => {
                    return Ok(false);
                }
                Touched::Range(space, lo, hi) => {
                    let (space, lo, hi) = (*space, lo.clone(), hi.clone());
                    self.read_range(&KeyRange { space, lo, hi });
                }
                Touched::Space(space) => {
                    let (space, lo) = (*space, SmallBytes::EMPTY);
                    self.read_range(&KeyRange { space, lo, hi: None });
                }
            }
        }
        for write in &declared.writes {
            match write {
                Touched::Key(space, key) => self.write(*space, key),
                Touched::Range(..) | Touched::Space(_) => return Ok(false),
            }
        }
        Ok(true)
    }
}

/// What a command touches that is made with a claim: keys that others only read it writes, so that
/// it has one place among all commands of each of them.
pub fn claimed_objects(objects: &ObjectSet) -> ObjectSet {
    let written = |it: TouchedObject| match it.number < KEY_OBJECTS {
        true => TouchedObject { access: ObjectAccess::Write, ..it },
        false => it,
    };
    ObjectSet::new(objects.iter().map(written))
}

/// The objects of the keys that a command has read.
pub fn read_key_objects(command: &CertifiedCommand) -> impl Iterator<Item = u64> + '_ {
    command.reads.iter().map(|read| key_object(read.space, &read.key))
}

/// The objects of the keys that a command writes, some perhaps twice.
pub fn written_key_objects(command: &CertifiedCommand) -> impl Iterator<Item = u64> + '_ {
    command.writes.iter().map(|(space, key, _)| key_object(*space, key))
}

/// Whether commands may touch everything. Where each object has an owner, they may not: all
/// commands would be of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WholeObject {
    /// They may.
    IsAnObject,
    /// They may not.
    IsNone,
}

/// What a cut says: it is no commit, and nothing else is of these bytes.
const CUT: &[u8] = b"cut";

/// A command that is in the way of all others, and does nothing.
pub fn cut() -> Command {
    let everything = TouchedObject { number: EVERYTHING, access: ObjectAccess::Write };
    let objects = Arc::new(ObjectSet::new(vec![everything]));
    Command { objects, payload: SmallBytes::new(CUT) }
}

/// Whether a command is a cut.
pub fn is_cut(command: &Command) -> bool {
    command.payload.as_slice() == CUT && command.objects == cut().objects
}

/// What a command touches.
///
/// # Errors
/// A procedure of it is not known, or what it touches is not.
pub fn objects_of(
    command: &CertifiedCommand,
    everything: WholeObject,
    (catalog, settings): (&Catalog, &Settings),
) -> Result<ObjectSet, Stop> {
    let mut all = GatheredObjects { catalog, objects: Vec::new() };
    command.reads.iter().for_each(|read| all.read(read.space, &read.key));
    let mut is_bounded = true;
    for range in &command.ranges {
        // Who writes keys of a space without an order is within no range of it.
        is_bounded &= all.is_ordered(range.within.space);
        if all.objects.len() > OBJECTS_GATHERED_MOST {
            break;
        }
        all.read_range(&range.within);
    }
    command.writes.iter().for_each(|(space, key, _)| all.write(*space, key));
    for call in &command.calls {
        is_bounded &= all.call(call, settings)?;
    }
    if all.objects.len() > OBJECTS_GATHERED_MOST && everything == WholeObject::IsNone {
        let text = format!("a transaction touches more than {OBJECTS_GATHERED_MOST} objects");
        return Err(Stop::Faulty(text));
    }
    match (everything, is_bounded) {
        (WholeObject::IsAnObject, true) if all.objects.len() > OBJECTS_MOST => {
            all.objects.clear();
            all.touch(EVERYTHING, ObjectAccess::Write);
        }
        (WholeObject::IsAnObject, true) => all.touch(EVERYTHING, ObjectAccess::WriteWithin),
        (WholeObject::IsAnObject, false) => all.touch(EVERYTHING, ObjectAccess::Write),
        (WholeObject::IsNone, true) => {}
        (WholeObject::IsNone, false) if command.calls.is_empty() => {
            let text = "under this protocol a transaction lists no space without an order: give \
                        it an ordered index, or list it in a transaction that says how stale it \
                        may be";
            return Err(Stop::Faulty(text.to_owned()));
        }
        (WholeObject::IsNone, false) => {
            let text = "under this protocol procedures declare which keys they write, and which \
                        keys and ranges they read (`touches`)";
            return Err(Stop::Faulty(text.to_owned()));
        }
    }
    Ok(ObjectSet::new(all.objects))
}

#[cfg(test)]
mod tests {
    use muesli_core::{NodeId, TxnId};

    use super::*;

    const SPACE: SpaceId = SpaceId(3);

    fn range(lo: &[u8], hi: Option<&[u8]>) -> KeyRange {
        KeyRange { space: SPACE, lo: SmallBytes::new(lo), hi: hi.map(SmallBytes::new) }
    }

    #[test]
    fn a_cut_is_in_the_way_of_all_others_and_is_no_commit() {
        let objects = vec![TouchedObject { number: EVERYTHING, access: ObjectAccess::WriteWithin }];
        let objects = Arc::new(ObjectSet::new(objects));
        let other = Command { objects, ..cut() };
        assert!(is_cut(&cut()) && !is_cut(&other) && cut().objects.conflicts_with(&other.objects));
        assert!(cut().objects.conflicts_with(&cut().objects));
        let commit = <CertifiedCommand as muesli_core::Wire>::decode_all(cut().payload.as_slice());
        assert!(commit.is_err(), "{commit:?}");
    }

    #[test]
    fn a_command_of_many_keys_is_in_the_way_of_all_others() {
        let catalog = Catalog::new(&[NodeId(0)], 1, &[NodeId(0)]).expect("a catalog");
        let command = |keys: std::ops::Range<u32>| CertifiedCommand {
            txn: TxnId::default(),
            after: 0,
            spaces: 0,
            reads: Vec::new(),
            ranges: Vec::new(),
            writes: keys.map(|key| (SPACE, SmallBytes::new(&key.to_be_bytes()), None)).collect(),
            calls: Vec::new(),
        };
        let settings = Settings::default();
        let objects = |keys, everything| {
            objects_of(&command(keys), everything, (&catalog, &settings)).expect("keys alone")
        };
        let (few, many) = (0..1, 1..1_000);
        let one = objects(few.clone(), WholeObject::IsAnObject);
        let all = objects(many.clone(), WholeObject::IsAnObject);
        assert!(all.len() == 1 && all.conflicts_with(&one));
        let owned = objects(many, WholeObject::IsNone);
        assert!(owned.len() > 900 && !owned.conflicts_with(&objects(few, WholeObject::IsNone)));
    }

    #[test]
    fn a_range_reads_the_object_of_each_key_inside() {
        let ranges = [
            range(b"", None),
            range(b"abcd", Some(b"abce")),
            range(b"abcd", Some(b"abcd\x07")),
            range(b"abcdx", Some(b"abcdy")),
            range(b"abcd", Some(b"abcf")),
            range(b"ab", Some(b"abcd")),
            range(b"\xff\xff\xff\xff", None),
        ];
        let keys = ["", "a", "ab", "abc", "abcd", "abcd\x05", "abcdx", "abcdxy", "abce", "b"];
        for range in &ranges {
            let objects = range_objects(range);
            let inside = keys.map(SmallBytes::from);
            let inside = inside.iter().filter(|key| range.contains(SPACE, key));
            for key in inside {
                assert!(objects.contains(&range_object(SPACE, key)), "{range:?} has {key:?}");
            }
        }
        let sizes = ranges.map(|range| range_objects(&range).count());
        assert_eq!(sizes, [64, 1, 1, 1, 64, 64, 64]);
    }
}
