//! Nodes that choose together.
//!
//! # The problem
//! A node that compares models by its own transactions does not see what others lose by its choice.
//! One that gains by open children holds up the others by its locks; these find that open children
//! are the better for them, too, now, and in the end all have open children, though all together
//! commit less so.
//!
//! # The idea
//! All nodes try the same model at the same time, and models are compared by what transactions took
//! on all nodes together. For that, a call site of a program has one row in the database, the
//! [`PooledComparison`]: the comparison as all know it. Which model has a slot follows from the row
//! and from the time: nobody has to be told. Once in each slot a node adds what it observed in
//! the slots before and takes over what the others did, in one transaction that reads and writes
//! the row. Who finds that a slot has been over for so long that all have had the time to tell of
//! it adds it to the comparison, as one slot of all nodes. So a decision is made once, by whoever
//! comes first, in a transaction, and depends on nothing but the row and the report.
//!
//! After a decision, and after each change of the length of slots, two slots are not counted: by
//! then all have seen it.
//!
//! # What goes wrong, and what that costs
//! * A node does not reach the row: after three times it chooses by its own transactions, as one
//!   does that does not pool, and takes part again as soon as it reaches it. Its slots are missing
//!   in the sums, and so is the time of them: the others compare on.
//! * A node that crashes, or has no transactions: the same. One that joins finds the row.
//! * Clocks differ: by less than a slot, transactions of two models run beside each other for that
//!   long, and reports come late, or not in time. By more than four slots: whoever is behind does
//!   not take part (see [`PoolRefusal`]).
//! * Nodes run different work at a call site of one name: then what is compared is all that they do
//!   together.
//! * A report is lost, or its transaction's end is not known: that slot of that node is missing, or
//!   is there without its knowing. It is not sent again.
//! * The row is lost or cannot be read: the first that comes begins another one, or all choose by
//!   themselves.
//!
//! All of it is pure, here and in [`member`]; [`exchange`] has the bytes of the row. Who runs the
//! transaction is the [`RowExchange`](exchange::RowExchange).

pub(super) mod exchange;
pub(super) mod member;

use serde::{Deserialize, Serialize};

use super::NestingModel;
use super::comparison::{ModelComparison, ObservedBy};
use super::took::TimeSlot;

/// A slot is complete when it has been over for the length of so many: by then each node has
/// reported of it.
const SLOTS_TO_REPORT: u64 = 1;
/// Not more slots than so many wait for reports.
const SLOTS_OPEN_MOST: usize = 4;
/// Slots that begin in the next so many after a change are not counted.
const SLOTS_TO_LEARN: u64 = 2;
/// A clock that is behind what the row says by so many slots is another clock.
const SLOTS_AHEAD_MOST: u64 = 4;

/// What a node observed in a slot, or all nodes together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PooledSlot {
    /// When it began.
    pub begun: u64,
    /// So many nodes have told of it.
    pub nodes: u32,
    pub slot: TimeSlot,
}

/// What a node tells when it exchanges what it knows.
#[derive(Clone, Debug)]
pub(super) struct PoolReport {
    /// Its time.
    pub now: u64,
    /// The state of the comparison by which it ran what it tells of.
    pub number: u64,
    /// How long its attempts take, once it knows that: for the first slots.
    pub attempt: Option<u64>,
    /// As what it can run transactions, the simplest first.
    pub models: Vec<NestingModel>,
    pub slots: Vec<PooledSlot>,
    /// The row that it did not take part in was last written at this time.
    pub refused: Option<u64>,
}

/// Why a node does not take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PoolRefusal {
    /// The row was written by a clock that is far ahead, at this time. If it stays as it is, whose
    /// clock that was is gone, and the row is written anew.
    OtherClock(u64),
    /// A program of another version wrote the row.
    OtherFormat,
}

/// The comparison of all nodes that run transactions at a site, as it is in its row.
///
/// Invariants: slots that wait for reports rise, begin at `from` or later, and are no more than
/// [`SLOTS_OPEN_MOST`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct PooledComparison {
    /// Counts the changes after which what was observed before says nothing any more.
    pub number: u64,
    /// Slots count that begin then or later.
    from: u64,
    /// When somebody reported last, by that one's clock.
    reported_at: u64,
    /// Slots of which not all may have reported.
    open: Vec<PooledSlot>,
    /// So many told of the last slot that is complete.
    pub nodes: u32,
    pub comparison: ModelComparison,
}

impl PooledComparison {
    /// What the row is after a report, from what it was. `None`: there is none yet, and the report
    /// has nothing to begin with.
    ///
    /// # Errors
    /// The node is not to take part, and the row stays as it is.
    pub fn after(
        row: Option<PooledComparison>,
        report: &PoolReport,
    ) -> Result<Option<PooledComparison>, PoolRefusal> {
        let Some(row) = row.filter(PooledComparison::is_plausible) else {
            return Ok(report.attempt.map(|attempt| PooledComparison::first(attempt, report)));
        };
        let (number, length) = (row.number, row.comparison.length);
        let (reported_at, ahead) = (row.reported_at, SLOTS_AHEAD_MOST * length);
        let missing = |model| !report.models.contains(&model);
        let mut after = if reported_at > report.now.saturating_add(ahead) {
            if report.refused != Some(reported_at) {
                return Err(PoolRefusal::OtherClock(reported_at));
            }
            // Whose clock that was is gone.
            let models: Vec<NestingModel> = row.comparison.models().collect();
            row.anew(&models, report.now)
        } else if row.comparison.models().any(missing) {
            let both = row.comparison.models().filter(|model| !missing(*model));
            match both.collect::<Vec<_>>() {
                none if none.is_empty() => row.anew(&report.models, report.now),
                both => row.anew(&both, report.now),
            }
        } else {
            row
        };
        after.reported_at = after.reported_at.max(report.now);
        if report.number == number && after.number == number {
            report.slots.iter().for_each(|slot| after.add(slot, report.now));
        }
        after.complete(report.now);
        after.assert_invariants();
        Ok(Some(after))
    }

    fn first(attempt: u64, report: &PoolReport) -> PooledComparison {
        let length = ObservedBy::AllNodes.slot_length(attempt);
        let comparison = ModelComparison::new(ObservedBy::AllNodes, &report.models, length);
        let (reported_at, open) = (report.now, Vec::new());
        let mut first =
            PooledComparison { number: 1, from: 0, reported_at, open, nodes: 0, comparison };
        first.learn(report.now);
        first
    }

    /// Another first comparison, of these models.
    fn anew(self, models: &[NestingModel], now: u64) -> PooledComparison {
        let length = self.comparison.length;
        let comparison = ModelComparison::new(ObservedBy::AllNodes, models, length);
        let (reported_at, open) = (now, Vec::new());
        let number = self.number.wrapping_add(1);
        let mut anew =
            PooledComparison { number, from: 0, reported_at, open, nodes: 0, comparison };
        anew.learn(now);
        anew
    }

    /// All are to see what it is now before slots are counted.
    fn learn(&mut self, now: u64) {
        let length = self.comparison.length;
        self.from = (now / length).saturating_add(SLOTS_TO_LEARN).saturating_mul(length);
        self.open.clear();
    }

    /// A node tells of a slot.
    fn add(&mut self, reported: &PooledSlot, now: u64) {
        let length = self.comparison.length;
        let is_slot = reported.begun.is_multiple_of(length) && reported.slot.is_plausible();
        if reported.begun < self.from || reported.begun.saturating_add(length) > now || !is_slot {
            return;
        }
        match self.open.iter_mut().find(|it| it.begun == reported.begun) {
            Some(slot) => {
                slot.slot.add(&reported.slot);
                slot.nodes = slot.nodes.saturating_add(reported.nodes);
            }
            None => {
                let after = self.open.iter().take_while(|it| it.begun < reported.begun).count();
                self.open.insert(after, *reported);
            }
        }
    }

    /// Slots of which all have reported, or could have, are compared.
    fn complete(&mut self, now: u64) {
        let length = self.comparison.length;
        let wait = (1 + SLOTS_TO_REPORT) * length;
        while let Some(first) = self.open.first().copied() {
            let is_over = first.begun.saturating_add(wait) <= now;
            if !is_over && self.open.len() <= SLOTS_OPEN_MOST {
                return;
            }
            self.open.remove(0);
            (self.nodes, self.from) = (first.nodes, first.begun.saturating_add(length));
            if self.comparison.add(first.begun, &first.slot) {
                self.number = self.number.wrapping_add(1);
                return self.learn(now);
            }
        }
    }

    /// Whether it can be gone on with: what is read from a row may be anything.
    fn is_plausible(&self) -> bool {
        let open = self.open.iter();
        self.comparison.is_plausible()
            && self.open.len() <= SLOTS_OPEN_MOST
            && self.open.is_sorted_by(|a, b| a.begun < b.begun)
            && open.clone().all(|it| it.begun >= self.from && it.slot.is_plausible())
    }

    fn assert_invariants(&self) {
        let open = &self.open;
        assert!(open.len() <= SLOTS_OPEN_MOST, "few slots wait: {self:?}");
        assert!(open.is_sorted_by(|a, b| a.begun < b.begun), "slots rise: {self:?}");
        assert!(open.iter().all(|it| it.begun >= self.from), "slots count: {self:?}");
    }
}
