//! What a folder says that it holds: enough to open it as it is.

use std::path::{Path, PathBuf};

use muesli_core::{Catalog, SpaceOptions};
use muesli_registry::canonical_name;

use crate::spaces::map::Map;
use crate::storage::folder::{Folder, FolderError, StoredIdentity};
use crate::storage::loop_folders::{folder_of_loop, loops_of};

/// The database in a folder, of one process that is alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredDatabase {
    /// Its protocol, by name.
    pub protocol: String,
    /// How many loops hold keys.
    pub loops: usize,
    /// How many loops are masters, beside them.
    pub masters: usize,
    /// How many repositories there are.
    pub repositories: usize,
    /// How many of them hold each key.
    pub replicas: usize,
    /// How many partitions there are for each of them.
    pub partitions_per_repository: usize,
    /// Its spaces, in the order of their numbers.
    pub spaces: Vec<(String, SpaceOptions)>,
}

impl StoredDatabase {
    /// What is in the folder at `path`. Changes nothing.
    ///
    /// # Errors
    /// There is no database, somebody uses it, or it is one of groups, of several processes or with
    /// a tree, which cannot be opened without saying how.
    pub fn look(path: &Path) -> Result<StoredDatabase, FolderError> {
        let folders = StoredLoop::all(path)?;
        let newest = |one: Map, other: &Map| one.newest(other).unwrap_or(one);
        let first = &folders[0];
        let map = folders.iter().map(|it| &it.map).fold(first.map.clone(), newest);
        let refused = |what: &str| FolderError::NotAlone {
            path: path.display().to_string(),
            what: what.to_owned(),
        };
        if map.group > 1 {
            return Err(refused("groups of servers"));
        }
        if map.servers.len() != folders.len() {
            return Err(refused("several servers"));
        }
        if map.catalog.tree_epoch > 0 {
            return Err(refused("a tree of validators"));
        }
        let Catalog { replicas, partitions_per_repository, ref masters, .. } = *map.catalog;
        let spaces = map.catalog.spaces().iter();
        Ok(StoredDatabase {
            protocol: canonical_name(&first.identity.owner.protocol).to_owned(),
            loops: folders.len() - masters.len(),
            masters: masters.len(),
            repositories: map.catalog.repositories(),
            replicas: replicas.into(),
            partitions_per_repository: partitions_per_repository.into(),
            spaces: spaces.map(|space| (space.name.clone(), space.options.clone())).collect(),
        })
    }
}

/// The folder of one loop, which nobody changes while this is there.
#[derive(Debug)]
pub(super) struct StoredLoop {
    pub path: PathBuf,
    pub folder: Folder,
    pub identity: StoredIdentity,
    pub map: Map,
}

impl StoredLoop {
    /// The folders of all loops of the database at `path`, or of the loop that it is the folder of;
    /// at least one.
    pub fn all(path: &Path) -> Result<Vec<StoredLoop>, FolderError> {
        let loops = loops_of(path).map_or(1, |loops| *loops.start());
        (0..loops).map(|at| StoredLoop::read(&folder_of_loop(path, at, loops))).collect()
    }

    fn read(path: &Path) -> Result<StoredLoop, FolderError> {
        let folder = Folder::reading(path)?;
        let missing = |file: &str| FolderError::NoData {
            path: path.display().to_string(),
            missing: path.join(file).display().to_string(),
        };
        let identity = folder.identity_of_anybody()?.ok_or_else(|| missing("identity"))?;
        let map = folder.map()?.ok_or_else(|| missing("map"))?;
        Ok(StoredLoop { path: path.to_owned(), folder, identity, map })
    }
}
