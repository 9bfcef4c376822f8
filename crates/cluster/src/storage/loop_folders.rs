//! The folders of the loops of one process, and those of an embedded database.
//!
//! A process with one loop has its files in its folder itself; with several, each loop has a folder
//! `loop-N` in it. An embedded database keeps the same files as a server does, as node N of a
//! cluster of its own, so that either can open what the other has left. What the database is to be
//! is compared with what is there before anything is changed.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use muesli_core::catalog::{Index, Partitioning, SpaceOptions};
use muesli_core::{Catalog, NodeId, RecoverableMachine};
use muesli_log::disk::directory::create_synced;
use muesli_log::format::frame::PAYLOAD_MAX;

use crate::spaces::map::{Beside, Deal, Map};
use crate::spaces::parts::SpaceParts;
use crate::storage::folder::{Folder, FolderError, FolderOwner, StoredIdentity};
use crate::storage::log::MemoryLog;
use crate::storage::node_log::NodeLog;
use crate::storage::write_ahead::LogFiles;
use crate::wire::ids::{ClusterId, DataId};
use crate::wire::protocol_name::spoken;

/// The longest record that a log takes: what limits allow must fit.
pub const RECORD_BYTES_MAX: usize = PAYLOAD_MAX;

/// The port of the first loop, where a server that is not told otherwise listens: what stands on
/// the map until one says where it does.
const FIRST_PORT: u32 = 7400;

/// The folder of one of the loops of a process.
pub(crate) fn folder_of_loop(path: &Path, number: usize, loops: usize) -> PathBuf {
    if loops > 1 { path.join(format!("loop-{number}")) } else { path.to_owned() }
}

/// How many loops may have written what is in a folder; `None`: nobody wrote anything. All folders
/// are made before the first one has data, and which of them has some first is not said. So where
/// the last ones have none, a start was cut short, or an earlier one that was to have more loops.
pub(crate) fn loops_of(path: &Path) -> Option<RangeInclusive<usize>> {
    if path.join("identity").exists() {
        return Some(1..=1);
    }
    let folder = |number: usize| path.join(format!("loop-{number}"));
    let there = (0..).take_while(|&number| folder(number).exists()).count();
    let last = (0..there).rev().find(|&number| folder(number).join("identity").exists());
    // One loop alone would have no folder of its own.
    last.map(|number| (number + 1).max(2)..=there.max(2))
}

/// Looks whether the data in a folder may be those of so many loops, or are none, and makes the
/// folders of all loops before the first of them has data. What was kept of the loops says the
/// rest.
///
/// # Errors
/// They are those of another number of loops, where its data would not be found.
pub(crate) fn make_loop_folders(path: &Path, loops: usize) -> Result<(), FolderError> {
    if let Some(before) = loops_of(path).filter(|before| !before.contains(&loops)) {
        return Err(other_loops(path, *before.start(), loops));
    }
    for number in (0..loops).filter(|_| loops > 1) {
        let folder = folder_of_loop(path, number, loops);
        create_synced(&folder)
            .map_err(|error| FolderError::Io { path: folder.display().to_string(), error })?;
    }
    Ok(())
}

fn other_loops(path: &Path, before: usize, loops: usize) -> FolderError {
    FolderError::Loops { path: path.display().to_string(), before, loops }
}

/// What an embedded database is to be, and where its files are.
#[derive(Clone, Debug)]
pub struct EmbeddedPlan<'a> {
    /// Its folder.
    pub path: &'a Path,
    /// Its protocol, by name.
    pub protocol: &'a str,
    /// Its loops, all of them, and how repositories are dealt to those that hold some.
    pub deal: Deal,
    /// What its loops are beside.
    pub beside: Beside<'a>,
    /// The spaces that are to be there.
    pub spaces: &'a [(String, SpaceOptions)],
    /// How the logs are kept.
    pub sizes: LogSizes,
    /// Nothing of it is to be changed, and others may read it meanwhile.
    pub reads_only: bool,
}

/// How large the files of a log become.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSizes {
    /// A file of a log that has grown to so many bytes is followed by another one.
    pub segment_bytes: u64,
    /// When a log has grown by so many bytes of records, a checkpoint begins; 0: never.
    pub checkpoint_bytes: u64,
    /// With more bytes than this waiting for the disk, no new work is taken.
    pub backlog_bytes: usize,
    /// A file that says how the disk is to misbehave, for tests; see [`crate::storage::trouble`].
    pub trouble: Option<PathBuf>,
}

/// The folders of an embedded database, locked for as long as this is there.
#[derive(Debug)]
pub struct EmbeddedFiles {
    /// By loop.
    folders: Vec<Folder>,
    map: Map,
}

/// What a loop of an embedded database begins with, on its thread.
#[derive(Debug)]
pub struct LoopFiles {
    folder: Folder,
    identity: StoredIdentity,
    sizes: LogSizes,
    reads_only: bool,
}

impl EmbeddedFiles {
    /// Takes the folders of a database, makes what is missing in them, and notes another start.
    ///
    /// # Errors
    /// Another process uses them, or they hold something else than what is to be opened; then
    /// nothing was changed. Or the system refused.
    pub fn open(plan: &EmbeddedPlan<'_>) -> Result<(EmbeddedFiles, Vec<LoopFiles>), FolderError> {
        let (path, loops) = (plan.path, plan.deal.loops);
        let planned = planned(plan)?;
        if plan.reads_only {
            return EmbeddedFiles::reading(plan, planned);
        }
        make_loop_folders(path, loops)?;
        let folders = (0..loops).map(|number| Folder::open(&folder_of_loop(path, number, loops)));
        let folders = folders.collect::<Result<Vec<_>, _>>()?;
        let (owners, before) = owners(&folders, plan.protocol)?;
        let kept = folders.iter().map(Folder::map).collect::<Result<Vec<_>, _>>()?;
        if kept[0].is_some()
            && let Some(lost) = before.iter().position(Option::is_none)
        {
            // Here the last loop's data are the first that are written.
            let (some, none_behind) = (lost.max(2), before[lost..].iter().all(Option::is_none));
            if none_behind && some != loops {
                return Err(other_loops(path, some, loops));
            }
            let path = folders[lost].path.join("identity").display().to_string();
            let why = "it is not there, and another loop's is".to_owned();
            return Err(FolderError::Damaged { path, why });
        }
        let map = as_planned(path, kept, planned)?;
        let map = with_spaces(path, map, plan.spaces)?;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut files = Vec::with_capacity(loops);
        // The first loop's are written last: where they are there, so are all.
        for ((folder, owner), before) in folders.iter().zip(owners).zip(before).rev() {
            let identity = folder.begin(before, owner, false, since.as_millis() as u64)?;
            folder.keep_map(&map)?;
            let (folder, sizes, reads_only) = (folder.clone(), plan.sizes.clone(), false);
            files.push(LoopFiles { folder, identity, sizes, reads_only });
        }
        files.reverse();
        Ok((EmbeddedFiles { folders, map }, files))
    }

    /// Takes the folders of a database to read them, beside others that do, and changes nothing.
    fn reading(
        plan: &EmbeddedPlan<'_>,
        planned: Map,
    ) -> Result<(EmbeddedFiles, Vec<LoopFiles>), FolderError> {
        let (path, loops) = (plan.path, plan.deal.loops);
        let before = loops_of(path).map(|it| *it.start());
        if let Some(before) = before.filter(|&before| before != loops) {
            return Err(other_loops(path, before, loops));
        }
        let folders = (0..loops).map(|at| Folder::reading(&folder_of_loop(path, at, loops)));
        let folders = folders.collect::<Result<Vec<_>, _>>()?;
        let (_, before) = owners(&folders, plan.protocol)?;
        let kept = folders.iter().map(Folder::map).collect::<Result<Vec<_>, _>>()?;
        let missing = |at: usize, file: &str| FolderError::NoData {
            path: path.display().to_string(),
            missing: folders[at].path.join(file).display().to_string(),
        };
        let map = as_planned(path, kept, planned)?;
        let unknown = plan.spaces.iter().find(|(name, _)| map.catalog.space_named(name).is_none());
        if let Some((space, _)) = unknown {
            let (path, space) = (path.display().to_string(), space.clone());
            return Err(FolderError::NoSpace { path, space });
        }
        let map = with_spaces(path, map, plan.spaces)?;
        let files = folders.iter().zip(before).enumerate().map(|(at, (folder, before))| {
            let identity = before.ok_or_else(|| missing(at, "identity"))?;
            // What begins here is none of the transactions that the log tells of.
            let identity = StoredIdentity { starts: identity.starts.saturating_add(1), ..identity };
            let (folder, sizes) = (folder.clone(), plan.sizes.clone());
            Ok(LoopFiles { folder, identity, sizes, reads_only: true })
        });
        let files = files.collect::<Result<_, FolderError>>()?;
        Ok((EmbeddedFiles { folders, map }, files))
    }

    /// The spaces, and where repositories live.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.map.catalog
    }

    /// Keeps one more space, on the disk when this returns: a record of it means nothing without.
    ///
    /// # Errors
    /// There cannot be such a space, or the files cannot be written. Where some were, the space is
    /// there at the next start.
    pub fn keep_space(&mut self, name: &str, options: &SpaceOptions) -> Result<(), FolderError> {
        let map = self.map.with_space(&SpaceParts::of(name, options))?;
        if map == self.map {
            return Ok(());
        }
        self.folders.iter().try_for_each(|folder| folder.keep_map(&map))?;
        self.map = map;
        Ok(())
    }
}

/// The map of a database as it is planned.
fn planned(plan: &EmbeddedPlan<'_>) -> Result<Map, FolderError> {
    let port = |number: u32| format!("127.0.0.1:{}", FIRST_PORT + number);
    let nodes = (0..plan.deal.loops as u32).map(|number| (NodeId(number), port(number)));
    Ok(Map::deal_beside(nodes.collect(), plan.deal, plan.beside.clone())?)
}

/// Whose the folders are to be, and who they are of, as far as there is anything in them.
fn owners(
    folders: &[Folder],
    protocol: &str,
) -> Result<(Vec<FolderOwner>, Vec<Option<StoredIdentity>>), FolderError> {
    let anybody = folders.iter().map(Folder::identity_of_anybody);
    let anybody = anybody.collect::<Result<Vec<_>, _>>()?;
    // A server's data are taken as those of its cluster; what is new is of the one that is usual.
    let cluster = anybody.iter().flatten().map(|identity| identity.owner.cluster).next();
    let cluster = cluster.unwrap_or(ClusterId(1));
    let owner = |node| FolderOwner { cluster, node, protocol: spoken(protocol, 1) };
    let owners: Vec<_> = (0..folders.len() as u32).map(|node| owner(NodeId(node))).collect();
    let before = folders.iter().zip(&owners).map(|(folder, owner)| folder.identity(owner));
    let before = before.collect::<Result<Vec<_>, _>>()?;
    Ok((owners, before))
}

/// The newest map that was kept, if it is as planned, or the planned one.
fn as_planned(path: &Path, kept: Vec<Option<Map>>, planned: Map) -> Result<Map, FolderError> {
    let newer = |one: Map, other: Map| one.newest(&other).unwrap_or(one);
    let Some(kept) = kept.into_iter().flatten().reduce(newer) else { return Ok(planned) };
    if kept.moved_to(&planned).is_none() {
        let (path, differences) = (path.display().to_string(), kept.differences(&planned));
        return Err(FolderError::Differs { path, differences });
    }
    Ok(kept)
}

/// The map with these spaces.
fn with_spaces(
    path: &Path,
    mut map: Map,
    spaces: &[(String, SpaceOptions)],
) -> Result<Map, FolderError> {
    for (name, options) in spaces {
        if let Some(id) = map.catalog.space_named(name)
            && let Some(before) = map.catalog.spaces().get(usize::from(id.0))
            && before.options != *options
        {
            let (was, is) = (described(&before.options), described(options));
            let differences = vec![format!("the space `{name}` was {was} and is {is}")];
            return Err(FolderError::Differs { path: path.display().to_string(), differences });
        }
        map = map.with_space(&SpaceParts::of(name, options))?;
    }
    Ok(map)
}

fn described(options: &SpaceOptions) -> String {
    let index = match options.index {
        Index::Hash => "found by hash",
        Index::Ordered => "in order",
    };
    match &options.partitioning {
        Partitioning::Hash => format!("{index}, dealt by hash"),
        Partitioning::Range(splits) => format!("{index}, dealt by ranges with splits {splits:?}"),
        Partitioning::Unit(units) => format!("{index}, dealt {units}"),
        Partitioning::Everywhere => format!("{index}, everywhere"),
    }
}

impl LoopFiles {
    /// How often the loop was started, this time included.
    pub fn starts(&self) -> u32 {
        self.identity.starts
    }

    /// As [`Settings::lost_disk`](muesli_core::Settings::lost_disk) has it.
    pub fn lost_disk(&self) -> Option<u64> {
        DataId(self.identity.data_id).replaces_lost()
    }

    /// Opens the log and takes what it holds to the machine, whose node has not started; what that
    /// was is reported as notices. The log's thread calls `wake` after every sync, and when the log
    /// fails. Where nothing is to be changed, what is logged from then on is kept nowhere.
    ///
    /// # Errors
    /// It cannot be read, or makes no sense.
    pub fn open_log(
        &self,
        machine: &mut dyn RecoverableMachine,
        notice: fn(&str),
        wake: impl Fn() + Send + 'static,
    ) -> Result<NodeLog, FolderError> {
        let LogSizes { segment_bytes, checkpoint_bytes, backlog_bytes, .. } = self.sizes;
        let owner = self.identity.data_id;
        if self.reads_only {
            self.folder.read_log(owner, machine, notice)?;
            return Ok(NodeLog::new(Box::new(MemoryLog::default())));
        }
        let options = muesli_log::Options {
            owner,
            segment_bytes,
            backlog_bytes,
            ..muesli_log::Options::default()
        };
        let files = LogFiles { options, checkpoint_bytes, trouble: self.sizes.trouble.clone() };
        let log = self.folder.open_log(files, machine, notice, wake)?;
        Ok(NodeLog::new(Box::new(log)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: LogSizes = LogSizes {
        segment_bytes: 1 << 20,
        checkpoint_bytes: 0,
        backlog_bytes: 1 << 20,
        trouble: None,
    };

    fn plan(path: &Path, loops: usize) -> EmbeddedPlan<'_> {
        let deal = Deal { repositories: 2, loops, ..Deal::default() };
        let (beside, spaces) = (Beside::default(), &[][..]);
        let (protocol, sizes, reads_only) = ("score", SIZES, false);
        EmbeddedPlan { path, protocol, deal, beside, spaces, sizes, reads_only }
    }

    fn refused(plan: &EmbeddedPlan<'_>) -> String {
        EmbeddedFiles::open(plan).unwrap_err().to_string()
    }

    #[test]
    fn a_folder_keeps_its_number_of_loops() {
        for loops in [1, 2] {
            let dir = tempfile::tempdir().unwrap();
            drop(EmbeddedFiles::open(&plan(dir.path(), loops)).unwrap());
            assert!(make_loop_folders(dir.path(), loops).is_ok());
            let error = refused(&plan(dir.path(), 3 - loops));
            assert!(error.contains(&format!("those of {loops} loops, not of")), "{error}");
            let (_, files) = EmbeddedFiles::open(&plan(dir.path(), loops)).unwrap();
            assert!(files.iter().all(|files| files.starts() == 2));
        }
    }

    /// A process may end after it has made some of the folders, and before any has data.
    #[test]
    fn folders_without_data_are_of_no_number_of_loops() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("loop-0")).unwrap();
        assert!(EmbeddedFiles::open(&plan(dir.path(), 2)).is_ok());
        let kept = dir.path().join("loop-1");
        std::fs::remove_file(kept.join("identity")).unwrap();
        let error = refused(&plan(dir.path(), 2));
        assert!(error.contains("loop-1/identity is damaged: it is not there"), "{error}");
    }

    /// A process may have made folders for more loops, and ended before any had data.
    #[test]
    fn folders_behind_those_with_data_are_of_no_loop() {
        let dir = tempfile::tempdir().unwrap();
        make_loop_folders(dir.path(), 4).unwrap();
        for _ in 0..2 {
            drop(EmbeddedFiles::open(&plan(dir.path(), 2)).unwrap());
            assert_eq!(make_loop_folders(dir.path(), 2).map_err(|error| error.to_string()), Ok(()));
        }
        let error = refused(&plan(dir.path(), 4));
        assert!(error.contains("those of 2 loops, not of 4"), "{error}");
    }

    /// Loops of a server have data one after the other.
    #[test]
    fn a_start_that_was_cut_short_is_made_again() {
        let dir = tempfile::tempdir().unwrap();
        let loops = |count| make_loop_folders(dir.path(), count).map_err(|it| it.to_string());
        assert_eq!(loops(4), Ok(()));
        for number in 0..2 {
            let folder = folder_of_loop(dir.path(), number, 4);
            std::fs::write(folder.join("identity"), "").unwrap();
        }
        assert_eq!(loops(4), Ok(()));
        for count in [1, 5] {
            let error = loops(count).unwrap_err();
            assert!(error.contains(&format!("those of 2 loops, not of {count}")), "{error}");
        }
    }

    #[test]
    fn what_is_opened_as_something_else_is_refused_and_both_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let spaces = [("a".to_owned(), SpaceOptions::default())];
        let first = EmbeddedPlan { spaces: &spaces, ..plan(dir.path(), 1) };
        let (files, _) = EmbeddedFiles::open(&first).unwrap();
        let in_use = refused(&first);
        assert!(in_use.contains("is in use: another process holds"), "{in_use}");
        drop(files);
        let deal = Deal { repositories: 3, ..first.deal };
        let error = refused(&EmbeddedPlan { deal, ..first.clone() });
        assert!(error.contains("`repositories` was 2 and is 3; nothing was changed"), "{error}");
        let error = refused(&EmbeddedPlan { protocol: "gmu", ..first.clone() });
        assert!(error.contains("protocol `score`, not of `gmu`"), "{error}");
        let by_hash = SpaceOptions { index: Index::Hash, ..SpaceOptions::default() };
        let error = refused(&EmbeddedPlan { spaces: &[("a".to_owned(), by_hash)], ..first });
        assert!(
            error.contains("the space `a` was in order, dealt by hash and is found"),
            "{error}"
        );
    }

    #[test]
    fn what_is_only_read_is_shared_and_nothing_is_made() {
        let dir = tempfile::tempdir().unwrap();
        let none = dir.path().join("none");
        let nothing = EmbeddedPlan { reads_only: true, ..plan(&none, 1) };
        let error = refused(&nothing);
        assert!(
            error.contains("there is no database in") && error.contains("none/lock"),
            "{error}"
        );
        assert!(!dir.path().join("none").exists());
        let (written, _) = EmbeddedFiles::open(&plan(dir.path(), 2)).unwrap();
        let reads = EmbeddedPlan { reads_only: true, ..plan(dir.path(), 2) };
        assert!(refused(&reads).contains("is in use: another process holds"));
        drop(written);
        let one = EmbeddedFiles::open(&reads).unwrap();
        let other = EmbeddedFiles::open(&reads).unwrap();
        assert!(other.1.iter().all(|files| files.starts() == 2), "as if it was started again");
        let error = refused(&plan(dir.path(), 2));
        assert!(error.contains("is in use: another process holds"), "{error}");
        drop((one, other));
        let spaces = [("a".to_owned(), SpaceOptions::default())];
        let error = refused(&EmbeddedPlan { spaces: &spaces, ..reads.clone() });
        assert!(
            error.contains("there is no space `a`") && error.contains("reading only"),
            "{error}"
        );
        let error = refused(&EmbeddedPlan { reads_only: true, ..plan(dir.path(), 1) });
        assert!(error.contains("those of 2 loops, not of 1"), "{error}");
        let error = refused(&EmbeddedPlan { protocol: "gmu", ..reads });
        assert!(error.contains("protocol `score`, not of `gmu`"), "{error}");
        let (_, files) = EmbeddedFiles::open(&plan(dir.path(), 2)).unwrap();
        assert!(files.iter().all(|files| files.starts() == 2), "nobody noted those starts");
    }

    #[test]
    fn spaces_are_there_again_in_their_order() {
        let dir = tempfile::tempdir().unwrap();
        let (mut files, _) = EmbeddedFiles::open(&plan(dir.path(), 2)).unwrap();
        for name in ["b", "a"] {
            files.keep_space(name, &SpaceOptions::default()).unwrap();
        }
        let catalog = files.catalog().clone();
        drop(files);
        let spaces = [("c".to_owned(), SpaceOptions::default())];
        let plan = EmbeddedPlan { spaces: &spaces, ..plan(dir.path(), 2) };
        let (files, _) = EmbeddedFiles::open(&plan).unwrap();
        let names: Vec<_> = files.catalog().spaces().iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["b", "a", "c"]);
        assert_eq!(files.catalog().space_named("a"), catalog.space_named("a"));
    }
}
