//! What can go wrong with a log, in words for the person who has to do something about it.

use std::io;
use std::sync::Arc;

use crate::sequence::Sequence;

/// Why a log cannot be opened or written. Can be cloned: a failed log tells everyone the same.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LogError {
    /// The operating system refused something. A log in use is failed from then on.
    #[error("cannot {action} {file}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file of the log's directory; empty for the directory itself.
        file: String,
        /// What the operating system said.
        source: Arc<io::Error>,
    },
    /// Another process, or another log of this one, uses the directory.
    #[error("the log is in use: {file} is locked by another process")]
    InUse {
        /// The lock file.
        file: String,
    },
    /// Records that had been synced cannot be read any more.
    #[error(
        "{file} is damaged at byte {offset}: record {sequence} was synced and cannot be read \
         ({what}). Copy the directory away; then restore it from a replica, or give up record \
         {cut} and everything after it{kept}: `muesli log truncate FOLDER --at {cut}`, where \
         FOLDER is the server's",
        kept = kept(*sequence, *cut)
    )]
    Damaged {
        /// The file.
        file: String,
        /// Where the first bad byte is looked for.
        offset: u64,
        /// The record expected there.
        sequence: Sequence,
        /// The first record that has to be given up for a start: that one, or a later one where
        /// the newest checkpoint that can be read holds all before it.
        cut: Sequence,
        /// What is wrong.
        what: &'static str,
    },
    /// Segments are not there.
    #[error(
        "records {from} to {to} are missing: the log goes on at {file}. Restore the missing \
         segments, or the directory from a replica"
    )]
    Missing {
        /// First missing record.
        from: Sequence,
        /// Last missing record.
        to: Sequence,
        /// The segment that was found instead.
        file: String,
    },
    /// The files belong to another log or another version.
    #[error("{file} is not of this log: {what}")]
    Foreign {
        /// The file.
        file: String,
        /// What is different.
        what: String,
    },
    /// The reader of a replay did not accept what the log holds.
    #[error("record {sequence} of {file} cannot be replayed: {reason}")]
    Refused {
        /// The file.
        file: String,
        /// The record, or the last one that a checkpoint covers.
        sequence: Sequence,
        /// What the reader said.
        reason: String,
    },
    /// A record longer than a frame may be.
    #[error("a record of {bytes} bytes: at most {max} are allowed")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The longest allowed.
        max: usize,
    },
    /// The log was closed.
    #[error("the log is closed")]
    Closed,
}

/// What a cut behind the damaged record leaves.
fn kept(damaged: Sequence, cut: Sequence) -> String {
    match cut > damaged {
        true => {
            format!(" (a checkpoint that can be read holds the first {} records)", cut.before())
        }
        false => String::new(),
    }
}

impl LogError {
    /// An error of the operating system, where it happened.
    pub(crate) fn io<'a>(
        action: &'static str,
        file: &'a str,
    ) -> impl FnOnce(io::Error) -> LogError + 'a {
        move |source| LogError::Io { action, file: file.to_owned(), source: Arc::new(source) }
    }
}
