//! `durability = "log"`: a server's write-ahead log, in its [folder](crate::storage::folder).

use std::path::PathBuf;

use muesli_core::wire::Wire;
use muesli_core::{Encode, LogPosition, RecoverableMachine, Role};
use muesli_log::{
    CheckpointStream, Cut, Directory, Disk, Opened, Published, ReadingDirectory, Sequence,
};

use crate::storage::folder::{Folder, FolderError};
use crate::storage::log::{Log, LogFailure};
use crate::storage::replaying::{RECORD, Replayed, Replaying};
use crate::storage::trouble::Troubled;

impl Folder {
    /// Opens the log and takes what it holds to the node, which has not started; what that was is
    /// reported as notices.
    pub fn open_log(
        &self,
        files: LogFiles,
        machine: &mut dyn RecoverableMachine,
        notice: fn(&str),
        wake: impl Fn() + Send + 'static,
    ) -> Result<WriteAhead, FolderError> {
        let path = self.path.join("log");
        let directory = Directory::create(&path).map_err(|error| self.io("log", error))?;
        let mut replaying = Replaying { machine, notice };
        let (log, opened) = match files.trouble.clone() {
            None => start(directory, &files, &mut replaying, wake)?,
            Some(file) => start(Troubled::new(directory, file), &files, &mut replaying, wake)?,
        };
        replaying.machine.end_replay();
        report(&opened, notice);
        Ok(log)
    }
}

impl Folder {
    /// Takes what the log of this owner holds to a node, which has not started, and changes
    /// nothing: the node goes on without it.
    pub fn read_log(
        &self,
        owner: u64,
        machine: &mut dyn RecoverableMachine,
        notice: fn(&str),
    ) -> Result<(), FolderError> {
        let disk = self.log_to_read()?;
        let mut replaying = Replaying { machine, notice };
        let opened = replaying.read(&disk, owner, None)?;
        replaying.machine.end_replay();
        report(&opened, notice);
        Ok(())
    }

    /// The directory of the log, of which nothing is changed.
    pub fn log_to_read(&self) -> Result<ReadingDirectory, FolderError> {
        let path = self.path.join("log");
        ReadingDirectory::existing(&path).map_err(|error| self.io("log", error))
    }
}

/// Replays the log on a disk, and starts it.
fn start<D: Disk>(
    disk: D,
    files: &LogFiles,
    replaying: &mut Replaying<'_>,
    wake: impl Fn() + Send + 'static,
) -> Result<(WriteAhead, Opened), muesli_log::LogError> {
    let options = files.options;
    let Replayed { writer, opened, bytes } = replaying.open(disk.clone(), options)?;
    let log = muesli_log::Log::start(writer, wake)?;
    let begin =
        move |covers, keep| CheckpointStream::start(disk.clone(), options.owner, covers, keep);
    let write_ahead = WriteAhead {
        base: log.appended(),
        log,
        begin_checkpoint: Box::new(begin),
        checkpoints: options.checkpoints,
        checkpoint_bytes: files.checkpoint_bytes,
        since_checkpoint: bytes,
        last_checkpoint: 0,
    };
    Ok((write_ahead, opened))
}

/// How a log is opened.
#[derive(Clone, Debug)]
pub(crate) struct LogFiles {
    /// Its sizes, and whose it is: the life of the server's data.
    pub options: muesli_log::Options,
    /// A checkpoint begins after so many bytes of records; 0 never.
    pub checkpoint_bytes: u64,
    /// A file that says how its disk misbehaves.
    pub trouble: Option<PathBuf>,
}

/// A write-ahead log, as the driver uses one.
pub(crate) struct WriteAhead {
    log: muesli_log::Log,
    /// The last record of earlier starts: positions count from here.
    base: Sequence,
    begin_checkpoint: BeginCheckpoint,
    /// So many are kept.
    checkpoints: usize,
    /// A checkpoint begins after so many bytes of records.
    checkpoint_bytes: u64,
    /// Bytes of records since the last one began.
    since_checkpoint: u64,
    /// How long the last one was.
    last_checkpoint: u64,
}

/// Begins a checkpoint on the log's disk, whatever that is, of which so many are kept.
type BeginCheckpoint =
    Box<dyn Fn(Sequence, usize) -> Result<CheckpointStream, muesli_log::LogError> + Send>;

fn failure(error: muesli_log::LogError) -> LogFailure {
    LogFailure(error.to_string())
}

impl Log for WriteAhead {
    fn append(&mut self, role: Role, record: &dyn Encode) -> Result<(), LogFailure> {
        let mut bytes = 0;
        let append = |out: &mut Vec<u8>| {
            let before = out.len();
            role.encode(out);
            record.encode_to(out);
            bytes = out.len() - before;
        };
        self.log.append(RECORD, append).map_err(failure)?;
        self.since_checkpoint += bytes as u64;
        Ok(())
    }

    fn sync(&mut self) -> Result<bool, LogFailure> {
        self.log.flush().map_err(failure)
    }

    fn write(&mut self) -> Result<bool, LogFailure> {
        self.log.write().map_err(failure)
    }

    fn stable(&mut self) -> Result<LogPosition, LogFailure> {
        let stable = LogPosition(self.log.stable().0.saturating_sub(self.base.0));
        match self.log.failure() {
            Some(error) => Err(failure(error)),
            None => Ok(stable),
        }
    }

    fn kept(&self) -> u64 {
        self.log.stable().0
    }

    fn syncs(&self) -> u64 {
        self.log.syncs()
    }

    fn is_checkpoint_due(&self) -> bool {
        let enough = self.checkpoint_bytes.max(self.last_checkpoint);
        self.checkpoint_bytes > 0 && self.since_checkpoint >= enough
    }

    fn begin_checkpoint(
        &mut self,
        covers: LogPosition,
        alone: bool,
    ) -> Result<Option<CheckpointStream>, LogFailure> {
        self.since_checkpoint = 0;
        let covers = Sequence(self.base.0 + covers.0);
        if alone {
            self.log.rotate().map_err(failure)?;
        }
        let keep = if alone { 1 } else { self.checkpoints };
        (self.begin_checkpoint)(covers, keep).map(Some).map_err(failure)
    }

    fn published(&mut self, published: &Published) {
        self.last_checkpoint = published.bytes;
        self.log.truncate(published.truncate);
    }

    fn truncated(&self) -> Sequence {
        self.log.truncated()
    }

    fn close(self: Box<Self>) -> Result<(), LogFailure> {
        self.log.close().map(drop).map_err(failure)
    }
}

/// Reports what the log held.
fn report(opened: &Opened, notice: fn(&str)) {
    if let Some(cut) = &opened.cut {
        notice(&what_was_cut(cut, opened.last));
    }
    for (file, why) in &opened.unusable {
        notice(&format!("the checkpoint {file} could not be used, and an older one was: {why}"));
    }
    match opened.checkpoint {
        Some(covers) => notice(&format!(
            "a checkpoint held the first {} records, and the log the next {}",
            covers.0, opened.records
        )),
        None => notice(&format!("the log held {} records", opened.records)),
    }
}

/// Which kind of broken tail was cut, behind the log's last record.
fn what_was_cut(cut: &Cut, last: Sequence) -> String {
    let Cut { file, offset, bytes, what, goes_on_at } = cut;
    let found = match goes_on_at {
        None => {
            "nothing whole follows, as when the process or its power ended while it was written"
                .to_owned()
        }
        Some(last) => format!(
            "whole records up to {last} follow, as when the power failed while it was written, or \
             when a byte was damaged after it was synced; only then was anybody told of it"
        ),
    };
    format!(
        "{file} broke off after record {last}: {bytes} bytes of a last batch, which no mark says \
         were stable, were cut at byte {offset} ({what}; {found})"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_a_broken_tail_is_reported() {
        let what = "its checksum is wrong";
        let torn = Cut { file: "log-1".to_owned(), offset: 80, bytes: 30, what, goes_on_at: None };
        let listen_error = what_was_cut(&torn, Sequence(7));
        assert_eq!(
            listen_error,
            "log-1 broke off after record 7: 30 bytes of a last batch, which no mark says were \
             stable, were cut at byte 80 (its checksum is wrong; nothing whole follows, as when \
             the process or its power ended while it was written)"
        );
        let gap = Cut { goes_on_at: Some(Sequence(9)), ..torn };
        let listen_error = what_was_cut(&gap, Sequence(7));
        assert_eq!(
            listen_error,
            "log-1 broke off after record 7: 30 bytes of a last batch, which no mark says were \
             stable, were cut at byte 80 (its checksum is wrong; whole records up to 9 follow, \
             as when the power failed while it was written, or when a byte was damaged after it \
             was synced; only then was anybody told of it)"
        );
    }
}
