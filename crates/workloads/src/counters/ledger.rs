//! What each client knows it has added, what it may have, and what it saw wrong.

use std::collections::BTreeMap;

use crate::check::Complaints;
use crate::tally::Ended;

/// What was added to a counter of a group.
pub(super) type Added = (usize, usize, i64);

/// The books of one client, over all of its lives.
#[derive(Debug, Default)]
pub(super) struct CounterLedger {
    /// What was added, by group and counter.
    pub sure: BTreeMap<(usize, usize), i64>,
    /// What may have been.
    pub perhaps: BTreeMap<(usize, usize), i64>,
    /// What the transaction under way adds.
    pub under_way: Vec<Added>,
    /// How often hot counters were read.
    pub reads: u64,
    /// Those that showed less than before.
    pub wrong_reads: Complaints,
}

impl CounterLedger {
    /// A life begins; what the one before left open may have been added.
    pub fn begin_incarnation(&mut self) {
        for (group, counter, amount) in std::mem::take(&mut self.under_way) {
            *self.perhaps.entry((group, counter)).or_default() += amount;
        }
    }

    /// The transaction under way has ended.
    pub fn settle(&mut self, ended: &Ended) {
        if *ended == Ended::Unknown {
            return self.begin_incarnation();
        }
        for (group, counter, amount) in std::mem::take(&mut self.under_way) {
            if *ended == Ended::Committed {
                *self.sure.entry((group, counter)).or_default() += amount;
            }
        }
    }
}
