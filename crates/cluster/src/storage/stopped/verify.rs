//! Whether all that a folder holds is as it was written: every record and every piece of each
//! checkpoint is read, its checksum looked at, and decoded, and all of it is replayed in memory.
//!
//! Nothing is changed, and others may read the folder meanwhile. What is in memory is one segment,
//! or a part of a checkpoint, and one node that it is replayed to: a checkpoint after the other.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use muesli_core::{AnyMachine, Environment, NodeId, Settings};
use muesli_log::repair::{End, Inspection, inspect};
use muesli_log::{Cut, LogError, Opened, ReadingDirectory, Sequence};
use muesli_registry::{Grouping, canonical_name};

use crate::storage::folder::FolderError;
use crate::storage::replaying::Replaying;
use crate::storage::stopped::stored::StoredLoop;

/// What the folder of one loop holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedLoop {
    /// The folder.
    pub folder: PathBuf,
    /// The protocol of its data, as it is stored.
    pub protocol: String,
    /// How many spaces it knows.
    pub spaces: usize,
    /// How many files its log has.
    pub segments: usize,
    /// Their bytes.
    pub bytes: u64,
    /// The first and the last record that can be read, if there are any.
    pub records: Option<(Sequence, Sequence)>,
    /// What was replayed, from the newest checkpoint on and from each older one, or from the first
    /// record.
    pub replays: Vec<VerifiedReplay>,
    /// What is not as it was written: each with the file, and where that is known the byte and the
    /// record or the piece.
    pub faults: Vec<String>,
}

/// A replay that was whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedReplay {
    /// How many records the checkpoint covers that it began with, if it began with one.
    pub checkpoint: Option<Sequence>,
    /// So many records were behind it.
    pub records: u64,
    /// The last of them.
    pub last: Sequence,
    /// What the next start cuts off: nobody was told of it.
    pub cut: Option<Cut>,
}

/// Verifies the database in a folder, or the loop whose folder it is; `settings` have the actions
/// and the procedures that its transactions call.
///
/// # Errors
/// There is no database, somebody writes to it, or its protocol is not known here. What is damaged
/// of the logs is no error, but [told](VerifiedLoop::faults).
pub fn verify(path: &Path, settings: &Settings) -> Result<Vec<VerifiedLoop>, FolderError> {
    let loops = StoredLoop::all(path)?;
    loops.iter().map(|of| verify_loop(of, settings)).collect()
}

fn verify_loop(of: &StoredLoop, settings: &Settings) -> Result<VerifiedLoop, FolderError> {
    let disk = of.folder.log_to_read()?;
    let owner = of.identity.data_id;
    let inspection = inspect(&disk, owner)?;
    let mut faults = faults_of(&inspection);
    let mut replays = Vec::new();
    let whole = inspection.checkpoints.iter().filter(|(_, wrong)| wrong.is_none());
    let mut begins: Vec<_> = whole.map(|(covers, _)| Some(*covers)).collect();
    if begins.is_empty() {
        begins.push(None);
    }
    for from in begins {
        match replay(of, &disk, from, settings)? {
            Ok(replayed) => replays.push(replayed),
            Err(error) => note(&mut faults, &error),
        }
    }
    let readable = inspection.segments.iter().filter_map(|segment| segment.records);
    let ends = (readable.clone().map(|(first, _)| first).min(), readable.map(|it| it.1).max());
    Ok(VerifiedLoop {
        folder: of.path.clone(),
        protocol: of.identity.owner.protocol.clone(),
        spaces: of.map.catalog.spaces().len(),
        segments: inspection.segments.len(),
        bytes: inspection.segments.iter().map(|segment| segment.bytes).sum(),
        records: ends.0.zip(ends.1),
        replays,
        faults,
    })
}

/// What is damaged of the files, each by itself.
fn faults_of(inspection: &Inspection) -> Vec<String> {
    let segments = inspection.segments.iter().filter_map(|segment| match segment.end {
        End::Clean | End::Torn(_) => None,
        End::Damaged(byte, record) => Some(format!(
            "{} is damaged at byte {byte}: record {record} was promised and cannot be read",
            segment.file
        )),
        End::NoHeader => Some(format!("{} is damaged at byte 0: its header", segment.file)),
    });
    let checkpoints = inspection.checkpoints.iter();
    segments.chain(checkpoints.filter_map(|(_, wrong)| wrong.clone())).collect()
}

/// Notes why a log could not be replayed, unless that is noted of its file.
fn note(faults: &mut Vec<String>, error: &LogError) {
    let is_noted = match error {
        LogError::Damaged { file, .. } => faults.iter().any(|fault| fault.starts_with(&**file)),
        _ => false,
    };
    if !is_noted {
        faults.push(error.to_string());
    }
}

/// Replays the log from a checkpoint on to a node that ends with this; inside: why it cannot be.
fn replay(
    of: &StoredLoop,
    disk: &ReadingDirectory,
    from: Option<Sequence>,
    settings: &Settings,
) -> Result<Result<VerifiedReplay, LogError>, FolderError> {
    let mut machine = machine(of, settings)?;
    let mut replaying = Replaying { machine: &mut *machine, notice: |_| {} };
    let opened = match replaying.read(disk, of.identity.data_id, from) {
        Ok(opened) => opened,
        Err(error) => return Ok(Err(error)),
    };
    replaying.machine.end_replay();
    let Opened { checkpoint, records, last, cut, .. } = opened;
    Ok(Ok(VerifiedReplay { checkpoint, records, last, cut }))
}

/// A machine of the node whose folder it is, empty.
fn machine(of: &StoredLoop, settings: &Settings) -> Result<Box<dyn AnyMachine>, FolderError> {
    let owner = &of.identity.owner;
    let (name, groups) = owner.protocol.split_once(' ').unwrap_or((&owner.protocol, ""));
    let grouping = (!groups.is_empty()).then(Grouping::default);
    let protocol = muesli_registry::protocol(canonical_name(name), grouping);
    let protocol = protocol.map_err(|error| FolderError::Protocol {
        path: of.path.display().to_string(),
        why: error.to_string(),
    })?;
    let settings = Settings { logging: true, ..settings.clone() };
    let (node, starts): (NodeId, u32) = (owner.node, of.identity.starts.saturating_add(1));
    let (catalog, environment) = (of.map.catalog.clone(), Environment::default());
    Ok(protocol.machine(node, starts, catalog, Arc::new(settings), environment))
}
