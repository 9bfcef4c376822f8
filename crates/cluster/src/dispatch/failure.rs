//! Why a loop ended by itself.

use crate::storage::log::LogFailure;

/// Why a loop ended by itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoopFailure {
    /// The log failed.
    #[error(transparent)]
    Log(#[from] LogFailure),
    /// The server's own files cannot be written.
    #[error("{0}")]
    Folder(String),
    /// A client's timestamp lease cannot be written.
    #[error("{0}")]
    Lease(String),
    /// The poller failed.
    #[error("the system refused to wait for connections: {0}")]
    Poll(String),
    /// A loop of the process ended by a mistake of its own.
    #[error("a loop of this process panicked")]
    Panicked,
    /// The cluster wants nothing of this process.
    #[error("{0}")]
    Refused(String),
    /// It is to be started again, so that a member of a group goes by what its disk holds.
    #[error("a member of a group has to go by what its disk holds: start this server again")]
    Restart,
}
