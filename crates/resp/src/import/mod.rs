//! RDB files of Redis as keys of a database.
//!
//! A file is read several times, as a stream. First all of it is checked: its checksum, and that
//! each value can be here; then, unless keys are to be replaced, that none is there already. So a
//! file that cannot be imported whole changes nothing. Then its keys are written, about a mebibyte
//! or 256 keys to a transaction. A key that does not fit in one is built under another name, which
//! expires if the import is cut short, and is renamed by the transaction that has its last
//! elements: nobody sees a part of a key. At last every key is read back and compared with the
//! file.

mod checking;
mod error;
mod parts;
mod survey;
mod target;
mod writing;

use std::collections::BTreeMap;
use std::io::{Read, Seek};

use muesli::{Db, Limits};
use muesli_rdb::RdbKind;

use checking::Differences;
pub use error::RdbImportError;
use parts::PartReader;
use survey::{Existing, FileSurvey};
use target::ImportTarget;

use crate::clock::now_ms;

/// How a file is imported.
#[derive(Clone, Debug)]
pub struct RdbImport {
    /// The name of the space that holds what Redis clients see.
    pub space: String,
    /// Keys that are there already are replaced; otherwise a file with one is refused.
    pub replace: bool,
    /// Libraries of functions are passed over; otherwise a file with one is refused.
    pub skip_functions: bool,
    /// The limits of the database.
    pub limits: Limits,
}

impl Default for RdbImport {
    fn default() -> RdbImport {
        let (space, limits) = ("redis".to_owned(), Limits::default());
        RdbImport { space, replace: false, skip_functions: false, limits }
    }
}

/// What an import is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RdbPhase {
    /// The file is read and checked.
    Checking,
    /// It is looked which keys are there already.
    Looking,
    /// Keys are written.
    Writing,
    /// Keys are read back and compared.
    Comparing,
}

/// How far an import has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RdbProgress {
    /// What it is doing.
    pub phase: RdbPhase,
    /// How many keys this was done with.
    pub keys: u64,
    /// How many bytes of the file were read for it.
    pub bytes: u64,
}

/// What was imported, and is there as the file has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RdbImported {
    /// The version of the file's format.
    pub version: u32,
    /// The version of Redis that has written it, if it says so: what the file has, cut and escaped
    /// so that it can be shown.
    pub redis: Option<String>,
    /// How many keys of each type.
    pub keys: BTreeMap<RdbKind, u64>,
    /// How many elements these have; a string is one.
    pub elements: u64,
    /// How many bytes the keys and their elements have.
    pub bytes: u64,
    /// Keys that had expired, and were not imported.
    pub expired: u64,
    /// Collections without any element, which were not imported.
    pub empty: u64,
    /// Libraries of functions that were passed over.
    pub libraries: u64,
}

impl RdbImported {
    /// How many keys there are.
    pub fn count(&self) -> u64 {
        self.keys.values().sum()
    }
}

/// A file that can be imported as a whole. It is read several times.
pub struct CheckedRdb<'a, R> {
    source: &'a mut R,
    import: RdbImport,
    /// What had expired by then is not imported, in milliseconds since 1970.
    now: u64,
    found: RdbImported,
}

impl<'a, R: Read + Seek> CheckedRdb<'a, R> {
    /// Reads a file, and checks that it can be imported.
    ///
    /// # Errors
    /// The file cannot be read, is damaged, or has what cannot be imported.
    pub fn check(
        source: &'a mut R,
        import: RdbImport,
        mut progress: impl FnMut(RdbProgress),
    ) -> Result<CheckedRdb<'a, R>, RdbImportError> {
        let now = now_ms();
        let mut survey = FileSurvey::default();
        let mut reader = PartReader::open(source, &import, now)?;
        reader.read(&mut in_phase(&mut progress, RdbPhase::Checking), |parts| {
            survey.add(&import, &parts)
        })?;
        let found = survey.finish(&reader);
        Ok(CheckedRdb { source, import, now, found })
    }

    /// What is to be imported.
    pub fn found(&self) -> &RdbImported {
        &self.found
    }

    /// Imports the file, and compares what is there then with it. From a thread that is no task of
    /// the database's.
    ///
    /// # Errors
    /// A key is there already, and is not to be replaced: nothing was written then. Or the database
    /// cannot go on, or a key is not as the file has it.
    pub fn import(
        self,
        db: &Db,
        mut progress: impl FnMut(RdbProgress),
    ) -> Result<RdbImported, RdbImportError> {
        let CheckedRdb { source, import, now, found } = self;
        let mut target = ImportTarget::open(db, &import.space)?;
        if !import.replace && !target.is_empty()? {
            let mut existing = Existing::default();
            let mut reader = PartReader::open(source, &import, now)?;
            reader.read(&mut in_phase(&mut progress, RdbPhase::Looking), |parts| {
                existing.add(target.existing(parts)?);
                Ok(())
            })?;
            existing.none()?;
        }
        let mut written = 0;
        let done = PartReader::open(source, &import, now).and_then(|mut reader| {
            reader.read(&mut in_phase(&mut progress, RdbPhase::Writing), |parts| {
                let whole = parts.iter().filter(|it| it.is_last && !it.is_empty()).count();
                target.write_parts(parts, import.replace)?;
                written += whole as u64;
                Ok(())
            })
        });
        if let Err(error) = done {
            target.clear_unfinished();
            let (all, why) = (found.count(), Box::new(error));
            return Err(RdbImportError::Interrupted { written, all, why });
        }
        let mut differences = Differences::default();
        let done = PartReader::open(source, &import, now).and_then(|mut reader| {
            reader.read(&mut in_phase(&mut progress, RdbPhase::Comparing), |parts| {
                differences.add(target.compare_parts(parts)?);
                Ok(())
            })
        });
        if let Err(error) = done {
            let (all, why) = (found.count(), Box::new(error));
            return Err(RdbImportError::NotCompared { all, why });
        }
        differences.none()?;
        Ok(found)
    }
}

/// Tells of the progress of a phase.
fn in_phase(progress: &mut impl FnMut(RdbProgress), phase: RdbPhase) -> impl FnMut(u64, u64) {
    move |keys, bytes| progress(RdbProgress { phase, keys, bytes })
}
