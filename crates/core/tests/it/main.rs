//! What a recorder costs as a run grows. Allocations are counted for the whole program, so this
//! one has no other test.

use std::collections::BTreeMap;
use std::ops::Range;

use muesli_core::recorder::{RecordedOperation, RecordedOperations, Recorder, Status, TxnRecord};
use muesli_core::{Nanos, NodeId, SmallBytes, SpaceId, Timestamp, TxnId};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<std::alloc::System> = &INSTRUMENTED_SYSTEM;

/// So many transactions come at once.
const BATCH: u64 = 50;
const EARLY: Range<u64> = 100..200;
const LATE: Range<u64> = 900..1_000;

/// How often memory was asked for, and for how many bytes more.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    times: usize,
    bytes: usize,
}

impl Cost {
    /// Whether this is at most so many times the other.
    fn is_at_most(self, times: usize, other: Cost) -> bool {
        self.times <= times * other.times && self.bytes <= times * other.bytes
    }
}

/// What a thousand batches cost: those of the early range, and those of the late one.
fn costs<T>(batch: impl Fn(u64) -> T, mut add: impl FnMut(T)) -> (Cost, Cost) {
    let (mut early, mut late) = (Cost::default(), Cost::default());
    for number in 0..LATE.end {
        let next = batch(number);
        let region = Region::new(ALLOCATOR);
        add(next);
        let change = region.change();
        for (range, cost) in [(EARLY, &mut early), (LATE, &mut late)] {
            if range.contains(&number) {
                cost.times += change.allocations + change.reallocations;
                cost.bytes += change.bytes_allocated;
            }
        }
    }
    (early, late)
}

/// The transactions of a batch: of four nodes, so that they do not come in the order of their ids.
fn ids(batch: u64) -> impl Iterator<Item = TxnId> {
    (batch * BATCH..(batch + 1) * BATCH).map(|sequence| TxnId {
        node: NodeId((sequence % 4) as u32),
        incarnation: 1,
        sequence,
    })
}

/// What a node has recorded since it was asked last.
fn recorded(batch: u64) -> Recorder {
    let mut recorder = Recorder::new();
    for id in ids(batch) {
        let key = SmallBytes::new(&id.sequence.to_be_bytes());
        let space = SpaceId(0);
        let wrote = RecordedOperation::Write { space, key: key.clone(), hash: Some(id.sequence) };
        let operations = RecordedOperations::from(&[wrote][..]);
        let (begin, at) = (Nanos(id.sequence), Timestamp(id.sequence));
        let (status, end) = (Status::Committed, Some(Nanos(id.sequence + 1)));
        let (session, read_only, staleness) = (1, false, None);
        let wrote_at = Some(at);
        let record =
            TxnRecord { id, session, begin, end, status, read_only, at: wrote_at, staleness };
        recorder.transaction(&record, &operations);
        recorder.applied(id, at);
        recorder.executed(id, (space, &key), (at, Some(&key)), Some(&key));
        recorder.called(id, &operations);
        recorder.ran(id, 0, at, operations);
    }
    recorder
}

#[test]
fn what_a_batch_costs_does_not_grow_with_what_was_recorded_before() {
    let mut all = Recorder::new();
    let (early, late) = costs(recorded, |mut next| all.absorb(&mut next));
    assert_eq!(all.len() as u64, LATE.end * BATCH);
    assert!(early.times > 0 && late.is_at_most(2, early), "{early:?} {late:?}");
    // A map that is built again for each batch is noticed.
    let mut map = BTreeMap::new();
    let some = |batch| ids(batch).map(|id| (id, id.sequence)).collect::<BTreeMap<_, _>>();
    let (early, late) = costs(some, |mut next| map.append(&mut next));
    assert!(!late.is_at_most(4, early), "{early:?} {late:?}");
}
