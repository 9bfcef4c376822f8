//! The keys of a partition that is to move, before it does.
//!
//! Whoever moves a partition asks the destination for it again and again (`Take`), and each time
//! the destination fetches the next piece from the source, logs it, and answers how much it has:
//! the shared part [`migration`](muesli_core::parts::migration) tells the way. If the mover dies,
//! both forget about it after a [lease](muesli_core::Settings::snapshot_lease).
//!
//! Whatever is sent is stable at the source: the destination never has what the source may lose.

use std::sync::Arc;

use muesli_core::parts::migration::{Fetched, Load, Loaded, MigrationDestination, MigrationSource};
use muesli_core::parts::spaces::Newest;
use muesli_core::parts::versions::Handle;
use muesli_core::{Address, Nanos, RepositoryId, Timestamp};

use crate::granola::message::{
    Few, Message, Noted, PartAnswer, Record, ReplyOutcome, Request, Task,
};
use crate::granola::participant::execution::install::install;
use crate::granola::participant::{Context, GranolaParticipantTimer, Participant};

/// Who was not heard of for so many times
/// [`retry_after`](muesli_core::Settings::retry_after) makes room for another destination.
const PATIENCE: u64 = 4;

/// A partition as far as it is loaded here.
#[derive(Clone, Debug)]
pub(in super::super) struct Staged {
    pub copy: MigrationDestination,
    /// Who asks for it and waits for an answer.
    asked: Option<Arc<Request>>,
}

impl Participant {
    /// As a destination: a partition is to be loaded, or more of it.
    pub(in super::super) fn on_take(&mut self, request: &Arc<Request>, cx: &mut Context<'_>) {
        let Some(part) = request.parts.first() else { return };
        let Task::Take { from } = part.task else { return };
        let partition = part.partition;
        if self.holds(partition, cx.catalog) || self.is_moving(partition) {
            let end = ReplyOutcome::Moved { at: self.clock.done };
            return self.tell_end(request, end, Noted::default(), cx);
        }
        let known = self.moves.staged.get(&partition).is_some_and(|it| it.copy.source() == from);
        if !known {
            self.begin_staging(partition, from, cx);
        }
        let now = cx.now();
        let staged = self.moves.staged.get_mut(&partition).expect("begun");
        staged.asked = Some(request.clone());
        staged.copy.ask(now);
        let (repository, has) = (self.id, staged.copy.has());
        cx.send_to_repository(from, Message::Fetch { repository, partition, has });
    }

    fn begin_staging(&mut self, partition: u16, from: RepositoryId, cx: &mut Context<'_>) {
        self.clear_partition(partition, cx);
        cx.log_lazily(|| Record::Staged { partition, anew: true, keys: Vec::new() });
        let stream = self.propose_above(Timestamp::ZERO, cx);
        let copy = MigrationDestination::new(from, stream, cx.now());
        self.moves.staged.insert(partition, Staged { copy, asked: None });
        cx.set_timer(GranolaParticipantTimer::Staged, cx.settings.snapshot_lease);
    }

    /// What nobody asks for any more is forgotten.
    pub(in super::super) fn on_staged_timeout(&mut self, cx: &mut Context<'_>) {
        let (now, lease) = (cx.now(), cx.settings.snapshot_lease);
        let all = std::mem::take(&mut self.moves.staged).into_iter();
        let kept =
            all.filter(|(it, staged)| staged.copy.is_wanted(now, lease) || self.is_moving(*it));
        self.moves.staged = kept.collect();
        self.set_loose_timer(cx);
        if !self.moves.staged.is_empty() {
            cx.set_timer(GranolaParticipantTimer::Staged, lease);
        }
    }

    /// As a source: a destination is to have more.
    pub(in super::super) fn on_fetch(
        &mut self,
        to: RepositoryId,
        partition: u16,
        has: Fetched,
        cx: &mut Context<'_>,
    ) {
        let (now, patience) = (cx.now(), Nanos(cx.settings.retry_after.0 * PATIENCE));
        let known = self.moves.sources.get(&partition);
        let is_new = known.is_none_or(|it| it.gives_way((to, has.stream), now, patience));
        if has.is_nothing() && is_new && self.holds(partition, cx.catalog) {
            let name = self.propose_above(Timestamp::ZERO, cx);
            let source = MigrationSource::new(to, has.stream, name, now);
            self.moves.sources.insert(partition, source);
        }
        let (mut load, mut name) = (Load::Unknown, Timestamp::ZERO);
        if self.moves.sources.get(&partition).is_some_and(|source| source.is_for(to, has))
            && let Some(mut source) = self.moves.sources.remove(&partition)
        {
            let mine = |space, key: &_| cx.catalog.partition(space, key) == partition;
            if let Some(next) = source.next_load(&self.spaces, mine, has, now) {
                (load, name) = (next, source.name());
                self.moves.sources.insert(partition, source);
            }
        }
        let (repository, stream) = (self.id, has.stream);
        let message = Message::Load { repository, partition, stream, source: name, load };
        let to = Address::repository(cx.catalog.home(to), to);
        cx.send_when_logged(to, message);
    }

    /// As a destination: what the source gave.
    pub(in super::super) fn on_load(
        &mut self,
        (from, partition): (RepositoryId, u16),
        names: (Timestamp, Timestamp),
        load: Load,
        cx: &mut Context<'_>,
    ) {
        if self.is_moving(partition) {
            return; // Late: all was there.
        }
        let Some(staged) = self.moves.staged.get_mut(&partition) else { return };
        let (keys, whole) = match staged.copy.load(from, names, load) {
            Loaded::Next { keys, whole } => (keys, whole),
            Loaded::Late => return,
            Loaded::Unknown => return self.stop_staging(partition, cx),
        };
        let (has, asked) = (staged.copy.has(), staged.asked.take());
        if !keys.is_empty() {
            self.hold_back(&keys, cx);
            cx.log_lazily(|| Record::Staged { partition, anew: false, keys });
        }
        if let Some(request) = asked {
            let answers = Few::from_iter([(0, PartAnswer::Taken { has, whole })]);
            let end = ReplyOutcome::Done { at: self.clock.done, answers };
            self.tell_end(&request, end, Noted::default(), cx);
        }
    }

    /// The source knows nothing of it: whoever asks is to ask anew.
    fn stop_staging(&mut self, partition: u16, cx: &mut Context<'_>) {
        let Some(staged) = self.moves.staged.remove(&partition) else { return };
        if let Some(request) = staged.asked {
            let end = ReplyOutcome::Moved { at: self.clock.done };
            self.tell_end(&request, end, Noted::default(), cx);
        }
        self.set_loose_timer(cx);
    }

    fn hold_back(&mut self, keys: &[Newest], cx: &Context<'_>) {
        for (space, key, at, value) in keys {
            let store = self.spaces.get_or_make(*space, cx.catalog);
            let handle = store.find_or_create(Handle::NONE, key);
            install(store, handle, value.clone(), *at);
        }
    }

    /// Keys were fetched in an earlier life.
    pub(in super::super) fn replay_staged(
        &mut self,
        partition: u16,
        anew: bool,
        keys: &[Newest],
        cx: &Context<'_>,
    ) {
        if anew {
            self.clear_partition(partition, cx);
        }
        self.hold_back(keys, cx);
    }
}
