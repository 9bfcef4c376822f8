//! What servers say of transactions and partitions, made into one picture.

use std::collections::BTreeMap;

use muesli_core::TxnId;
use muesli_core::recorder::accesses::{AccessSample, SAMPLE_PARTITIONS_MAX};

use crate::scheme::{PlacedUnit, Scheme, TablePlacement};
use crate::trace::{AccessTrace, TracedAccess, TracedTable, TracedTransaction};
use crate::units::{UnitGraph, UnitPlacement};

/// At most so many samples are gone by, the newest ones.
pub const SAMPLES_MAX: usize = 200_000;

/// No partition counts for more rows than this, so that all of them can be added up.
const ROWS_MAX: u64 = 1 << 40;

/// The samples of one server, as it has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerSamples {
    /// The samples, the oldest first.
    pub samples: Vec<AccessSample>,
    /// Whether there were older ones that it does not keep any more.
    pub has_dropped: bool,
}

/// A partition as it is now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LivePartition {
    /// The repository that holds it.
    pub holder: u16,
    /// Its rows.
    pub rows: u64,
    /// The bytes of these.
    pub bytes: u64,
    /// How many fragments of transactions were done there in the period that was measured.
    pub fragments: u64,
}

/// Where partitions are now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LivePlacement {
    /// How many repositories there are.
    pub repositories: u16,
    /// The partitions, by their numbers.
    pub partitions: Vec<LivePartition>,
}

impl LivePlacement {
    /// Whether each partition is held by a repository that there is.
    pub fn is_sound(&self) -> bool {
        self.partitions.iter().all(|partition| partition.holder < self.repositories)
    }

    /// Which repository holds which partition.
    pub fn labels(&self) -> Vec<u32> {
        self.partitions.iter().map(|partition| u32::from(partition.holder)).collect()
    }

    /// How many fragments each repository did in the period that was measured, were the partitions
    /// where these labels say.
    pub fn fragments(&self, labels: &[u32]) -> Vec<u64> {
        let mut all = vec![0_u64; usize::from(self.repositories)];
        for (partition, label) in self.partitions.iter().zip(labels) {
            if let Some(one) = all.get_mut(*label as usize) {
                *one = one.saturating_add(partition.fragments);
            }
        }
        all
    }
}

/// The samples of all servers in the order of their timestamps, each transaction once. A sample
/// that cannot be one is left out. Where servers keep samples for different times, only the time is
/// gone by that all of them cover: else transactions of several servers, which are known wherever
/// one of them keeps them, would count for more than others.
pub fn merged(servers: Vec<ServerSamples>, partitions: usize) -> Vec<AccessSample> {
    let first = |server: &ServerSamples| server.samples.iter().map(|it| it.at).min();
    let begins = servers.iter().filter(|it| it.has_dropped).filter_map(first).max();
    let mut all: BTreeMap<TxnId, AccessSample> = BTreeMap::new();
    for sample in servers.into_iter().flat_map(|server| server.samples) {
        let is_covered = begins.is_none_or(|begins| sample.at >= begins);
        if is_covered && is_sound(&sample, partitions) {
            all.entry(sample.txn).or_insert(sample);
        }
    }
    let mut all: Vec<_> = all.into_values().collect();
    all.sort_by_key(|sample| (sample.at, sample.txn));
    let surplus = all.len().saturating_sub(SAMPLES_MAX);
    all.drain(..surplus);
    all
}

fn is_sound(sample: &AccessSample, partitions: usize) -> bool {
    let AccessSample { partitions: touched, .. } = sample;
    let is_there = |partition: &u16| usize::from(*partition) < partitions;
    !touched.is_empty()
        && touched.len() <= SAMPLE_PARTITIONS_MAX
        && touched.iter().all(is_there)
        && touched.windows(2).all(|pair| pair[0] < pair[1])
}

/// Samples as a trace: the partitions are its units.
pub(super) fn as_trace(samples: &[AccessSample]) -> AccessTrace {
    let access = |partition: &u16| TracedAccess {
        key: vec![u64::from(*partition)],
        by_arguments: 1,
        ..TracedAccess::default()
    };
    let transaction = |sample: &AccessSample| TracedTransaction {
        procedure: 0,
        accesses: sample.partitions.iter().map(access).collect(),
    };
    AccessTrace {
        domains: vec!["partition".to_owned()],
        tables: vec![TracedTable {
            name: "partitions".to_owned(),
            columns: vec![0],
            named: 1,
            row_bytes: 0,
        }],
        procedures: vec!["any".to_owned()],
        transactions: samples.iter().map(transaction).collect(),
    }
}

/// By which partitions are units.
pub(super) fn scheme() -> Scheme {
    Scheme { tables: vec![TablePlacement::Column(0)] }
}

/// Partitions where these labels say.
pub(super) fn placed(labels: &[u32], repositories: u16) -> UnitPlacement {
    let unit = |(partition, label): (usize, &u32)| {
        (PlacedUnit { domain: 0, value: partition as u64 }, *label)
    };
    let units = labels.iter().enumerate().map(unit).collect();
    UnitPlacement { partitions: u32::from(repositories), units }
}

/// The graph of some transactions, with all partitions as units by their numbers, those that no
/// transaction touches included.
pub(super) fn graph(transactions: &[TracedTransaction], placement: &LivePlacement) -> UnitGraph {
    let count = placement.partitions.len();
    let unit = |value: usize| PlacedUnit { domain: 0, value: value as u64 };
    let mut graph = UnitGraph {
        units: (0..count).map(unit).collect(),
        loads: vec![0; count],
        rows: placement.partitions.iter().map(|it| it.rows.min(ROWS_MAX)).collect(),
        joint: Vec::new(),
        of_unit: vec![Vec::new(); count],
    };
    let mut sets: BTreeMap<Vec<u32>, u64> = BTreeMap::new();
    for transaction in transactions {
        let units = transaction.accesses.iter().map(|access| access.key[0] as u32);
        let units: Vec<u32> = units.collect();
        for unit in &units {
            graph.loads[*unit as usize] += 1;
        }
        if units.len() > 1 {
            *sets.entry(units).or_default() += 1;
        }
    }
    for (number, (units, times)) in (0_u32..).zip(sets) {
        units.iter().for_each(|unit| graph.of_unit[*unit as usize].push(number));
        graph.joint.push((units, times));
    }
    graph
}

#[cfg(test)]
mod tests {
    use muesli_core::{NodeId, Timestamp};

    use super::*;

    fn sample(sequence: u64, partitions: &[u16]) -> AccessSample {
        let txn = TxnId { node: NodeId(1), incarnation: 1, sequence };
        AccessSample { txn, at: Timestamp(sequence), partitions: partitions.to_vec() }
    }

    fn sequences(all: &[AccessSample]) -> Vec<u64> {
        all.iter().map(|it| it.txn.sequence).collect()
    }

    #[test]
    fn a_transaction_of_several_servers_counts_once_and_all_are_in_order() {
        let of = |all: &[u64]| ServerSamples {
            samples: all.iter().map(|it| sample(*it, &[0, 1])).collect(),
            has_dropped: false,
        };
        let all = merged(vec![of(&[3, 9, 5]), of(&[4, 5, 9])], 2);
        assert_eq!(sequences(&all), [3, 4, 5, 9]);
    }

    #[test]
    fn only_the_time_counts_that_all_servers_cover() {
        let of = |all: std::ops::Range<u64>, has_dropped| ServerSamples {
            samples: all.map(|it| sample(it, &[0])).collect(),
            has_dropped,
        };
        let all = merged(vec![of(0..10, false), of(6..12, true), of(4..9, true)], 1);
        assert_eq!(sequences(&all), (6..12).collect::<Vec<_>>());
        // A server that has dropped all of them says nothing of the time.
        assert_eq!(merged(vec![of(0..3, false), of(0..0, true)], 1).len(), 3);
    }

    #[test]
    fn what_cannot_be_a_sample_is_left_out() {
        let wide: Vec<u16> = (0..=SAMPLE_PARTITIONS_MAX as u16).collect();
        let odd: [&[u16]; 5] = [&[], &[200], &[1, 1], &[2, 1], &wide];
        let samples = (0..).zip(odd).map(|(at, it)| sample(at, it)).chain([sample(9, &[1, 2])]);
        let server = ServerSamples { samples: samples.collect(), has_dropped: false };
        assert_eq!(sequences(&merged(vec![server], 200)), [9]);
    }

    #[test]
    fn a_graph_has_all_partitions() {
        let placement = LivePlacement {
            repositories: 2,
            partitions: vec![LivePartition { rows: 7, ..LivePartition::default() }; 4],
        };
        let trace = as_trace(&[sample(1, &[0, 3]), sample(2, &[3]), sample(3, &[0, 3])]);
        let graph = graph(&trace.transactions, &placement);
        assert_eq!((graph.loads, graph.rows), (vec![2, 0, 0, 3], vec![7; 4]));
        assert_eq!((graph.joint, graph.of_unit[3].clone()), (vec![(vec![0, 3], 2)], vec![0]));
    }
}
