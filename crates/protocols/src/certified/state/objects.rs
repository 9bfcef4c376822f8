//! What a site remembers of objects: the same at all sites, wherever the same commands of an object
//! are applied.

use std::collections::BTreeMap;

use muesli_core::wire_struct;

/// What is remembered of an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObjectMemory {
    /// The counter of its last version.
    pub last: u64,
    /// How many keys of it, or within it, were deleted.
    pub deletions: u64,
}

wire_struct!(ObjectMemory { last: u64, deletions: u64 });

/// The objects that were ever written, a bounded number for keys and for the ranges of each space.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertifiedObjects {
    objects: BTreeMap<u64, ObjectMemory>,
}

impl CertifiedObjects {
    /// What is remembered of an object.
    pub fn of(&self, object: u64) -> ObjectMemory {
        self.objects.get(&object).copied().unwrap_or_default()
    }

    /// A version of a key of it was made.
    pub fn write(&mut self, object: u64, counter: u64) {
        let memory = self.objects.entry(object).or_default();
        assert!(counter >= memory.last, "counter {counter} after {}", memory.last);
        memory.last = counter;
    }

    /// A key of it, or within it, was deleted.
    pub fn delete(&mut self, object: u64) {
        self.objects.entry(object).or_default().deletions += 1;
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (u64, ObjectMemory)> + '_ {
        self.objects.iter().map(|(object, memory)| (*object, *memory))
    }

    /// Takes one back, from a checkpoint.
    pub fn restore(&mut self, object: u64, memory: ObjectMemory) {
        self.objects.insert(object, memory);
    }
}
