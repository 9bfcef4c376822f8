//! The state of a loop, for threads that are none: who enters works with it in place.

use std::sync::Arc;
use std::thread::{self, ThreadId};

use crate::dispatch::state_lock::LeaveMode;

/// What a thread leaves to another one that is in a loop's state.
pub(crate) trait HandedJob: Send + Sync {
    /// Does it, where the loop's engine is here. It does not panic.
    fn run(&self);
}

/// How a thread fared that wanted into a loop's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// It is inside.
    Entered,
    /// Somebody else is, or the loop has ended.
    Occupied,
    /// Somebody else was, and has done its job.
    Served,
    /// So much waits for the loop's disk, or for other loops, that it takes no new work.
    Congested,
    /// The loop has ended.
    Shut,
}

/// The way of other threads into the state of a loop, of whichever protocol.
pub(crate) trait LoopAccess: Send + Sync {
    /// Enters the state where nobody is: the loop's engine is here until it is [left](Self::leave).
    fn try_enter(&self) -> Admission;
    /// Enters the state, once nobody else is in it; false: the loop has ended.
    fn enter(&self) -> bool;
    /// Enters the state, if nobody is in it; else whoever is does the job.
    fn enter_or_hand(&self, job: Arc<dyn HandedJob>) -> Admission;
    /// Leaves the state, after the jobs of others that wait if it is their turn.
    fn leave(&self, leaving: LeaveMode);
    /// Whether the loop has ended.
    fn is_shut(&self) -> bool;
    /// Nobody enters any more.
    fn shut(&self);
    /// The loop's thread is over: whatever is left of the state is dropped.
    fn end(&self);
    /// This thread waits outside for something, and is unparked when the loop ends.
    fn is_pending(&self);
    /// What this thread noted so is over; any thread may say so.
    fn no_longer_pending(&self, noted_by: ThreadId);
    /// This thread leaves a job to others: what came of it is not yet known to its caller.
    fn hands_over(&self);
    /// It is.
    fn goes_on(&self);
    /// Whether nobody may be in the state, or nobody comes into it any more but its own thread.
    fn may_be_free(&self) -> bool;
    /// Does what was sent to the loop, where nobody is in its state, by who is in the state of
    /// loop `from`; false: somebody is.
    fn visit_from(&self, from: usize) -> bool;
    /// Whether what a thread waits for outside is there as soon as another one has done it.
    fn answers_soon(&self) -> bool;
}

/// A thread that is outside of a loop's state and is to come back: the loop ends its transactions
/// first, and wakes it at its own end.
pub(crate) struct PendingCaller<'a>(&'a dyn LoopAccess, ThreadId);

impl<'a> PendingCaller<'a> {
    pub fn new(access: &'a dyn LoopAccess) -> PendingCaller<'a> {
        access.is_pending();
        PendingCaller(access, thread::current().id())
    }
}

impl Drop for PendingCaller<'_> {
    fn drop(&mut self) {
        self.0.no_longer_pending(self.1);
    }
}

/// A thread that leaves a job to others, until it has gone on with what came of it.
pub(crate) struct HandingCaller<'a>(&'a dyn LoopAccess);

impl<'a> HandingCaller<'a> {
    pub fn new(access: &'a dyn LoopAccess) -> HandingCaller<'a> {
        access.hands_over();
        HandingCaller(access)
    }
}

impl Drop for HandingCaller<'_> {
    fn drop(&mut self) {
        self.0.goes_on();
    }
}

/// A thread is in a loop's state, until this is dropped.
pub(crate) struct EnteredState<'a> {
    access: &'a dyn LoopAccess,
    leaving: LeaveMode,
}

impl<'a> EnteredState<'a> {
    /// Of a thread that has entered.
    pub fn new(access: &'a dyn LoopAccess) -> EnteredState<'a> {
        EnteredState { access, leaving: LeaveMode::ForNow }
    }

    /// Leaves it to others: the thread has to wait.
    pub fn leave_to_others(mut self) {
        self.leaving = LeaveMode::ForOthers;
    }
}

impl Drop for EnteredState<'_> {
    fn drop(&mut self) {
        self.access.leave(self.leaving);
    }
}
