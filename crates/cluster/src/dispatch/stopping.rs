//! A loop ends in order: what is open may end, what is under way is decided, what was taken in is
//! answered, and everybody is told.

use muesli_core::Nanos;

use crate::dispatch::event_loop::{Loop, STOPPING_AT_MOST, Stopping};

impl Loop {
    /// Whether the loop was told to stop and is done. Open transactions may end first, then the
    /// commits under way here and those that participants here wait for are decided, then what was
    /// taken in is answered, and in the end everybody is told.
    pub(super) fn has_stopped(&mut self) -> bool {
        if !self.entry_point.is_stopping() {
            return false;
        }
        // Nobody is to wait for more where all comes to its end.
        self.loop_engine.inner.borrow_mut().send_held();
        let now = self.loop_engine.inner.borrow().now();
        let late = |since: Nanos| now - since > STOPPING_AT_MOST;
        let (unfinished, in_doubt) = self.loop_engine.inner.borrow().machine.unfinished();
        match self.stopping {
            Stopping::No => {
                self.loop_engine.closing.set(true);
                self.stopping = Stopping::Ending(now);
            }
            Stopping::Ending(since) => {
                // Whoever was answered in this turn has not been polled yet.
                let is_polled = !self.tasks.poll();
                if (unfinished == 0 && is_polled) || now - since > self.close_within {
                    self.end_tasks();
                    self.stopping = Stopping::Settling(now);
                }
            }
            Stopping::Settling(since) => {
                if (unfinished == 0 && in_doubt == 0) || late(since) {
                    self.loop_engine.inner.borrow_mut().leave();
                    self.stopping = Stopping::Answering(now);
                }
            }
            Stopping::Answering(since) => {
                if !self.loop_engine.inner.borrow().is_gated() || late(since) {
                    self.stopping = Stopping::Leaving(now);
                    self.send_farewell(now);
                }
            }
            Stopping::Leaving(since) => {
                let all_sent = self.loop_engine.inner.borrow().outside.outbox.waiting().0 == 0;
                return all_sent || late(since);
            }
        }
        self.entry_point.signal.raise();
        false
    }

    /// Drops what runs on the loop, and aborts what is open.
    pub(super) fn end_tasks(&mut self) {
        self.tasks.clear();
        self.entry_point.shut();
        self.loop_engine.inner.borrow_mut().abort_open();
    }
}
