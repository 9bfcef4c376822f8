//! Which commands the batches stood for that are delivered, until all members have delivered them.
//!
//! A range of batches is asked for with each batch that comes after it, and may be long where a
//! member is away. So it is answered from its two ends: of one member's commands, those that are
//! delivered from what the first batch was begun with up to the largest number that had been in a
//! batch with the last one.

use std::collections::BTreeMap;

use super::batch::CommandBatch;
use crate::command::{CommandId, MemberId};
use crate::id_set::IdSet;

/// Batches that are delivered and not forgotten, by the commands below that stood for them.
///
/// Invariants: what is forgotten below is nothing here. All commands of batches are delivered. Each
/// range of a batch is found by its first command, unless a member has lied and named a command
/// twice.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct DeliveredBatches {
    batches: BTreeMap<CommandId, DeliveredBatch>,
    /// Commands below that stood for nothing, with what each came after: who comes after one of
    /// these comes after that.
    nothing: BTreeMap<CommandId, IdSet>,
    /// By the first command of a range: its last one, and in which batch it is.
    ranges: BTreeMap<CommandId, (u64, CommandId)>,
    /// By leader, up to which of its batches all are forgotten.
    upto: Vec<u64>,
    /// All that was in a batch; of what is forgotten also what is nothing.
    delivered: IdSet,
}

/// A batch that is delivered.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct DeliveredBatch {
    pub begun: u64,
    pub upto: u64,
    pub ids: IdSet,
}

impl DeliveredBatches {
    pub fn new(members: usize) -> DeliveredBatches {
        DeliveredBatches {
            batches: BTreeMap::new(),
            nothing: BTreeMap::new(),
            ranges: BTreeMap::new(),
            upto: vec![0; members],
            delivered: IdSet::new(),
        }
    }

    /// A batch is delivered, after these commands.
    pub fn add(&mut self, id: CommandId, batch: &CommandBatch, predecessors: &IdSet) {
        let CommandBatch { begun, upto, .. } = *batch;
        match batch.commands.is_empty() {
            true => _ = self.nothing.insert(id, predecessors.clone()),
            false => self.insert(id, DeliveredBatch { begun, upto, ids: batch.ids(id.leader) }),
        }
    }

    fn insert(&mut self, id: CommandId, batch: DeliveredBatch) {
        for (first, last) in batch.ids.as_ranges() {
            self.ranges.insert(first, (last, id));
            self.delivered.insert_range(first, last);
        }
        self.batches.insert(id, batch);
    }

    /// Delivered commands among which are all that these batches stand for and that are not
    /// forgotten.
    pub fn commands(&self, batches: &IdSet) -> IdSet {
        let mut all = IdSet::new();
        for (first, last) in batches.as_ranges() {
            let last = CommandId { sequence: last, ..first };
            self.nothing.range(first..=last).for_each(|(_, before)| all.extend(before));
            let mut within = self.batches.range(first..=last);
            let Some((_, one)) = within.next() else { continue };
            let upto = within.next_back().map_or(one.upto, |(_, batch)| batch.upto);
            let begun = CommandId { sequence: one.begun, ..first };
            all.extend(&self.delivered.within(begun, upto));
        }
        all
    }

    /// In which batch a command was delivered that is not forgotten.
    pub fn batch_of(&self, id: CommandId) -> Option<CommandId> {
        let (first, (last, batch)) = self.ranges.range(..=id).next_back()?;
        (first.leader == id.leader && id.sequence <= *last).then_some(*batch)
    }

    /// Whether a command was in a batch, or is nothing.
    pub fn has(&self, id: CommandId) -> bool {
        self.delivered.contains(id)
    }

    /// How many batches there are.
    pub fn len(&self) -> usize {
        self.batches.len() + self.nothing.len()
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
                self.nothing.remove(&id);
                if let Some(batch) = self.batches.remove(&id) {
                    self.forget_batch(id, &batch);
                }
            }
        }
    }

    /// What the member had begun before this batch is over as well, or is nothing.
    fn forget_batch(&mut self, id: CommandId, batch: &DeliveredBatch) {
        for (first, _) in batch.ids.as_ranges() {
            if self.ranges.get(&first).is_some_and(|(_, batch)| *batch == id) {
                self.ranges.remove(&first);
            }
        }
        let first = CommandId { leader: id.leader, sequence: 1 };
        self.delivered.insert_range(first, batch.begun - 1);
    }

    /// Batches, as they go into a checkpoint.
    pub fn batches(&self) -> impl Iterator<Item = (CommandId, &DeliveredBatch)> {
        self.batches.iter().map(|(id, batch)| (*id, batch))
    }

    /// What stood for nothing, as it goes into a checkpoint.
    pub fn nothing(&self) -> impl Iterator<Item = (CommandId, &IdSet)> {
        self.nothing.iter().map(|(id, before)| (*id, before))
    }

    /// Up to where all is forgotten, and what was delivered, as they go into a checkpoint.
    pub fn head(&self) -> (&[u64], &IdSet) {
        (&self.upto, &self.delivered)
    }

    /// Whether a batch of this name may come from a checkpoint.
    fn is_new(&self, id: CommandId) -> bool {
        id.leader.place() < self.upto.len()
            && (1..=CommandId::SEQUENCE_MAX).contains(&id.sequence)
            && !self.batches.contains_key(&id)
            && !self.nothing.contains_key(&id)
    }

    fn are_of_members(&self, ids: &IdSet) -> bool {
        let is_sound = |id: CommandId| {
            id.leader.place() < self.upto.len() && id.sequence <= CommandId::SEQUENCE_MAX
        };
        ids.last_of_each().all(is_sound)
    }

    /// Takes back a batch, from a checkpoint. False: that cannot be.
    pub fn take_batch(&mut self, id: CommandId, batch: DeliveredBatch) -> bool {
        let most = batch.ids.last_of_each().map(|it| it.sequence).max().unwrap_or(0);
        let is_sound = self.is_new(id)
            && !batch.ids.is_empty()
            && batch.ids.as_ranges().all(|(first, _)| first.leader == id.leader)
            && (1..=most).contains(&batch.begun)
            && (most..=CommandId::SEQUENCE_MAX).contains(&batch.upto);
        if is_sound {
            self.insert(id, batch);
        }
        is_sound
    }

    /// Takes back what stood for nothing, from a checkpoint. False: that cannot be.
    pub fn take_nothing(&mut self, id: CommandId, before: IdSet) -> bool {
        let is_sound = self.is_new(id) && self.are_of_members(&before);
        if is_sound {
            self.nothing.insert(id, before);
        }
        is_sound
    }

    /// Takes back the rest, when all batches are there. False: that cannot be.
    pub fn take_head(&mut self, upto: Vec<u64>, delivered: &IdSet) -> bool {
        let is_open = |id: &CommandId| id.sequence > upto[id.leader.place()];
        let is_sound = upto.len() == self.upto.len()
            && upto.iter().all(|it| *it <= CommandId::SEQUENCE_MAX)
            && self.batches.keys().chain(self.nothing.keys()).all(is_open)
            && self.are_of_members(delivered);
        if is_sound {
            self.upto = upto;
            self.delivered.extend(delivered);
        }
        is_sound
    }

    /// The largest number of a member's commands that was in a batch.
    pub fn last_of(&self, leader: MemberId) -> u64 {
        let last = self.delivered.last_of_each().filter(|id| id.leader == leader);
        last.map(|id| id.sequence).max().unwrap_or(0)
    }

    pub fn assert_invariants(&self) {
        for id in self.batches.keys().chain(self.nothing.keys()) {
            assert!(id.sequence > self.upto[id.leader.place()], "{id} is forgotten");
        }
        for (id, batch) in &self.batches {
            let mut ranges = batch.ids.as_ranges();
            let are_there = ranges.all(|(first, _)| self.delivered.contains(first));
            assert!(are_there, "{id} is delivered, and {:?} are not", batch.ids);
        }
        let all: usize = self.batches.values().map(|batch| batch.ids.ranges()).sum();
        assert!(self.ranges.len() <= all, "a range of no batch: {self:?}");
        self.delivered.assert_invariants();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(sequence: u64) -> CommandId {
        CommandId { leader: MemberId(0), sequence }
    }

    fn batch(begun: u64, upto: u64, numbers: &[u64]) -> DeliveredBatch {
        DeliveredBatch { begun, upto, ids: numbers.iter().map(|it| id(*it)).collect() }
    }

    /// Two queues, whose commands are numbered alternately; number 5 is lost with a crash.
    fn delivered() -> DeliveredBatches {
        let mut all = DeliveredBatches::new(1);
        for (name, batch) in
            [(1, batch(1, 3, &[1, 3])), (2, batch(4, 4, &[2, 4])), (4, batch(6, 8, &[6, 8]))]
        {
            assert!(
                all.take_batch(id(name), DeliveredBatch { begun: batch.begun.min(2), ..batch })
            );
        }
        all
    }

    #[test]
    fn a_range_of_batches_is_what_was_delivered_between_its_ends() {
        let all = delivered();
        let of = |names: &[u64]| -> Vec<u64> {
            let names = names.iter().map(|it| id(*it)).collect();
            all.commands(&names).iter().map(|it| it.sequence).collect()
        };
        assert_eq!(of(&[1]), [1, 2, 3], "2 was delivered as well");
        assert_eq!(of(&[1, 2, 3, 4]), [1, 2, 3, 4, 6, 8]);
        assert_eq!((of(&[3]), of(&[9])), (vec![], vec![]));
        assert_eq!((all.batch_of(id(4)), all.batch_of(id(5))), (Some(id(2)), None));
        all.assert_invariants();
    }

    #[test]
    fn what_is_forgotten_is_kept_as_ranges() {
        let mut all = delivered();
        all.forget(|it| it.sequence <= 3);
        all.assert_invariants();
        assert_eq!((all.len(), all.batch_of(id(3)), all.has(id(3))), (1, None, true));
        assert!(!all.has(id(5)) && !all.has(id(7)));
        all.forget(|it| it.sequence <= 4);
        assert_eq!((all.len(), all.last_of(MemberId(0))), (0, 8));
    }

    #[test]
    #[should_panic(expected = "m0-1 is forgotten")]
    fn what_is_forgotten_below_is_nothing_here() {
        let mut all = delivered();
        all.upto[0] = 1;
        all.assert_invariants();
    }
}
