//! Databases as files that any program can read, and back: for copies, for other programs, and for
//! the way from one protocol, one number of repositories or one version to another.
//!
//! An export has the spaces with their options first, then the rows, and its end says how many
//! there were, with a checksum. It is JSON lines, for people and programs, or
//! [binary](ExportFormat), for size and speed (`docs/using/export.md` has both formats). An
//! import holds about a mebibyte of rows, or one row that is longer; an export as much, and where
//! rows become much longer than those before, up to 256 of them. No message or record grows with
//! the data.
//!
//! ```
//! use muesli::transfer::{Export, Import};
//! use muesli::{Db, Options, SpaceOptions};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let db = Db::open(Options::default().space("notes", SpaceOptions::default()))?;
//! let notes = db.space("notes")?;
//! db.blocking().transact(async move |tx| tx.put(notes, "a", "b").await)?;
//! let mut file = Vec::new();
//! let exported = db.blocking().export(&Export::default(), &mut file, |_| {})?;
//! assert_eq!(exported.rows, 1);
//!
//! let other = Db::open(Options { protocol: "gmu".to_owned(), ..Options::default() })?;
//! other.blocking().import(&Import::default(), &mut &*file, |_| {})?;
//! let notes = other.space("notes")?;
//! let found = other.blocking().transact(async move |tx| tx.get(notes, "a").await)?;
//! assert_eq!(found, Some("b".into()));
//! # Ok(())
//! # }
//! ```

mod blocks;
mod error;
mod exporting;
mod formats;
mod importing;
mod items;
mod lines;

pub use error::TransferError;

/// What is to be exported, and how.
#[derive(Clone, Debug, Default)]
pub struct Export {
    /// The spaces, by name; `None`: all of them.
    pub spaces: Option<Vec<String>>,
    /// How it is written.
    pub format: ExportFormat,
    /// What of the database it shows.
    pub consistency: ExportConsistency,
}

/// How an export is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExportFormat {
    /// A JSON object a line. Keys and values stand as text where they are UTF-8, and else in
    /// base 64.
    #[default]
    JsonLines,
    /// Blocks of bytes.
    Binary,
}

/// What of a database an export shows, where others write to it meanwhile. One that is
/// [opened for reading only](crate::Durable::read_only) has no others, and an export of it shows
/// all of it as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExportConsistency {
    /// One moment of it, as one transaction that only reads sees it: what the protocol promises to
    /// such a transaction, the export has. Where old versions are kept, nobody is disturbed, and
    /// the export may take as long as a snapshot is kept; under other protocols it may be aborted,
    /// and what it has read takes memory.
    #[default]
    Snapshot,
    /// A transaction for each piece of about a mebibyte: each piece is of one moment, and the next
    /// one of a later one. Takes as long as it takes.
    Pieces,
}

/// What was exported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// How many spaces.
    pub spaces: u64,
    /// How many rows.
    pub rows: u64,
    /// How many bytes were written.
    pub bytes: u64,
}

/// How an export is taken into a database.
#[derive(Clone, Copy, Debug, Default)]
pub struct Import {
    /// Whether rows go over others that are there with other values; else they are refused, and
    /// the import ends there.
    pub overwrite: bool,
}

/// What was imported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// The spaces that were made.
    pub made: Vec<String>,
    /// The spaces that were there with other options, which they have kept.
    pub differ: Vec<String>,
    /// How many rows are there by it.
    pub rows: u64,
    /// How many of them were there before with the same value.
    pub same: u64,
}

/// How far an export or an import has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransferProgress {
    /// Rows that were read, or written to the database.
    pub rows: u64,
    /// Bytes that were written, or read.
    pub bytes: u64,
}
