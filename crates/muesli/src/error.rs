//! What can go wrong, said so that one knows what to do.

use muesli_core::catalog::CatalogError;
use muesli_core::{Abort, Failure, Limit, TxnId};
use thiserror::Error;

/// The error of an operation or a transaction.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// Other transactions were in the way; nothing was changed. [`transact`](crate::Db::transact)
    /// has retried by itself already.
    #[error("conflict after {attempts} attempts: {reason}; nothing was changed, try again later")]
    Conflict {
        /// What stood in the way of the last attempt.
        reason: Abort,
        /// How often it was tried.
        attempts: u32,
    },
    /// A delayed action cannot be left to its turn, as this text says; nothing was changed.
    /// [`Db::transact`](crate::Db::transact) runs it again with its actions done at once.
    #[error("a delayed action cannot be left to its turn: {0}; run it again, done at once")]
    Strayed(String),
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
    /// The transaction has already ended.
    #[error("the transaction has already ended")]
    Ended,
    /// A write in a read-only transaction.
    #[error("this transaction is read-only; begin it without `read_only` to write")]
    ReadOnly,
    /// The space does not exist, or cannot do this.
    #[error("{0}")]
    Space(String),
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
    /// The database was closed.
    #[error("the database is closed")]
    Closed,
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
    /// Options that cannot be.
    #[error("{0}")]
    Options(String),
}

impl Error {
    /// An error by which a body gives up: its transaction is rolled back and not tried again.
    pub fn rollback(reason: impl Into<String>) -> Error {
        Error::Rollback(reason.into())
    }

    /// Whether running the transaction again may help and cannot harm.
    pub fn is_retryable(&self) -> bool {
        match self {
            Error::Conflict { reason, .. } => reason.is_retryable(),
            other => matches!(other, Error::Strayed(_)),
        }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Error {
        match failure {
            Failure::Aborted(reason) => match reason.limit() {
                Some(limit) => Error::OverServerLimit(limit),
                None => Error::Conflict { reason, attempts: 1 },
            },
            Failure::Strayed(reason) => Error::Strayed(reason),
            Failure::Timeout { after_ms } => Error::Timeout { after_ms },
            Failure::Unknown { after_ms, txn } => Error::Unknown { after_ms, txn },
            Failure::TooLarge { what, size, limit } => Error::TooLarge { what, size, limit },
            Failure::TransactionTimeout { after_ms } => Error::TransactionTimeout { after_ms },
            Failure::Ended => Error::Ended,
            Failure::ReadOnly => Error::ReadOnly,
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
