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
//!   long. By more: whoever is behind does not take part, and chooses by itself (see
//!   [`PoolRefusal`]). Where who is ahead has told nothing for a minute, or four slots, the row is
//!   begun anew.
//! * Nodes cannot run the same models: those are compared that all can run which told something in
//!   the last 16 slots.
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
pub(super) mod reports;

use serde::{Deserialize, Serialize};

use super::NestingModel;
use super::comparison::{ModelComparison, ObservedBy};
use super::took::TimeSlot;

/// A slot is complete when it has been over for the length of so many: by then each node has
/// reported of it, also one whose clock is behind by a slot.
const SLOTS_TO_REPORT: u64 = 2;
/// Not more slots than so many wait for reports.
const SLOTS_OPEN_MOST: usize = 4;
/// Slots that begin in the next so many after a change are not counted.
const SLOTS_TO_LEARN: u64 = 2;
/// A clock that is behind what the row says by more than so many slots is another clock.
const SLOTS_AHEAD_MOST: u64 = 1;
/// A model that is not compared, since some node cannot run it, is tried again when no such node
/// has reported for so many slots.
const SLOTS_NARROW: u64 = 16;

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
    /// The row that it did not take part in was last written at this time, long ago.
    pub refused: Option<u64>,
}

/// Why a node does not take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PoolRefusal {
    /// The row was written by a clock that is far ahead, at this time; its slots are so long. If it
    /// stays as it is, whose clock that was is gone, and the row is written anew.
    OtherClock { written: u64, length: u64 },
    /// A program of another version wrote the row.
    OtherFormat,
}

/// The comparison of all nodes that run transactions at a site, as it is in its row.
///
/// Invariants: slots that wait for reports rise, begin at `from` or later, and are no more than
/// [`SLOTS_OPEN_MOST`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct PooledComparison {
    /// When it was begun.
    pub since: u64,
    /// Counts the changes after which what was observed before says nothing any more; it begins
    /// with the time, so that no two rows of a site have the same.
    pub number: u64,
    /// Slots count that begin then or later.
    from: u64,
    /// When somebody reported last, by that one's clock.
    reported_at: u64,
    /// When somebody did last who can run no other models than these.
    narrow_at: u64,
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
                return Err(PoolRefusal::OtherClock { written: reported_at, length });
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
        } else if row.is_narrower_than(report) && row.is_narrow_no_more(report.now) {
            row.anew(&report.models, report.now)
        } else {
            row
        };
        if !after.is_narrower_than(report) {
            after.narrow_at = after.narrow_at.max(report.now);
        }
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
        PooledComparison::begun(report.now, report.now, comparison)
    }

    /// Another first comparison, of these models.
    fn anew(self, models: &[NestingModel], now: u64) -> PooledComparison {
        let length = self.comparison.length;
        let comparison = ModelComparison::new(ObservedBy::AllNodes, models, length);
        PooledComparison::begun(self.number.wrapping_add(1).max(now), now, comparison)
    }

    fn begun(number: u64, now: u64, comparison: ModelComparison) -> PooledComparison {
        let mut begun = PooledComparison {
            since: now,
            number,
            from: 0,
            reported_at: now,
            narrow_at: now,
            open: Vec::new(),
            nodes: 0,
            comparison,
        };
        begun.learn(now);
        begun
    }

    /// Whether the node could run more models.
    fn is_narrower_than(&self, report: &PoolReport) -> bool {
        report.models.iter().any(|model| self.comparison.models().all(|it| it != *model))
    }

    /// Whether no node that could not has told anything for long.
    fn is_narrow_no_more(&self, now: u64) -> bool {
        let long = SLOTS_NARROW * self.comparison.length;
        now > self.narrow_at.saturating_add(long)
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
        let (open, length) = (&self.open, self.comparison.length);
        let is_slot = |it: &PooledSlot| {
            let (begun, now) = (it.begun, self.reported_at);
            begun.is_multiple_of(length) && (self.from..now).contains(&begun)
        };
        let learning = (SLOTS_TO_LEARN + 1).saturating_mul(length);
        self.comparison.is_plausible_at(self.reported_at)
            && self.from <= self.reported_at.saturating_add(learning)
            && self.narrow_at <= self.reported_at
            && open.len() <= SLOTS_OPEN_MOST
            && open.is_sorted_by(|a, b| a.begun < b.begun)
            && open.iter().all(|it| is_slot(it) && it.slot.is_plausible())
    }

    fn assert_invariants(&self) {
        let open = &self.open;
        assert!(open.len() <= SLOTS_OPEN_MOST, "few slots wait: {self:?}");
        assert!(open.is_sorted_by(|a, b| a.begun < b.begun), "slots rise: {self:?}");
        assert!(open.iter().all(|it| it.begun >= self.from), "slots count: {self:?}");
    }
}

#[cfg(test)]
#[path = "row_tests.rs"]
mod tests;
