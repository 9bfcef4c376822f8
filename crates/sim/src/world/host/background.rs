//! What the nodes of a run did beside its transactions: a search whose runs never collect anything,
//! cut a log or end a lease says nothing about what comes of that.

use std::ops::AddAssign;

use muesli_core::Maintenance;

/// What all nodes of a run did beside its transactions, over all of their lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Background {
    /// What their protocols did.
    pub maintenance: Maintenance,
    /// Checkpoints that were published.
    pub checkpoints: u64,
    /// Records that were removed from logs, as checkpoints stand for them.
    pub cut: u64,
}

impl AddAssign for Background {
    fn add_assign(&mut self, more: Background) {
        self.maintenance += more.maintenance;
        self.checkpoints += more.checkpoints;
        self.cut += more.cut;
    }
}
