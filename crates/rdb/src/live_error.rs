//! What is wrong where a Redis that runs is asked for its data.

use std::io;

use thiserror::Error;

/// Why no file came.
#[derive(Debug, Error)]
pub enum RedisLiveError {
    /// The address is none.
    #[error("`{0}` is not `redis://[[USER]:PASSWORD@]HOST[:PORT]`")]
    Address(String),
    /// It is to be reached in another way than over TCP: the scheme.
    #[error(
        "`{0}://` is not supported, and neither is TLS; give \
         `redis://[[USER]:PASSWORD@]HOST[:PORT]`, or a file that `BGSAVE` has written"
    )]
    Scheme(String),
    /// Nothing came for as long as the connection waits.
    #[error("Redis sends nothing")]
    Silent,
    /// The data that came cannot be written.
    #[error("the data of Redis cannot be written to a file: {0}")]
    Output(io::Error),
    /// The connection broke.
    #[error("the connection to Redis failed: {0}")]
    Connection(#[from] io::Error),
    /// The server has refused a command.
    #[error("Redis refuses `{command}`: {why}")]
    Refused {
        /// The command.
        command: &'static str,
        /// What it says, cut; of what it says to a password only the code, as the rest may have it.
        why: String,
    },
    /// The server answers in another way.
    #[error("Redis answers `{command}` with `{answer}`, which is not expected")]
    Unexpected {
        /// The command.
        command: &'static str,
        /// The beginning of the answer.
        answer: String,
    },
}
