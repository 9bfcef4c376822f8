//! From a file to a database: rows are written when it is known that they are whole, about a
//! mebibyte of them by a transaction.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::sync::Arc;

use muesli_core::{SmallBytes, SpaceOptions};

use super::formats::ExportReader;
use super::items::{ExportItem, ExportRow, SECTION_BYTES, Unreadable};
use super::{Import, Imported, TransferError, TransferProgress};
use crate::blocking::Blocking;
use crate::data::space::Space;
use crate::error::Error;
use crate::transaction::tx::Tx;

/// At most so many rows are written by a transaction.
const ROWS_MAX: usize = 1_000;

impl Blocking {
    /// Takes an export into the database. Its spaces are made where they are not there; a row that
    /// is there with another value ends the import, unless rows are to be
    /// [written over](Import::overwrite).
    ///
    /// An import is not one transaction: where it ends early, what came before is there, and the
    /// error says how much that is. It can be run again from the start: rows that are there with
    /// the same value are no matter. That all is there is known when this returns without an error.
    /// `progress` is told now and then how far that has come.
    ///
    /// # Errors
    /// See [`TransferError`].
    pub fn import(
        &self,
        import: &Import,
        input: impl BufRead,
        progress: impl FnMut(TransferProgress),
    ) -> Result<Imported, TransferError> {
        let reader =
            ExportReader::begin(input).map_err(|error| error_of(error, String::new(), 0))?;
        let mut importing = Importing {
            to: self,
            import: *import,
            reader,
            named: BTreeMap::new(),
            spaces: BTreeMap::new(),
            rows: Vec::new(),
            imported: Imported::default(),
            progress,
        };
        loop {
            let item = importing.reader.next();
            match item.map_err(|error| importing.unreadable(error))? {
                ExportItem::Space { number, name, options } => {
                    importing.name_space(number, name, options)?;
                }
                ExportItem::Row(row) => importing.take(row)?,
                ExportItem::Whole => importing.write()?,
                ExportItem::End => {
                    importing.write()?;
                    return importing.end();
                }
            }
        }
    }
}

/// A row, and where it is in the file.
struct PlacedRow {
    row: ExportRow,
    place: String,
}

/// An import under way.
struct Importing<'a, R, F> {
    to: &'a Blocking,
    import: Import,
    reader: ExportReader<R>,
    /// Spaces by their numbers in the export, which are not known to be whole.
    named: BTreeMap<u16, (String, SpaceOptions)>,
    /// Those that are there, by the same numbers.
    spaces: BTreeMap<u16, (String, Space)>,
    /// Not known to be whole.
    rows: Vec<PlacedRow>,
    imported: Imported,
    progress: F,
}

/// Why a file cannot be read on.
fn error_of(unreadable: Unreadable, place: String, imported: u64) -> TransferError {
    match unreadable {
        Unreadable::Io(error) => TransferError::read(error),
        Unreadable::Early => TransferError::EndsEarly { place, imported },
        Unreadable::Damaged(why) => TransferError::Damaged { place, why, imported },
        Unreadable::Foreign(why) => TransferError::Foreign(why),
    }
}

impl<R: BufRead, F: FnMut(TransferProgress)> Importing<'_, R, F> {
    fn unreadable(&self, unreadable: Unreadable) -> TransferError {
        error_of(unreadable, self.reader.place(), self.imported.rows)
    }

    fn damaged(&self, why: String) -> TransferError {
        self.unreadable(Unreadable::Damaged(why))
    }

    fn end(mut self) -> Result<Imported, TransferError> {
        let is_whole = self.reader.is_at_end().map_err(|error| self.unreadable(error))?;
        match is_whole {
            true => Ok(self.imported),
            false => Err(self.damaged("more follows its end: import one after the other".into())),
        }
    }

    fn name_space(
        &mut self,
        number: u16,
        name: String,
        options: SpaceOptions,
    ) -> Result<(), TransferError> {
        if self.is_named(number) {
            return Err(self.damaged(format!("there are two spaces of number {number}")));
        }
        self.named.insert(number, (name, options));
        Ok(())
    }

    fn is_named(&self, number: u16) -> bool {
        self.named.contains_key(&number) || self.spaces.contains_key(&number)
    }

    /// Has a space that is known to be whole.
    fn make_space(
        &mut self,
        number: u16,
        name: String,
        options: SpaceOptions,
    ) -> Result<(), TransferError> {
        let db = &self.to.db;
        let catalog = db.catalog();
        let there = catalog.space_named(&name).and_then(|id| catalog.space(id));
        let space = match there {
            Some(there) => {
                if there.options != options {
                    self.imported.differ.push(name.clone());
                }
                db.space(&name)?
            }
            None => {
                let made = db.create_space(&name, options);
                let made =
                    made.map_err(|error| TransferError::Space { space: name.clone(), error })?;
                self.imported.made.push(name.clone());
                made
            }
        };
        self.spaces.insert(number, (name, space));
        Ok(())
    }

    fn take(&mut self, row: ExportRow) -> Result<(), TransferError> {
        if !self.is_named(row.space) {
            return Err(self.damaged(format!("there is no space of number {}", row.space)));
        }
        self.rows.push(PlacedRow { row, place: self.reader.place() });
        Ok(())
    }

    /// Makes the spaces and writes the rows that are known to be whole.
    fn write(&mut self) -> Result<(), TransferError> {
        for (number, (name, options)) in std::mem::take(&mut self.named) {
            self.make_space(number, name, options)?;
        }
        let rows = std::mem::take(&mut self.rows);
        let mut rows = rows.into_iter().peekable();
        while rows.peek().is_some() {
            let (mut batch, mut bytes) = (Vec::new(), 0);
            while batch.len() < ROWS_MAX
                && bytes < SECTION_BYTES
                && let Some(placed) = rows.next()
            {
                bytes += placed.row.key.len() + placed.row.value.len();
                batch.push(placed);
            }
            self.write_batch(batch)?;
        }
        let (rows, bytes) = (self.imported.rows, self.reader.bytes());
        (self.progress)(TransferProgress { rows, bytes });
        Ok(())
    }

    /// Writes rows by one transaction.
    fn write_batch(&mut self, batch: Vec<PlacedRow>) -> Result<(), TransferError> {
        let spaces = &self.spaces;
        let row = |placed: &PlacedRow| {
            let (_, space) = spaces[&placed.row.space];
            (space, placed.row.key.clone(), placed.row.value.clone())
        };
        let rows: Arc<Vec<_>> = Arc::new(batch.iter().map(row).collect());
        let (overwrite, theirs) = (self.import.overwrite, rows.clone());
        let write = async move |tx: &Tx| write_rows(tx, &theirs, overwrite).await;
        let written = self.to.transact(write).map_err(|error| {
            let place = batch[0].place.clone();
            TransferError::Unwritten { place, error, imported: self.imported.rows }
        })?;
        match written {
            BatchEnd::Written { same } => {
                self.imported.same += same;
                self.imported.rows += batch.len() as u64;
                Ok(())
            }
            BatchEnd::Exists(at) => {
                let PlacedRow { row, place } = &batch[at];
                let (place, imported) = (place.clone(), self.imported.rows);
                let (space, key) = (self.spaces[&row.space].0.clone(), readable(&row.key));
                Err(TransferError::Exists { place, space, key, imported })
            }
        }
    }
}

/// What became of a batch.
enum BatchEnd {
    /// So many were there with the same value.
    Written { same: u64 },
    /// This one is there with another value; nothing was written.
    Exists(usize),
}

type NewRow = (Space, SmallBytes, SmallBytes);

async fn write_rows(tx: &Tx, rows: &[NewRow], overwrite: bool) -> Result<BatchEnd, Error> {
    let (mut same, mut from) = (0, 0);
    while from < rows.len() {
        let space = rows[from].0;
        let count = rows[from..].iter().take_while(|row| row.0.id == space.id).count();
        let of_space = &rows[from..from + count];
        let found = tx.get_many(space, of_space.iter().map(|(_, key, _)| key.clone())).await?;
        for (at, (found, (_, key, value))) in found.into_iter().zip(of_space).enumerate() {
            match found {
                Some(found) if found == *value => {
                    same += 1;
                    continue;
                }
                Some(_) if !overwrite => return Ok(BatchEnd::Exists(from + at)),
                _ => tx.put(space, key.clone(), value.clone()).await?,
            }
        }
        from += count;
    }
    Ok(BatchEnd::Written { same })
}

/// A key as people read it.
fn readable(key: &SmallBytes) -> String {
    let bytes = key.as_slice();
    match std::str::from_utf8(bytes) {
        Ok(text) => format!("`{}`", text.escape_debug()),
        Err(_) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}
