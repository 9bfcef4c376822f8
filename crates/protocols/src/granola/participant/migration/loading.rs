//! The keys of a partition that is to move, before it does.
//!
//! # The idea
//! Whoever moves a partition asks the destination for it again and again (`Take`), and each time
//! the destination *fetches* the next piece from the source, logs it, and answers how much it has.
//! First all keys come, a piece at a time, while the source serves them; then, numbered from the
//! beginning of the first piece on, all changes. A piece may have seen changes that come again: of
//! a key the later version stays. Nobody else keeps any of it going: if the mover dies, both
//! forget about it after a [lease](muesli_core::Settings::snapshot_lease).
//!
//! Whatever is sent is stable at the source: the destination never has what the source may lose.
//! What is fetched in one life of the destination is of no use to the next one, which begins anew;
//! unless it has voted for the move.

use std::collections::VecDeque;
use std::sync::Arc;

use muesli_core::parts::spaces::Newest;
use muesli_core::parts::versions::Handle;
use muesli_core::{Address, Cursor, Nanos, RepositoryId, Settings, Timestamp};

use crate::granola::message::sizes::writes_bytes;
use crate::granola::message::{
    End, Fetched, Few, Load, Message, Noted, PartAnswer, Record, Request, Task, Write,
};
use crate::granola::participant::execution::install::install;
use crate::granola::participant::{Context, GranolaParticipantTimer, Participant};

/// Bytes of a piece, and of changes that are told at once, about.
const PIECE_BYTES: usize = 64 << 10;
/// With more than this kept for somebody who loads a partition, he begins anew, in bytes.
const CHANGES_MAX: usize = 64 << 20;

/// Who was not heard of for so many times
/// [`retry_after`](muesli_core::Settings::retry_after) makes room for another destination.
const PATIENCE: u64 = 4;

/// How long a partition is held still is not doubled more often than this.
const DOUBLINGS_MAX: u32 = 6;

/// Somebody who loads a partition from here.
///
/// Invariants: `bytes` are those of the changes that are kept for it, none of which is empty; the
/// last piece is there to be sent again until all keys were sent.
#[derive(Clone, Debug)]
pub(in super::super) struct Taker {
    to: RepositoryId,
    stream: Timestamp,
    /// Nobody else was ever given this name: what is asked for twice may begin twice.
    source: Timestamp,
    /// The way through all keys; `None` once it has come to the end.
    cursor: Option<Cursor>,
    /// How many pieces were sent, and the last of them, which may be lost.
    sent: u32,
    last: Vec<Newest>,
    /// Changes that were not said to have come.
    changes: VecDeque<(Timestamp, Vec<Write>)>,
    /// How many were.
    told: u64,
    bytes: usize,
    heard: Nanos,
    /// How often a move to it was refused since.
    refused: u32,
}

/// A partition as far as it is loaded here.
#[derive(Clone, Debug)]
pub(in super::super) struct Staged {
    /// From where.
    pub from: RepositoryId,
    pub has: Fetched,
    /// Who asks for it and waits for an answer.
    asked: Option<Arc<Request>>,
    heard: Nanos,
}

impl Taker {
    fn new(to: RepositoryId, stream: Timestamp, source: Timestamp, now: Nanos) -> Taker {
        let (cursor, changes) = (Some(Cursor::default()), VecDeque::new());
        let (sent, last, told, bytes, heard, refused) = (0, Vec::new(), 0, 0, now, 0);
        Taker { to, stream, source, cursor, sent, last, changes, told, bytes, heard, refused }
    }

    /// Checks the invariants.
    ///
    /// # Panics
    /// One of them does not hold.
    pub fn assert_invariants(&self) {
        let bytes: usize = self.changes.iter().map(|(_, writes)| writes_bytes(writes)).sum();
        assert_eq!(self.bytes, bytes, "bytes of changes for {:?}", self.to);
        assert!(self.changes.iter().all(|(_, writes)| !writes.is_empty()), "a change of nothing");
        assert!(self.cursor.is_some() || self.last.is_empty(), "a piece after the last one");
    }

    /// A move to it is refused: for how long nothing of the partition is to be taken up, so that
    /// the next attempt finds all of it there. Longer each time, as nobody knows how long a round
    /// takes.
    pub fn hold_still(&mut self, settings: &Settings) -> Nanos {
        let doublings = self.refused.min(DOUBLINGS_MAX);
        self.refused += 1;
        Nanos(settings.retry_after.0 << doublings)
    }

    pub fn is(&self, to: RepositoryId, has: Fetched) -> bool {
        let is_named = has.source == self.source || has.is_nothing();
        self.to == to && self.stream == has.stream && is_named
    }

    /// Whether `has` is all that there is.
    pub fn is_whole(&self, has: Fetched) -> bool {
        let total = self.told + self.changes.len() as u64;
        self.cursor.is_none() && self.sent == has.pieces && total == has.changes
    }

    pub fn is_wanted(&self, now: Nanos, lease: Nanos) -> bool {
        self.heard + lease > now && self.bytes <= CHANGES_MAX
    }

    /// Something was done.
    pub fn note(&mut self, at: Timestamp, writes: Vec<Write>) {
        if !writes.is_empty() {
            self.bytes += writes_bytes(&writes);
            self.changes.push_back((at, writes));
        }
    }

    /// So many changes have come; false: that cannot be.
    fn forget(&mut self, upto: u64) -> bool {
        while self.told < upto {
            let Some((_, writes)) = self.changes.pop_front() else { return false };
            assert!(writes_bytes(&writes) <= self.bytes, "a change that was not counted");
            (self.told, self.bytes) = (self.told + 1, self.bytes - writes_bytes(&writes));
        }
        self.told == upto
    }

    fn next_changes(&self) -> Load {
        let (mut changes, mut bytes) = (Vec::new(), 0);
        for change in &self.changes {
            // One alone may be as long as a transaction.
            bytes += writes_bytes(&change.1);
            if !changes.is_empty() && bytes > PIECE_BYTES {
                break;
            }
            changes.push(change.clone());
        }
        assert!(!changes.is_empty() || self.changes.is_empty(), "nothing is told of what changed");
        let whole = changes.len() == self.changes.len();
        Load::Changes { from: self.told, changes, whole }
    }
}

impl Participant {
    /// As a destination: a partition is to be loaded, or more of it.
    pub(in super::super) fn on_take(&mut self, request: &Arc<Request>, cx: &mut Context<'_>) {
        let Some(part) = request.parts.first() else { return };
        let Task::Take { from } = part.task else { return };
        let partition = part.partition;
        if self.holds(partition, cx.catalog) || self.is_moving(partition) {
            let end = End::Moved { at: self.clock.done };
            return self.tell_end(request, end, Noted::default(), cx);
        }
        let known = self.moves.staged.get(&partition).is_some_and(|it| it.from == from);
        if !known {
            self.begin_staging(partition, from, cx);
        }
        let now = cx.now();
        let staged = self.moves.staged.get_mut(&partition).expect("begun");
        (staged.asked, staged.heard) = (Some(request.clone()), now);
        let (repository, has) = (self.id, staged.has);
        cx.send_to_repository(from, Message::Fetch { repository, partition, has });
    }

    fn begin_staging(&mut self, partition: u16, from: RepositoryId, cx: &mut Context<'_>) {
        self.clear_partition(partition, cx);
        cx.log_lazily(|| Record::Staged { partition, anew: true, keys: Vec::new() });
        let stream = self.propose_above(Timestamp::ZERO, cx);
        let has = Fetched { stream, ..Fetched::default() };
        let staged = Staged { from, has, asked: None, heard: cx.now() };
        self.moves.staged.insert(partition, staged);
        cx.set_timer(GranolaParticipantTimer::Staged, cx.settings.snapshot_lease);
    }

    /// What nobody asks for any more is forgotten.
    pub(in super::super) fn on_staged_timeout(&mut self, cx: &mut Context<'_>) {
        let (now, lease) = (cx.now(), cx.settings.snapshot_lease);
        let all = std::mem::take(&mut self.moves.staged).into_iter();
        let kept = all.filter(|(it, staged)| staged.heard + lease > now || self.is_moving(*it));
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
        let now = cx.now();
        let known = self.moves.takers.get(&partition);
        let patience = Nanos(cx.settings.retry_after.0 * PATIENCE);
        let is_new = known
            .is_none_or(|it| it.to == to && it.stream < has.stream || it.heard + patience <= now);
        if has.is_nothing() && is_new && self.holds(partition, cx.catalog) {
            let source = self.propose_above(Timestamp::ZERO, cx);
            self.moves.takers.insert(partition, Taker::new(to, has.stream, source, now));
        }
        let (mut load, mut source) = (Load::Unknown, Timestamp::ZERO);
        let known = self.moves.takers.get(&partition).is_some_and(|taker| taker.is(to, has));
        if known
            && let Some(mut taker) = self.moves.takers.remove(&partition)
            && let Some(next) = self.next_load(&mut taker, partition, has, cx)
        {
            (load, source) = (next, taker.source);
            self.moves.takers.insert(partition, Taker { heard: now, ..taker });
        }
        let (repository, stream) = (self.id, has.stream);
        let message = Message::Load { repository, partition, stream, source, load };
        let to = Address::repository(cx.catalog.home(to), to);
        cx.send_when_logged(to, message);
    }

    /// What comes after what a destination has; `None`: it has what cannot be.
    fn next_load(
        &self,
        taker: &mut Taker,
        partition: u16,
        has: Fetched,
        cx: &Context<'_>,
    ) -> Option<Load> {
        if has.pieces == taker.sent
            && let Some(cursor) = &mut taker.cursor
        {
            let mine = |space, key: &_| cx.catalog.partition(space, key) == partition;
            match self.spaces.next_newest(cursor, PIECE_BYTES, mine) {
                Some(keys) => (taker.sent, taker.last) = (taker.sent + 1, keys),
                None => (taker.cursor, taker.last) = (None, Vec::new()),
            }
        }
        if has.pieces.checked_add(1) == Some(taker.sent) && taker.cursor.is_some() {
            return Some(Load::Piece { number: taker.sent, keys: taker.last.clone() });
        }
        let fits = has.pieces == taker.sent && taker.cursor.is_none() && taker.forget(has.changes);
        fits.then(|| taker.next_changes())
    }

    /// As a destination: what the source gave.
    pub(in super::super) fn on_load(
        &mut self,
        (from, partition): (RepositoryId, u16),
        (stream, source): (Timestamp, Timestamp),
        load: Load,
        cx: &mut Context<'_>,
    ) {
        let staged = self.moves.staged.get(&partition);
        let fits = |staged: &&Staged| staged.from == from && staged.has.stream == stream;
        let Some(mut has) = staged.filter(fits).map(|staged| staged.has) else { return };
        let is_other = !has.is_nothing() && has.source != source && load != Load::Unknown;
        if is_other || self.is_moving(partition) {
            return; // Late: it began twice, or all was there.
        }
        has.source = source;
        let (keys, whole) = match load {
            Load::Piece { number, keys } if number == has.pieces + 1 => {
                has.pieces = number;
                (keys, false)
            }
            Load::Changes { from, changes, whole } if from == has.changes => {
                has.changes += changes.len() as u64;
                (changes.into_iter().flat_map(keys_of).collect(), whole)
            }
            Load::Piece { .. } | Load::Changes { .. } => return, // Repeated.
            Load::Unknown => return self.stop_staging(partition, cx),
        };
        if !keys.is_empty() {
            self.stage(&keys, cx);
            cx.log_lazily(|| Record::Staged { partition, anew: false, keys });
        }
        let staged = self.moves.staged.get_mut(&partition).expect("just seen");
        let is_more = has.pieces >= staged.has.pieces && has.changes >= staged.has.changes;
        assert!(is_more, "what is loaded of partition {partition} becomes less");
        staged.has = has;
        if let Some(request) = staged.asked.take() {
            let answers = Few::from_iter([(0, PartAnswer::Taken { has, whole })]);
            let end = End::Done { at: self.clock.done, answers };
            self.tell_end(&request, end, Noted::default(), cx);
        }
    }

    /// The source knows nothing of it: whoever asks is to ask anew.
    fn stop_staging(&mut self, partition: u16, cx: &mut Context<'_>) {
        let Some(staged) = self.moves.staged.remove(&partition) else { return };
        if let Some(request) = staged.asked {
            let end = End::Moved { at: self.clock.done };
            self.tell_end(&request, end, Noted::default(), cx);
        }
        self.set_loose_timer(cx);
    }

    fn stage(&mut self, keys: &[Newest], cx: &Context<'_>) {
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
        self.stage(keys, cx);
    }
}

/// The keys of a change.
fn keys_of((at, writes): (Timestamp, Vec<Write>)) -> impl Iterator<Item = Newest> {
    writes.into_iter().map(move |(space, key, value)| (space, key, at, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taker() -> Taker {
        let mut taker = Taker::new(RepositoryId(1), Timestamp(1), Timestamp(2), Nanos(3));
        taker.note(Timestamp(4), vec![(muesli_core::SpaceId(0), "key".into(), None)]);
        taker.assert_invariants();
        taker
    }

    #[test]
    #[should_panic(expected = "bytes of changes for RepositoryId(1)")]
    fn bytes_of_changes_that_are_not_there_are_noticed() {
        Taker { bytes: 5, ..taker() }.assert_invariants();
    }

    #[test]
    #[should_panic(expected = "a change of nothing")]
    fn a_change_of_nothing_is_noticed() {
        let mut taker = taker();
        taker.changes.push_back((Timestamp(5), Vec::new()));
        taker.assert_invariants();
    }

    #[test]
    #[should_panic(expected = "a change that was not counted")]
    fn a_change_that_was_not_counted_is_noticed() {
        Taker { bytes: 0, ..taker() }.forget(1);
    }

    #[test]
    #[should_panic(expected = "a piece after the last one")]
    fn a_piece_after_the_last_one_is_noticed() {
        let last = vec![(muesli_core::SpaceId(0), "key".into(), Timestamp(1), None)];
        Taker { cursor: None, last, ..taker() }.assert_invariants();
    }
}
