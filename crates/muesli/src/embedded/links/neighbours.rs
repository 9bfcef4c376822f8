//! What a loop knows of the others of its database: their mailboxes, and the time that all go by.

use std::sync::Arc;

use muesli_core::Nanos;

use super::super::LoopInbox;
use super::super::closing::Closing;

/// The time of a database.
#[derive(Clone, Debug)]
pub(in super::super) struct LoopClock {
    pub clock: quanta::Clock,
    pub origin: u64,
    /// The time at the origin: that of the machine where the data last, and so go by it.
    pub began: Nanos,
}

impl LoopClock {
    /// The time: since the database was opened, or since 1970 where the data last.
    #[inline]
    pub fn read(&self) -> Nanos {
        Nanos(self.began.0 + self.clock.delta_as_nanos(self.origin, self.clock.raw()))
    }
}

/// Which loop it is, and what others see of all.
#[derive(Clone)]
pub(in super::super) struct LoopNeighbours {
    pub at: usize,
    pub inboxes: Arc<[LoopInbox]>,
    pub closing: Arc<Closing>,
}

impl LoopNeighbours {
    /// The loop's own.
    #[inline]
    pub fn inbox(&self) -> &LoopInbox {
        &self.inboxes[self.at]
    }

    /// The log has failed: what waits for it is told to nobody, and all loops end.
    pub fn fail(&self, why: String) {
        self.closing.fail(why);
        self.inboxes.iter().for_each(|inbox| inbox.signal.wake());
    }
}
