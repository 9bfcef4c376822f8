//! The client's side of a driver: what the library's transactions call.
//!
//! A transaction's body is ordinary async code. While a driver polls it, the driver's engine is
//! *here*, in a thread-local: an operation on data of this loop is then a function call whose
//! answer is ready inside the poll. What must wait is named by an [`OpId`] and asked for again.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};

use crate::bytes::SmallBytes;
use crate::catalog::Catalog;
use crate::contract::{Later, Scan, Step};
use crate::deadlines::{DeadlineId, Due};
use crate::delay::Delay;
use crate::effects::{OpResult, Row};
use crate::ids::{NodeId, OpId, SpaceId, Txn, TxnId};
use crate::options::{Nanos, TxnOptions};
use crate::outcome::{Committed, Doubt, Failure, Outcome};
use crate::procedure::{Call, Invoked};

/// A task that a driver polls: a client, or a transaction body shipped to the data.
pub type Task = Pin<Box<dyn Future<Output = ()>>>;

/// One node of a driver, as the client code polled on it sees it. Methods mirror
/// [`Coordinator`](crate::contract::Coordinator).
pub trait Engine {
    /// The database this engine belongs to, unique in the process.
    fn database(&self) -> u64;
    /// Begins a transaction.
    fn begin(&self, options: TxnOptions) -> Result<Txn, Failure>;
    /// Reads a key.
    fn get(&self, txn: Txn, space: SpaceId, key: &SmallBytes) -> Step<Option<SmallBytes>>;
    /// Reads keys straight into `out`, which is as long, if that can be done at once; else false,
    /// and [`get`](Self::get) or [`get_many`](Self::get_many) is to be asked. A driver that counts
    /// every operation need not offer it.
    fn peek(
        &self,
        txn: Txn,
        space: SpaceId,
        keys: &[SmallBytes],
        out: &mut [Option<SmallBytes>],
    ) -> bool {
        let _ = (txn, space, keys, out);
        false
    }
    /// Reads several keys.
    fn get_many(
        &self,
        txn: Txn,
        space: SpaceId,
        keys: Vec<SmallBytes>,
    ) -> Step<Vec<Option<SmallBytes>>>;
    /// Buffers a write; `None` deletes.
    fn put(
        &self,
        txn: Txn,
        space: SpaceId,
        key: SmallBytes,
        value: Option<SmallBytes>,
    ) -> Result<(), Failure>;
    /// [`put`](Self::put), and what is to be waited for before the write counts as made.
    fn write(
        &self,
        txn: Txn,
        space: SpaceId,
        key: SmallBytes,
        value: Option<SmallBytes>,
    ) -> Step<()>;
    /// Something that need not be done before the commit, and whether its answer is wanted.
    fn later(&self, txn: Txn, delay: &Delay, answered: bool) -> Result<Later, Failure>;
    /// What sessions of the node may have seen, where a timestamp does not tell it.
    fn past(&self) -> Result<Option<(NodeId, SmallBytes)>, Failure>;
    /// A session that comes here has seen this elsewhere.
    fn adopt(&self, past: &SmallBytes) -> Result<(), Failure>;
    /// Spaces and placement as the node knows them.
    fn catalog(&self) -> Result<Arc<Catalog>, Failure>;
    /// Reads a range.
    fn scan(&self, txn: Txn, scan: Scan) -> Step<Vec<Row>>;
    /// Runs a one-round transaction.
    fn invoke(&self, options: TxnOptions, call: Call) -> Step<Invoked>;
    /// Commits.
    fn commit(&self, txn: Txn) -> Step<Committed>;
    /// Rolls back.
    fn rollback(&self, txn: Txn);
    /// Something is to happen at `at`, unless it is [taken back](Self::take_back) before that. A
    /// driver without deadlines need not offer it.
    fn deadline(&self, at: Nanos, due: Due) -> Option<DeadlineId> {
        let _ = (at, due);
        None
    }
    /// What was set by [`deadline`](Self::deadline) is not to happen any more.
    fn take_back(&self, deadline: DeadlineId) {
        let _ = deadline;
    }
    /// Lets `run` work on the node itself, in one step, without the way through this trait for
    /// each operation. A driver that counts every operation need not offer it.
    fn direct(&self, run: &mut dyn FnMut(&mut dyn Direct)) {
        let _ = run;
    }
    /// What has become of a transaction of this node whose commit was not answered in time. A
    /// driver whose clients ask for none need not offer it.
    fn outcome(&self, txn: TxnId) -> Outcome {
        let _ = txn;
        Outcome::NotKnown(Doubt::Elsewhere)
    }
    /// An operation that is answered after this long.
    fn sleep(&self, duration: Nanos) -> OpId;
    /// The answer to a waiting operation, if it has come; else `waker` is woken when it does.
    fn poll(&self, op: OpId, waker: &Waker) -> Poll<OpResult>;
    /// Nobody waits for this operation any more.
    fn forget(&self, op: OpId);
    /// The time.
    fn now(&self) -> Nanos;
    /// A random number; drawn from the seed in the simulator.
    fn random(&self) -> u64;
    /// Whether the task has run long enough and should let others run.
    fn should_yield(&self) -> bool;
    /// Runs a task on this node.
    fn spawn(&self, task: Task);
}

/// Inside an `impl Engine`: the operations that every driver gives to its node alike, by the two of
/// its methods that are named (for what may wait, and for what is answered at once).
#[macro_export]
macro_rules! give_operations_to_the_node {
    ($step:ident, $operate:ident) => {
        fn get(
            &self,
            txn: $crate::Txn,
            space: $crate::SpaceId,
            key: &$crate::SmallBytes,
        ) -> $crate::Step<Option<$crate::SmallBytes>> {
            self.$step(|node, effects| node.get(txn, space, key, effects))
        }

        fn get_many(
            &self,
            txn: $crate::Txn,
            space: $crate::SpaceId,
            keys: Vec<$crate::SmallBytes>,
        ) -> $crate::Step<Vec<Option<$crate::SmallBytes>>> {
            self.$step(|node, effects| node.get_many(txn, space, keys, effects))
        }

        fn put(
            &self,
            txn: $crate::Txn,
            space: $crate::SpaceId,
            key: $crate::SmallBytes,
            value: Option<$crate::SmallBytes>,
        ) -> Result<(), $crate::Failure> {
            self.$operate(|node, effects| node.put(txn, space, key, value, effects))
        }

        fn write(
            &self,
            txn: $crate::Txn,
            space: $crate::SpaceId,
            key: $crate::SmallBytes,
            value: Option<$crate::SmallBytes>,
        ) -> $crate::Step<()> {
            self.$step(|node, effects| node.write(txn, space, key, value, effects))
        }

        fn later(
            &self,
            txn: $crate::Txn,
            delay: &$crate::Delay,
            answered: bool,
        ) -> Result<$crate::Later, $crate::Failure> {
            self.$operate(|node, effects| node.later(txn, delay, answered, effects))
        }

        fn past(&self) -> Result<Option<($crate::NodeId, $crate::SmallBytes)>, $crate::Failure> {
            self.$operate(|node, _| Ok(node.past()))
        }

        fn adopt(&self, past: &$crate::SmallBytes) -> Result<(), $crate::Failure> {
            self.$operate(|node, _| {
                node.adopt(past);
                Ok(())
            })
        }

        fn catalog(&self) -> Result<std::sync::Arc<$crate::Catalog>, $crate::Failure> {
            self.$operate(|node, _| Ok(node.catalog().clone()))
        }

        fn scan(&self, txn: $crate::Txn, scan: $crate::Scan) -> $crate::Step<Vec<$crate::Row>> {
            self.$step(|node, effects| node.scan(txn, scan, effects))
        }
    };
}

/// A node for the length of one step; methods mirror [`Engine`]'s.
pub trait Direct {
    /// Begins a transaction.
    fn begin(&mut self, options: TxnOptions) -> Result<Txn, Failure>;
    /// Reads a key.
    fn get(&mut self, txn: Txn, space: SpaceId, key: &SmallBytes) -> Step<Option<SmallBytes>>;
    /// Reads keys straight into `out`; see [`Engine::peek`].
    fn peek(
        &mut self,
        txn: Txn,
        space: SpaceId,
        keys: &[SmallBytes],
        out: &mut [Option<SmallBytes>],
    ) -> bool;
    /// Buffers a write; `None` deletes.
    fn put(
        &mut self,
        txn: Txn,
        space: SpaceId,
        key: SmallBytes,
        value: Option<SmallBytes>,
    ) -> Result<(), Failure>;
    /// Commits.
    fn commit(&mut self, txn: Txn) -> Step<Committed>;
    /// Rolls back.
    fn rollback(&mut self, txn: Txn);
    /// Nobody waits for this operation any more.
    fn forget(&mut self, op: OpId);
}

thread_local! {
    static HERE: RefCell<Option<Rc<dyn Engine>>> = const { RefCell::new(None) };
    /// The database of the engine that is here; zero where none is. Kept beside it, so that the
    /// question costs no call.
    static DATABASE: Cell<u64> = const { Cell::new(0) };
}

/// While it lives, its engine is here on this thread; then the one before is again.
pub struct Entered {
    before: Option<Rc<dyn Engine>>,
}

/// Makes `engine` the one that is here.
pub fn enter(engine: Rc<dyn Engine>) -> Entered {
    Entered { before: put_here(Some(engine)) }
}

fn put_here(engine: Option<Rc<dyn Engine>>) -> Option<Rc<dyn Engine>> {
    DATABASE.set(engine.as_ref().map_or(0, |engine| engine.database()));
    HERE.with(|here| std::mem::replace(&mut *here.borrow_mut(), engine))
}

impl Drop for Entered {
    fn drop(&mut self) {
        put_here(self.before.take());
    }
}

/// Calls `f` with the engine of `database` if it is here.
#[inline]
pub fn with<T>(database: u64, f: impl FnOnce(&dyn Engine) -> T) -> Option<T> {
    if DATABASE.get() != database {
        return None;
    }
    HERE.with(|here| here.borrow().as_deref().map(f))
}
