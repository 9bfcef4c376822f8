//! What exports are made of, however they are written.

use std::io::{self, Read};

use muesli_core::{SmallBytes, SpaceOptions};

/// The version of both formats.
pub(super) const VERSION: u32 = 1;
/// After so many bytes of rows an export says that they are whole.
pub(super) const SECTION_BYTES: usize = 1 << 20;
/// An export says so after so many at last: one row more than a section may be as long as values
/// and keys can be, in whatever form.
pub(super) const SECTION_BYTES_MAX: usize = 512 << 20;

/// A row of an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ExportRow {
    /// The number of its space in the export.
    pub space: u16,
    pub key: SmallBytes,
    pub value: SmallBytes,
}

/// What comes next of an export.
#[derive(Debug)]
pub(super) enum ExportItem {
    /// A space; they come first.
    Space { number: u16, name: String, options: SpaceOptions },
    /// A row, whose section is not known to be whole.
    Row(ExportRow),
    /// The rows so far are as they were written.
    Whole,
    /// The end: all is.
    End,
}

/// What is wrong with what comes next.
#[derive(Debug)]
pub(super) enum Unreadable {
    Io(io::Error),
    /// It ends without an end.
    Early,
    Damaged(String),
    Foreign(String),
}

impl From<io::Error> for Unreadable {
    fn from(error: io::Error) -> Unreadable {
        Unreadable::Io(error)
    }
}

/// Reads so many bytes, which grow as they come: a length that is none takes no memory.
pub(super) fn read_exactly(
    input: &mut impl Read,
    bytes: usize,
    out: &mut Vec<u8>,
) -> Result<(), Unreadable> {
    let before = out.len();
    input.take(bytes as u64).read_to_end(out)?;
    if out.len() - before < bytes { Err(Unreadable::Early) } else { Ok(()) }
}
