//! Why a file is not read any further, and where.

use std::fmt;
use std::io;

use thiserror::Error;

/// Most bytes of a key that an error shows.
const SHOWN_BYTES: usize = 100;

/// Why a file is not read any further.
#[derive(Debug)]
pub struct RdbError {
    /// How many bytes of the file are before what is wrong.
    pub offset: u64,
    /// The key whose value it is in.
    pub key: Option<Vec<u8>>,
    /// What is wrong.
    pub kind: RdbErrorKind,
}

/// What is wrong.
#[derive(Debug, Error)]
pub enum RdbErrorKind {
    /// The system says so.
    #[error("it cannot be read: {0}")]
    Read(#[from] io::Error),
    /// It does not begin as such files do.
    #[error("this is no RDB file: it does not begin with `REDIS` and a version of four digits")]
    NotRdb,
    /// It is of Valkey 9 or newer, which has a format of its own.
    #[error(
        "this is an RDB file of Valkey 9 or newer (it begins with `VALKEY`), which is not \
         supported; those of Valkey 7.2 and 8 are"
    )]
    Valkey,
    /// It is of a version that is not read.
    #[error("RDB version {0} is not supported; versions 1 to 12 are (Redis up to 8.2)")]
    Version(u32),
    /// It has something that is not read: its name.
    #[error("{0} are not supported")]
    Unsupported(String),
    /// A part of it is missing.
    #[error("the file ends here, and is not complete")]
    Ended,
    /// What is there makes no sense.
    #[error("the file is damaged: {0}")]
    Damaged(&'static str),
    /// A packed block of elements makes no sense.
    #[error("the file is damaged: {why}, at byte {at} of the {encoding} that begins here")]
    Packed {
        /// How the elements are packed.
        encoding: &'static str,
        /// How many bytes of the block are before what is wrong.
        at: usize,
        /// What is wrong.
        why: &'static str,
    },
    /// A string is longer than Redis allows by default.
    #[error("a string of {0} bytes is over the limit of 536870912 bytes")]
    TooLong(u64),
    /// The file is not as it was written.
    #[error(
        "the file is damaged: its checksum is {stored:016x}, and that of its bytes {computed:016x}"
    )]
    Checksum {
        /// What the file says.
        stored: u64,
        /// What its bytes have.
        computed: u64,
    },
    /// Something else comes after it.
    #[error(
        "further bytes come after the end of the RDB data; is this an append-only file with an RDB \
         preamble? `BGSAVE` makes an RDB file alone"
    )]
    Trailing,
}

impl RdbErrorKind {
    pub(crate) fn at(self, offset: u64) -> RdbError {
        RdbError { offset, key: None, kind: self }
    }
}

impl fmt::Display for RdbError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RdbError { offset, key, kind } = self;
        write!(f, "at byte {offset}")?;
        if let Some(key) = key {
            let shown = &key[..key.len().min(SHOWN_BYTES)];
            let rest = if shown.len() < key.len() { " …" } else { "" };
            write!(f, ", in the key \"{}\"{rest}", shown.escape_ascii())?;
        }
        write!(f, ": {kind}")
    }
}

impl std::error::Error for RdbError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.kind {
            RdbErrorKind::Read(error) => Some(error),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_shows_where_it_is_and_what_it_is_about() {
        let error = RdbErrorKind::Damaged("a length is none").at(17);
        assert_eq!(error.to_string(), "at byte 17: the file is damaged: a length is none");
        let key = Some([&b"a\n"[..], &[b'x'; 200]].concat());
        let error = RdbError { key, ..RdbErrorKind::Unsupported("streams".to_owned()).at(9) };
        let shown = "x".repeat(98);
        let expected =
            format!("at byte 9, in the key \"a\\n{shown}\" …: streams are not supported");
        assert_eq!(error.to_string(), expected);
    }
}
