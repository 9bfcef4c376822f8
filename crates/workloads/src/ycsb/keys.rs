//! The names of records, and which numbers may be asked for.
//!
//! A key is `user` and the hash of the record's number, so that neighbours lie apart; where ranges
//! are read, it is the number itself with leading zeros. Inserts take consecutive numbers; a number
//! may be asked for when it and all smaller ones are known to be there.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use muesli::SmallBytes;

use crate::distribution::fnv_hash;

#[derive(Debug)]
pub(super) struct KeyChooser {
    ordered: bool,
    /// Names of the records that are there at first.
    names: Box<[SmallBytes]>,
    next: AtomicU64,
    /// All numbers below this are there.
    known: AtomicU64,
    /// Numbers above `known` that are there.
    ahead: Mutex<BTreeSet<u64>>,
}

impl KeyChooser {
    /// For `count` records at first.
    pub fn new(count: u64, ordered: bool) -> KeyChooser {
        KeyChooser {
            ordered,
            names: (0..count).map(|number| name(number, ordered)).collect(),
            next: AtomicU64::new(count),
            known: AtomicU64::new(count),
            ahead: Mutex::default(),
        }
    }

    /// The key of a record.
    pub fn name(&self, number: u64) -> SmallBytes {
        match self.names.get(number as usize) {
            Some(name) => name.clone(),
            None => name(number, self.ordered),
        }
    }

    /// How many records there are at first.
    pub fn first_count(&self) -> u64 {
        self.names.len() as u64
    }

    /// How many numbers may be asked for.
    pub fn known(&self) -> u64 {
        self.known.load(Ordering::Acquire)
    }

    /// How many numbers have been given out, those at first included.
    pub fn given_out(&self) -> u64 {
        self.next.load(Ordering::Acquire)
    }

    /// A number for an insert.
    pub fn take_number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::AcqRel)
    }

    /// The record with this number is there.
    pub fn acknowledge(&self, number: u64) {
        let mut ahead = self.lock();
        ahead.insert(number);
        let mut known = self.known.load(Ordering::Acquire);
        while ahead.remove(&known) {
            known += 1;
        }
        self.known.store(known, Ordering::Release);
    }

    /// Whether the record with this number must be there.
    pub fn is_acknowledged(&self, number: u64) -> bool {
        number < self.known() || self.lock().contains(&number)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn name(number: u64, ordered: bool) -> SmallBytes {
    let text =
        if ordered { format!("user{number:012}") } else { format!("user{}", fnv_hash(number)) };
    SmallBytes::from(&*text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_known_when_all_smaller_ones_are() {
        let keys = KeyChooser::new(3, false);
        assert_eq!([keys.take_number(), keys.take_number(), keys.take_number()], [3, 4, 5]);
        keys.acknowledge(5);
        keys.acknowledge(4);
        assert_eq!(
            (keys.known(), keys.is_acknowledged(3), keys.is_acknowledged(4)),
            (3, false, true)
        );
        keys.acknowledge(3);
        assert_eq!((keys.known(), keys.given_out()), (6, 6));
    }

    #[test]
    fn ordered_names_keep_the_order_of_numbers() {
        assert!(name(9, true) < name(10, true) && name(10, true) < name(11_111, true));
        assert!(name(u64::MAX, false).len() <= muesli_core::bytes::INLINE_MAX);
    }
}
