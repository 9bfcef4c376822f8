//! Partitions that move from one repository to another while both serve (section 7.1).
//!
//! # The idea
//! A move is a transaction: the source gives the partition away, the destination has it from then
//! on, and the [name service](crate::granola::locator) notes it, all at one place of the serial
//! order. It is an independent one, since none of them refuses once it has voted; what they refuse,
//! they refuse as it comes. Before it the destination [loads](loading) the keys, while the source
//! serves them, and the move says how much that was. The source votes for it only if that is all
//! that there is and nothing that is under way here touches the partition; from its vote on it
//! takes up nothing of that kind. If it is not all, the move is refused, and the partition *held
//! still* for a while: nothing new of it is taken up, what is under way ends, the destination loads
//! the rest, and the next attempt finds all of it there.
//!
//! # Why that is right
//! All that was done on the partition at the source lies below the source's proposal, and that is
//! not above the move's place. At the destination the move raises `done` as everything does, so
//! whatever comes to the partition there lies above. Each part of a request says by which epoch
//! and with which holders it was sent; a repository that does not hold the partition, or knows a
//! later epoch of it, refuses. Who holds the partition cannot change while something that touches
//! it is under way, so it is asked once, as a request is taken up. The refusal is a vote like
//! others against a transaction: stable, and never taken back. So an id that was refused is not
//! done by a late copy of its request, and one that was done is remembered where it was done: no
//! memory moves.
//!
//! Votes, ends and the state of the move survive crashes as those of every transaction do, and the
//! destination votes when all keys are in its log. So whoever dies, the move is done or not; if
//! its coordinator dies the participants ask each other. What is held still is known in memory
//! only, and for a while.
//!
//! # Keys that lie about
//! Keys of partitions that are not here any more, or not yet, are *loose*: nobody reads them. They
//! are removed in steps; and at once where the partition is to come again.
//!
//! # Departures
//! An epoch for each partition instead of one for all. The thesis has the whole repository refuse
//! everything until the move is over; here it is the partition alone, and only for the last keys.
//! It leaves the data to the application.

pub mod loading;

use std::collections::{BTreeMap, BTreeSet};

use muesli_core::parts::locator::{Holdings, OwnerDirectory};
use muesli_core::parts::migration::MigrationSource;
use muesli_core::{Catalog, Cursor, Nanos, SmallBytes, SpaceId, Timestamp, TxnId};

use crate::granola::locator::{after, name_service};
use crate::granola::message::{Holding, Move, Owners, Request, Write};
use crate::granola::participant::{Context, GranolaParticipantTimer, Participant};
use crate::granola::switches::GranolaSwitch;
use loading::Staged;

/// So many slots are looked at in a step that removes loose keys.
const LOOSE_STEP: u64 = 1 << 12;

/// What a repository knows of partitions that move.
///
/// Invariants, beside those of who loads and what is loaded: keys of a partition that is loaded are
/// loose until that is here; what is swept away is loose.
#[derive(Clone, Debug, Default)]
pub(super) struct Moves {
    /// Partitions that came or went.
    pub held: Holdings<u16>,
    /// Where partitions are: at repositories that keep names.
    pub names: OwnerDirectory<u16>,
    /// Partitions of which keys may be here though they are not.
    pub loose: BTreeSet<u16>,
    /// Moves that were voted on, and perhaps are over.
    under_way: Vec<(u16, TxnId)>,
    /// Partitions of which nothing is taken up for a while, and until when.
    still: BTreeMap<u16, Nanos>,
    /// Who loads which partition from here.
    pub sources: BTreeMap<u16, MigrationSource>,
    /// What is loaded from elsewhere.
    pub staged: BTreeMap<u16, Staged>,
    /// How far the removal of loose keys has come, and of which partitions.
    sweep: Option<(Cursor, BTreeSet<u16>)>,
}

/// A head of checkpoints: partitions that came or went, names, and what is loose.
pub(super) type CarriedMoves = (Vec<(u16, Holding)>, Vec<(u16, Owners)>, Vec<u16>);

impl Moves {
    /// A move is voted on.
    pub fn begin(&mut self, request: &Request) {
        if let Some(order) = request.moving() {
            self.under_way.push((order.partition, request.txn));
        }
    }

    /// Checks the invariants.
    ///
    /// # Panics
    /// One of them does not hold.
    pub fn assert_invariants(&self) {
        self.names.assert_invariants();
        self.held.assert_invariants();
        self.sources.values().for_each(MigrationSource::assert_invariants);
        for partition in self.staged.keys() {
            assert!(self.loose.contains(partition), "partition {partition} is loaded, and here");
        }
        let mut swept = self.sweep.iter().flat_map(|(_, all)| all);
        assert!(swept.all(|it| self.loose.contains(it)), "keys are swept away that are not loose");
    }

    fn no_partition_ever_moved(&self) -> bool {
        let Moves { held, under_way, still, .. } = self;
        held.is_empty() && under_way.is_empty() && still.is_empty()
    }

    /// All that checkpoints carry.
    pub fn carried(&self) -> CarriedMoves {
        let held = self.held.all().map(|(partition, held)| (*partition, *held));
        (held.collect(), self.names.all(), self.loose.iter().copied().collect())
    }

    /// Takes over what another one [carried](Self::carried).
    pub fn recall(&mut self, (held, names, loose): CarriedMoves) {
        self.held.recall(held);
        self.names.learn(names);
        self.loose.extend(loose);
    }
}

impl Participant {
    /// Whether a partition is here.
    pub(super) fn holds(&self, partition: u16, catalog: &Catalog) -> bool {
        self.moves.held.holds(&partition, self.id, catalog)
    }

    /// Where a request cannot be taken up because a partition of it is elsewhere, or about to be:
    /// the timestamp at or after which that is known. `None`: all is here.
    pub(super) fn is_elsewhere(
        &mut self,
        request: &Request,
        cx: &Context<'_>,
    ) -> Option<Timestamp> {
        let plain = request.parts.iter().all(|part| part.owners.is_none());
        if plain && self.moves.no_partition_ever_moved()
            || !self.switches.keeps(GranolaSwitch::EpochsChecked)
        {
            return None;
        }
        let active = &self.active;
        self.moves.under_way.retain(|(_, txn)| active.contains_key(txn));
        let now = cx.now();
        self.moves.still.retain(|_, until| *until > now);
        let mine = request.parts.iter().filter(|part| part.is_held_by(self.id, cx.catalog));
        for part in mine.filter(|part| part.is_about_keys()) {
            let sent_by = (&part.partition, part.epoch());
            if let Some(at) = self.moves.held.refuses(sent_by, self.id, cx.catalog) {
                return Some(at);
            }
            let goes = self.is_moving(part.partition)
                && self.switches.keeps(GranolaSwitch::MovesHoldStill);
            if goes || self.moves.still.contains_key(&part.partition) {
                let known = self.moves.held.of(&part.partition);
                return Some(known.map_or(Timestamp::ZERO, |held| held.at));
            }
        }
        None
    }

    pub(super) fn is_moving(&self, partition: u16) -> bool {
        let mut all = self.moves.under_way.iter();
        all.any(|(it, txn)| *it == partition && self.active.contains_key(txn))
    }

    /// Whether a move cannot be voted for here. If it is only that something is under way, or not
    /// all is loaded, the partition is held still, so that the next attempt finds it otherwise.
    pub(super) fn refuses_move(&mut self, order: &Move, cx: &Context<'_>) -> bool {
        let keeps_names = name_service(cx.catalog).any(|it| it == self.id);
        let unknown = keeps_names && after(&self.moves.names, order, cx.catalog).is_none();
        let there = order.to != self.id || self.is_loaded(order, cx);
        if self.is_moving(order.partition) || unknown || !there {
            return true;
        }
        order.from == self.id && !self.can_go(order, cx)
    }

    fn can_go(&mut self, order: &Move, cx: &Context<'_>) -> bool {
        let Move { partition, epoch, to, has, .. } = *order;
        let known = self.moves.held.epoch(&partition);
        let waits = self.is_touched(partition) && self.switches.keeps(GranolaSwitch::MovesWait);
        let is_here = known < epoch && self.holds(partition, cx.catalog);
        let source = self.moves.sources.get_mut(&partition).filter(|it| it.is_for(to, has));
        let Some(source) = source.filter(|_| is_here) else { return false };
        let is_whole = source.is_whole(has) || !self.switches.keeps(GranolaSwitch::MovesWhole);
        if is_whole && !waits {
            return true;
        }
        let until = cx.now() + source.hold_still(cx.settings.retry_after);
        self.moves.still.insert(partition, until);
        false
    }

    /// Whether anything that is under way touches a partition.
    fn is_touched(&self, partition: u16) -> bool {
        let touches = |request: &Request| {
            request.parts.iter().any(|it| it.partition == partition && it.is_about_keys())
        };
        self.active.values().any(|active| touches(&active.request))
            || self.deferred.iter().any(|deferred| touches(&deferred.request))
    }

    /// Whether all that a move says is loaded here.
    fn is_loaded(&self, order: &Move, cx: &Context<'_>) -> bool {
        let staged = self.moves.staged.get(&order.partition);
        let known = self.moves.held.epoch(&order.partition);
        staged.is_some_and(|staged| staged.copy.has_all_of(order))
            && known < order.epoch
            && !self.holds(order.partition, cx.catalog)
    }

    /// A move is done.
    pub(super) fn apply_move(&mut self, order: &Move, at: Timestamp, cx: &mut Context<'_>) {
        let Move { partition, from, to, epoch, .. } = *order;
        if name_service(cx.catalog).any(|it| it == self.id)
            && let Some(owners) = after(&self.moves.names, order, cx.catalog)
        {
            self.moves.names.learn([(partition, owners)]);
        }
        if from != self.id && to != self.id {
            return;
        }
        let holds = to == self.id;
        self.moves.held.recall([(partition, Holding { epoch, holds, at })]);
        if holds {
            self.moves.staged.remove(&partition);
            self.moves.loose.remove(&partition);
            // What came was not told to those who keep a copy.
            self.feeds.forget_all();
        } else {
            self.moves.sources.remove(&partition);
            self.moves.still.remove(&partition);
            self.moves.loose.insert(partition);
            // Whoever waits for a change of it is to ask where it is now.
            self.tell_watchers_of(partition, cx);
        }
    }

    /// Which partitions that came or went are here at `upto`. One that came or went later is not:
    /// nobody is answered about it.
    pub(super) fn held_at(&self, upto: Timestamp) -> Vec<(u16, Holding)> {
        let all = self.moves.held.all();
        let known_clients = all.filter(|_| self.switches.keeps(GranolaSwitch::CopiesKnow));
        known_clients
            .map(|(partition, held)| {
                (*partition, Holding { holds: held.holds && held.at <= upto, ..*held })
            })
            .collect()
    }

    /// Those of some writes that are about a partition that somebody loads.
    pub(super) fn note_for_sources(&mut self, at: Timestamp, writes: &[Write], cx: &Context<'_>) {
        if self.moves.sources.is_empty() || writes.is_empty() {
            return;
        }
        let stale = cx.settings.snapshot_lease;
        self.moves.sources.retain(|_, source| source.is_wanted(cx.now(), stale));
        for (partition, source) in &mut self.moves.sources {
            let mine = |write: &&Write| cx.catalog.partition(write.0, &write.1) == *partition;
            source.note(at, writes.iter().filter(mine).cloned().collect());
        }
    }

    /// Loose keys are to be removed, if there are any.
    pub(super) fn set_loose_timer(&mut self, cx: &mut Context<'_>) {
        if self.moves.sweep.is_none() {
            let mut all = self.moves.loose.clone();
            all.retain(|it| !self.moves.staged.contains_key(it) && !self.is_moving(*it));
            if !all.is_empty() {
                self.moves.sweep = Some((Cursor::default(), all));
                cx.defer(GranolaParticipantTimer::Loose);
            }
        }
    }

    /// Removes some loose keys.
    pub(super) fn on_loose_timeout(&mut self, cx: &mut Context<'_>) {
        let Some((mut cursor, all)) = self.moves.sweep.take() else { return };
        let goes =
            |space: SpaceId, key: &SmallBytes| all.contains(&cx.catalog.partition(space, key));
        if self.spaces.remove_some(&mut cursor, LOOSE_STEP, goes) {
            self.moves.sweep = Some((cursor, all));
            return cx.defer(GranolaParticipantTimer::Loose);
        }
        for partition in all {
            self.moves.loose.remove(&partition);
        }
        self.set_loose_timer(cx);
    }

    /// Removes the keys of a partition that is to come, at once.
    pub(super) fn clear_partition(&mut self, partition: u16, cx: &Context<'_>) {
        if self.moves.loose.contains(&partition) {
            let mine = |space, key: &SmallBytes| cx.catalog.partition(space, key) == partition;
            self.spaces.remove_some(&mut Cursor::default(), u64::MAX, mine);
            if let Some((_, all)) = &mut self.moves.sweep {
                all.remove(&partition);
            }
        }
        self.moves.loose.insert(partition);
    }
}
