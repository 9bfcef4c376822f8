//! The objects of a command, by which commands conflict.
//!
//! An object is a number; what it stands for is the user's affair: a key by its hash, or a part of
//! a space. Who reads a range reads the part of the space that it lies in, and who writes a key
//! there [writes within](ObjectAccess::WriteWithin) that part: such writes are in each other's way
//! only where they write the same key, and all of them are in the way of the range.
//!
//! What changes the group itself touches [everything](ObjectSet::everything). It conflicts with
//! each other command, with those that touch no object, too.

use muesli_core::wire::{Reader, Wire, WireError};
use muesli_core::{wire_enum, wire_struct};

/// What a command does with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectAccess {
    /// Reads it.
    Read,
    /// Writes something of it that is an object of its own.
    WriteWithin,
    /// Writes it.
    Write,
}

impl ObjectAccess {
    /// All of them.
    pub const ALL: [ObjectAccess; 3] =
        [ObjectAccess::Read, ObjectAccess::WriteWithin, ObjectAccess::Write];

    /// Whether it matters which of two comes first.
    pub fn conflicts_with(self, other: ObjectAccess) -> bool {
        match (self, other) {
            (ObjectAccess::Read, ObjectAccess::Read)
            | (ObjectAccess::WriteWithin, ObjectAccess::WriteWithin) => false,
            (ObjectAccess::Write, _) | (_, ObjectAccess::Write) => true,
            (ObjectAccess::Read, ObjectAccess::WriteWithin)
            | (ObjectAccess::WriteWithin, ObjectAccess::Read) => true,
        }
    }

    /// What stands for both.
    fn and(self, other: ObjectAccess) -> ObjectAccess {
        if self == other { self } else { ObjectAccess::Write }
    }
}

/// An object, and what is done with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TouchedObject {
    /// Its number.
    pub number: u64,
    /// What is done with it.
    pub access: ObjectAccess,
}

/// What commands are found by that are in each other's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Touchable {
    /// All that there is: each command writes within it, and who touches everything writes it.
    Group,
    /// An object.
    Object(u64),
}

/// All objects of a command.
///
/// Invariants: they are in the order of their numbers, each there once; who touches everything
/// names none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ObjectSet {
    objects: Vec<TouchedObject>,
    everything: bool,
}

impl ObjectSet {
    /// These objects; what is named twice is there with what stands for both.
    pub fn new(objects: impl IntoIterator<Item = TouchedObject>) -> ObjectSet {
        let mut objects: Vec<TouchedObject> = objects.into_iter().collect();
        objects.sort_unstable();
        objects.dedup_by(|again, first| {
            let is_same = again.number == first.number;
            if is_same {
                first.access = first.access.and(again.access);
            }
            is_same
        });
        ObjectSet { objects, everything: false }
    }

    /// Everything: it conflicts with each other command.
    pub fn everything() -> ObjectSet {
        ObjectSet { objects: Vec::new(), everything: true }
    }

    /// Whether it is everything.
    pub fn is_everything(&self) -> bool {
        self.everything
    }

    /// Objects that are written, by their numbers.
    pub fn writes(numbers: impl IntoIterator<Item = u64>) -> ObjectSet {
        ObjectSet::new(
            numbers.into_iter().map(|number| TouchedObject { number, access: ObjectAccess::Write }),
        )
    }

    /// All of them, in the order of their numbers.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = TouchedObject> + '_ {
        self.objects.iter().copied()
    }

    /// By what its command is found by others, and what it does there.
    pub(crate) fn touched(&self) -> impl Iterator<Item = (Touchable, ObjectAccess)> + '_ {
        let group = match self.everything {
            true => ObjectAccess::Write,
            false => ObjectAccess::WriteWithin,
        };
        let objects = self.objects.iter().map(|it| (Touchable::Object(it.number), it.access));
        std::iter::once((Touchable::Group, group)).chain(objects)
    }

    /// How many objects are named.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether none is named: unless it is everything, it conflicts with nothing but that.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Whether an object is in both that makes it matter which of the two comes first, or one of
    /// them is everything.
    pub fn conflicts_with(&self, other: &ObjectSet) -> bool {
        if self.everything || other.everything {
            return true;
        }
        let (mut ours, mut theirs) = (self.objects.as_slice(), other.objects.as_slice());
        while let ([a, rest_of_ours @ ..], [b, rest_of_theirs @ ..]) = (ours, theirs) {
            if a.number == b.number && a.access.conflicts_with(b.access) {
                return true;
            }
            if a.number <= b.number {
                ours = rest_of_ours;
            }
            if b.number <= a.number {
                theirs = rest_of_theirs;
            }
        }
        false
    }
}

wire_enum!(ObjectAccess, "access" {
    0 => Read,
    1 => WriteWithin,
    2 => Write,
});
wire_struct!(TouchedObject { number: u64, access: ObjectAccess });

impl Wire for ObjectSet {
    const LEAST_BYTES: usize = 5;

    fn encode(&self, out: &mut Vec<u8>) {
        self.everything.encode(out);
        self.objects.encode(out);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, WireError> {
        let everything = bool::decode(input)?;
        let objects: Vec<TouchedObject> = Vec::decode(input)?;
        Ok(if everything { ObjectSet::everything() } else { ObjectSet::new(objects) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str) -> ObjectSet {
        ObjectSet::new(text.split_whitespace().map(|word| {
            let (access, number) = word.split_at(1);
            let access = match access {
                "r" => ObjectAccess::Read,
                "i" => ObjectAccess::WriteWithin,
                _ => ObjectAccess::Write,
            };
            TouchedObject { number: number.parse().unwrap(), access }
        }))
    }

    #[test]
    fn objects_conflict_by_what_is_done_with_them() {
        for (a, b, expected) in [
            ("r1", "r1", false),
            ("r1", "w1", true),
            ("w1", "w1", true),
            ("w1", "w2", false),
            ("i1", "i1", false),
            ("i1", "r1", true),
            ("i1", "w1", true),
            ("r1 w5 r9", "r2 r5 w9", true),
            ("r1 w5", "r2 w6", false),
            ("", "w1", false),
        ] {
            assert_eq!(set(a).conflicts_with(&set(b)), expected, "{a} and {b}");
            assert_eq!(set(b).conflicts_with(&set(a)), expected, "{b} and {a}");
        }
    }

    #[test]
    fn everything_conflicts_with_all_that_there_is() {
        let everything = ObjectSet::everything();
        for other in [set("r1"), set(""), set("i3 w4"), everything.clone()] {
            assert!(everything.conflicts_with(&other), "{other:?}");
            assert!(other.conflicts_with(&everything), "{other:?}");
        }
        let mut bytes = Vec::new();
        everything.encode(&mut bytes);
        assert_eq!(ObjectSet::decode_all(&bytes).unwrap(), everything);
    }

    #[test]
    fn what_is_named_twice_stands_for_both() {
        assert_eq!(set("r1 w1"), set("w1"));
        assert_eq!(set("r1 i1"), set("w1"));
        assert_eq!(set("r2 r1 r2"), set("r1 r2"));
    }
}
