//! From a database to a file: a space after the other, each by ranges of keys.

use std::io::Write;
use std::time::Duration;

use muesli_core::Row;

use super::formats::ExportWriter;
use super::items::{ExportRow, SECTION_BYTES};
use super::{Export, ExportConsistency, Exported, TransferError, TransferProgress};
use crate::blocking::{Blocking, block_on};
use crate::data::byte_range::Range;
use crate::data::space::Space;
use crate::database::handle::Db;
use crate::error::Error;
use crate::transaction::explicit::Transaction;

/// So many rows are asked for at most: the next ones may be longer than all before.
const ROWS_MAX: usize = 256;
/// A snapshot is read for as long as it is there: what ends it is not this.
const TIMEOUT: Duration = Duration::from_secs(60 * 60 * 24);
/// What the database keeps for itself is in spaces that are called so.
const OWN: &str = "muesli.";

impl Blocking {
    /// Writes the database, or some of its spaces, to a file: what is [there](Export) as one
    /// transaction that only reads sees it, unless asked otherwise. `progress` is told now and
    /// then how far that has come.
    ///
    /// A space that is found by hash is put in order for it ([`Db::listing`]).
    ///
    /// # Errors
    /// See [`TransferError`]; without its end the file is no export.
    pub fn export(
        &self,
        export: &Export,
        out: impl Write,
        progress: impl FnMut(TransferProgress),
    ) -> Result<Exported, TransferError> {
        let db = self.db.read_only().listing().timeout(TIMEOUT);
        // Commits that were in doubt when the folder was closed are ended first.
        let db = if db.is_alone() { db.strict() } else { db };
        let only = match export.consistency {
            _ if db.is_alone() => "alone",
            ExportConsistency::Snapshot => "snapshot",
            ExportConsistency::Pieces => "pieces",
        };
        let snapshot = if only == "snapshot" { Some(block_on(db.begin())?) } else { None };
        let spaces = spaces(&db, export.spaces.as_deref())?;
        let mut writer = ExportWriter::begin(export.format, out, only)?;
        let catalog = db.catalog();
        for (number, (name, space)) in spaces.iter().enumerate() {
            let options = catalog.space(space.id).map(|space| space.options.clone());
            writer.space(number as u16, name, &options.unwrap_or_default())?;
        }
        let mut exporting = Exporting { db, snapshot, writer, rows: 0, progress };
        for (number, (_, space)) in spaces.iter().enumerate() {
            exporting.space(number as u16, *space)?;
        }
        exporting.end(spaces.len() as u64)
    }
}

/// The spaces that are to be exported, in the order of their numbers.
fn spaces(db: &Db, names: Option<&[String]>) -> Result<Vec<(String, Space)>, TransferError> {
    let catalog = db.catalog();
    let all = catalog.spaces().iter().map(|space| space.name.clone());
    let all: Vec<_> = all.filter(|name| !name.starts_with(OWN)).collect();
    let chosen = match names {
        None => all,
        Some(names) => {
            if let Some(unknown) = names.iter().find(|name| !all.contains(name)) {
                let what = format!("there is no space `{unknown}`; there are: {}", all.join(", "));
                return Err(Error::Space(what).into());
            }
            all.into_iter().filter(|name| names.contains(name)).collect()
        }
    };
    let named = |name: String| Ok((name.clone(), db.space(&name)?));
    chosen.into_iter().map(named).collect()
}

/// An export under way.
struct Exporting<W, F> {
    db: Db,
    /// What is read by, where all is to be of one moment.
    snapshot: Option<Transaction>,
    writer: ExportWriter<W>,
    rows: u64,
    progress: F,
}

impl<W: Write, F: FnMut(TransferProgress)> Exporting<W, F> {
    fn space(&mut self, number: u16, space: Space) -> Result<(), TransferError> {
        let (mut range, mut wanted) = (Range::all(), 1);
        loop {
            let rows = match self.read(space, range.clone().limit(wanted)) {
                // The next rows are longer than those before.
                Err(TransferError::Database(Error::TooLarge { .. })) if wanted > 1 => {
                    wanted /= 2;
                    continue;
                }
                rows => rows?,
            };
            let Some((last, _)) = rows.last() else { return Ok(()) };
            let is_all = rows.len() < wanted;
            range.lo = last.successor();
            let longest = rows.iter().map(|(key, value)| key.len() + value.len()).max();
            let fit = SECTION_BYTES / longest.unwrap_or(0).max(1);
            wanted = fit.clamp(1, ROWS_MAX).min(wanted * 2);
            for (key, value) in rows {
                self.writer.row(&ExportRow { space: number, key, value })?;
                self.rows += 1;
            }
            (self.progress)(TransferProgress { rows: self.rows, bytes: self.writer.bytes() });
            if is_all {
                return Ok(());
            }
        }
    }

    fn read(&self, space: Space, range: Range) -> Result<Vec<Row>, TransferError> {
        match &self.snapshot {
            Some(snapshot) => block_on(snapshot.scan(space, range)).map_err(of_snapshot),
            None => {
                let scan = async move |tx: &crate::Tx| tx.scan(space, range.clone()).await;
                Ok(self.db.blocking().transact(scan)?)
            }
        }
    }

    fn end(self, spaces: u64) -> Result<Exported, TransferError> {
        if let Some(snapshot) = self.snapshot {
            block_on(snapshot.commit()).map_err(of_snapshot)?;
        }
        Ok(Exported { spaces, rows: self.rows, bytes: self.writer.end()? })
    }
}

/// Why a snapshot could not be read.
fn of_snapshot(error: Error) -> TransferError {
    let is_lost = error.is_conflict() || matches!(error, Error::TransactionTimeout { .. });
    if is_lost { TransferError::Snapshot(error) } else { error.into() }
}
