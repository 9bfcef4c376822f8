//! When something is to be done, so that what is not due costs nothing.

use std::collections::BTreeSet;

use muesli_core::Nanos;

/// Times, each of something.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct DueTimes<K: Ord> {
    by_time: BTreeSet<(Nanos, K)>,
}

impl<K: Ord + Copy> DueTimes<K> {
    pub fn new() -> DueTimes<K> {
        DueTimes { by_time: BTreeSet::new() }
    }

    /// Something is to be done at a time.
    pub fn add(&mut self, key: K, at: Nanos) {
        self.by_time.insert((at, key));
    }

    /// It is not to be done at this time any more.
    pub fn remove(&mut self, key: K, at: Nanos) {
        self.by_time.remove(&(at, key));
    }

    /// What is to be done by now, in the order of its times.
    pub fn due(&self, now: Nanos) -> Vec<K> {
        self.by_time.iter().take_while(|(at, _)| *at <= now).map(|(_, key)| *key).collect()
    }

    /// Of what there is something to be done, in the order of the times.
    pub fn keys(&self) -> impl Iterator<Item = K> + '_ {
        self.by_time.iter().map(|(_, key)| *key)
    }

    /// That just these are there.
    pub fn assert_are(&self, all: impl Iterator<Item = (Nanos, K)>) {
        let all: BTreeSet<(Nanos, K)> = all.collect();
        assert!(self.by_time == all, "times are missing, or of something that is over");
    }
}
