//! The execution of procedures: code of the user's against the newest versions of a repository.
//!
//! The problem: a procedure reads and writes as it likes, may refuse half-way, may never come to
//! an end, and may panic. The idea: it sees the store through an [`Execution`], which reads the
//! newest versions, keeps its writes to itself, and counts what it does. What was read and would be
//! written is in the [`TransactionSets`] afterwards. Whoever ran it may install the writes, lock
//! all of it, or throw it away: nothing outside the sets has changed.
//!
//! A procedure is confined to the keys of one partition, so that each repository that holds the
//! partition runs it with the same result, and to what was declared of it. A delayed one may touch
//! the keys of all partitions that the same repositories hold. One that does what it may not, takes
//! more steps or reads more bytes than the limit, or panics is *faulty*, at each repository alike,
//! since all of it is deterministic. Only work on keys is counted, and the bytes that are read: a
//! procedure that computes for ever without looking at a key cannot be stopped.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::bytes::SmallBytes;
use crate::catalog::{Catalog, EVERYWHERE, Index};
use crate::delay::DelayedCall;
use crate::exceeded::Limit;
use crate::ids::{SpaceId, Timestamp};
use crate::limits::{check_size, write_bytes};
use crate::options::Settings;
use crate::parts::spaces::Spaces;
use crate::parts::transaction::TransactionSets;
use crate::parts::versions::{Handle, Version, Versions};
use crate::procedure::{Footprint, NewValue, Procedure, ProcedureId, Stop, Store};
use crate::ranges::{KeyRange, Row, Scan};

pub use declared::{footprint, missing_places, places, shared_keys, space_named};

mod declared;
mod noting;

/// A run of one or several procedures at a repository, as one transaction.
pub struct Execution<'a> {
    catalog: &'a Catalog,
    settings: &'a Settings,
    spaces: &'a Spaces,
    sets: &'a mut TransactionSets,
    /// Whether what is done is noted for a history.
    recording: bool,
    steps: u64,
    /// Bytes of what was read.
    bytes: usize,
    partition: u16,
    /// The other partitions whose keys may be touched too, as the same repositories hold them.
    neighbours: Option<NeighboursFn<'a>>,
    read_only: bool,
    declared: Option<Footprint>,
    /// Why the procedure is to end, whatever it makes of it.
    stopped: Option<Stop>,
    shared: Option<SharedDataFn<'a>>,
    /// Deleted rows do not count: repositories that run the same forget them at times of their own.
    counts_live_rows: bool,
}

/// Keys with their newest versions, and whether these are all of a range.
type FoundRows<'a> = (Vec<(SmallBytes, Version<'a>)>, bool);

/// Whether the same repositories hold a partition as hold that of a delayed call.
pub type NeighboursFn<'a> = &'a dyn Fn(u16) -> bool;

/// What is told of a key, and as which version; `None`: nothing.
pub type SharedDataFn<'a> = &'a dyn Fn(SpaceId, &SmallBytes) -> Option<Version<'a>>;

impl<'a> Execution<'a> {
    /// A run that has done nothing yet; `sets` are empty, or hold what the transaction did before.
    pub fn new(
        catalog: &'a Catalog,
        settings: &'a Settings,
        spaces: &'a Spaces,
        sets: &'a mut TransactionSets,
        recording: bool,
    ) -> Execution<'a> {
        let (steps, bytes, partition, read_only) = (0, 0, 0, false);
        let (neighbours, declared, stopped, shared) = (None, None, None, None);
        Execution {
            catalog,
            settings,
            spaces,
            sets,
            recording,
            steps,
            bytes,
            partition,
            neighbours,
            read_only,
            declared,
            stopped,
            shared,
            counts_live_rows: false,
        }
    }

    /// The same run, in which deleted rows do not count as steps: for repositories of which each
    /// forgets them when it likes, and which are to come to the same result.
    #[must_use]
    pub fn counting_live_rows(self) -> Execution<'a> {
        Execution { counts_live_rows: true, ..self }
    }

    /// The same run, where the participants of the transaction tell each other what they have.
    #[must_use]
    pub fn sharing(self, shared: Option<SharedDataFn<'a>>) -> Execution<'a> {
        Execution { shared, ..self }
    }

    /// Runs a procedure on the keys of a partition.
    ///
    /// # Errors
    /// It refused, or is faulty: then the sets are of no use.
    pub fn call(
        &mut self,
        id: &ProcedureId,
        partition: u16,
        arguments: &SmallBytes,
    ) -> Result<SmallBytes, Stop> {
        let procedure = self.known(id)?;
        self.neighbours = None;
        self.declared = footprint(&procedure, self.catalog, arguments)?;
        self.run(id, &procedure, partition, arguments)
    }

    /// The same, where the call has fragments of the procedure with these arguments in the
    /// partitions `named`: where the procedure itself says in which it is to have some, these.
    ///
    /// # Errors
    /// As [`call`](Self::call), or the call lacks one of them.
    pub fn call_among(
        &mut self,
        named: &[u16],
        (id, partition): (&ProcedureId, u16),
        arguments: &SmallBytes,
    ) -> Result<SmallBytes, Stop> {
        let procedure = self.known(id)?;
        match missing_places(&procedure, self.catalog, arguments, named)? {
            None => self.call(id, partition, arguments),
            Some(text) => Err(Stop::Faulty(format!("procedure {id}: {text}"))),
        }
    }

    /// Runs a delayed procedure, confined to what it was delayed with, in its partition and in
    /// those of which `neighbours` says that the same repositories hold them.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    pub fn call_delayed(
        &mut self,
        call: &DelayedCall,
        neighbours: NeighboursFn<'a>,
    ) -> Result<SmallBytes, Stop> {
        let procedure = self.known(&call.procedure)?;
        self.neighbours = Some(neighbours);
        self.declared = Some(call.footprint());
        self.partition = call.partition;
        let needed = places(&procedure, self.catalog, &call.arguments)?.unwrap_or_default();
        if let Some((partition, _)) = needed.iter().find(|(it, _)| !self.is_here(*it)) {
            let id = &call.procedure;
            return Err(Stop::Faulty(format!(
                "procedure {id}: partition {partition} is elsewhere"
            )));
        }
        self.run(&call.procedure, &procedure, call.partition, &call.arguments)
    }

    fn known(&self, id: &ProcedureId) -> Result<Procedure, Stop> {
        self.settings.procedures.get(id).copied().ok_or_else(|| unknown(id, self.settings))
    }

    fn run(
        &mut self,
        id: &ProcedureId,
        procedure: &Procedure,
        partition: u16,
        arguments: &SmallBytes,
    ) -> Result<SmallBytes, Stop> {
        self.partition = partition;
        self.read_only = procedure.read_only;
        let ran = catch_unwind(AssertUnwindSafe(|| (procedure.run)(self, arguments)));
        let result = match (ran, self.stopped.take()) {
            (Err(_), _) => Err(Stop::Faulty("it panicked".to_owned())),
            (Ok(_), Some(stop)) => Err(stop),
            (Ok(result), None) => result,
        };
        let limit = self.settings.limits.value_bytes;
        let result = result.and_then(|result| {
            let checked = check_size(Limit::Result, result.len(), limit);
            checked.map_err(|failure| Stop::Faulty(failure.to_string())).map(|()| result)
        });
        result.map_err(|stop| match stop {
            Stop::Faulty(text) => Stop::Faulty(format!("procedure {id}: {text}")),
            refused @ Stop::Refused(_) => refused,
        })
    }

    fn stop(&mut self, stop: Stop) -> Stop {
        self.stopped.get_or_insert(stop).clone()
    }

    fn faulty(&mut self, text: String) -> Stop {
        self.stop(Stop::Faulty(text))
    }

    /// Counts so many steps; from the first mistake on, everything is refused.
    fn count(&mut self, steps: u64) -> Result<(), Stop> {
        if let Some(stop) = &self.stopped {
            return Err(stop.clone());
        }
        self.steps += steps;
        let limit = self.settings.limits.procedure_steps;
        match self.steps <= limit {
            true => Ok(()),
            false => Err(self.faulty(format!("more than the allowed {limit} steps were taken"))),
        }
    }

    /// Counts what is read: a procedure may keep all of it, as often as it reads it.
    fn count_bytes(&mut self, bytes: usize) -> Result<(), Stop> {
        self.bytes = self.bytes.saturating_add(bytes);
        let (limit, key) = (self.settings.limits.answer_bytes, Limit::Answer.key());
        match self.bytes <= limit {
            true => Ok(()),
            false => {
                Err(self.faulty(format!("more than the allowed {limit} bytes were read (`{key}`)")))
            }
        }
    }

    /// Whether the keys of a partition may be touched.
    fn is_here(&self, partition: u16) -> bool {
        partition == self.partition || self.neighbours.is_some_and(|are_so| are_so(partition))
    }

    /// Whether the keys of a partition may be read: those that are everywhere are here as well.
    fn is_readable(&self, partition: u16) -> bool {
        self.is_here(partition) || partition == EVERYWHERE
    }

    /// Whether a key may be touched.
    fn admit(&mut self, space: SpaceId, key: &SmallBytes, writes: bool) -> Result<(), Stop> {
        self.count(1)?;
        let key_partition = self.catalog.partition(space, key);
        let is_allowed = match writes {
            true => self.is_here(key_partition),
            false => self.is_readable(key_partition),
        };
        if !is_allowed && key_partition == EVERYWHERE {
            let key = String::from_utf8_lossy(key.as_slice());
            let text = format!(
                "key `{key}` is everywhere, and is written by fragments of all repositories: \
                 those whose place is such a key"
            );
            return Err(self.faulty(text));
        }
        if !is_allowed {
            let (here, key) = (self.partition, String::from_utf8_lossy(key.as_slice()));
            let rest = if self.neighbours.is_some() {
                " and of those that the same repositories hold"
            } else {
                ""
            };
            let allowed = format!("the keys of partition {here}{rest}");
            let text =
                format!("key `{key}` lives in partition {key_partition}; allowed are {allowed}");
            return Err(self.faulty(text));
        }
        let declared = self.declared.as_ref();
        if declared.is_some_and(|all| !all.allows(space, key, writes)) {
            let key = String::from_utf8_lossy(key.as_slice()).into_owned();
            let verb = if writes { "written" } else { "read" };
            return Err(self.faulty(format!("key `{key}` is {verb} and was not declared to be")));
        }
        Ok(())
    }

    fn check_scan(&mut self, scan: &Scan) -> Result<(), Stop> {
        self.count(1)?;
        let declared = self.declared.as_ref();
        if declared.is_some_and(|all| !all.allows_range(scan.space, &scan.lo, scan.hi.as_ref())) {
            return Err(self.faulty("a range is scanned and was not declared to be".to_owned()));
        }
        match self.catalog.space(scan.space) {
            Some(space) if space.options.index == Index::Hash => {
                let name = &space.name;
                Err(self.faulty(format!("space `{name}` has a hash index and cannot be scanned")))
            }
            Some(_) => Ok(()),
            None => Err(self.faulty(format!("there is no space {}", scan.space.0))),
        }
    }

    /// The keys that may be touched in a range with their newest versions, deleted ones too, in
    /// ascending order: all of them, or from the scan's end on so many that `live` are not deleted.
    /// Both steps and bytes are counted, and beyond their limits no row is looked at.
    fn rows(&mut self, scan: &Scan, live: usize) -> Result<FoundRows<'a>, Stop> {
        let spaces: &'a Spaces = self.spaces;
        let Some(versions) = spaces.get(scan.space) else { return Ok((Vec::new(), true)) };
        let limits = &self.settings.limits;
        let steps_left = limits.procedure_steps.saturating_sub(self.steps);
        let bytes_left = limits.answer_bytes.saturating_sub(self.bytes);
        let only = self.catalog.partitions() == 1;
        let here = |key: &SmallBytes| self.is_readable(self.catalog.partition(scan.space, key));
        let mine = |key: &SmallBytes| only || here(key);
        let range = versions.range(&scan.lo, scan.hi.as_ref());
        let mut ordered: Box<dyn Iterator<Item = (&SmallBytes, Handle)>> =
            if scan.reverse { Box::new(range.rev()) } else { Box::new(range) };
        let (mut rows, mut found, mut bytes, mut complete) = (Vec::new(), 0, 0, true);
        let mut counted = 0;
        for (key, handle) in ordered.by_ref().filter(|(key, _)| mine(key)) {
            if found == live || counted > steps_left || bytes > bytes_left {
                complete = false;
                break;
            }
            let version = versions.newest(handle);
            found += usize::from(version.value.is_some());
            if version.value.is_some() || !self.counts_live_rows {
                counted += 1;
                bytes += write_bytes(key, version.value);
            }
            rows.push((key.clone(), version));
        }
        self.count(counted)?;
        self.count_bytes(bytes)?;
        if scan.reverse {
            rows.reverse();
        }
        Ok((rows, complete))
    }
}

impl Store for Execution<'_> {
    fn space(&self, name: &str) -> Result<SpaceId, Stop> {
        space_named(self.catalog, name)
    }

    fn get(&mut self, space: SpaceId, key: &SmallBytes) -> Result<Option<SmallBytes>, Stop> {
        self.admit(space, key, false)?;
        if let Some(own) = self.sets.own(space, key) {
            let own = own.clone();
            self.count_bytes(write_bytes(key, own.as_ref()))?;
            if self.recording {
                self.sets.operations.read_own(space, key, own.as_ref());
            }
            return Ok(own);
        }
        let store = self.spaces.get(space);
        let handle = store.and_then(|store| store.find(key));
        let found = newest(store, handle);
        self.count_bytes(write_bytes(key, found.value))?;
        if self.recording {
            self.sets.operations.read(space, key, recorded(store, key, found.at), found.value);
        }
        let (value, version) = (found.value.cloned(), found.at);
        self.note_read(space, key, handle, version);
        Ok(value)
    }

    fn put(&mut self, space: SpaceId, key: SmallBytes, value: NewValue) -> Result<(), Stop> {
        self.admit(space, &key, true)?;
        if self.read_only {
            return Err(self.faulty("it was declared to read only, and writes".to_owned()));
        }
        let mark = self.sets.operations.mark();
        if self.recording {
            self.sets.operations.write(space, &key, value.as_ref());
        }
        let written = self.sets.write(space, key, value, &self.settings.limits);
        written.map_err(|failure| {
            self.sets.operations.rewind(mark);
            self.faulty(failure.to_string())
        })
    }

    fn scan(&mut self, scan: &Scan) -> Result<Vec<Row>, Stop> {
        self.check_scan(scan)?;
        if scan.limit == 0 || scan.hi.as_ref().is_some_and(|hi| *hi <= scan.lo) {
            return Ok(Vec::new());
        }
        let range = KeyRange { space: scan.space, lo: scan.lo.clone(), hi: scan.hi.clone() };
        let live = scan.limit.saturating_add(self.sets.deletes_in(&range));
        let (found, complete) = self.rows(scan, live)?;
        let mut seen = range.clone();
        if !complete && scan.reverse {
            seen.lo = found.first().map_or(seen.lo, |(key, _)| key.clone());
        } else if !complete {
            seen.hi = found.last().map_or(seen.hi, |(key, _)| Some(key.successor()));
        }
        let row = |(key, version): &(SmallBytes, Version<'_>)| {
            Some((key.clone(), version.value?.clone()))
        };
        let rows: Vec<Row> = found.iter().filter_map(row).collect();
        let answer = self.sets.overlay(&range, rows, scan.reverse, scan.limit, complete);
        self.note_scan(seen, &found);
        Ok(answer)
    }

    fn shared(
        &mut self,
        space: SpaceId,
        key: &SmallBytes,
    ) -> Result<Option<Option<SmallBytes>>, Stop> {
        self.count(1)?;
        // What is told to all is noted once for the transaction, by who tells.
        let found = match self.shared {
            Some(shared) => shared(space, key),
            None if !self.is_readable(self.catalog.partition(space, key)) => return Ok(None),
            None => {
                self.admit(space, key, false)?;
                let store = self.spaces.get(space);
                let handle = store.and_then(|store| store.find(key));
                let found = newest(store, handle);
                if self.recording && self.sets.own(space, key).is_none() {
                    let version = recorded(store, key, found.at);
                    self.sets.operations.read(space, key, version, found.value);
                }
                self.note_read(space, key, handle, found.at);
                Some(found)
            }
        };
        let Some(found) = found else {
            let key = String::from_utf8_lossy(key.as_slice()).into_owned();
            return Err(self.faulty(format!("key `{key}` is not among those that are told")));
        };
        self.count_bytes(write_bytes(key, found.value))?;
        Ok(Some(found.value.cloned()))
    }

    fn is_here(&self, space: SpaceId, key: &SmallBytes, writes: bool) -> bool {
        let partition = self.catalog.partition(space, key);
        if writes { Execution::is_here(self, partition) } else { self.is_readable(partition) }
    }

    fn value_bytes_max(&self) -> usize {
        self.settings.limits.value_bytes
    }
}

/// What a history says of a read that found `at` as the newest version of a key.
fn recorded(store: Option<&Versions>, key: &SmallBytes, at: Timestamp) -> Timestamp {
    store.map_or(at, |store| store.recorded(key, at))
}

fn newest<'a>(store: Option<&'a Versions>, handle: Option<Handle>) -> Version<'a> {
    store.zip(handle).map_or(Version::ABSENT, |(store, handle)| store.newest(handle))
}

/// A node that lacks a procedure says so.
pub fn unknown(id: &ProcedureId, settings: &Settings) -> Stop {
    let all: Vec<_> = settings.procedures.ids().map(ToString::to_string).collect();
    Stop::Faulty(format!("there is no procedure {id} here; there are: {}", all.join(", ")))
}

#[cfg(test)]
mod tests;
