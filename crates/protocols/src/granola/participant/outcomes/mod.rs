//! What a repository remembers of transactions that are over, for those who ask again.
//!
//! A vote may be forgotten only once every participant has the end stable in its log; a result,
//! once the client has it; and an id must be known as used, or a copy of its request that was long
//! under way would be done a second time. So coordinators say with each request below
//! which number all of their transactions are settled: answered, and acknowledged by all
//! participants. Nothing of that is remembered but the number. A circular buffer of replies, as in
//! section 5.4, would not do.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Range;

use muesli_core::parts::window::Window;
use muesli_core::{Abort, Nanos, NodeId, Timestamp, TxnId};

use crate::client_quota::ClientQuota;
use crate::doubts::Steps;
use crate::granola::message::{DataByPart, Noted, Refusal, ReplyOutcome, TimestampVote, Vote};

mod checkpoint;
mod data;
mod gone_clients;
mod invariants;

pub(super) use checkpoint::{CarriedOver, Settled};
use data::data_bytes;

/// A transaction that is over here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Over {
    /// How this repository voted, if anybody may ask.
    pub ballot: Option<TimestampVote>,
    /// What stands for the request, where its client is not believed; zero elsewhere.
    pub about: u64,
    /// How it ended.
    pub end: ReplyOutcome,
    /// For a history, in the life in which it ended.
    pub noted: Noted,
}

/// Whether a transaction can be a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Age {
    /// It can.
    Current,
    /// It is settled everywhere.
    Settled,
    /// It is of an earlier life of its coordinator.
    EarlierIncarnation,
}

/// What is known of a coordinator's transactions.
#[derive(Clone, Debug, Default)]
struct CoordinatorOutcomes {
    /// Its newest life.
    incarnation: u32,
    /// The number below which all of that life is settled.
    settled_below: u64,
    /// The newest transaction that was voted on here: its life and number.
    voted: Option<(u32, u64)>,
    /// What is over of the newest life, by number.
    over: Window<Over>,
    /// What is over of earlier lives.
    earlier: BTreeMap<(u32, u64), Over>,
    /// How many bytes the ends of all these are, and what was told in transactions that are not
    /// settled.
    bytes: usize,
    /// What was done here of clients that had been forgotten when it was first heard of lies at or
    /// below this.
    lower_bound: Timestamp,
    /// When it was last heard of, if it is a client; zero of members.
    seen_at: Nanos,
    /// Whether that is longer ago than clients are waited for.
    is_silent: bool,
}

impl CoordinatorOutcomes {
    /// One that may have been forgotten, with all that it did at or below `lower_bound`.
    fn above(lower_bound: Timestamp) -> CoordinatorOutcomes {
        CoordinatorOutcomes { lower_bound, ..CoordinatorOutcomes::default() }
    }

    /// Its newest life is this one, or a later one. Whoever asks for a transaction of an earlier
    /// life that is not known is told no, so those that were refused need not be known.
    fn live(&mut self, incarnation: u32) {
        if incarnation <= self.incarnation {
            return;
        }
        let (before, over) = (self.incarnation, std::mem::take(&mut self.over));
        for (number, over) in over.into_entries() {
            self.earlier.insert((before, number), over);
        }
        self.forget_refused();
        (self.incarnation, self.settled_below) = (incarnation, 0);
    }

    /// Of earlier lives, what was never voted for.
    fn forget_refused(&mut self) {
        let refused = self.earlier.extract_if(.., |_, over| over.is_refused());
        let freed = refused.map(|(_, over)| over.end.bytes()).sum::<usize>();
        assert!(freed <= self.bytes, "ends of {freed} bytes were not counted");
        self.bytes -= freed;
    }

    /// Nobody has been heard of who could ask for answers: that all is done, or why not, stays.
    fn forget_answers(&mut self) {
        let all = self.over.values_mut().chain(self.earlier.values_mut());
        let freed = all.map(Over::forget_answers).sum::<usize>();
        assert!(freed <= self.bytes, "answers of {freed} bytes were not counted");
        self.bytes -= freed;
    }

    fn len(&self) -> usize {
        self.over.len() + self.earlier.len()
    }

    /// What it counts towards the room of all clients.
    fn weight(&self) -> usize {
        if self.seen_at == Nanos(0) || self.is_silent { 0 } else { 1 + self.len() }
    }

    /// How many ends, and how many bytes of them, are forgotten with what a request says: it is the
    /// first of another life, or says which others are settled.
    fn freed_by(&self, txn: TxnId, settled_below: u64) -> (usize, usize) {
        let sum = |all: &mut dyn Iterator<Item = &Over>| {
            all.fold((0, 0), |(count, bytes), over| (count + 1, bytes + over.end.bytes()))
        };
        match txn.incarnation.cmp(&self.incarnation) {
            Ordering::Less => (0, 0),
            Ordering::Equal => {
                let over = self.over.iter();
                let settled = over.take_while(|(sequence, _)| *sequence < settled_below);
                sum(&mut settled.map(|(_, over)| over))
            }
            Ordering::Greater => {
                let all = self.over.iter().map(|(_, over)| over).chain(self.earlier.values());
                sum(&mut all.filter(|over| over.is_refused()))
            }
        }
    }

    fn age(&self, txn: TxnId) -> Age {
        match txn.incarnation.cmp(&self.incarnation) {
            Ordering::Less => Age::EarlierIncarnation,
            Ordering::Equal if txn.sequence < self.settled_below => Age::Settled,
            _ => Age::Current,
        }
    }
}

impl Over {
    /// How this repository votes, whoever asks. Of a transaction that its client said to be this
    /// repository's alone, and told others that they take part in, the end is the vote.
    pub fn vote(&self) -> TimestampVote {
        if let Some(ballot) = &self.ballot {
            return ballot.clone();
        }
        match &self.end {
            ReplyOutcome::Done { at, .. } => TimestampVote::Commit(*at),
            ReplyOutcome::Moved { at } => TimestampVote::Moved(*at),
            ReplyOutcome::Refused { at, refusal } => TimestampVote::Abort(*at, refusal.clone()),
            ReplyOutcome::Conflict => TimestampVote::Conflict,
        }
    }

    /// Forgets what parts gave; how many bytes that was.
    fn forget_answers(&mut self) -> usize {
        let before = self.end.bytes();
        if let ReplyOutcome::Done { answers, .. } = &mut self.end {
            answers.clear();
        }
        before - self.end.bytes()
    }

    /// Whether it was refused without ever having been voted for.
    fn is_refused(&self) -> bool {
        let is_answered_anyway = |refusal: &Refusal| {
            matches!(refusal, Refusal::Aborted(Abort::Superseded | Abort::Forgotten))
        };
        match &self.ballot {
            Some(TimestampVote::Conflict | TimestampVote::Moved(_)) => true,
            Some(TimestampVote::Abort(_, refusal)) => is_answered_anyway(refusal),
            Some(TimestampVote::Commit(_)) | None => false,
        }
    }
}

/// Transactions that are over, by coordinator, and what is settled.
///
/// Invariants (`assert_invariants`): nothing that is settled is remembered, and nothing told of it;
/// ends of the newest life and of earlier ones stand apart; and what is counted as it changes is
/// what a look at everything counts.
#[derive(Clone, Debug, Default)]
pub(super) struct EndedTransactions {
    coordinators: BTreeMap<NodeId, CoordinatorOutcomes>,
    /// What was done here of clients that are forgotten lies at or below this.
    lower_bound: Timestamp,
    /// How many ends of clients there are, and how many clients.
    of_clients: usize,
    /// What was told of keys in transactions that are not settled, by this participant or another.
    data: BTreeMap<TxnId, DataByPart>,
    /// Votes for what was done of clients and is settled, as these say: another participant may
    /// ask all the same. Those that became so lately, and those before.
    retired: [BTreeMap<TxnId, Vote>; 2],
    retired_since: Nanos,
    /// The time of what is done now.
    now: Nanos,
    steps: Steps,
}

impl EndedTransactions {
    /// Changes what is known of the coordinator of `txn`, which has lived at least that long.
    fn change<T>(&mut self, txn: TxnId, change: impl FnOnce(&mut CoordinatorOutcomes) -> T) -> T {
        let lower_bound = self.lower_bound;
        let known = self
            .coordinators
            .entry(txn.node)
            .or_insert_with(|| CoordinatorOutcomes::above(lower_bound));
        let before = known.weight();
        known.live(txn.incarnation);
        let changed = change(known);
        assert!(before <= self.of_clients, "ends of {:?} were not counted", txn.node);
        self.of_clients = self.of_clients + known.weight() - before;
        changed
    }

    /// Takes note of a coordinator's life and of what it has settled.
    pub fn observe(&mut self, txn: TxnId, settled_below: u64) {
        let lower_bound = self.lower_bound;
        let known = self
            .coordinators
            .entry(txn.node)
            .or_insert_with(|| CoordinatorOutcomes::above(lower_bound));
        let before = known.weight();
        known.live(txn.incarnation);
        let is_news = txn.incarnation >= known.incarnation && settled_below > known.settled_below;
        known.settled_below = if is_news { settled_below } else { known.settled_below };
        while let Some(sequence) = known.over.first().filter(|it| is_news && *it < settled_below) {
            let Some(over) = known.over.remove(sequence) else { break };
            assert!(over.end.bytes() <= known.bytes, "the end {sequence} was not counted");
            known.bytes -= over.end.bytes();
            retire(&mut self.retired[0], TxnId { sequence, ..txn }, &over);
        }
        self.of_clients = self.of_clients + known.weight() - before;
        if is_news && !self.data.is_empty() {
            let shared = self.data.extract_if(below(txn, settled_below), |_, _| true);
            let freed = shared.map(|(_, seen_at)| data_bytes(&seen_at)).sum::<usize>();
            assert!(freed <= known.bytes, "data of {freed} bytes were not counted");
            known.bytes -= freed;
        }
    }

    /// How old `txn` is.
    pub fn age(&self, txn: TxnId) -> Age {
        self.coordinators.get(&txn.node).map_or(Age::Current, |known| known.age(txn))
    }

    /// Whether `txn` can be new.
    pub fn is_current(&self, txn: TxnId) -> bool {
        self.age(txn) == Age::Current
    }

    /// How `txn` ended, if it is over and remembered.
    pub fn get(&self, txn: TxnId) -> Option<&Over> {
        let known = self.coordinators.get(&txn.node)?;
        match txn.incarnation == known.incarnation {
            true => known.over.get(txn.sequence),
            false => known.earlier.get(&(txn.incarnation, txn.sequence)),
        }
    }

    /// What is done from now on is done at this time.
    pub fn set_time(&mut self, now: Nanos) {
        self.now = now;
    }

    /// `txn` is over. That is known as long as after a sign of life of its client, which may be cut
    /// off from here and ask for just that in the end.
    pub fn remember(&mut self, txn: TxnId, over: Over) {
        let now = self.now;
        let settled = self.change(txn, |known| {
            if known.seen_at != Nanos(0) {
                known.seen_at = known.seen_at.max(now);
            }
            let added = over.end.bytes();
            let replaced = match known.age(txn) {
                Age::Settled => return Some(over),
                Age::Current => known.over.insert(txn.sequence, over),
                Age::EarlierIncarnation => {
                    known.earlier.insert((txn.incarnation, txn.sequence), over)
                }
            };
            known.bytes += added;
            let freed = replaced.map_or(0, |over| over.end.bytes());
            assert!(freed <= known.bytes, "an end of {txn} was not counted");
            known.bytes -= freed;
            None
        });
        if let Some(over) = settled {
            retire(&mut self.retired[0], txn, &over);
        }
    }

    /// The vote for a transaction that was done, and is settled as its client says.
    pub fn retired(&self, txn: TxnId) -> Option<Vote> {
        self.retired.iter().find_map(|votes| votes.get(&txn).cloned())
    }

    /// Forgets the votes of those that have been settled for `after`, or twice as long.
    pub fn forget_retired(&mut self, now: Nanos, after: Nanos) {
        if self.retired_since + after <= now {
            let [lately, before] = &mut self.retired;
            *before = std::mem::take(lately);
            self.retired_since = now;
        }
    }

    /// All clients count as heard of just now: nobody knows when they last were.
    pub fn receive_all(&mut self, now: Nanos, is_client: impl Fn(NodeId) -> bool) {
        let clients = self.coordinators.iter_mut().filter(|(node, _)| is_client(**node));
        clients.for_each(|(_, it)| (it.seen_at, it.is_silent) = (now.max(Nanos(1)), false));
        self.of_clients = self.coordinators.values().map(CoordinatorOutcomes::weight).sum();
    }

    /// Whether there is room for a transaction of a client beside so many that are under way. Where
    /// there is none, what it says with the transaction has to make some.
    pub fn has_capacity(
        &self,
        txn: TxnId,
        settled_below: u64,
        active: usize,
        quota: ClientQuota,
    ) -> bool {
        let nothing = CoordinatorOutcomes::default();
        let known = self.coordinators.get(&txn.node).unwrap_or(&nothing);
        let is_full = known.len() >= quota.entries || self.of_clients + active >= quota.all;
        if !is_full && known.bytes < quota.bytes {
            return true;
        }
        let (ends, bytes) = known.freed_by(txn, settled_below);
        let is_of_now = txn.incarnation == known.incarnation && settled_below > known.settled_below;
        let shared = self.data.range(below(txn, if is_of_now { settled_below } else { 0 }));
        let shared: usize = shared.map(|(_, seen_at)| data_bytes(seen_at)).sum();
        (!is_full || ends > 0) && known.bytes - bytes - shared < quota.bytes
    }

    /// Whether anything is known of a coordinator.
    pub fn knows(&self, node: NodeId) -> bool {
        self.coordinators.contains_key(&node)
    }

    /// How many bytes are kept.
    pub fn bytes(&self) -> usize {
        let ends = |known: &CoordinatorOutcomes| known.bytes + known.len() * size_of::<Over>();
        self.coordinators.values().map(ends).sum()
    }

    /// How many coordinators are known.
    pub fn known_coordinators(&self) -> usize {
        self.coordinators.len()
    }

    /// `txn` is voted on.
    pub fn note_vote(&mut self, txn: TxnId) {
        self.change(txn, |known| {
            known.voted = known.voted.max(Some((txn.incarnation, txn.sequence)));
        });
    }

    /// Of each coordinator, the newest transaction that may have been voted on here and is not
    /// settled.
    pub fn voted(&self) -> Vec<TxnId> {
        let newest = self.coordinators.iter().filter_map(|(node, known)| {
            let (incarnation, sequence) = known.voted?;
            Some(TxnId { node: *node, incarnation, sequence })
        });
        newest.collect()
    }

    /// How many are remembered.
    pub fn len(&self) -> usize {
        self.coordinators.values().map(CoordinatorOutcomes::len).sum()
    }
}

/// The transactions of the same life with smaller numbers.
fn below(txn: TxnId, sequence: u64) -> Range<TxnId> {
    TxnId { sequence: 0, ..txn }..TxnId { sequence, ..txn }
}

/// A transaction is settled as its client says, who may say so before that is true.
fn retire(retired: &mut BTreeMap<TxnId, Vote>, txn: TxnId, over: &Over) {
    if over.about != 0 && matches!(over.end, ReplyOutcome::Done { .. }) {
        retired.insert(txn, (over.vote(), over.about));
    }
}

#[cfg(test)]
mod tests;
