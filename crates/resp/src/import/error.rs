//! Why a file was not imported.

use std::io;

use muesli::Error;
use muesli_rdb::RdbError;

use crate::keyspace::stop::CommandStop;

/// Why a file was not imported.
#[derive(Debug, thiserror::Error)]
pub enum RdbImportError {
    /// The file cannot be read, is damaged, or has what is not supported.
    #[error(transparent)]
    File(#[from] RdbError),
    /// The system says so.
    #[error("the file cannot be read: {0}")]
    Read(#[from] io::Error),
    /// A library of functions.
    #[error(
        "the file has the library of functions `{0}`, which an import does not load; \
         `--skip-functions` imports everything else, and `FUNCTION LOAD` loads libraries"
    )]
    Function(String),
    /// A number of a database that is not there.
    #[error("the file has keys in database {0}; there are the databases 0 to 15")]
    Database(u64),
    /// Something is longer than it may be.
    #[error("the key {key}: {what} of {bytes} bytes is over the limit of {most} bytes")]
    TooLong {
        /// The key.
        key: String,
        /// What of it is too long.
        what: &'static str,
        /// How long it is.
        bytes: usize,
        /// How long it may be.
        most: usize,
    },
    /// Keys of the file are there already.
    #[error("{count} keys of the file are there already ({shown}); `--replace` replaces them")]
    Exists {
        /// How many.
        count: u64,
        /// The first of them.
        shown: String,
    },
    /// A key has changed while the import ran.
    #[error("{0}")]
    Changed(String),
    /// Some keys were written, and others not.
    #[error(
        "{why}; at least {written} of {all} keys were imported, each whole, and not all of them: \
         `--replace` imports all of them again"
    )]
    Interrupted {
        /// How many keys are known to be written.
        written: u64,
        /// How many there are to be.
        all: u64,
        /// What has stopped it.
        why: Box<RdbImportError>,
    },
    /// All keys were written, and not all of them compared.
    #[error(
        "all {all} keys were written; comparing them with the file has stopped before its end: \
         {why}"
    )]
    NotCompared {
        /// How many keys there are.
        all: u64,
        /// What has stopped it.
        why: Box<RdbImportError>,
    },
    /// Keys are not as the file has them.
    #[error(
        "all keys were written, and {count} of them are not as in the file ({shown}): somebody \
         else has changed them since, or the file has a key or member twice"
    )]
    Differs {
        /// How many.
        count: u64,
        /// What is different of the first of them.
        shown: String,
    },
    /// The database says so.
    #[error(transparent)]
    Muesli(#[from] Error),
}

impl From<CommandStop> for RdbImportError {
    fn from(stop: CommandStop) -> RdbImportError {
        match stop {
            CommandStop::Database(error) => RdbImportError::Muesli(error),
            CommandStop::Refused(why) => RdbImportError::Changed(why),
            CommandStop::Waits => RdbImportError::Muesli(Error::Retry),
        }
    }
}

/// Most bytes of a key, or of another text of a file, that are shown.
const SHOWN_BYTES: usize = 100;

/// A key as text, with its database where that is not the first one.
pub(super) fn shown(db: u8, key: &[u8]) -> String {
    let rest = if key.len() > SHOWN_BYTES { " …" } else { "" };
    let text = format!("\"{}\"{rest}", key[..key.len().min(SHOWN_BYTES)].escape_ascii());
    if db == 0 { text } else { format!("{text} of database {db}") }
}

/// A text of a file, cut, and without what a terminal obeys.
pub(super) fn cut_text(text: &[u8]) -> String {
    String::from_utf8_lossy(&text[..text.len().min(SHOWN_BYTES)]).escape_debug().to_string()
}
