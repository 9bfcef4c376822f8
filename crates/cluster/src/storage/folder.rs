//! A server's folder: whose it is, in which formats it is written, and who uses it.
//!
//! It holds `lock` (held by the process that uses the folder), `identity` (who the server is and
//! what its data are of, see [`StoredIdentity`]), `map` (the newest map that it knows: a record of
//! a space means nothing without it), `recalled` (how far the logs of the others had come, see
//! [`older_copies`](crate::admission::older_copies)), and `log`, the write-ahead log. The lock is
//! taken before anything is read or changed. The small files are written anew as a whole, synced,
//! and put in the place of the old ones by a rename. Each begins with a header of its own, as
//! `small_files` has it: `MuesFile`, and the version [`formats::FOLDER`].

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use muesli_core::wire::Wire;
use muesli_core::{NodeId, wire_struct};
use thiserror::Error;

use crate::formats;
use crate::spaces::error::MapError;
use crate::spaces::map::Map;
use crate::spaces::parts::MapParts;
use crate::storage::small_files::{self, FileLock, Format, UnfitFile};
use crate::wire::ids::{ClusterId, DataId};
use crate::wire::progress::Reached;
use crate::wire::protocol_name::is_same_protocol;

/// The file that is locked while a process uses the folder; it holds nothing.
const LOCK_FILE: &str = "lock";
const FORMAT: Format = Format { magic: b"MuesFile", version: formats::FOLDER };
/// What these files began with up to version 2, where they were frames: the version followed.
const MAGIC_OF_FRAMES: &[u8; 3] = b"Mue";

/// Why a server's files cannot be used.
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
    /// Another process uses the folder.
    #[error(
        "the folder {path} is in use: another process holds {path}/{LOCK_FILE}; nothing was \
         changed. Stop that process, or give this one another folder (`data_dir` of a server)"
    )]
    InUse {
        /// The folder.
        path: String,
    },
    /// There is nothing to be read.
    #[error(
        "there is no database in {path}, or none that was ever opened: {missing} is not there; \
         nothing was changed"
    )]
    NoData {
        /// The folder.
        path: String,
        /// What is not there.
        missing: String,
    },
    /// Data of a protocol that this program does not have.
    #[error("the data in {path} cannot be replayed by this program: {why}")]
    Protocol {
        /// The folder.
        path: String,
        /// Why not.
        why: String,
    },
    /// Data of something that cannot be opened by itself.
    #[error(
        "the data in {path} are those of a database with {what}: give the options that it was made \
         with"
    )]
    NotAlone {
        /// The folder.
        path: String,
        /// What it has.
        what: String,
    },
    /// A space cannot be made in what is only read.
    #[error(
        "there is no space `{space}` in {path}, and none can be made there: it is opened for \
         reading only"
    )]
    NoSpace {
        /// The folder.
        path: String,
        /// The space that there is not.
        space: String,
    },
    /// A file is not what was written.
    #[error("{path} is damaged: {why}; restore the folder, or begin with an empty one")]
    Damaged {
        /// Which one.
        path: String,
        /// How.
        why: String,
    },
    /// A file of another version.
    #[error(
        "{path} is of version {found} of {what}, and this program ({}) reads version {reads}. \
         Nothing is damaged and nothing was changed: keep the folder, and start it with a program \
         that reads version {found} (docs/running/compatibility.md)",
        formats::PROGRAM
    )]
    Version {
        /// Which one.
        path: String,
        /// Of what.
        what: &'static str,
        /// The version that was found.
        found: u32,
        /// The version that is read here.
        reads: u32,
    },
    /// Data of something else than what is to be started.
    #[error(
        "the data in {path} are those of {what} {before}, not of {now}; nothing was changed. \
         Open it as {before}, or give another folder (`data_dir` of a server)"
    )]
    Other {
        /// The folder.
        path: String,
        /// Of what kind.
        what: &'static str,
        /// Whose they are.
        before: String,
        /// Who was to be started.
        now: String,
    },
    /// Data of another number of loops than is to be started.
    #[error(
        "the data in {path} are those of {before} loops, not of {loops}; nothing was changed. \
         Open it with {before}, or give another folder (`data_dir` of a server)"
    )]
    Loops {
        /// The folder.
        path: String,
        /// As many wrote it.
        before: usize,
        /// As many are to run now.
        loops: usize,
    },
    /// Data of a database that differs from what is to be opened.
    #[error(
        "the data in {path} are those of another database: {}; nothing was changed. Open it as it \
         was, or give another folder",
        differences.join("; ")
    )]
    Differs {
        /// The folder.
        path: String,
        /// What was otherwise, each with what it is to be.
        differences: Vec<String>,
    },
    /// The map makes no sense.
    #[error(transparent)]
    Map(#[from] MapError),
    /// The log.
    #[error(transparent)]
    Log(#[from] muesli_log::LogError),
}

/// Whose data a folder holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FolderOwner {
    /// The cluster.
    pub cluster: ClusterId,
    /// The server's number there.
    pub node: NodeId,
    /// The protocol by name, that of groups included.
    pub protocol: String,
}

/// What `identity` says: who a server is, from one start to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredIdentity {
    /// The version of the records and checkpoints in the log.
    pub data: u32,
    /// The program that wrote this last.
    pub program: String,
    /// Whose data these are.
    pub owner: FolderOwner,
    /// The life of the data, drawn when they began.
    pub data_id: u64,
    /// How often the server was started, this time included.
    pub starts: u32,
    /// When that began, or somebody last accepted that the end of the data is lost: milliseconds
    /// since 1970.
    pub begun: u64,
}

wire_struct!(FolderOwner { cluster: ClusterId, node: NodeId, protocol: String });
wire_struct!(StoredIdentity {
    data: u32,
    program: String,
    owner: FolderOwner,
    data_id: u64,
    starts: u32,
    begun: u64,
});

/// A server's folder, locked for as long as any clone of this is there.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    pub(crate) path: PathBuf,
    _lock: Arc<FileLock>,
}

impl Folder {
    /// The folder at `path`, made if it is not there, and locked.
    pub fn open(path: &Path) -> Result<Folder, FolderError> {
        let create = muesli_log::disk::directory::create_synced(path);
        create.map_err(|error| io_error(path, error))?;
        let file = path.join(LOCK_FILE);
        match small_files::lock(&file) {
            Ok(Some(lock)) => Ok(Folder { path: path.to_owned(), _lock: Arc::new(lock) }),
            Ok(None) => Err(FolderError::InUse { path: path.display().to_string() }),
            Err(error) => Err(io_error(&file, error)),
        }
    }

    /// The folder at `path`, which others may read meanwhile, and nobody may change. Nothing is
    /// changed here.
    pub fn reading(path: &Path) -> Result<Folder, FolderError> {
        let file = path.join(LOCK_FILE);
        match small_files::share(&file) {
            Ok(Some(lock)) => Ok(Folder { path: path.to_owned(), _lock: Arc::new(lock) }),
            Ok(None) => Err(FolderError::InUse { path: path.display().to_string() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let (path, missing) = (path.display().to_string(), file.display().to_string());
                Err(FolderError::NoData { path, missing })
            }
            Err(error) => Err(io_error(&file, error)),
        }
    }

    /// What `identity` says, if there is one and it is of this owner. Changes nothing.
    pub fn identity(&self, owner: &FolderOwner) -> Result<Option<StoredIdentity>, FolderError> {
        let Some(identity) = self.identity_of_anybody()? else { return Ok(None) };
        let before = &identity.owner;
        if !is_same_protocol(&before.protocol, &owner.protocol) {
            self.check("protocol", &before.protocol, &owner.protocol)?;
        }
        self.check("cluster", &before.cluster.0.to_string(), &owner.cluster.0.to_string())?;
        self.check("node", &before.node.0.to_string(), &owner.node.0.to_string())?;
        Ok(Some(identity))
    }

    /// The same, of whatever owner.
    pub fn identity_of_anybody(&self) -> Result<Option<StoredIdentity>, FolderError> {
        let Some(identity) = self.read::<StoredIdentity>("identity")? else { return Ok(None) };
        if identity.data != formats::DATA {
            return Err(FolderError::Version {
                path: self.path.display().to_string(),
                what: "records and checkpoints",
                found: identity.data,
                reads: formats::DATA,
            });
        }
        Ok(Some(identity))
    }

    fn check(&self, what: &'static str, before: &str, now: &str) -> Result<(), FolderError> {
        if before == now {
            return Ok(());
        }
        let (path, before) = (self.path.display().to_string(), format!("`{before}`"));
        Err(FolderError::Other { path, what, before, now: format!("`{now}`") })
    }

    /// Notes another start, at this time, after what `identity` said before, at which somebody may
    /// accept that the end of the data is lost; who the server is.
    pub fn begin(
        &self,
        before: Option<StoredIdentity>,
        owner: FolderOwner,
        accepts_loss: bool,
        wall_millis: u64,
    ) -> Result<StoredIdentity, FolderError> {
        let (data_id, starts, begun) = match before {
            Some(it) if accepts_loss => (it.data_id, it.starts, wall_millis.max(it.begun + 1)),
            Some(it) => (it.data_id, it.starts, it.begun),
            None => (DataId::draw(accepts_loss).0, 0, wall_millis),
        };
        let (data, program) = (formats::DATA, formats::PROGRAM.to_owned());
        let starts = starts.saturating_add(1);
        let now = StoredIdentity { data, program, owner, data_id, starts, begun };
        self.write("identity", &now)?;
        Ok(now)
    }

    /// What [`begin`](Self::begin) noted began then.
    pub fn begin_at(&self, begun: u64) -> Result<(), FolderError> {
        let Some(identity) = self.read::<StoredIdentity>("identity")? else { return Ok(()) };
        self.write("identity", &StoredIdentity { begun, ..identity })
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

    /// What was heard of the others' logs, as far as it was kept and can be read: without it a
    /// server knows less, and nothing that is wrong.
    pub fn recalled(&self) -> Vec<Reached> {
        self.read("heard").ok().flatten().unwrap_or_default()
    }

    /// Keeps what was heard of the others' logs.
    pub fn keep_progress(&self, recalled: &Vec<Reached>) -> Result<(), FolderError> {
        self.write("heard", recalled)
    }

    fn read<T: Wire>(&self, name: &str) -> Result<Option<T>, FolderError> {
        let path = self.path.join(name);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io_error(&path, error)),
        };
        let path = path.display().to_string();
        match body(&bytes) {
            Err(UnfitFile::Version(found)) => {
                let (what, reads) = ("a server's folder", formats::FOLDER);
                Err(FolderError::Version { path, what, found, reads })
            }
            Err(UnfitFile::Damaged(why)) => Err(FolderError::Damaged { path, why: why.to_owned() }),
            Ok(body) => T::decode_all(body)
                .map(Some)
                .map_err(|why| FolderError::Damaged { path, why: why.to_string() }),
        }
    }

    fn write(&self, name: &str, value: &impl Wire) -> Result<(), FolderError> {
        let path = self.path.join(name);
        small_files::replace(&path, &FORMAT.file(value)).map_err(|error| io_error(&path, error))
    }

    /// An error of the system about a file in this folder.
    pub fn io(&self, name: &str, error: io::Error) -> FolderError {
        io_error(&self.path.join(name), error)
    }
}

fn io_error(path: &Path, error: io::Error) -> FolderError {
    FolderError::Io { path: path.display().to_string(), error }
}

/// The bytes of a file of this folder that holds this value.
#[cfg(test)]
pub(crate) fn file(version: u32, value: &impl Wire) -> Vec<u8> {
    Format { version, ..FORMAT }.file(value)
}

/// The body of a file's bytes.
fn body(bytes: &[u8]) -> Result<&[u8], UnfitFile> {
    if bytes.len() > 3 && bytes[..3] == *MAGIC_OF_FRAMES && bytes[3] < b' ' {
        return Err(UnfitFile::Version(bytes[3].into()));
    }
    FORMAT.body(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spaces::map::Deal;

    fn owner(protocol: &str) -> FolderOwner {
        FolderOwner { cluster: ClusterId(1), node: NodeId(0), protocol: protocol.to_owned() }
    }

    fn begun(path: &Path) -> (Folder, StoredIdentity) {
        let folder = Folder::open(path).unwrap();
        let before = folder.identity(&owner("score")).unwrap();
        let identity = folder.begin(before, owner("score"), false, 1_000).unwrap();
        (folder, identity)
    }

    #[test]
    fn a_folder_remembers() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, first) = begun(dir.path());
        drop(folder);
        let (folder, again) = begun(dir.path());
        assert_eq!(again, StoredIdentity { starts: 2, ..first });
        assert_eq!(folder.map().unwrap(), None);
        let map = Map::deal(vec![(NodeId(0), "a:1".to_owned())], Deal::default()).unwrap();
        folder.keep_map(&map).unwrap();
        assert_eq!(folder.map().unwrap(), Some(map));
    }

    #[test]
    fn one_process_at_a_time_uses_a_folder() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, _) = begun(dir.path());
        let error = Folder::open(dir.path()).unwrap_err().to_string();
        assert!(error.contains("is in use") && error.contains("nothing was changed"), "{error}");
        drop(folder);
        assert!(Folder::open(dir.path()).is_ok());
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, identity) = begun(dir.path());
        let path = dir.path().join("identity");
        let whole = fs::read(&path).unwrap();
        for bit in 0..whole.len() * 8 {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, &bytes).unwrap();
            let error = folder.identity(&owner("score")).unwrap_err();
            let is_version = matches!(error, FolderError::Version { .. });
            assert_eq!(is_version, (64..96).contains(&bit), "bit {bit}: {error}");
        }
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            let error = folder.identity(&owner("score")).unwrap_err();
            assert!(error.to_string().contains("identity is damaged"), "{length}: {error}");
        }
        fs::write(&path, &whole).unwrap();
        assert_eq!(folder.identity(&owner("score")).unwrap(), Some(identity));
    }

    #[test]
    fn other_versions_are_named_and_not_called_damage() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, identity) = begun(dir.path());
        let path = dir.path().join("identity");
        let refused = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            let error = folder.identity(&owner("score")).unwrap_err().to_string();
            assert!(!error.contains("empty"), "advice that loses data: {error}");
            assert!(error.contains("Nothing is damaged and nothing was changed"), "{error}");
            error
        };
        let newer = refused(&file(formats::FOLDER + 4, &identity));
        assert!(newer.contains("version 7 of a server's folder"), "{newer}");
        assert!(newer.contains("reads version 3"), "{newer}");
        // As it was up to version 2: a frame.
        let older = refused(b"Mue\x02\x06\x00\x00\x00\x0c\x00\x00\x00abcd123456789012");
        assert!(older.contains("version 2 of a server's folder"), "{older}");
        let data = StoredIdentity { data: formats::DATA + 1, ..identity };
        let data = refused(&file(formats::FOLDER, &data));
        assert!(data.contains("version 4 of records and checkpoints"), "{data}");
    }

    #[test]
    fn data_are_of_the_same_protocol_under_its_earlier_name() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        folder.begin(None, owner("2pc in groups of 3"), false, 1).unwrap();
        let is_ours = |name: &str| folder.identity(&owner(name)).is_ok();
        assert!(is_ours("2pc in groups of 3") && is_ours("two-phase-commit in groups of 3"));
        assert!(!is_ours("2pc") && !is_ours("two-phase-commit in groups of 5") && !is_ours("rr"));
    }

    #[test]
    fn data_of_another_protocol_cluster_or_node_are_refused_and_both_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, _) = begun(dir.path());
        let refused = |owner: FolderOwner| folder.identity(&owner).unwrap_err().to_string();
        let protocol = refused(owner("rr"));
        assert!(protocol.contains("protocol `score`, not of `rr`"), "{protocol}");
        let node = refused(FolderOwner { node: NodeId(3), ..owner("score") });
        assert!(node.contains("node `0`, not of `3`"), "{node}");
        let cluster = refused(FolderOwner { cluster: ClusterId(9), ..owner("score") });
        assert!(cluster.contains("cluster `1`, not of `9`"), "{cluster}");
    }
}
