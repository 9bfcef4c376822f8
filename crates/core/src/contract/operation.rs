//! What clients ask of a coordinator, and what they are told.

use super::Deferral;
use crate::bytes::SmallBytes;
use crate::delay::{Delay, Gave};
use crate::ids::{OpId, SpaceId, Txn};
use crate::options::TxnOptions;
use crate::outcome::{Abort, Committed, Failure};
use crate::procedure::{Call, Invoked};
use crate::ranges::{Row, Scan};

/// What is asked of a coordinator. Each variant names the [`Answer`] that it gets where it does not
/// fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Begins a transaction; nothing is sent. [`Answer::Begun`], at once.
    Begin(TxnOptions),
    /// Reads a key. [`Answer::Value`].
    Get(Txn, SpaceId, SmallBytes),
    /// Reads several keys, in parallel where they live elsewhere. [`Answer::Values`].
    GetMany(Txn, SpaceId, Vec<SmallBytes>),
    /// Reads a range. [`Answer::Rows`].
    Scan(Txn, Scan),
    /// Buffers a write. [`Answer::Written`]: at once, or where the protocol locks keys as they are
    /// written, when the lock is there.
    Put(Txn, Put),
    /// Leaves something to be done at the commit; whether what it gives is to be told with the
    /// commit's outcome. [`Answer::Delayed`], at once: a protocol that has no better way gives it
    /// back, to be done at once.
    Delay(Txn, Delay, bool),
    /// Begins a level inside of the innermost one, which is to have this number: the first child of
    /// a transaction has 1. [`Answer::Nested`], at once. What is asked of the transaction from now
    /// on is this level's; what is under way has come too late, and fails.
    Nest(Txn, u32),
    /// Ends the innermost level, of this number: what it did is its parent's. [`Answer::Ended`], at
    /// once but where the transaction's options want it validated.
    Merge(Txn, u32),
    /// Ends the innermost level, of this number: its writes are undone, and what it read is its
    /// parent's, which has been influenced by that. Harmless where it is not open.
    /// [`Answer::Ended`], at once.
    Unnest(Txn, u32),
    /// Ends the transaction: all of its writes take effect, or none. [`Answer::Committed`], or
    /// [`Answer::Answered`] where answers of delayed actions were asked for.
    Commit(Txn),
    /// Ends the transaction without effect; operations of it that wait, and later ones, are told
    /// this. Harmless where it has ended or its commit is under way, which then goes on without
    /// anybody waiting. [`Answer::Ended`], at once.
    Abort(Txn, Failure),
    /// Ends the transaction without effect, and waits until something that it has read has changed,
    /// or may have. [`Answer::Changed`]. An [abort](Operation::Abort) ends the wait.
    Watch(Txn),
    /// Runs a one-round transaction, begun and ended in one. [`Answer::Invoked`].
    Invoke(TxnOptions, Call),
}

impl Operation {
    /// The client gives a transaction up.
    pub fn rollback(txn: Txn) -> Operation {
        Operation::Abort(txn, Failure::Aborted(Abort::Rollback))
    }

    /// Whether a transaction begins with it.
    #[inline]
    pub fn begins(&self) -> bool {
        match self {
            Operation::Begin(_) | Operation::Invoke(..) => true,
            Operation::Get(..)
            | Operation::GetMany(..)
            | Operation::Scan(..)
            | Operation::Put(..)
            | Operation::Delay(..)
            | Operation::Nest(..)
            | Operation::Merge(..)
            | Operation::Unnest(..)
            | Operation::Commit(_)
            | Operation::Watch(_)
            | Operation::Abort(..) => false,
        }
    }

    /// Whether a history tells its moment: a transaction begins or ends with it.
    #[inline]
    pub fn is_timed(&self) -> bool {
        self.begins()
            || matches!(self, Operation::Commit(_) | Operation::Watch(_) | Operation::Abort(..))
    }
}

/// A write of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Put {
    /// The space.
    pub space: SpaceId,
    /// The key.
    pub key: SmallBytes,
    /// What it is to be; `None` deletes it.
    pub value: Option<SmallBytes>,
    /// Whether the client may be made to wait for the key's lock. One that cannot wait gets its
    /// locks at the commit, under every protocol.
    pub may_wait: bool,
}

/// The answer to an operation that did not fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Of a begin.
    Begun(Txn),
    /// Of a get.
    Value(Option<SmallBytes>),
    /// Of a get of many, in the order asked.
    Values(Vec<Option<SmallBytes>>),
    /// Of a scan, in its order.
    Rows(Vec<Row>),
    /// Of a put.
    Written,
    /// Of what may be delayed.
    Delayed(Deferral),
    /// Of a level that begins.
    Nested(Nesting),
    /// Of a commit.
    Committed(Committed),
    /// Of a commit of which answers of delayed actions were asked for: those, by their numbers.
    Answered(Committed, Vec<Gave>),
    /// Of an abort, and of a level that ends.
    Ended,
    /// Of a one-round transaction.
    Invoked(Invoked),
    /// Of a wait for a change.
    Changed,
    /// Of a sleep, which the driver answers.
    Awake,
}

/// What a protocol makes of a level that begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nesting {
    /// It has levels: this one can be undone alone.
    Closed,
    /// It has none: what the child does is its transaction's, which ends if the child gives up.
    Flat,
}

/// The answer to an operation, or the name under which the answer will come as an
/// [`Effect::Complete`](crate::contract::Effect::Complete).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step<T = Answer> {
    /// Answered at once.
    Done(Result<T, Failure>),
    /// The answer comes later.
    Wait(OpId),
}

impl<T> Step<T> {
    /// The same with another form of the answer.
    #[inline(always)]
    pub fn map<U>(self, form: impl FnOnce(T) -> U) -> Step<U> {
        match self {
            Step::Done(Ok(answer)) => Step::Done(Ok(form(answer))),
            Step::Done(Err(failure)) => Step::Done(Err(failure)),
            Step::Wait(op) => Step::Wait(op),
        }
    }
}

/// Takes the one answer that an operation may get.
macro_rules! expected {
    ($answer:expr, $form:pat => $given:expr) => {
        match $answer {
            $form => $given,
            other => unexpected(&other),
        }
    };
}

#[cold]
fn unexpected(answer: &Answer) -> ! {
    unreachable!("an operation was answered by {answer:?}")
}

/// Answers as whoever knows what was asked takes them.
impl Answer {
    /// Of [`Operation::Begin`].
    #[inline(always)]
    pub fn begun(self) -> Txn {
        let Answer::Begun(txn) = self else { unexpected(&self) };
        std::mem::forget(self); // Nothing in it to drop: spares the hot path the look.
        txn
    }

    /// Of [`Operation::Get`].
    #[inline(always)]
    pub fn value(self) -> Option<SmallBytes> {
        expected!(self, Answer::Value(value) => value)
    }

    /// Of [`Operation::GetMany`].
    pub fn values(self) -> Vec<Option<SmallBytes>> {
        expected!(self, Answer::Values(values) => values)
    }

    /// Of [`Operation::Scan`].
    pub fn rows(self) -> Vec<Row> {
        expected!(self, Answer::Rows(rows) => rows)
    }

    /// Of [`Operation::Put`].
    #[inline(always)]
    pub fn written(self) {
        let Answer::Written = self else { unexpected(&self) };
        std::mem::forget(self);
    }

    /// Of [`Operation::Delay`].
    pub fn delayed(self) -> Deferral {
        expected!(self, Answer::Delayed(deferral) => deferral)
    }

    /// Of [`Operation::Nest`].
    pub fn nested(self) -> Nesting {
        expected!(self, Answer::Nested(nesting) => nesting)
    }

    /// Of [`Operation::Commit`].
    #[inline(always)]
    pub fn committed(self) -> Committed {
        let committed = match &self {
            Answer::Committed(committed) => *committed,
            Answer::Answered(committed, _) => return *committed,
            other => unexpected(other),
        };
        std::mem::forget(self);
        committed
    }

    /// Of [`Operation::Commit`], with what delayed actions gave.
    pub fn answered(self) -> (Committed, Vec<Gave>) {
        match self {
            Answer::Answered(committed, answers) => (committed, answers),
            other => (other.committed(), Vec::new()),
        }
    }

    /// Of [`Operation::Invoke`].
    pub fn invoked(self) -> Invoked {
        expected!(self, Answer::Invoked(invoked) => invoked)
    }
}

impl<T> Step<T> {
    /// The answer to what never waits.
    ///
    /// # Errors
    /// The operation failed.
    #[inline(always)]
    pub fn at_once(self) -> Result<T, Failure> {
        match self {
            Step::Done(done) => done,
            Step::Wait(op) => unreachable!("{op:?} waits for nothing"),
        }
    }
}
