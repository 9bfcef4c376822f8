//! Which commands the batches stood for that are delivered, until all members have delivered them.

use std::collections::BTreeMap;

use super::batch::CommandBatch;
use crate::command::{CommandId, MemberId};
use crate::id_set::IdSet;

/// Batches that are delivered and not forgotten, by the commands below that stood for them.
///
/// Invariants: what is forgotten below is no batch here. Each range of each of them is found by its
/// first command, unless a member has lied and named a command twice.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct DeliveredBatches {
    batches: BTreeMap<CommandId, DeliveredBatch>,
    /// By the first command of a range: its last one, and in which batch it is.
    ranges: BTreeMap<CommandId, (u64, CommandId)>,
    /// By leader, up to which of its batches all are forgotten.
    upto: Vec<u64>,
    /// Commands of batches that are forgotten, and those that are nothing.
    forgotten: IdSet,
}

/// A batch that is delivered.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct DeliveredBatch {
    pub begun: u64,
    pub ids: IdSet,
    /// Of one that stands for nothing: the commands that it comes after. They are what others come
    /// after in its place.
    pub before: IdSet,
}

impl DeliveredBatches {
    pub fn new(members: usize) -> DeliveredBatches {
        DeliveredBatches {
            batches: BTreeMap::new(),
            ranges: BTreeMap::new(),
            upto: vec![0; members],
            forgotten: IdSet::new(),
        }
    }

    /// A batch is delivered, after these commands.
    pub fn add(&mut self, id: CommandId, batch: &CommandBatch, predecessors: &IdSet) {
        let ids = batch.ids(id.leader);
        let before = if ids.is_empty() { predecessors.clone() } else { IdSet::new() };
        self.add_ids(id, DeliveredBatch { begun: batch.begun.max(1), ids, before });
    }

    fn add_ids(&mut self, id: CommandId, batch: DeliveredBatch) {
        let all = batch.ids.as_ranges();
        self.ranges.extend(all.map(|(first, last)| (first, (last, id))));
        self.batches.insert(id, batch);
    }

    /// The commands that these batches stand for, as far as they are not forgotten.
    pub fn commands(&self, batches: &IdSet) -> IdSet {
        let mut all = IdSet::new();
        for (first, last) in batches.as_ranges() {
            let last = CommandId { sequence: last, ..first };
            for (_, batch) in self.batches.range(first..=last) {
                for (first, last) in batch.ids.as_ranges() {
                    all.insert_range(first, last);
                }
                all.extend(&batch.before);
            }
        }
        all
    }

    /// In which batch a command was delivered that is not forgotten.
    pub fn batch_of(&self, id: CommandId) -> Option<CommandId> {
        let (first, (last, batch)) = self.ranges.range(..=id).next_back()?;
        (first.leader == id.leader && id.sequence <= *last).then_some(*batch)
    }

    /// Whether a command was in a batch that was taken out of here.
    pub fn has_forgotten(&self, id: CommandId) -> bool {
        self.forgotten.contains(id)
    }

    /// Takes out what all members have delivered.
    pub fn forget(&mut self, is_forgotten: impl Fn(CommandId) -> bool) {
        for leader in (0..self.upto.len() as u16).map(MemberId) {
            loop {
                let sequence = self.upto[leader.place()] + 1;
                let id = CommandId { leader, sequence };
                if !is_forgotten(id) {
                    break;
                }
                self.upto[leader.place()] = sequence;
                if let Some(batch) = self.batches.remove(&id) {
                    self.forget_batch(id, &batch);
                }
            }
        }
    }

    /// What the member had begun before this batch is over as well, or is nothing.
    fn forget_batch(&mut self, id: CommandId, batch: &DeliveredBatch) {
        for (first, last) in batch.ids.as_ranges() {
            if self.ranges.get(&first).is_some_and(|(_, batch)| *batch == id) {
                self.ranges.remove(&first);
            }
            self.forgotten.insert_range(first, last);
        }
        let first = CommandId { leader: id.leader, sequence: 1 };
        self.forgotten.insert_range(first, batch.begun - 1);
    }

    /// Batches, as they go into a checkpoint.
    pub fn entries(&self) -> impl Iterator<Item = (CommandId, &DeliveredBatch)> {
        self.batches.iter().map(|(id, batch)| (*id, batch))
    }

    /// What is forgotten, as it goes into a checkpoint.
    pub fn forgotten(&self) -> (&[u64], &IdSet) {
        (&self.upto, &self.forgotten)
    }

    /// Takes back a batch, from a checkpoint. False: that cannot be.
    pub fn take_entry(&mut self, id: CommandId, batch: DeliveredBatch) -> bool {
        let is_own = |it: CommandId| it.leader == id.leader;
        let numbers = batch.ids.as_ranges().map(|(first, last)| (first.sequence, last));
        let most = numbers.map(|(_, last)| last).max().unwrap_or(0);
        let members = self.upto.len();
        let is_sound = id.leader.place() < members
            && (1..=CommandId::SEQUENCE_MAX).contains(&id.sequence)
            && batch.ids.as_ranges().all(|(first, _)| is_own(first))
            && most <= CommandId::SEQUENCE_MAX
            && (1..=most.max(1)).contains(&batch.begun)
            && !self.batches.contains_key(&id)
            && batch.before.last_of_each().all(|id| id.leader.place() < members)
            && (batch.ids.is_empty() || batch.before.is_empty());
        if is_sound {
            self.add_ids(id, batch);
        }
        is_sound
    }

    /// The largest number of a member's commands among all of these.
    pub fn last_of(&self, leader: MemberId) -> u64 {
        let delivered = self.batches.values().flat_map(|batch| batch.ids.last_of_each());
        let all = delivered.chain(self.forgotten.last_of_each());
        all.filter(|id| id.leader == leader).map(|id| id.sequence).max().unwrap_or(0)
    }

    /// Takes back what is forgotten. False: that cannot be.
    pub fn take_forgotten(&mut self, upto: Vec<u64>, forgotten: IdSet) -> bool {
        let members = self.upto.len();
        let is_sound = upto.len() == members
            && upto.iter().all(|it| *it <= CommandId::SEQUENCE_MAX)
            && self.batches.keys().all(|id| id.sequence > upto[id.leader.place()])
            && forgotten.as_ranges().all(|(first, last)| {
                first.leader.place() < members && last <= CommandId::SEQUENCE_MAX
            });
        if is_sound {
            (self.upto, self.forgotten) = (upto, forgotten);
        }
        is_sound
    }

    pub fn assert_invariants(&self) {
        let ranges = |batch: &DeliveredBatch| batch.ids.ranges();
        let all: usize = self.batches.values().map(ranges).sum();
        assert!(self.ranges.len() <= all, "a range of no batch: {self:?}");
        for id in self.batches.keys() {
            assert!(id.sequence > self.upto[id.leader.place()], "{id} is forgotten");
        }
        self.forgotten.assert_invariants();
    }
}
