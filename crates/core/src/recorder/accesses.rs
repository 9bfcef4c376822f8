//! Which partitions transactions touch, for those who decide where partitions are to be.
//!
//! # The problem
//! A placement is learnt from transactions that ran. A server that kept all of them would need
//! memory without end, and one that sent each of them somewhere would do little else.
//!
//! # The idea
//! Of one transaction in so many, chosen by a hash of its id, the partitions are kept, in a ring of
//! bounded length. All servers choose alike, so that a transaction of several servers is known at
//! each of them or at none. Beside the ring, counters that are exact: how many transactions there
//! were, how many of them at several repositories, and what was done at each partition.
//!
//! The sampler belongs to the driver and not to the node. Nothing of it is asked while a
//! transaction runs, so what it holds cannot change what transactions do.

use std::collections::VecDeque;

use super::Sampling;
use crate::ids::{Timestamp, TxnId};
use crate::wire_struct;

/// A sample names at most so many partitions. Transactions of more are counted, and not sampled:
/// they are distributed under every placement that has room for the data.
pub const SAMPLE_PARTITIONS_MAX: usize = 64;
/// The most samples of a page.
pub const PAGE_SAMPLES_MAX: usize = 256;
/// The most partitions of a page of counters.
pub const PAGE_LOADS_MAX: usize = 4_096;
/// The most samples that can be kept.
pub const SAMPLES_KEPT_MAX: usize = 1 << 20;

/// What one transaction touched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessSample {
    /// The transaction.
    pub txn: TxnId,
    /// Where it is in the order of its protocol: the same at all servers.
    pub at: Timestamp,
    /// The partitions, in order, each once.
    pub partitions: Vec<u16>,
}

wire_struct!(AccessSample { txn: TxnId, at: Timestamp, partitions: Vec<u16> });

/// Some of the samples that a server keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessPage {
    /// One transaction in so many is kept; 0: none.
    pub one_in: u32,
    /// The number of the oldest sample that is kept. If it is above zero, older ones were dropped.
    pub oldest: u64,
    /// The number of the sample after those of this page.
    pub next: u64,
    /// The samples before that.
    pub samples: Vec<AccessSample>,
}

wire_struct!(AccessPage { one_in: u32, oldest: u64, next: u64, samples: Vec<AccessSample> });

/// How many transactions there were since the start of the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccessCounts {
    /// Transactions whose first participant is here.
    pub transactions: u64,
    /// Of these, those at several repositories.
    pub distributed: u64,
}

wire_struct!(AccessCounts { transactions: u64, distributed: u64 });

/// Counters of a server, of some partitions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadPage {
    /// One transaction in so many is kept; 0: none.
    pub one_in: u32,
    /// The server's clock, in milliseconds.
    pub at_ms: u64,
    /// Of all transactions.
    pub counts: AccessCounts,
    /// Partitions where something was done, each with how many fragments.
    pub loads: Vec<(u16, u64)>,
    /// The partition that the next page begins with; `None`: this is all.
    pub next: Option<u16>,
}

wire_struct!(LoadPage {
    one_in: u32,
    at_ms: u64,
    counts: AccessCounts,
    loads: Vec<(u16, u64)>,
    next: Option<u16>,
});

/// Keeps samples, and counts.
///
/// Invariants: there are at most as many samples as are to be kept, each of at most
/// [`SAMPLE_PARTITIONS_MAX`] partitions; numbers of samples follow each other.
#[derive(Clone, Debug, Default)]
pub struct AccessSampler {
    one_in: u32,
    kept: usize,
    samples: VecDeque<AccessSample>,
    /// The number of the next sample.
    next: u64,
    counts: AccessCounts,
    loads: Vec<u64>,
}

impl AccessSampler {
    /// Keeps one transaction in so many, and so many samples at most; 0 keeps none, and counts all
    /// the same.
    pub fn new(one_in: u32, kept: usize) -> AccessSampler {
        let kept = kept.min(SAMPLES_KEPT_MAX);
        AccessSampler { one_in, kept, ..AccessSampler::default() }
    }

    /// One that keeps the same share and as many, and has nothing yet.
    pub fn emptied(&self) -> AccessSampler {
        AccessSampler::new(self.one_in, self.kept)
    }

    /// Keeps one transaction in so many from now on; 0: none. What is kept already stays.
    pub fn set_one_in(&mut self, one_in: u32) {
        self.one_in = one_in;
    }

    /// Counts a fragment that was done here, in a partition.
    #[inline]
    pub fn count_fragment(&mut self, partition: u16) {
        let at = usize::from(partition);
        if at >= self.loads.len() {
            self.loads.resize(at + 1, 0);
        }
        self.loads[at] += 1;
    }

    /// Counts a transaction, whose first participant is here.
    #[inline]
    pub fn count_transaction(&mut self, is_distributed: bool) {
        self.counts.transactions += 1;
        self.counts.distributed += u64::from(is_distributed);
    }

    /// Whether a transaction is one of those that are kept.
    #[inline]
    pub fn keeps(&self, txn: TxnId) -> bool {
        self.one_in > 0 && self.kept > 0 && Sampling::one_in(self.one_in).keeps(txn)
    }

    /// Keeps a transaction with its partitions, in any order, unless these are more than
    /// [`SAMPLE_PARTITIONS_MAX`].
    pub fn keep(&mut self, txn: TxnId, at: Timestamp, partitions: impl Iterator<Item = u16>) {
        let mut all: Vec<u16> = Vec::new();
        for partition in partitions {
            if let Err(place) = all.binary_search(&partition) {
                if all.len() == SAMPLE_PARTITIONS_MAX {
                    return;
                }
                all.insert(place, partition);
            }
        }
        if all.is_empty() || self.kept == 0 {
            return;
        }
        if self.samples.len() >= self.kept {
            self.samples.pop_front();
        }
        self.samples.push_back(AccessSample { txn, at, partitions: all });
        self.next += 1;
    }

    /// The samples from this number on, as far as they are kept and a page has room for them.
    pub fn page(&self, from: u64) -> AccessPage {
        let oldest = self.next - self.samples.len() as u64;
        let skipped = from.saturating_sub(oldest).min(self.samples.len() as u64);
        let rest = self.samples.iter().skip(skipped as usize);
        let samples: Vec<_> = rest.take(PAGE_SAMPLES_MAX).cloned().collect();
        let next = oldest + skipped + samples.len() as u64;
        AccessPage { one_in: self.one_in, oldest, next, samples }
    }

    /// The counters from this partition on, as far as a page has room for them.
    pub fn loads(&self, from: u16, at_ms: u64) -> LoadPage {
        let all = self.loads.iter().enumerate().skip(usize::from(from));
        let mut done = all.filter(|(_, load)| **load > 0);
        let some = done.by_ref().take(PAGE_LOADS_MAX);
        let loads = some.map(|(partition, load)| (partition as u16, *load)).collect();
        let next = done.next().map(|(partition, _)| partition as u16);
        LoadPage { one_in: self.one_in, at_ms, counts: self.counts, loads, next }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ids::NodeId;

    fn id(sequence: u64) -> TxnId {
        TxnId { node: NodeId(3), incarnation: 1, sequence }
    }

    fn filled(count: u64, kept: usize) -> AccessSampler {
        let mut sampler = AccessSampler::new(1, kept);
        for number in 0..count {
            assert!(sampler.keeps(id(number)));
            sampler.keep(id(number), Timestamp(number), [7, number as u16 % 3, 7].into_iter());
        }
        sampler
    }

    #[test]
    fn a_ring_keeps_the_newest_and_is_read_in_pages() {
        let sampler = filled(2_000, 1_000);
        assert_eq!(sampler.samples.len(), 1_000);
        let (mut from, mut read) = (0, Vec::new());
        loop {
            let page = sampler.page(from);
            assert_eq!((page.oldest, page.one_in), (1_000, 1));
            if page.samples.is_empty() {
                assert_eq!(page.next, 2_000);
                break;
            }
            assert!(page.samples.len() <= PAGE_SAMPLES_MAX && page.next > from);
            from = page.next;
            read.extend(page.samples);
        }
        let numbers: Vec<u64> = read.iter().map(|it| it.txn.sequence).collect();
        assert_eq!(numbers, (1_000..2_000).collect::<Vec<_>>());
        assert_eq!(read[1].partitions, [2, 7], "in order, each once");
        // Who asks for what there is not yet is given nothing.
        assert_eq!(sampler.page(u64::MAX).samples, []);
        assert_eq!(sampler.page(1_999).samples.len(), 1);
    }

    #[test]
    fn two_servers_keep_the_same_transactions() {
        let (one, other) = (AccessSampler::new(16, 9), AccessSampler::new(16, 100));
        let kept = |it: &AccessSampler| (0..4_000).filter(|at| it.keeps(id(*at))).count();
        assert!((0..4_000).all(|at| one.keeps(id(at)) == other.keeps(id(at))));
        assert!((150..350).contains(&kept(&one)), "{}", kept(&one));
        let mut none = AccessSampler::new(0, 100);
        assert_eq!(kept(&none), 0);
        none.set_one_in(1);
        assert_eq!(kept(&none), 4_000);
        assert_eq!(kept(&AccessSampler::new(1, 0)), 0, "there is no room");
    }

    #[test]
    fn transactions_at_more_partitions_than_a_sample_names_are_not_kept() {
        let mut sampler = AccessSampler::new(1, 10);
        sampler.keep(id(1), Timestamp(1), 0..SAMPLE_PARTITIONS_MAX as u16);
        sampler.keep(id(2), Timestamp(2), 0..=SAMPLE_PARTITIONS_MAX as u16);
        sampler.keep(id(3), Timestamp(3), std::iter::empty());
        assert_eq!(sampler.page(0).samples.len(), 1);
    }

    #[test]
    fn counters_are_exact_and_read_in_pages() {
        let mut sampler = AccessSampler::new(0, 0);
        for partition in (0..u16::MAX).step_by(2) {
            (0..=partition % 3).for_each(|_| sampler.count_fragment(partition));
            sampler.count_transaction(partition % 4 == 0);
        }
        let (mut from, mut read) = (Some(0), Vec::new());
        while let Some(at) = from {
            let page = sampler.loads(at, 5);
            assert!(page.loads.len() <= PAGE_LOADS_MAX && page.at_ms == 5);
            assert_eq!((page.counts.transactions, page.counts.distributed), (32_768, 16_384));
            read.extend(page.loads);
            from = page.next;
        }
        let all = (0..u16::MAX).step_by(2);
        assert_eq!(read, all.map(|it| (it, u64::from(it % 3) + 1)).collect::<Vec<_>>());
    }

    proptest! {
        #[test]
        fn pages_come_back(samples in prop::collection::vec((0..9_u64, 0..9_u64), 0..5)) {
            use crate::wire::Wire;
            let sample = |(sequence, at)| AccessSample {
                txn: id(sequence), at: Timestamp(at), partitions: vec![1, at as u16 + 2],
            };
            let samples: Vec<_> = samples.into_iter().map(sample).collect();
            let page = AccessPage { one_in: 3, oldest: 4, next: 5, samples };
            let mut bytes = Vec::new();
            page.encode(&mut bytes);
            prop_assert_eq!(AccessPage::decode_all(&bytes), Ok(page));
        }
    }
}
