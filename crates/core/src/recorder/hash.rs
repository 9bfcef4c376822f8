//! Values of histories are told apart by their hashes.

use std::hash::BuildHasher;

use crate::bytes::SmallBytes;

/// The hash of a value as histories carry it: 53 bits, so that every JSON reader keeps it whole.
pub fn value_hash(value: &SmallBytes) -> u64 {
    foldhash::fast::FixedState::with_seed(0x4d75_6573).hash_one(value) >> 11
}
