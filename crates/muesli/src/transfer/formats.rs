//! Exports in either format.

use std::io::{BufRead, Write};

use muesli_core::SpaceOptions;

use super::blocks::{BlocksReader, BlocksWriter};
use super::items::{ExportItem, ExportRow, Unreadable};
use super::lines::{LinesReader, LinesWriter};
use super::{ExportFormat, TransferError};

/// Writes an export.
pub(super) enum ExportWriter<W> {
    Lines(LinesWriter<W>),
    Blocks(BlocksWriter<W>),
}

impl<W: Write> ExportWriter<W> {
    /// Begins one; `consistency` is said to people.
    pub fn begin(format: ExportFormat, out: W, consistency: &str) -> Result<Self, TransferError> {
        let begun = match format {
            ExportFormat::JsonLines => LinesWriter::begin(out, consistency).map(Self::Lines),
            ExportFormat::Binary => BlocksWriter::begin(out, consistency).map(Self::Blocks),
        };
        begun.map_err(TransferError::write)
    }

    pub fn space(
        &mut self,
        number: u16,
        name: &str,
        options: &SpaceOptions,
    ) -> Result<(), TransferError> {
        let written = match self {
            Self::Lines(lines) => lines.space(number, name, options),
            Self::Blocks(blocks) => blocks.space(number, name, options),
        };
        written.map_err(TransferError::write)
    }

    pub fn row(&mut self, row: &ExportRow) -> Result<(), TransferError> {
        let written = match self {
            Self::Lines(lines) => lines.row(row),
            Self::Blocks(blocks) => blocks.row(row),
        };
        written.map_err(TransferError::write)
    }

    /// Says that it ends here; how many bytes there are.
    pub fn end(self) -> Result<u64, TransferError> {
        let ended = match self {
            Self::Lines(lines) => lines.end(),
            Self::Blocks(blocks) => blocks.end(),
        };
        ended.map_err(TransferError::write)
    }

    /// How many bytes were written so far.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Lines(lines) => lines.bytes(),
            Self::Blocks(blocks) => blocks.bytes(),
        }
    }
}

/// Reads an export, whichever its format.
pub(super) enum ExportReader<R> {
    Lines(LinesReader<R>),
    Blocks(BlocksReader<R>),
}

impl<R: BufRead> ExportReader<R> {
    /// Reads how it begins.
    pub fn begin(mut input: R) -> Result<Self, Unreadable> {
        let first = input.fill_buf()?.first().copied();
        match first {
            None => Err(Unreadable::Foreign("it is empty".to_owned())),
            Some(b'{') => LinesReader::begin(input).map(Self::Lines),
            Some(_) => BlocksReader::begin(input).map(Self::Blocks),
        }
    }

    pub fn next(&mut self) -> Result<ExportItem, Unreadable> {
        match self {
            Self::Lines(lines) => lines.next(),
            Self::Blocks(blocks) => blocks.next(),
        }
    }

    /// Whether nothing follows what was read.
    pub fn is_at_end(&mut self) -> Result<bool, Unreadable> {
        let rest = match self {
            Self::Lines(lines) => lines.rest(),
            Self::Blocks(blocks) => blocks.rest(),
        };
        rest.map(<[u8]>::is_empty).map_err(Unreadable::Io)
    }

    /// Where the item is that came last, or where it should be.
    pub fn place(&self) -> String {
        match self {
            Self::Lines(lines) => format!("in line {}", lines.line()),
            Self::Blocks(blocks) => format!("in the block at byte {}", blocks.offset()),
        }
    }

    /// How many bytes were read so far.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Lines(lines) => lines.bytes(),
            Self::Blocks(blocks) => blocks.bytes(),
        }
    }
}
