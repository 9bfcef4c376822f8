//! The client's side of a driver: what the library's transactions call.
//!
//! A transaction's body is ordinary async code. While a driver polls it, the driver's engine is
//! *here*, in a thread-local: an operation on data of this loop is then a function call whose
//! answer is ready inside the poll. What must wait is named by an [`OpId`] and asked for again.

pub mod deadlines;
pub mod operations;
pub mod traffic;

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::bytes::SmallBytes;
use crate::catalog::Catalog;
use crate::contract::{Answer, Operation, Put, Step};
use crate::deadlines::{DeadlineId, Due};
use crate::delay::Gave;
use crate::ids::{NodeId, OpId, SpaceId, Txn, TxnId};
use crate::options::TxnOptions;
use crate::outcome::{Committed, Failure, Outcome};
use crate::time::Nanos;

/// A task that a driver polls: a client, or a transaction body shipped to the data.
pub type Task = Pin<Box<dyn Future<Output = ()>>>;

/// Makes a task, on the thread that polls it.
pub type MakeTask = Box<dyn FnOnce() -> Task + Send>;

/// The answer to a commit, and what the transaction's delayed actions gave if that was asked for.
pub type Answered = (Committed, Vec<Gave>);

/// Where the values of keys go that are read, one for each key.
pub type ValuesOut<'a> = &'a mut [Option<SmallBytes>];

/// One node of a driver, as the client code polled on it sees it.
pub trait Engine: Any {
    /// The database this engine belongs to, unique in the process.
    fn database(&self) -> u64;
    /// Does what is asked of the node.
    fn operate(&self, operation: Operation) -> Step;
    /// [`Operation::Begin`], as [`put`](Self::put).
    fn begin(&self, options: TxnOptions) -> Step<Txn> {
        self.operate(Operation::Begin(options)).map(Answer::begun)
    }
    /// [`Operation::Put`]: an engine on whose own loop most operations are answered does this by
    /// name, which spares them the way of an [`Operation`] and an [`Answer`] through memory.
    fn put(&self, txn: Txn, put: Put) -> Step<()> {
        self.operate(Operation::Put(txn, put)).map(Answer::written)
    }
    /// [`Operation::Commit`], as [`put`](Self::put).
    fn commit(&self, txn: Txn) -> Step<Answered> {
        self.operate(Operation::Commit(txn)).map(Answer::answered)
    }
    /// Reads keys straight into `out`, which is as long, if that can be done at once; else false,
    /// and [`operate`](Self::operate) is to be asked. A driver that counts every operation answers
    /// false.
    fn peek(&self, txn: Txn, space: SpaceId, keys: &[SmallBytes], out: ValuesOut<'_>) -> bool;
    /// What sessions of the node may have seen, where a timestamp does not tell it.
    fn session_token(&self) -> Result<Option<(NodeId, SmallBytes)>, Failure>;
    /// A session that comes here has seen this elsewhere.
    fn adopt(&self, session_token: &SmallBytes) -> Result<(), Failure>;
    /// Spaces and placement as the node knows them.
    fn catalog(&self) -> Result<Arc<Catalog>, Failure>;
    /// Something is to happen at `at`, unless it is [taken back](Self::take_back) before that.
    fn deadline(&self, at: Nanos, due: Due) -> DeadlineId;
    /// What was set by [`deadline`](Self::deadline) is not to happen any more.
    fn take_back(&self, deadline: DeadlineId);
    /// Lets `run` work on the node itself, in one step, without the way through this trait for
    /// each operation. A driver that counts every operation does not run it.
    fn direct(&self, run: &mut dyn FnMut(&mut dyn Direct));
    /// What has become of a transaction of this node whose commit was not answered in time.
    fn outcome(&self, txn: TxnId) -> Outcome;
    /// An operation that is answered after this long.
    fn sleep(&self, duration: Nanos) -> OpId;
    /// The answer to a waiting operation, if it has come; else `waker` is woken when it does.
    fn poll(&self, op: OpId, waker: &Waker) -> Poll<Result<Answer, Failure>>;
    /// Nobody waits for this operation any more.
    fn forget(&self, op: OpId);
    /// The time.
    fn now(&self) -> Nanos;
    /// A random number; drawn from the seed in the simulator.
    fn random(&self) -> u64;
    /// Whether the task has run long enough and should let others run.
    fn should_yield(&self) -> bool;
    /// Runs a task on this node; it is made where it is polled, which may be another thread.
    fn spawn(&self, make: MakeTask);
}

/// A node for the length of one step: the operations of bodies that are plain closures, by name,
/// which spares these the way of an [`Operation`] through a call that is not known beforehand.
pub trait Direct {
    /// Begins a transaction.
    fn begin(&mut self, options: TxnOptions) -> Result<Txn, Failure>;
    /// Reads a key.
    fn get(&mut self, txn: Txn, space: SpaceId, key: &SmallBytes) -> Step<Option<SmallBytes>>;
    /// Reads keys straight into `out`; see [`Engine::peek`].
    fn peek(&mut self, txn: Txn, space: SpaceId, keys: &[SmallBytes], out: ValuesOut<'_>) -> bool;
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
    static HERE: RefCell<Option<HereEngine>> = const { RefCell::new(None) };
    /// The database of the engine that is here; zero where none is. Kept beside it, so that the
    /// question costs no call.
    static DATABASE: Cell<u64> = const { Cell::new(0) };
}

/// The engine that is here on a thread.
enum HereEngine {
    /// Its driver has it as well.
    Shared(Rc<dyn Engine>),
    /// It moves between threads, and is only here.
    Lent(Box<dyn Engine>),
}

impl HereEngine {
    #[inline]
    fn engine(&self) -> &dyn Engine {
        match self {
            HereEngine::Lent(engine) => &**engine,
            HereEngine::Shared(engine) => &**engine,
        }
    }
}

/// While it lives, its engine is here on this thread; then the one before is again.
pub struct Entered {
    before: Option<HereEngine>,
}

/// Makes `engine` the one that is here.
pub fn enter(engine: Rc<dyn Engine>) -> Entered {
    Entered { before: put_here(Some(HereEngine::Shared(engine))) }
}

fn put_here(engine: Option<HereEngine>) -> Option<HereEngine> {
    DATABASE.set(engine.as_ref().map_or(0, |here| here.engine().database()));
    HERE.with(|here| std::mem::replace(&mut *here.borrow_mut(), engine))
}

impl Drop for Entered {
    fn drop(&mut self) {
        put_here(self.before.take());
    }
}

/// Makes `engine` the one that is here until it is [taken back](take_back).
///
/// # Panics
/// One is here.
pub fn lend(engine: Box<dyn Engine>) {
    let before = put_here(Some(HereEngine::Lent(engine)));
    assert!(before.is_none(), "an engine is lent where none is");
}

/// The engine that was [lent](lend), which is not here any more.
///
/// # Panics
/// None was.
pub fn take_back() -> Box<dyn Engine> {
    match put_here(None) {
        Some(HereEngine::Lent(engine)) => engine,
        Some(HereEngine::Shared(_)) | None => panic!("no engine was lent to this thread"),
    }
}

/// Whether an engine is here, of whichever database: a body runs on this thread, or another task
/// of a driver.
#[inline]
pub fn is_inside() -> bool {
    DATABASE.get() != 0
}

/// Calls `f` with the engine of `database` if it is here.
#[inline]
pub fn with<T>(database: u64, f: impl FnOnce(&dyn Engine) -> T) -> Option<T> {
    if DATABASE.get() != database {
        return None;
    }
    HERE.with(|here| here.borrow().as_ref().map(|here| f(here.engine())))
}

/// Waits for the answer to an operation that is to come; dropped before that, it tells the engine
/// that nobody does.
#[derive(Debug)]
pub struct AnswerFuture {
    database: u64,
    op: Option<OpId>,
}

impl AnswerFuture {
    /// For what the engine of `database` called `op`.
    pub fn new(database: u64, op: OpId) -> AnswerFuture {
        AnswerFuture { database, op: Some(op) }
    }
}

impl Future for AnswerFuture {
    type Output = Result<Answer, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let op = self.op.expect("polled after it was ready");
        let polled = with(self.database, |engine| engine.poll(op, cx.waker()));
        let polled = polled.unwrap_or(Poll::Ready(Err(Failure::Closed)));
        if polled.is_ready() {
            self.op = None;
        }
        polled
    }
}

impl Drop for AnswerFuture {
    fn drop(&mut self) {
        if let Some(op) = self.op {
            with(self.database, |engine| engine.forget(op));
        }
    }
}

/// Asks the engine of `database`, if it is here, and waits for the answer.
///
/// # Errors
/// The operation failed, or no such engine is here.
pub async fn operate(database: u64, operation: Operation) -> Result<Answer, Failure> {
    match with(database, |engine| engine.operate(operation)).ok_or(Failure::Closed)? {
        Step::Done(done) => done,
        Step::Wait(op) => AnswerFuture::new(database, op).await,
    }
}
