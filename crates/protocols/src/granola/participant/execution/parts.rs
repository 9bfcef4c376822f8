//! What the parts of a transaction do: procedures are run, and what interactive transactions ask
//! for is read, checked and put aside.

use muesli_core::parts::execution::{Execution, SharedDataFn};
use muesli_core::parts::transaction::TransactionSets;
use muesli_core::parts::versions::{Handle, Version};
use muesli_core::ranges::KeyRange;
use muesli_core::{Abort, Failure, SmallBytes, SpaceId, Timestamp};

use super::Notes;
use super::budget::Spent;
use super::read_set::{count_reads, note_read};
use super::reads::ReadProgress;
use crate::granola::message::{
    Agreement, DataByPart, Few, FoundVersion, Install, Part, PartAnswer, Refusal, Request, Task,
};
use crate::granola::participant::{Context, Participant};
use crate::sight::Sight;

impl Participant {
    /// Runs the parts of a transaction that are about partitions held here, in their order. What
    /// they read and would write is in the sets afterwards; nothing else has changed.
    pub(in super::super) fn run_parts(
        &self,
        request: &Request,
        sets: &mut TransactionSets,
        notes: &mut Notes,
        cx: &mut Context<'_>,
    ) -> Result<Few<(u16, PartAnswer)>, Refusal> {
        if request.moving().is_some() {
            return Ok(Few::from_iter([(0, PartAnswer::Installed)]));
        }
        let shared = self.data_for(request, cx);
        let ran = self.run_with_data(request, shared.as_ref(), sets, notes, Sight::of(cx));
        count_reads(&ran, sets, cx);
        ran
    }

    /// As [`run_parts`](Self::run_parts), with what the transaction is told.
    ///
    /// Where all come to the same decision, nobody is asked whether a part fails. One that does all
    /// the same, since its procedure panics or is over a limit, takes back what was done in its
    /// partition, as everybody does who holds that, and nothing else: they may hold other
    /// partitions beside it.
    pub(in super::super) fn run_with_data(
        &self,
        request: &Request,
        shared: Option<&DataByPart>,
        sets: &mut TransactionSets,
        notes: &mut Notes,
        cx: Sight<'_>,
    ) -> Result<Few<(u16, PartAnswer)>, Refusal> {
        let after = shared.map_or(0, |received| self.note_data(request, received, sets, notes, cx));
        let (mut answers, mut spent) = (Few::new(), Spent::default());
        let mut progress = ReadProgress::default();
        let mut failed: Few<(u16, Refusal)> = Few::new();
        for (number, part) in request.parts.iter().enumerate() {
            let has_failed = || failed.iter().any(|(partition, _)| *partition == part.partition);
            if !part.is_held_by(self.id, cx.catalog) || has_failed() {
                continue;
            }
            let (number, start) = (number as u16, sets.operations.mark());
            let before = sets.written_bytes();
            let one = (request, part);
            let ran = self.run_part(one, shared, (sets, &mut progress), cx).and_then(|answer| {
                spent.count((request, part.partition), &answer, (before, sets), cx)?;
                Ok(answer)
            });
            match ran {
                Ok(answer) => {
                    answers.push((number, answer));
                    notes.push((number.saturating_add(after), start..sets.operations.mark()));
                }
                Err(refusal) if request.agreement == Agreement::Independent => {
                    let partition = |space, key: &SmallBytes| cx.catalog.partition(space, key);
                    sets.forget_writes(|space, key| partition(space, key) == part.partition);
                    failed.push((part.partition, refusal));
                }
                Err(refusal) => return Err(refusal),
            }
        }
        let (done, parts) = (answers.len() + failed.len(), request.parts.len());
        assert!(done <= parts, "{done} of {parts} parts were done");
        failed.into_iter().next().map_or(Ok(answers), |(_, refusal)| Err(refusal))
    }

    fn run_part(
        &self,
        (request, part): (&Request, &Part),
        received: Option<&DataByPart>,
        (sets, progress): (&mut TransactionSets, &mut ReadProgress),
        cx: Sight<'_>,
    ) -> Result<PartAnswer, Refusal> {
        match &part.task {
            Task::Call { procedure, arguments, .. } => {
                let Sight { catalog, settings, recording } = cx;
                let execution = Execution::new(catalog, settings, &self.spaces, sets, recording);
                let lookup = |space: SpaceId, key: &SmallBytes| data_of(received?, space, key);
                let mut execution =
                    execution.sharing(received.map(|_| &lookup as SharedDataFn<'_>));
                let given = execution.call(procedure, part.partition, arguments);
                given.map(PartAnswer::Given).map_err(Refusal::from)
            }
            Task::Read(keys) => Ok(PartAnswer::Found(self.read_keys(keys, progress, sets, cx))),
            Task::Scan { .. } => {
                let (rows, seen_to) = self.read_range((request, part), progress, sets, cx);
                Ok(PartAnswer::Rows(rows, seen_to))
            }
            Task::Install(install) => {
                self.check((request, part.partition), install, (sets, progress), cx)
            }
            Task::Names => Ok(PartAnswer::Names(self.moves.names.all())),
            // Neither is a task among others.
            Task::Take { .. } | Task::Move(_) => Ok(PartAnswer::Installed),
        }
    }

    /// The newest version of a key, with what a history says of it.
    pub(in super::super) fn found(&self, space: SpaceId, key: &SmallBytes) -> FoundVersion {
        let (_, version) = self.newest(space, key);
        let collected = match (version.at, self.spaces.get(space)) {
            (Timestamp::ZERO, Some(store)) => store.collected(key, Timestamp::MAX),
            _ => Timestamp::ZERO,
        };
        FoundVersion { version: version.at, value: version.value.cloned(), collected }
    }

    pub(in super::super) fn newest(
        &self,
        space: SpaceId,
        key: &SmallBytes,
    ) -> (Handle, Version<'_>) {
        let store = self.spaces.get(space);
        let found = store.and_then(|store| Some((store, store.find(key)?)));
        found.map_or((Handle::NONE, Version::ABSENT), |(store, handle)| {
            (handle, store.newest(handle))
        })
    }

    /// The end of an interactive transaction: what it read must be the newest there is.
    fn check(
        &self,
        (request, partition): (&Request, u16),
        install: &Install,
        (sets, progress): (&mut TransactionSets, &mut ReadProgress),
        cx: Sight<'_>,
    ) -> Result<PartAnswer, Refusal> {
        // All that the answer can depend on is noted first: nobody may be in the way of who is
        // refused either, or the refusal goes by what somebody undecided is about to change.
        let mut stale = false;
        for (space, key, seen) in &install.reads {
            let (handle, version) = self.newest(*space, key);
            stale |= version.at != *seen;
            note_read(sets, *space, key.clone(), handle, version.at);
        }
        sets.scans.extend(install.scans.iter().map(|seen| seen.range.clone()));
        if stale {
            return Err(Refusal::Aborted(Abort::StaleRead));
        }
        let one = (request, partition);
        if !install.scans.iter().all(|seen| self.is_unchanged(one, seen, progress, cx)) {
            return Err(Refusal::Aborted(Abort::Phantom));
        }
        let absent = self.absent(partition, install, cx);
        if cx.recording {
            for (space, key, at) in &absent {
                sets.operations.read(*space, key, *at, None);
            }
        }
        for (space, key, value) in &install.writes {
            let (space, key, value) = (*space, key.clone(), value.clone());
            let written = sets.write(space, key, value, &cx.settings.limits);
            written.map_err(|failure: Failure| Refusal::Faulty(failure.to_string()))?;
        }
        Ok(if absent.is_empty() { PartAnswer::Installed } else { PartAnswer::Absent(absent) })
    }

    /// For histories: the collected deletions of keys that are absent still, or again. A key that
    /// came and went since it was read is as it was: the transaction reads what it ends with.
    fn absent(
        &self,
        partition: u16,
        install: &Install,
        cx: Sight<'_>,
    ) -> Vec<(SpaceId, SmallBytes, Timestamp)> {
        let mut absent = Vec::new();
        for (space, key, _) in &install.reads {
            let found = self.found(*space, key);
            if found.collected != Timestamp::ZERO {
                absent.push((*space, key.clone(), found.collected));
            }
        }
        for KeyRange { space, lo, hi } in install.scans.iter().map(|seen| &seen.range) {
            let Some(store) = self.spaces.get(*space) else { continue };
            for (key, at) in store.collected_in(lo, hi.as_ref(), Timestamp::MAX) {
                let mine = cx.catalog.partition(*space, key) == partition;
                if mine && store.find(key).is_none() {
                    absent.push((*space, key.clone(), at));
                }
            }
        }
        absent
    }
}

/// What was told of a key.
fn data_of<'a>(received: &'a DataByPart, space: SpaceId, key: &SmallBytes) -> Option<Version<'a>> {
    let mut all = received.values().flatten();
    let (.., found) = all.find(|(of, it, _)| *of == space && it == key)?;
    Some(Version { at: found.version, value: found.value.as_ref(), newest: true })
}
