//! What can go wrong, said so that one knows what to do.

use muesli_core::catalog::CatalogError;
use muesli_core::{Abort, Failure, Limit, TxnId};
use thiserror::Error;

/// The error of an operation or a transaction. [`kind`](Error::kind) tells what sort it is,
/// [`is_retryable`](Error::is_retryable) whether running the transaction again is right.
///
/// Bodies may return errors of their own: any type that this one can become ([`From`]). What the
/// body returns is what [`transact`](crate::Db::transact) returns, as it is.
///
/// ```
/// # use muesli::{Db, Error, ErrorKind, Options, SpaceOptions};
/// #[derive(Debug, thiserror::Error)]
/// enum Order {
///     #[error("only {0} are left")]
///     TooFew(u64),
///     #[error("this is no number: {0}")]
///     Number(#[from] std::num::ParseIntError),
///     #[error(transparent)]
///     Database(#[from] Error),
/// }
///
/// # fn main() -> Result<(), Error> {
/// let db = Db::open(Options::default().space("stock", SpaceOptions::default()))?;
/// let stock = db.space("stock")?.typed::<String, u64>();
/// let order = |text: &'static str| {
///     db.blocking().transact(async move |tx| {
///         let wanted: u64 = text.parse()?;
///         let left = stock.get(tx, &"pens".to_owned()).await?.unwrap_or(0);
///         if left < wanted {
///             return Err(Order::TooFew(left));
///         }
///         stock.put(tx, &"pens".to_owned(), &(left - wanted)).await?;
///         Ok(left - wanted)
///     })
/// };
/// assert!(matches!(order("three"), Err(Order::Number(_))));
/// assert!(matches!(order("3"), Err(Order::TooFew(0))));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// Other transactions were in the way; nothing was changed. [`transact`](crate::Db::transact)
    /// has retried by itself already.
    #[error(
        "conflict after {attempts} attempts: {reason}; nothing was changed{}",
        if reason.is_retryable() { ", try again later" } else { "" }
    )]
    Conflict {
        /// What stood in the way of the last attempt.
        reason: Abort,
        /// How often it was tried.
        attempts: u32,
    },
    /// A part of the transaction was undone, of which this operation was: the
    /// [child](crate::Tx::nested) at this level is run again by itself. A body that meets this
    /// passes it on.
    #[error("this part of the transaction was undone, and is run again at level {level}")]
    PartialAbort {
        /// The outermost level that was undone; children of the transaction itself have 1.
        level: u32,
    },
    /// The transaction [waits](crate::Tx::retry) for a change of what it has read. A body passes
    /// this on, and is run again by itself.
    #[error(
        "the transaction waits for a change of what it has read: run it by `transact`, which runs \
         it again then"
    )]
    Retry,
    /// Something was asked of a transaction beside a [child](crate::Tx::nested) of it that is open.
    #[error(
        "a child of the transaction is open: wait for its end before using the transaction itself, \
         or beginning another child"
    )]
    ChildOpen,
    /// A delayed action cannot be left to its turn, as this text says; nothing was changed.
    /// [`Db::transact`](crate::Db::transact) runs it again with its actions done at once.
    #[error("a delayed action cannot be left to its turn: {0}; run it again, done at once")]
    FootprintViolation(String),
    /// No answer in time; nothing was changed.
    #[error("no answer within {after_ms} ms; nothing was changed, try again later")]
    Timeout {
        /// How long was waited, in milliseconds.
        after_ms: u64,
    },
    /// The commit was sent and not answered: it may or may not have taken effect.
    /// [`Db::outcome`](crate::Db::outcome) tells later.
    #[error(
        "the outcome of {txn} is unknown: the commit was not answered within {after_ms} ms; \
         ask for its outcome, or read what it wrote, before trying again"
    )]
    Unknown {
        /// How long was waited, in milliseconds.
        after_ms: u64,
        /// The transaction, as [`Db::outcome`](crate::Db::outcome) takes it.
        txn: TxnId,
    },
    /// Larger than a limit; nothing was sent.
    #[error("{what} of {size} bytes is over the limit of {limit} bytes (`{}`)", what.key())]
    TooLarge {
        /// Which limit.
        what: Limit,
        /// Its size in bytes.
        size: usize,
        /// The limit in bytes; see [`Limits`](crate::Limits).
        limit: usize,
    },
    /// A server refused what this process allows: its limits are smaller. Nothing was changed.
    #[error(
        "{0} is over the limit of the server that holds the key (`{key}` there); nothing was \
         changed",
        key = .0.key()
    )]
    OverServerLimit(Limit),
    /// The transaction was open for longer than its [timeout](crate::Db::timeout), and was aborted.
    #[error(
        "the transaction was open for longer than its timeout of {after_ms} ms and was aborted; \
         nothing was changed; `Db::timeout` and `Options::transaction_timeout` allow more"
    )]
    TransactionTimeout {
        /// The timeout, in milliseconds.
        after_ms: u64,
    },
    /// The transaction committed, and its delayed action or its procedures were done, but what that
    /// gave was not told in time: the client was cut off for longer than servers keep it.
    #[error(
        "the transaction committed, but what its delayed action or its procedures gave was not \
         told in time; read what it wrote"
    )]
    AnswerLost,
    /// The transaction has already ended.
    #[error("the transaction has already ended")]
    Ended,
    /// A write in a transaction that only reads, or in a database that is opened for reading only.
    #[error(
        "this transaction is read-only; begin it without `read_only` to write, in a database that \
         is not opened for reading only"
    )]
    ReadOnly,
    /// No snapshot is at hand that is [as fresh](crate::Db::at_most_stale) as a transaction is to
    /// see, and it [does not wait](crate::Db::refusing_stale) for one. There is one soon.
    #[error(
        "no snapshot is at hand that has all commits of {most_ms} ms ago; try again soon, allow \
         for more, or let the transaction wait"
    )]
    NotFresh {
        /// How stale it may be, in milliseconds.
        most_ms: u64,
    },
    /// The protocol does not bound [how stale](crate::Db::at_most_stale) what a transaction sees
    /// is.
    #[error("{0}")]
    Unbounded(String),
    /// The space does not exist, or cannot do this.
    #[error("{0}")]
    Space(String),
    /// The space is of another database: each has its own, also under the same name. (Connections
    /// to one cluster share its spaces.)
    #[error("space number {space} is of another database; ask this one for it by `Db::space`")]
    OtherDatabase {
        /// The space's number in its own database.
        space: u16,
    },
    /// A plain closure read a key that lives on another loop, or that another transaction is just
    /// committing there.
    #[error("the key cannot be read in one step on this loop; use an async body instead")]
    NotHere,
    /// The cluster cannot be connected to.
    #[error("cannot connect: {0}")]
    Unreachable(String),
    /// The [timestamp lease](crate::Connect::timestamp_lease) cannot be used, or was lost, as this
    /// text says. Where it was lost while the database was in use, that is closed, and
    /// transactions that were under way may or may not have taken effect.
    #[error("{0}")]
    Lease(String),
    /// The files of a durable database cannot be used, or could not be written, as this text says.
    /// Where they could not be written while the database was in use, that is closed, and
    /// transactions that were under way may or may not be there when it is opened again.
    #[error("{0}")]
    Storage(String),
    /// The database was closed.
    #[error("the database is closed")]
    Closed,
    /// A [blocking](crate::blocking) call was made in the body of a transaction, or in another task
    /// on a loop. It would keep that loop from all other work while it waits, perhaps for just
    /// that. Nothing was done.
    #[error(
        "a blocking call was made in a transaction's body, or in a task on a loop: await the same \
         call without `blocking()` there"
    )]
    BlocksLoop,
    /// The body gave up, with this reason; nothing was changed.
    #[error("rolled back: {0}")]
    Rollback(String),
    /// A procedure refused, for this reason; nothing was changed.
    #[error("refused: {0}")]
    Refused(String),
    /// A procedure is unknown, was called in a way that it does not allow, or did what it may not.
    #[error("{0}")]
    Procedure(String),
    /// Stored bytes are not what the type expects.
    #[error("stored bytes cannot be decoded: {0}")]
    Codec(String),
    /// An abstract lock is held by a transaction with [open children](crate::open_nesting), or by
    /// one of these, in a mode that conflicts with the mode that was asked for; nothing was
    /// changed. [`Db::transact_nested`](crate::Db::transact_nested) has retried by itself already.
    #[error(
        "abstract lock `{lock}` is held by the open transaction {holder} in a mode that conflicts; \
         nothing was changed, try again later"
    )]
    LockRefused {
        /// The lock, as it was named.
        lock: String,
        /// The scope that holds it.
        holder: String,
    },
    /// A transaction with [open children](crate::open_nesting) did what it may not, or its layer is
    /// not used as it is to be.
    #[error("{0}")]
    Nesting(String),
    /// A transaction with [open children](crate::open_nesting), or a
    /// [closed child](crate::open_nesting::OpenTx::nested) of one, was aborted, and not all of what
    /// its open children did is undone yet; or it committed, and its commit handlers are not all
    /// run, which is an error only of who finishes it for others. The locks keep others away until
    /// it is done: whoever meets them goes on with it, and so does
    /// [`OpenNesting::finish_abandoned`](crate::open_nesting::OpenNesting::finish_abandoned).
    #[error(
        "not all handlers are run of the open children of {scope}: {why}; whoever \
         meets its abstract locks goes on with it"
    )]
    Unfinished {
        /// Its scope.
        scope: String,
        /// What stopped the compensations, or the commit handlers.
        why: String,
    },
    /// An [object](crate::objects) is not there: it was never created, or was deleted.
    #[error("there is no object {object}; `try_open` asks, `create` makes one")]
    NoObject {
        /// The object, by its kind and the bytes of its key.
        object: String,
    },
    /// An [object](crate::objects) that is to be created is there already.
    #[error("the object {object} is there already; open it, or delete it first")]
    ObjectExists {
        /// The object, by its kind and the bytes of its key.
        object: String,
    },
    /// The handle of an opened [object](crate::objects) cannot be used in this way.
    #[error("{0}")]
    ObjectHandle(String),
    /// Options that cannot be.
    #[error("{0}")]
    Options(String),
}

impl Error {
    /// An error by which a body gives up: its transaction is rolled back and not tried again.
    pub fn rollback(reason: impl Into<String>) -> Error {
        Error::Rollback(reason.into())
    }

    /// What kind of error this is: what a program does about it depends on that.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Conflict { reason, .. } => match reason {
                Abort::Rollback => ErrorKind::Rollback,
                Abort::Overloaded | Abort::OutOfMemory | Abort::Superseded => {
                    ErrorKind::Unavailable
                }
                _ => ErrorKind::Conflict,
            },
            Error::FootprintViolation(_)
            | Error::PartialAbort { .. }
            | Error::LockRefused { .. }
            | Error::Retry => ErrorKind::Conflict,
            Error::Unknown { .. } => ErrorKind::Unknown,
            Error::TooLarge { .. } | Error::OverServerLimit(_) => ErrorKind::Limit,
            Error::TransactionTimeout { .. } => ErrorKind::Timeout,
            Error::Timeout { .. }
            | Error::NotFresh { .. }
            | Error::Unreachable(_)
            | Error::Lease(_)
            | Error::Storage(_)
            | Error::Unfinished { .. }
            | Error::Closed => ErrorKind::Unavailable,
            Error::Rollback(_)
            | Error::Refused(_)
            | Error::NoObject { .. }
            | Error::ObjectExists { .. } => ErrorKind::Rollback,
            Error::AnswerLost => ErrorKind::AnswerLost,
            Error::Codec(_) => ErrorKind::Data,
            Error::Ended
            | Error::BlocksLoop
            | Error::ChildOpen
            | Error::ReadOnly
            | Error::Unbounded(_)
            | Error::Space(_)
            | Error::OtherDatabase { .. }
            | Error::NotHere
            | Error::Procedure(_)
            | Error::Nesting(_)
            | Error::ObjectHandle(_)
            | Error::Options(_) => ErrorKind::Misuse,
        }
    }

    /// Whether running the whole transaction again is right: nothing of it was changed, and it may
    /// succeed then without anything else being done. After [`Error::Unknown`] it is not: it would
    /// perhaps be done twice. A pause before it is wise: [`transact`](crate::Db::transact) has
    /// already tried as often as its [`Retry`](crate::Retry) says.
    pub fn is_retryable(&self) -> bool {
        match self {
            Error::Conflict { reason, .. } => reason.is_retryable(),
            other => matches!(
                other,
                Error::FootprintViolation(_)
                    | Error::Timeout { .. }
                    | Error::NotFresh { .. }
                    | Error::LockRefused { .. }
            ),
        }
    }

    /// Whether `transact` runs a body again that met this.
    pub(crate) fn is_conflict(&self) -> bool {
        use Error::{Conflict, FootprintViolation, PartialAbort, Retry};
        matches!(self, Conflict { .. } | FootprintViolation(_) | PartialAbort { .. } | Retry)
    }
}

/// The kinds of [`enum@Error`], by what there is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Other transactions were in the way. Nothing was changed; run it again later.
    Conflict,
    /// The transaction may or may not have taken effect: ask [`Db::outcome`](crate::Db::outcome),
    /// or read what it wrote.
    Unknown,
    /// Something is larger than allowed. Nothing was changed, and will not be.
    Limit,
    /// The database, or a part of it, does not answer, is full, overloaded or closed. Nothing was
    /// changed, but for [`Error::Lease`] and [`Error::Storage`], which say so;
    /// [`is_retryable`](Error::is_retryable) tells whether waiting alone can help.
    Unavailable,
    /// The transaction was open for longer than its caller allows. Nothing was changed.
    Timeout,
    /// The body or a procedure gave up, or passed on that an object is absent, or there already.
    /// Nothing was changed.
    Rollback,
    /// The transaction committed; what a delayed action of it or its procedures gave was not told
    /// in time.
    AnswerLost,
    /// Stored bytes are not of the type that they are read as.
    Data,
    /// The call itself cannot be: the program is to be changed.
    Misuse,
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Error {
        match failure {
            Failure::Aborted(reason) => match reason.limit() {
                Some(limit) => Error::OverServerLimit(limit),
                None => Error::Conflict { reason, attempts: 1 },
            },
            Failure::FootprintViolation(reason) => Error::FootprintViolation(reason),
            Failure::Timeout { after_ms } => Error::Timeout { after_ms },
            Failure::Unknown { after_ms, txn } => Error::Unknown { after_ms, txn },
            Failure::AnswerLost => Error::AnswerLost,
            Failure::TooLarge { what, size, limit } => Error::TooLarge { what, size, limit },
            Failure::TransactionTimeout { after_ms } => Error::TransactionTimeout { after_ms },
            Failure::PartialAbort { level } => Error::PartialAbort { level },
            Failure::ChildOpen => Error::ChildOpen,
            Failure::Ended => Error::Ended,
            Failure::ReadOnly => Error::ReadOnly,
            Failure::NotFresh { most_ms } => Error::NotFresh { most_ms },
            Failure::Unbounded { .. } => Error::Unbounded(failure.to_string()),
            Failure::Space(reason) => Error::Space(reason),
            Failure::Refused(reason) => {
                Error::Refused(String::from_utf8_lossy(reason.as_slice()).into_owned())
            }
            Failure::Procedure(reason) => Error::Procedure(reason),
            Failure::Closed => Error::Closed,
        }
    }
}

impl From<CatalogError> for Error {
    fn from(error: CatalogError) -> Error {
        Error::Options(error.to_string())
    }
}
