//! The same calls for threads that are no executor: they block until the answer is there.
//!
//! A blocking thread runs its body itself where nobody is in the loop's state; else it hands the
//! body to whoever is, and waits. While a body waits for something its thread is out of the state.

use std::future::Future;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use muesli_core::{Call, Class, Fragment, Gave, Invoked, Outcome, Place, TxnId, client};

use crate::bodies::direct::DirectTx;
use crate::bodies::handed::{HandedBody, HandedEnd};
use crate::database::handle::Db;
use crate::dispatch::access::{Admission, EnteredState, HandingCaller, LoopAccess};
use crate::dispatch::in_place::run_in_place;
use crate::error::Error;
use crate::plans::{self, PlannedProcedure};
use crate::procedures::encoding;
use crate::procedures::stored::StoredProcedure;
use crate::session::token::SessionToken;
use crate::transaction::explicit::Transaction;
use crate::transaction::results::Results;
use crate::transaction::tx::Tx;

pub use crate::bodies::in_state::{PolledInState, StateCaller, StateEntry};
pub use crate::dispatch::block_on::block_on;

/// A loop that takes no new work, as so much waits for its disk, is asked again after so long by
/// who has a closure for it.
const CONGESTED_PAUSE: Duration = Duration::from_millis(1);

/// A database handle whose calls block.
///
/// A database in this process runs a body on the thread that calls, with that thread's stack; or,
/// where others are at work, on one of theirs. A body that awaits something else than its
/// transaction is run again from its beginning where that was not there at once, as after a
/// conflict: what it does outside of its transaction is to be such that it may be done again.
///
/// Not for bodies of transactions and other tasks on a loop, of whichever database: there each call
/// answers [`Error::BlocksLoop`], and does nothing. What such a body needs it awaits.
#[derive(Clone, Debug)]
pub struct Blocking {
    pub(crate) db: Db,
}

impl Db {
    /// The same calls for threads that are no executor.
    pub fn blocking(&self) -> Blocking {
        Blocking { db: self.clone() }
    }
}

impl Blocking {
    /// See [`Db::transact`].
    ///
    /// # Errors
    /// As there.
    pub fn transact<T, E, F>(&self, body: F) -> Result<T, E>
    where
        F: AsyncFn(&Tx) -> Result<T, E> + Send + 'static, // It is sent to a loop's thread.
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        self.run_body(body, false).map(|(answer, _)| answer)
    }

    /// See [`Db::atomic`].
    ///
    /// # Errors
    /// As there.
    pub fn atomic<T, E, F>(&self, body: F) -> Result<T, E>
    where
        F: AsyncFn(&Tx) -> Result<T, E> + Send + 'static, // It is sent to a loop's thread.
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        self.transact(body)
    }

    /// See [`Db::transact_answering`].
    ///
    /// # Errors
    /// As there.
    pub fn transact_answering<T, E, F>(&self, body: F) -> Result<(T, Results), E>
    where
        F: AsyncFn(&Tx) -> Result<T, E> + Send + 'static, // It is sent to a loop's thread.
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        self.run_body(body, true).map(|(answer, given)| (answer, Results(given)))
    }

    /// Runs a plain closure as a transaction of loop `home` (of one loop: 0), on this thread, and
    /// commits it; conflicts are retried. It cannot wait, so it reads keys of that loop alone; that
    /// makes it the cheapest transaction there is. As [`Db::call_here`] does for tasks on a loop.
    ///
    /// # Errors
    /// As there; [`Error::NotHere`] where the data are in another process, and where a key that is
    /// read is just being committed by a transaction over several loops.
    pub fn call_on<T, E: From<Error> + 'static>(
        &self,
        home: usize,
        body: impl FnMut(&mut DirectTx<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        if client::is_inside() {
            return Err(Error::BlocksLoop.into());
        }
        let Some(access) = self.access(home % self.db.loops().max(1)) else {
            return Err(Error::NotHere.into());
        };
        let entered = loop {
            match access.try_enter() {
                Admission::Entered => break true,
                Admission::Congested => thread::sleep(CONGESTED_PAUSE),
                Admission::Occupied | Admission::Served | Admission::Shut => break access.enter(),
            }
        };
        match entered {
            true => self.run_inside(access, self.db.call_here(body)),
            false => Err(self.db.closed().into()),
        }
    }

    /// See [`Db::begin`]; the transaction's own calls are waited for by [`block_on`].
    ///
    /// # Errors
    /// As there.
    pub fn begin(&self) -> Result<Transaction, Error> {
        self.wait_for(self.db.begin())
    }

    /// See [`Db::invoke`].
    ///
    /// # Errors
    /// As there.
    pub fn invoke(&self, class: Class, fragments: Vec<Fragment>) -> Result<Invoked, Error> {
        let call = Call { class, fragments };
        let home = self.db.loop_of(&call);
        self.run(home, self.db.invoke(call.class, call.fragments))
    }

    /// See [`Db::run_plan`].
    ///
    /// # Errors
    /// As there.
    pub fn run_plan<P: PlannedProcedure>(
        &self,
        arguments: &P::Arguments,
    ) -> Result<P::Answer, Error> {
        let fragments = self.db.plan_fragments::<P>(arguments)?;
        plans::answer::<P>(&self.invoke(Class::Auto, fragments)?)
    }

    /// See [`Db::execute`].
    ///
    /// # Errors
    /// As there.
    pub fn execute<P: StoredProcedure>(
        &self,
        place: Place,
        arguments: &P::Arguments,
    ) -> Result<P::Answer, Error> {
        let fragments = vec![encoding::fragment::<P>(place, arguments)?];
        encoding::first_answer::<P>(&self.invoke(Class::Auto, fragments)?)
    }

    /// See [`Db::token`].
    ///
    /// # Errors
    /// As there.
    pub fn token(&self) -> Result<SessionToken, Error> {
        self.wait_for(self.db.token())
    }

    /// See [`Db::outcome`].
    ///
    /// # Errors
    /// As there.
    pub fn outcome(&self, txn: TxnId) -> Result<Outcome, Error> {
        self.wait_for(self.db.outcome(txn))
    }

    /// Waits for what the loops do.
    fn wait_for<T>(&self, future: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        if client::is_inside() {
            return Err(Error::BlocksLoop);
        }
        block_on(future)
    }

    /// Runs what is asked of one loop in that loop's state, once nobody else is in it.
    fn run<T>(
        &self,
        home: usize,
        future: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        if client::is_inside() {
            return Err(Error::BlocksLoop);
        }
        let Some(access) = self.access(home) else { return block_on(future) };
        match access.try_enter() {
            Admission::Congested => block_on(future),
            Admission::Entered => self.run_inside(access, future),
            Admission::Occupied | Admission::Served | Admission::Shut => match access.enter() {
                true => self.run_inside(access, future),
                false => Err(self.db.closed()),
            },
        }
    }

    /// Runs a future on this thread, which is in the loop's state.
    fn run_inside<T, E: From<Error>>(
        &self,
        access: &dyn LoopAccess,
        future: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let ran = run_in_place(access, EnteredState::new(access), future);
        ran.unwrap_or_else(|| Err(self.db.closed().into()))
    }

    /// The state of a loop, where loops are in this process.
    fn access(&self, home: usize) -> Option<&dyn LoopAccess> {
        self.db.inner.driver.as_ref()?.access(home)
    }

    fn run_body<T, E, F>(&self, body: F, asks: bool) -> Result<(T, Vec<Gave>), E>
    where
        F: AsyncFn(&Tx) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        if client::is_inside() {
            return Err(Error::BlocksLoop.into());
        }
        let Some(access) = self.access(self.db.loop_of_thread()) else {
            return block_on(self.db.repeat_there(body, asks));
        };
        match access.try_enter() {
            Admission::Entered => self.run_inside(access, self.db.repeat(&body, asks, None)),
            Admission::Congested => block_on(self.db.repeat_there(body, asks)),
            // Where there are several loops most bodies wait for another one.
            _ if self.db.loops() > 1 => match access.enter() {
                true => self.run_inside(access, self.db.repeat(&body, asks, None)),
                false => Err(self.db.closed().into()),
            },
            Admission::Occupied | Admission::Served | Admission::Shut => {
                self.hand(access, body, asks)
            }
        }
    }

    /// Leaves a body to whoever is in the loop's state.
    #[cold]
    fn hand<T, E, F>(
        &self,
        access: &dyn LoopAccess,
        body: F,
        asks: bool,
    ) -> Result<(T, Vec<Gave>), E>
    where
        F: AsyncFn(&Tx) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        let (handed, _handing) =
            (Arc::new(HandedBody::new(&self.db, body)), HandingCaller::new(access));
        match access.enter_or_hand(Arc::clone(&handed) as _) {
            Admission::Entered => {
                let entered = EnteredState::new(access);
                let (body, _) = handed.take();
                let ran = run_in_place(access, entered, self.db.repeat(&body, asks, None));
                return ran.unwrap_or_else(|| Err(self.db.closed().into()));
            }
            Admission::Congested => return block_on(self.db.repeat_there(handed.take().0, asks)),
            Admission::Occupied | Admission::Shut => return Err(self.db.closed().into()),
            Admission::Served => {}
        }
        let (body, end) = handed.take();
        match end {
            Some(HandedEnd::Committed(answer, given)) => Ok((answer, given)),
            Some(HandedEnd::Failed(error)) => Err(error),
            Some(HandedEnd::Panicked(panic)) => resume_unwind(panic),
            end => match access.enter() {
                true => self.run_inside(access, self.db.go_on(&body, asks, end)),
                false => Err(self.db.closed().into()),
            },
        }
    }
}
