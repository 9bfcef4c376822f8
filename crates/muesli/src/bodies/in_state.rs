//! Futures that a caller polls itself, each time in the state of a loop.
//!
//! For callers that may not simply block: an interpreter whose lock is to be let go of before a
//! wait, or an executor that polls and never waits. What such a future asks of the loop is a
//! function call, as for [`Blocking`](crate::blocking::Blocking), and between two polls its caller
//! is outside of the state. So a transaction that was [begun](crate::Db::begin) in such a future is
//! one whose operations are polled in others, and its caller runs any code between them: that keeps
//! nobody out of the state.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::thread::{self, ThreadId};

use muesli_core::client;

use crate::database::handle::Db;
use crate::dispatch::access::{Admission, EnteredState, LoopAccess};
use crate::error::Error;

/// Which wait for the state of a loop a poll may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateEntry {
    /// None: where somebody is in the state, nothing is polled.
    IfFree,
    /// Until nobody else is in the state. Nobody stays there for long: no more than a tick of the
    /// loop, or one step of a body in Rust.
    OnceFree,
    /// The same, for the begin of a transaction: where the loop takes no new work, nothing is
    /// polled.
    ForNewWork,
}

/// How a poll in the state of a loop went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolledInState<T> {
    /// The future has ended.
    Ready(T),
    /// It waits, and wakes its caller.
    ///
    /// A loop that ends does not wake who waits for it: it drops their wakers. Who cannot do
    /// without notices that its waker was dropped, and polls once more, which is then an error.
    Waiting,
    /// It was not polled, as the state is not free.
    Occupied,
    /// It was not polled, as the loop takes no new work: its caller pauses for a moment.
    Congested,
}

/// Who polls futures in the state of a loop.
///
/// One of a database on a cluster polls them without: there they are sent to the loop.
#[derive(Debug)]
pub struct StateCaller {
    db: Db,
    home: usize,
    /// On which thread it told the loop that it comes back.
    pending: Option<ThreadId>,
}

impl StateCaller {
    /// A caller in the state of the loop that is this thread's. Futures that belong to each other
    /// (of one transaction) are all polled in the state of one loop; any thread may do it.
    pub fn new(db: &Db) -> StateCaller {
        StateCaller { db: db.clone(), home: db.loop_of_thread(), pending: None }
    }

    /// Another caller in the state of the same loop.
    pub fn beside(&self) -> StateCaller {
        StateCaller { db: self.db.clone(), home: self.home, pending: None }
    }

    /// The database handle that it is of.
    pub fn db(&self) -> &Db {
        &self.db
    }

    /// Polls a future once.
    ///
    /// # Errors
    /// [`Error::BlocksLoop`] in a body or another task on a loop; [`Error::Closed`], or why the
    /// database was closed.
    pub fn poll<F: Future>(
        &mut self,
        future: Pin<&mut F>,
        cx: &mut Context<'_>,
        entry: StateEntry,
    ) -> Result<PolledInState<F::Output>, Error> {
        if client::is_inside() {
            return Err(Error::BlocksLoop);
        }
        let Some(access) = access_of(&self.db, self.home) else {
            return Ok(match future.poll(cx) {
                Poll::Ready(answer) => PolledInState::Ready(answer),
                Poll::Pending => PolledInState::Waiting,
            });
        };
        let entered = match self.enter(access, entry)? {
            Ok(entered) => entered,
            Err(Admission::Congested) => return Ok(PolledInState::Congested),
            Err(_) => return Ok(PolledInState::Occupied),
        };
        match future.poll(cx) {
            Poll::Ready(answer) => {
                if let Some(noted_by) = self.pending.take() {
                    access.no_longer_pending(noted_by);
                }
                drop(entered);
                Ok(PolledInState::Ready(answer))
            }
            Poll::Pending => {
                // Before the state is left: the loop does not end while somebody is to come back.
                if self.pending.is_none() {
                    access.is_pending();
                    self.pending = Some(thread::current().id());
                }
                entered.leave_to_others();
                Ok(PolledInState::Waiting)
            }
        }
    }

    /// Ends what has not ended by itself, in the state: `end` drops a future that waits, or a
    /// transaction. Waits until nobody else is in the state.
    pub fn end_in_state(&mut self, end: impl FnOnce()) {
        let access = access_of(&self.db, self.home).filter(|_| !client::is_inside());
        let entered = access.filter(|access| access.enter()).map(EnteredState::new);
        end();
        drop(entered);
        self.no_longer_pending();
    }

    /// The state, or why nobody enters it now.
    fn enter<'a>(
        &self,
        access: &'a dyn LoopAccess,
        entry: StateEntry,
    ) -> Result<Result<EnteredState<'a>, Admission>, Error> {
        match (access.try_enter(), entry) {
            (Admission::Entered, _) => {}
            (_, StateEntry::IfFree) => return Ok(Err(Admission::Occupied)),
            (Admission::Congested, StateEntry::ForNewWork) => return Ok(Err(Admission::Congested)),
            _ if access.enter() => {}
            _ => return Err(self.db.closed()),
        }
        Ok(Ok(EnteredState::new(access)))
    }

    fn no_longer_pending(&mut self) {
        if let Some(noted_by) = self.pending.take()
            && let Some(access) = access_of(&self.db, self.home)
        {
            access.no_longer_pending(noted_by);
        }
    }
}

impl Drop for StateCaller {
    fn drop(&mut self) {
        self.no_longer_pending();
    }
}

/// The state of a loop, where loops are in this process.
fn access_of(db: &Db, home: usize) -> Option<&dyn LoopAccess> {
    db.inner.driver.as_ref()?.access(home)
}
