//! What to do about a server's folder whose log is damaged: look at it, and cut it.
//!
//! The server must have stopped: its folder is locked meanwhile. Cutting gives up records that had
//! been promised, so what would be left must be a log that a server can start from, and nothing
//! is cut where it would not be.

use std::path::Path;

use muesli_log::{Directory, LogError, repair};
use thiserror::Error;

use crate::storage::folder::{Folder, FolderError};

pub use muesli_log::Sequence;
pub use muesli_log::repair::{End, Inspection, SegmentReport};

/// Why a log is not looked at, or not cut.
#[derive(Debug, Error)]
pub enum RepairError {
    /// There is no server's folder.
    #[error(
        "{path} is no folder of a server: there is no file `identity` in it. Give the `data_dir` \
         of a server, and of one with several loops a folder `loop-N` in it"
    )]
    NoFolder {
        /// What was given.
        path: String,
    },
    /// The folder cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// No record of the log can be cut so that a log is left.
    #[error(
        "nothing of this log can be cut: no checkpoint can be read that its records follow, and it \
         does not begin with record 1. Restore the folder from a replica or a copy"
    )]
    NoBeginning,
    /// It cannot be cut before this record.
    #[error(
        "the log cannot be cut before record {at}: allowed are records {least} to {most}, which \
         come after what a checkpoint holds or the log begins with"
    )]
    At {
        /// Where it was to be cut.
        at: Sequence,
        /// The first record that can be cut.
        least: Sequence,
        /// The last one.
        most: Sequence,
    },
}

impl From<LogError> for RepairError {
    fn from(error: LogError) -> RepairError {
        RepairError::Folder(error.into())
    }
}

/// The log of a server that has stopped; nobody starts it while this is there.
#[derive(Debug)]
pub struct StoppedLog {
    _folder: Folder,
    disk: Directory,
    owner: u64,
}

impl StoppedLog {
    /// The log in the server's folder at `path`.
    ///
    /// # Errors
    /// It is none, or a process uses it. Nothing was changed.
    pub fn open(path: &Path) -> Result<StoppedLog, RepairError> {
        let no_folder = || RepairError::NoFolder { path: path.display().to_string() };
        if !path.join("identity").is_file() {
            return Err(no_folder()); // To open it would make it.
        }
        let folder = Folder::open(path)?;
        let identity = folder.identity_of_anybody()?.ok_or_else(no_folder)?;
        let disk = Directory::existing(&path.join("log")).map_err(|error| folder.io("log", error));
        Ok(StoppedLog { disk: disk?, _folder: folder, owner: identity.data_id })
    }

    /// What it holds. Changes nothing.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn inspect(&self) -> Result<Inspection, RepairError> {
        Ok(repair::inspect(&self.disk, self.owner)?)
    }

    /// Whether it can be cut before record `at`. Changes nothing.
    ///
    /// # Errors
    /// It cannot: what is left would be no log.
    pub fn judge_cut(&self, at: Sequence) -> Result<(), RepairError> {
        judge_cut(&self.inspect()?, at)?;
        Ok(repair::judge_cut(&self.disk, self.owner, at)?)
    }

    /// Cuts it before record `at`, which is lost with all that follow, and with the checkpoints
    /// that hold it; the last record left.
    ///
    /// # Errors
    /// It cannot be cut there, or not be read or written.
    pub fn truncate(&self, at: Sequence) -> Result<Sequence, RepairError> {
        self.judge_cut(at)?;
        Ok(repair::truncate(&self.disk, self.owner, at)?)
    }
}

/// Whether a log like this can be cut before record `at`, as far as the ends of its segments say.
///
/// # Errors
/// There is no such record, or what is left would be no log.
fn judge_cut(log: &Inspection, at: Sequence) -> Result<(), RepairError> {
    let records = || log.segments.iter().filter_map(|segment| segment.records);
    let mut next = Sequence(1);
    let mut damaged = Vec::new();
    for segment in &log.segments {
        next = segment.records.map_or(next, |(_, last)| last.next());
        match segment.end {
            End::Damaged(_, record) => damaged.push(record),
            End::NoHeader => damaged.push(next),
            End::Clean | End::Torn(_) => {}
        }
    }
    let damaged = damaged.into_iter();
    let begins = records().map(|(first, _)| first).chain(damaged.clone()).min();
    // A start needs a checkpoint that the records left go on from, or all records.
    let usable = log.checkpoints.iter().filter(|(_, wrong)| wrong.is_none());
    let covered: Vec<_> = usable.map(|(covers, _)| *covers).chain([Sequence(0)]).collect();
    // Damage may hide records that a checkpoint holds: right behind that, too, it can be cut.
    let behind = covered.iter().copied().filter(|covers| covers.0 > 0).map(Sequence::next);
    let most = records().map(|(_, last)| last).chain(damaged).chain(behind).max();
    let (Some(begins), Some(most)) = (begins, most) else { return Err(RepairError::NoBeginning) };
    let least = covered.into_iter().map(Sequence::next).filter(|next| *next >= begins).min();
    let least = least.ok_or(RepairError::NoBeginning)?;
    match (least..=most).contains(&at) {
        true => Ok(()),
        false => Err(RepairError::At { at, least, most }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(checkpoints: &[(u64, bool)], segments: &[(u64, u64, End)]) -> Inspection {
        let wrong = |is_whole: bool| (!is_whole).then(|| "it is damaged".to_owned());
        let checkpoint = |(covers, is_whole): &(u64, bool)| (Sequence(*covers), wrong(*is_whole));
        let segment = |(first, last, end): &(u64, u64, End)| SegmentReport {
            file: "segment".to_owned(),
            bytes: 1_000,
            records: (first <= last).then_some((Sequence(*first), Sequence(*last))),
            end: *end,
        };
        Inspection {
            segments: segments.iter().map(segment).collect(),
            checkpoints: checkpoints.iter().map(checkpoint).collect(),
        }
    }

    /// Between which records a log can be cut.
    fn allowed(log: &Inspection) -> Option<(u64, u64)> {
        let is_allowed = |at: &u64| judge_cut(log, Sequence(*at)).is_ok();
        let (least, most) = ((0..100).find(is_allowed)?, (0..100).rfind(is_allowed)?);
        match judge_cut(log, Sequence(most + 1)) {
            Err(RepairError::At { least: least_found, most: too, .. }) => {
                assert_eq!((least_found, too), (Sequence(least), Sequence(most)));
            }
            other => panic!("{other:?}"),
        }
        Some((least, most))
    }

    #[test]
    fn what_is_left_after_a_cut_is_a_log() {
        let two = [(1, 10, End::Clean), (11, 20, End::Clean)];
        assert_eq!(allowed(&log(&[], &two)), Some((1, 20)));
        let damaged = [(1, 10, End::Clean), (11, 14, End::Damaged(77, Sequence(15)))];
        assert_eq!(allowed(&log(&[], &damaged)), Some((1, 15)));
        assert_eq!(allowed(&log(&[], &[(1, 0, End::Damaged(48, Sequence(1)))])), Some((1, 1)));
        // The records before a checkpoint are gone: nothing before its end can be cut.
        let newer = [(31, 40, End::Clean), (41, 50, End::Torn(99))];
        assert_eq!(allowed(&log(&[(45, true), (35, true)], &newer)), Some((36, 50)));
        assert_eq!(allowed(&log(&[(45, true), (35, false)], &newer)), Some((46, 50)));
        // The damage hides the records that a checkpoint holds: it can be cut right behind that.
        let hidden = [(1, 14, End::Damaged(77, Sequence(15)))];
        assert_eq!(allowed(&log(&[(20, true)], &hidden)), Some((1, 21)));
        assert_eq!(allowed(&log(&[(20, false)], &hidden)), Some((1, 15)));
        // Nothing that a start could begin with.
        assert_eq!(allowed(&log(&[(35, false)], &newer)), None);
        assert_eq!(allowed(&log(&[(20, true)], &newer)), None);
        assert_eq!(allowed(&log(&[], &[])), None);
    }
}
