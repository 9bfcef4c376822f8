//! `durability = "log"`: a server's files, and its log.
//!
//! A server's folder holds `identity` (the life of its data, drawn when they began, and how often
//! it was started), `map` (the newest map it knows: a record of a space means nothing without
//! it), and `log`, the write-ahead log. The two small files are written anew as a whole, synced,
//! and put in the place of the old ones by a rename.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use muesli_core::wire::Wire;
use muesli_core::{Effects, LogPosition, Node, Protocol, RepositoryId, wire_struct};
use muesli_log::{CheckpointStream, Directory, Disk, Opened, Published, Sequence};
use thiserror::Error;

use crate::frame::{self, Kind};
use crate::log::{Log, LogFailure};
use crate::map::{Map, MapError, MapParts};
use crate::replaying::{RECORD, Replayed, Replaying};
use crate::trouble::Troubled;

/// Longest file of an identity or a map, in bytes.
const FILE_BYTES_MAX: usize = 64 << 20;

/// Why a server's files are of no use.
#[derive(Debug, Error)]
pub enum FolderError {
    /// The system refused.
    #[error("{path}: {error}")]
    Io {
        /// What was to be read or written.
        path: String,
        /// What the system said.
        error: io::Error,
    },
    /// A file is not what was written.
    #[error("{path} is damaged: {why}; restore the folder, or begin with an empty one")]
    Damaged {
        /// Which one.
        path: String,
        /// How.
        why: String,
    },
    /// The map makes no sense.
    #[error(transparent)]
    Map(#[from] MapError),
    /// The log.
    #[error(transparent)]
    Log(#[from] muesli_log::LogError),
}

/// Who a server is, from one start to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Remembered {
    /// The life of its data.
    pub life: u64,
    /// How often it was started, this time included.
    pub starts: u32,
}

wire_struct!(Remembered { life: u64, starts: u32 });

/// A server's folder.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// The folder at `path`, made if it is not there.
    pub fn open(path: &Path) -> Result<Folder, FolderError> {
        let folder = Folder { path: path.to_owned() };
        fs::create_dir_all(path).map_err(|error| folder.io("", error))?;
        Ok(folder)
    }

    /// Notes another start; who the server is.
    pub fn begin(&self) -> Result<Remembered, FolderError> {
        let before = self.read::<Remembered>("identity")?;
        let before = before.unwrap_or(Remembered { life: fastrand::u64(1..), starts: 0 });
        let now = Remembered { starts: before.starts.saturating_add(1), ..before };
        self.write("identity", &now)?;
        Ok(now)
    }

    /// The newest map that was kept.
    pub fn map(&self) -> Result<Option<Map>, FolderError> {
        let parts = self.read::<MapParts>("map")?;
        Ok(parts.map(Map::try_from).transpose()?)
    }

    /// Keeps a map.
    pub fn keep_map(&self, map: &Map) -> Result<(), FolderError> {
        self.write("map", &MapParts::from(map))
    }

    /// Opens the log and takes what it holds to the node, which has not started.
    pub fn open_log<P: Protocol>(
        &self,
        files: LogFiles,
        (node, effects): (&mut Node<P>, &mut Effects<P>),
        notice: fn(&str),
        wake: impl Fn() + Send + 'static,
    ) -> Result<(WriteAhead, Opened), FolderError> {
        let path = self.path.join("log");
        let directory = Directory::create(&path).map_err(|error| self.io("log", error))?;
        let mut replaying = Replaying { node, effects, notice };
        let opened = match files.trouble.clone() {
            None => start(directory, &files, &mut replaying, wake)?,
            Some(file) => start(Troubled::new(directory, file), &files, &mut replaying, wake)?,
        };
        (effects.logged, effects.gate) = (LogPosition(0), LogPosition(0));
        Ok(opened)
    }

    fn read<T: Wire>(&self, name: &str) -> Result<Option<T>, FolderError> {
        let bytes = match fs::read(self.path.join(name)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.io(name, error)),
        };
        let damaged = |why: String| FolderError::Damaged {
            path: self.path.join(name).display().to_string(),
            why,
        };
        let found = frame::next(&bytes, FILE_BYTES_MAX).map_err(|why| damaged(why.to_string()))?;
        let found = found.ok_or_else(|| damaged("it ends too early".to_owned()))?;
        T::decode_all(found.body).map(Some).map_err(|why| damaged(why.to_string()))
    }

    fn write(&self, name: &str, value: &impl Wire) -> Result<(), FolderError> {
        let mut bytes = Vec::new();
        let start = frame::begin(Kind::Control, &mut bytes);
        value.encode(&mut bytes);
        frame::end(start, &mut bytes);
        let (new, old) = (self.path.join(format!("{name}.new")), self.path.join(name));
        let put = || {
            let mut file = File::create(&new)?;
            file.write_all(&bytes)?;
            file.sync_all()?;
            fs::rename(&new, &old)?;
            File::open(&self.path)?.sync_all()
        };
        put().map_err(|error| self.io(name, error))
    }

    fn io(&self, name: &str, error: io::Error) -> FolderError {
        FolderError::Io { path: self.path.join(name).display().to_string(), error }
    }
}

/// Replays the log on a disk, and starts it.
fn start<D: Disk, P: Protocol>(
    disk: D,
    files: &LogFiles,
    replaying: &mut Replaying<'_, P>,
    wake: impl Fn() + Send + 'static,
) -> Result<(WriteAhead, Opened), muesli_log::LogError> {
    let options = files.options;
    let Replayed { writer, opened, bytes } = replaying.open(disk.clone(), options)?;
    let log = muesli_log::Log::start(writer, wake)?;
    let begin = move |covers| {
        CheckpointStream::start(disk.clone(), options.owner, covers, options.checkpoints)
    };
    let write_ahead = WriteAhead {
        base: log.appended(),
        log,
        begin_checkpoint: Box::new(begin),
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
    /// A checkpoint begins after so many bytes of records.
    checkpoint_bytes: u64,
    /// Bytes of records since the last one began.
    since_checkpoint: u64,
    /// How long the last one was.
    last_checkpoint: u64,
}

/// Begins a checkpoint on the log's disk, whatever that is.
type BeginCheckpoint =
    Box<dyn Fn(Sequence) -> Result<CheckpointStream, muesli_log::LogError> + Send>;

fn failure(error: muesli_log::LogError) -> LogFailure {
    LogFailure(error.to_string())
}

impl<P: Protocol> Log<P> for WriteAhead {
    fn append(&mut self, repository: RepositoryId, record: &P::Record) -> Result<(), LogFailure> {
        let mut bytes = 0;
        let append = |out: &mut Vec<u8>| {
            let before = out.len();
            repository.encode(out);
            record.encode(out);
            bytes = out.len() - before;
        };
        self.log.append(RECORD, append).map_err(failure)?;
        self.since_checkpoint += bytes as u64;
        Ok(())
    }

    fn sync(&mut self) -> Result<bool, LogFailure> {
        self.log.flush().map_err(failure)
    }

    fn stable(&mut self) -> Result<LogPosition, LogFailure> {
        let stable = LogPosition(self.log.stable().0.saturating_sub(self.base.0));
        match self.log.failure() {
            Some(error) => Err(failure(error)),
            None => Ok(stable),
        }
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
    ) -> Result<Option<CheckpointStream>, LogFailure> {
        self.since_checkpoint = 0;
        let covers = Sequence(self.base.0 + covers.0);
        (self.begin_checkpoint)(covers).map(Some).map_err(failure)
    }

    fn published(&mut self, published: &Published) {
        self.last_checkpoint = published.bytes;
        self.log.truncate(published.truncate);
    }

    fn close(self: Box<Self>) -> Result<(), LogFailure> {
        self.log.close().map(drop).map_err(failure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::Deal;
    use muesli_core::NodeId;

    #[test]
    fn a_folder_remembers_and_notices_damage() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        let first = folder.begin().unwrap();
        let again = Folder::open(dir.path()).unwrap().begin().unwrap();
        assert_eq!(again, Remembered { starts: 2, ..first });
        assert_eq!(folder.map().unwrap(), None);
        let map = Map::deal(vec![(NodeId(0), "a:1".to_owned())], Deal::default()).unwrap();
        folder.keep_map(&map).unwrap();
        assert_eq!(folder.map().unwrap(), Some(map));
        let path = dir.path().join("identity");
        let mut bytes = fs::read(&path).unwrap();
        bytes[20] ^= 1;
        fs::write(&path, &bytes).unwrap();
        let error = folder.begin().unwrap_err().to_string();
        assert!(error.contains("identity is damaged"), "{error}");
    }
}
