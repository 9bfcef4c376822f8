//! What a durable database keeps: its folders, and the log of each loop.
//!
//! Both are those of servers (`muesli_cluster::storage`), so that either can open what the other
//! has left. A loop appends the records that its node makes, hands them to the log's thread once a
//! tick, and lets nothing leave that depends on a record before that is stable: so one sync serves
//! all transactions of a tick, and those that came during the sync before it. Where commits do not
//! wait for the disk ([`SyncPolicy`]) that holds for what roles say to each other alone.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use muesli_cluster::spaces::map::{Beside, Deal};
pub(super) use muesli_cluster::storage::log::LogFailure;
use muesli_cluster::storage::loop_folders::{
    EmbeddedFiles, EmbeddedPlan, LogSizes, LoopFiles, RECORD_BYTES_MAX,
};
use muesli_cluster::storage::node_log::NodeLog;
use muesli_core::{Catalog, LogPosition, Nanos, RecoverableMachine, Role, SpaceOptions, Wire};

use super::CompactionWaiter;
use super::links::signal::Signal;
use crate::durable::{Durable, SyncPolicy};
use crate::error::Error;
use crate::options::Options;
use crate::time::nanos;

/// How large a file of a log may become before another one follows.
const SEGMENT_BYTES: RangeInclusive<u64> = 1 << 16..=1 << 32;
/// What nothing waits for is synced after so long, where commits wait for the disk.
const SYNCED_WITHIN: Nanos = Nanos::from_millis(20);
/// What does not wait for the disk is written after so long.
const WRITTEN_WITHIN: Nanos = Nanos::from_millis(1);
/// While a checkpoint is under way, an idle loop looks after it so often.
const CHECKPOINT_PAUSE: Nanos = Nanos(200_000);

/// The folders of a database, locked until it is closed.
pub(super) struct DatabaseStorage {
    files: EmbeddedFiles,
    path: PathBuf,
    reads_only: bool,
}

/// What a loop begins with.
pub(super) struct LoopStorage {
    files: LoopFiles,
    sync: SyncPolicy,
    notice: fn(&str),
}

/// Opens the files of a database, if it is to have some, whose loops are those of the catalog; with
/// what each loop begins with.
pub(super) fn open_files(
    options: &Options,
    catalog: &Catalog,
) -> Result<Option<(DatabaseStorage, Vec<LoopStorage>)>, Error> {
    let Some(durable) = &options.durable else { return Ok(None) };
    let too_long = options.limits.check_fits("the longest record of a log", RECORD_BYTES_MAX);
    too_long.map_err(Error::Options)?;
    if !SEGMENT_BYTES.contains(&durable.segment_bytes) {
        let (given, least, most) =
            (durable.segment_bytes, SEGMENT_BYTES.start(), SEGMENT_BYTES.end());
        let error = format!("`segment_bytes` is {given}; allowed are {least} to {most}");
        return Err(Error::Options(error));
    }
    // What cannot be together is no matter of what is there.
    let with_space = |catalog: Catalog, (name, space): &(String, SpaceOptions)| {
        catalog.with_space(name, space.clone())
    };
    options.spaces.iter().try_fold(catalog.clone(), with_space)?;
    let Durable { sync, notice, .. } = *durable;
    let deal = Deal {
        repositories: options.repositories,
        replicas: options.replicas,
        partitions_per_repository: options.partitions_per_repository,
        group: 1,
        loops: catalog.coordinators.len(),
    };
    let apart = &catalog.coordinators[deal.loops - options.validator_loops..];
    let (masters, tree) = (&*catalog.masters, options.tree.as_ref());
    let beside = Beside { masters, tree, validators: apart, ..Beside::default() };
    let sizes = LogSizes {
        segment_bytes: durable.segment_bytes,
        checkpoint_bytes: durable.checkpoint_bytes,
        backlog_bytes: durable.backlog_bytes,
        trouble: durable.trouble.clone(),
    };
    let (path, protocol, spaces) = (&*durable.path, &*options.protocol, &*options.spaces);
    let reads_only = durable.read_only;
    let plan = EmbeddedPlan { path, protocol, deal, beside, spaces, sizes, reads_only };
    let (files, loops) = EmbeddedFiles::open(&plan).map_err(storage_error)?;
    let loops = loops.into_iter().map(|files| LoopStorage { files, sync, notice });
    let storage = DatabaseStorage { files, path: path.to_owned(), reads_only };
    Ok(Some((storage, loops.collect())))
}

fn storage_error(error: impl std::fmt::Display) -> Error {
    Error::Storage(error.to_string())
}

impl DatabaseStorage {
    /// The spaces that there are, in the order of their numbers.
    pub fn spaces(&self) -> impl Iterator<Item = (&str, &SpaceOptions)> {
        self.files.catalog().spaces().iter().map(|space| (&*space.name, &space.options))
    }

    /// Keeps one more space.
    pub fn keep_space(&mut self, name: &str, options: &SpaceOptions) -> Result<(), Error> {
        if self.reads_only {
            return Err(Error::ReadOnly);
        }
        self.files.keep_space(name, options).map_err(storage_error)
    }

    /// Where they are.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether nothing of them is changed.
    pub fn reads_only(&self) -> bool {
        self.reads_only
    }
}

impl LoopStorage {
    /// How often the loop was started, this time included.
    pub fn starts(&self) -> u32 {
        self.files.starts()
    }

    /// As [`Settings::lost_disk`](muesli_core::Settings::lost_disk) has it.
    pub fn lost_disk(&self) -> Option<u64> {
        self.files.lost_disk()
    }

    /// Whether clients are answered before the log is stable.
    pub fn answers_at_once(&self) -> bool {
        self.sync.answers_at_once()
    }

    /// Opens the log and takes what it holds to the machine, whose node has not started.
    pub fn open(
        self,
        machine: &mut dyn RecoverableMachine,
        signal: &Arc<Signal>,
    ) -> Result<LoopLog, Error> {
        let signal = signal.clone();
        let wake = move || signal.raise_attention();
        let log = self.files.open_log(machine, self.notice, wake).map_err(storage_error)?;
        Ok(LoopLog::new(log, Some(self.files), self.sync))
    }
}

/// The log of a loop.
///
/// Invariant: nothing was written beyond what was logged.
pub(super) struct LoopLog {
    log: NodeLog,
    /// Locked until the loop has ended.
    _files: Option<LoopFiles>,
    /// What nothing waits for is synced after so long, if it is at all.
    syncs_after: Option<Nanos>,
    /// What nothing waits for is written after so long, if it is before it is synced.
    writes_after: Option<Nanos>,
    /// Up to where it was written.
    written: LogPosition,
    sync_at: Option<Nanos>,
    write_at: Option<Nanos>,
    /// Who waits for the compaction under way, and for the one after it.
    compacting: Vec<CompactionWaiter>,
    to_compact: Vec<CompactionWaiter>,
}

impl LoopLog {
    fn new(log: NodeLog, files: Option<LoopFiles>, sync: SyncPolicy) -> LoopLog {
        let (syncs_after, writes_after) = match sync {
            SyncPolicy::Always => (Some(SYNCED_WITHIN), None),
            SyncPolicy::Every(within) => (Some(nanos(within)), Some(WRITTEN_WITHIN)),
            SyncPolicy::Never => (None, Some(WRITTEN_WITHIN)),
        };
        LoopLog {
            log,
            _files: files,
            syncs_after,
            writes_after,
            written: LogPosition(0),
            sync_at: None,
            write_at: None,
            compacting: Vec::new(),
            to_compact: Vec::new(),
        }
    }

    /// Has the log be as short as it can be, soon, and tells whoever waits for that.
    pub fn compact(&mut self, waiter: CompactionWaiter) {
        self.to_compact.push(waiter);
        self.go_on_compacting();
    }

    fn go_on_compacting(&mut self) {
        if self.log.is_compacting() {
            return;
        }
        for waiter in self.compacting.drain(..) {
            let _ = waiter.send(()); // Whoever does not wait any more does not listen.
        }
        if !self.to_compact.is_empty() {
            self.compacting = std::mem::take(&mut self.to_compact);
            self.log.compact();
        }
    }

    pub fn append(&mut self, role: Role, record: &impl Wire) {
        self.log.append(role, record);
    }

    /// Begins to make stable what something waits for, of all that was `logged`, and what was
    /// logged some time ago. Up to where the log is stable now; `None`: nothing waits.
    pub fn settle(
        &mut self,
        waits_for: Option<LogPosition>,
        logged: LogPosition,
        now: Nanos,
    ) -> Result<Option<LogPosition>, LogFailure> {
        assert!(self.written <= logged, "{:?} was written, of {logged:?}", self.written);
        let stable = self.log.settle(waits_for, logged)?;
        if self.writes_after.is_some() {
            self.log.look()?; // Nobody waits who would be told.
        }
        if self.log.asked() >= logged {
            (self.sync_at, self.write_at) = (None, None);
            return Ok(stable);
        }
        if self.sync_at.is_none() {
            self.sync_at = self.syncs_after.map(|after| now + after);
        }
        if self.write_at.is_none() && logged > self.written {
            self.write_at = self.writes_after.map(|after| now + after);
        }
        if self.sync_at.is_some_and(|at| at <= now) {
            self.log.settle_all(logged)?;
            (self.sync_at, self.write_at) = (None, None);
        } else if self.write_at.is_some_and(|at| at <= now) {
            self.log.write()?;
            (self.written, self.write_at) = (logged, None);
        }
        Ok(stable)
    }

    pub fn go_on_with_checkpoint(
        &mut self,
        machine: &mut dyn RecoverableMachine,
        now: Nanos,
    ) -> Result<(), LogFailure> {
        self.log.go_on_with_checkpoint(machine, now)?;
        if !self.compacting.is_empty() {
            self.go_on_compacting();
        }
        Ok(())
    }

    pub fn is_congested(&self) -> bool {
        self.log.is_congested()
    }

    /// When the loop has something to do for the log, which nothing wakes it for.
    pub fn next(&self, now: Nanos) -> Option<Nanos> {
        let looks = self.log.is_checkpointing() || self.log.is_compacting();
        let looks = looks || self.log.is_congested();
        let look = looks.then(|| now + CHECKPOINT_PAUSE);
        [self.sync_at, self.write_at, look].into_iter().flatten().min()
    }

    pub fn close(self) -> Result<(), LogFailure> {
        self.log.close()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Duration;

    use muesli_cluster::storage::log::Log;
    use muesli_core::Encode;

    use super::*;

    /// A log that notes what is asked of it, and does it at once.
    #[derive(Clone, Default)]
    struct NotingLog(Arc<Mutex<(Vec<&'static str>, u64)>>);

    impl NotingLog {
        fn asked(&self) -> Vec<&'static str> {
            std::mem::take(&mut self.0.lock().unwrap().0)
        }
    }

    impl Log for NotingLog {
        fn append(&mut self, _: Role, _: &dyn Encode) -> Result<(), LogFailure> {
            self.0.lock().unwrap().1 += 1;
            Ok(())
        }

        fn sync(&mut self) -> Result<bool, LogFailure> {
            self.0.lock().unwrap().0.push("sync");
            Ok(false)
        }

        fn write(&mut self) -> Result<bool, LogFailure> {
            self.0.lock().unwrap().0.push("write");
            Ok(false)
        }

        fn stable(&mut self) -> Result<LogPosition, LogFailure> {
            Ok(LogPosition(self.0.lock().unwrap().1))
        }

        fn close(self: Box<Self>) -> Result<(), LogFailure> {
            Ok(())
        }
    }

    /// What a log is asked for a record that something waits for, and then for one that nothing
    /// waits for, with the milliseconds after that at which it is.
    fn asked(sync: SyncPolicy) -> (Vec<&'static str>, Vec<(u64, &'static str)>) {
        let noting = NotingLog::default();
        let mut log = LoopLog::new(NodeLog::new(Box::new(noting.clone())), None, sync);
        let start = Nanos::from_millis(1_000);
        log.append(Role::Coordinator, &1_u64);
        let (first, second) = (LogPosition(1), LogPosition(2));
        assert_eq!(log.settle(Some(first), first, start), Ok(Some(first)));
        assert_eq!((noting.asked(), log.next(start)), (vec!["sync"], None));
        log.append(Role::Coordinator, &2_u64);
        assert_eq!(log.settle(None, second, start), Ok(None));
        let at_once = noting.asked();
        let mut in_time = Vec::new();
        for ms in 1..100 {
            let now = start + Nanos::from_millis(ms);
            assert_eq!(log.settle(None, second, now), Ok(None));
            in_time.extend(noting.asked().into_iter().map(|asked| (ms, asked)));
        }
        (at_once, in_time)
    }

    #[test]
    fn what_nothing_waits_for_is_written_and_synced_as_the_policy_says() {
        assert_eq!(asked(SyncPolicy::Always), (vec![], vec![(20, "sync")]));
        let every = SyncPolicy::Every(Duration::from_millis(10));
        assert_eq!(asked(every), (vec![], vec![(1, "write"), (10, "sync")]));
        assert_eq!(asked(SyncPolicy::Never), (vec![], vec![(1, "write")]));
    }
}
