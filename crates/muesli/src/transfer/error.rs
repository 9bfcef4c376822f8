//! What keeps an export or an import from its end.

use std::io;

use thiserror::Error;

/// Why an export or an import has not come to its end.
#[derive(Debug, Error)]
pub enum TransferError {
    /// The database.
    #[error(transparent)]
    Database(#[from] crate::Error),
    /// The export cannot be written, or not be read.
    #[error("the export cannot be {action}: {error}")]
    Io {
        /// `written` or `read`.
        action: &'static str,
        /// What the system said.
        error: io::Error,
    },
    /// An export that is not as it was written.
    #[error(
        "the export is damaged {place}: {why}. The {imported} rows before are imported; nothing \
         from there on is"
    )]
    Damaged {
        /// Where.
        place: String,
        /// What is wrong.
        why: String,
        /// So many rows are in the database.
        imported: u64,
    },
    /// An export without its end.
    #[error(
        "the export ends early, {place}, without the line or block that says how much there is. \
         The {imported} rows before are imported"
    )]
    EndsEarly {
        /// Where.
        place: String,
        /// So many rows are in the database.
        imported: u64,
    },
    /// Something else than an export, or one of another version.
    #[error("this is no export that can be imported: {0}")]
    Foreign(String),
    /// A row is there with another value.
    #[error(
        "{place}: key {key} of space `{space}` is there with another value, and nothing is written \
         over unless that is asked for (`--overwrite`). The {imported} rows before are imported"
    )]
    Exists {
        /// Where its row is.
        place: String,
        /// The space.
        space: String,
        /// The key, as people read it.
        key: String,
        /// So many rows are in the database.
        imported: u64,
    },
    /// Rows could not be written.
    #[error(
        "{place}: this row and those after it could not be written: {error}. The {imported} rows \
         before are imported; import it again when that is mended"
    )]
    Unwritten {
        /// Where the first of them is.
        place: String,
        /// What the database said; where that is unknown, some of them may be there.
        error: crate::Error,
        /// So many rows are in the database.
        imported: u64,
    },
    /// A space cannot be made.
    #[error("space `{space}` of the export cannot be made: {error}")]
    Space {
        /// The space.
        space: String,
        /// Why not.
        error: crate::Error,
    },
    /// The snapshot could not be read to its end.
    #[error(
        "the export is of no one moment: {0}. Export a folder that nobody writes to, or export in \
         pieces (`--pieces`)"
    )]
    Snapshot(crate::Error),
}

impl TransferError {
    pub(super) fn write(error: io::Error) -> TransferError {
        TransferError::Io { action: "written", error }
    }

    pub(super) fn read(error: io::Error) -> TransferError {
        TransferError::Io { action: "read", error }
    }
}
