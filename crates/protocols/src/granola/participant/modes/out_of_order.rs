//! Past who waits at the head of the queue (section 9.1.1, "Avoiding Blocking").
//!
//! In timestamp mode everything stands behind a transaction that misses votes. Most of it has
//! nothing to do with that one. So whoever knows its place may be done before its turn if nobody
//! who stands before it conflicts with it, by all that either may touch: by its procedures'
//! declaration, whatever the data says; where nothing is declared, anything. No lock is taken and
//! nobody is refused: the claims only say who waits for whom.
//!
//! # Why the order stays that of the places
//! Whatever comes later is proposed a timestamp above `done`, which who passes has raised to its
//! own place. So all that can ever come to lie before that place stands in the queue now, and
//! conflicts with none of it; and two that conflict are done in the order of their places, at each
//! repository and each replica alike. Sessions, too: what they have seen lies at its place, and
//! their next requests above it. Nor does a crash change that. What was passed is in the log as
//! voted on and is done later, over a state that differs from that of its place by what it cannot
//! touch; and a key is still written in the order of timestamps, on which replays and checkpoints
//! rely. What is *not* so any more is that all that lies below `done` has been done: a reader that
//! lies [right behind it](Participant::reads_at_once) must ask who stands there.
//!
//! # Who waits for whom
//! Whoever is looked at in vain waits for one that is in its way, and is looked at again when that
//! one has gone or stands elsewhere. What everybody may touch is found out only once somebody could
//! pass. That this never forgets anybody does not matter for progress: who is first is done anyway.
//!
//! With this nobody need go into locking mode because a participant [stays
//! away](super::unresponsive).

use std::collections::{BTreeMap, BTreeSet};

use muesli_core::parts::queued_footprints::QueuedFootprints;
use muesli_core::{NodeId, Timestamp, TxnId};

use super::{QueueKey, WaitQueue};
use crate::granola::message::Request;
use crate::granola::participant::{Context, Participant};
use crate::granola::switches::GranolaSwitch;

/// What those in the queue may touch, and who waits for whom of them.
///
/// Invariants: of everybody in the queue it is known what that may touch, or that it is not known;
/// whoever is waited for is in the queue.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct OutOfOrder {
    footprints: QueuedFootprints<QueueKey>,
    /// Those of which it is not known yet what they may touch.
    strangers: BTreeSet<QueueKey>,
    /// Those whose place is known who may pass, for all that is known.
    hopeful: BTreeSet<QueueKey>,
    /// Who was in vain, by one that was in its way.
    waiting: BTreeMap<QueueKey, Vec<QueueKey>>,
}

impl OutOfOrder {
    /// Somebody has come into the queue.
    pub fn come(&mut self, wait_queue: WaitQueue, stand: QueueKey) {
        assert!(self.strangers.insert(stand), "{} has come twice", stand.1);
        if wait_queue == WaitQueue::Placed {
            self.hopeful.insert(stand);
        }
    }

    /// Somebody has gone.
    pub fn go(&mut self, stand: QueueKey) {
        if !self.strangers.remove(&stand) {
            self.footprints.leave(stand);
        }
        self.let_pass(stand);
    }

    /// Somebody who was in the queue has its place.
    pub fn rise(&mut self, from: QueueKey, to: QueueKey) {
        match self.footprints.leave(from) {
            Some(claim) => self.footprints.stand(to, claim),
            None => drop(self.strangers.remove(&from) | self.strangers.insert(to)),
        }
        self.let_pass(from);
        self.hopeful.insert(to);
    }

    /// Checks the invariants, where these are in the queue.
    ///
    /// # Panics
    /// One of them does not hold.
    pub fn assert_invariants(&self, queued: &[QueueKey]) {
        self.footprints.assert_invariants();
        for stand in queued {
            let (is_known, is_stranger) =
                (self.footprints.at(*stand).is_some(), self.strangers.contains(stand));
            assert_ne!(is_known, is_stranger, "whether it is known what {} touches", stand.1);
        }
        let known = self.footprints.len() + self.strangers.len();
        assert_eq!(known, queued.len(), "of how many it is known what they touch, or not known");
        let mut waited_for = self.waiting.keys();
        assert!(waited_for.all(|it| queued.binary_search(it).is_ok()), "who is gone is waited for");
    }

    /// Somebody is to be looked at.
    pub fn has_hope(&self) -> bool {
        !self.hopeful.is_empty()
    }

    /// It is to be looked at again whether somebody may pass.
    pub fn check_again(&mut self, stand: QueueKey) {
        self.hopeful.insert(stand);
    }

    fn let_pass(&mut self, stand: QueueKey) {
        self.hopeful.remove(&stand);
        self.hopeful.extend(self.waiting.remove(&stand).unwrap_or_default());
    }
}

impl Participant {
    /// Who may be done next: who is first, or who may pass.
    pub(in super::super) fn next_to_do(&mut self, cx: &mut Context<'_>) -> Option<QueueKey> {
        let first = self.next_ready();
        if first.is_some() || self.locking || !self.queue.is_passed() {
            return first;
        }
        self.next_out_of_order(&[], cx)
    }

    /// Who may pass whoever stands before it, those of `batch` included, who are to be done first.
    pub(in super::super) fn next_out_of_order(
        &mut self,
        batch: &[QueueKey],
        cx: &mut Context<'_>,
    ) -> Option<QueueKey> {
        while let Some(stand) = self.queue.out_of_order()?.hopeful.pop_first() {
            if !self.queue.is_placed(&stand) || batch.contains(&stand) {
                continue; // It was first, and is done.
            }
            self.get_to_know(cx);
            let in_the_way = self.in_the_way_of(stand);
            let counts = |other: &QueueKey| {
                self.switches.keeps(GranolaSwitch::ParallelApart) || !batch.contains(other)
            };
            let Some(other) = in_the_way.filter(counts) else { return Some(stand) };
            self.queue.out_of_order()?.waiting.entry(other).or_default().push(stand);
        }
        None
    }

    /// Finds out what everybody in the queue may touch.
    fn get_to_know(&mut self, cx: &mut Context<'_>) {
        let strangers = self.queue.out_of_order().map(|it| std::mem::take(&mut it.strangers));
        for stand in strangers.unwrap_or_default() {
            let request = self.active[&stand.1].request.clone();
            let claim = self.all_it_may_touch(&request, cx);
            if let Some(out_of_order) = self.queue.out_of_order() {
                out_of_order.footprints.stand(stand, claim);
            }
        }
    }

    /// Who stands before a transaction, may come to lie before it, and conflicts with it.
    fn in_the_way_of(&mut self, stand: QueueKey) -> Option<QueueKey> {
        let (active, streams) = (&self.active, &self.vote_sequences);
        let footprints = &self.queue.out_of_order.as_ref()?.footprints;
        let claim = footprints.at(stand).expect("it stands there");
        let counts = |other: QueueKey| match active[&other.1].wait_queue {
            WaitQueue::Behind(Some(voter)) => streams.bound(voter) <= stand.0,
            WaitQueue::Placed | WaitQueue::Behind(None) => true,
        };
        let found = footprints.in_the_way(claim, stand, counts);
        assert!(found.is_none_or(|it| it < stand), "{} is in the way of who is before", stand.1);
        found.filter(|_| self.switches.keeps(GranolaSwitch::OutOfOrderApart))
    }

    /// Whether a reader that lies right behind what was done last misses nothing that somebody in
    /// the queue may still come to write below.
    pub(in super::super) fn reads_ahead_of_all(
        &mut self,
        request: &Request,
        cx: &mut Context<'_>,
    ) -> bool {
        if !self.switches.keeps(GranolaSwitch::ReadersLook) {
            return true;
        }
        let above = self.clock.done.0 + 1;
        let nobody = TxnId { node: NodeId(0), incarnation: 0, sequence: 0 };
        if !self.queue.is_passed() || self.queue.first().is_none_or(|it| it.0.0 >= above) {
            return self.queue.first().is_none_or(|it| it.0.0 >= above);
        }
        self.get_to_know(cx);
        let claim = self.all_it_may_touch(request, cx);
        let out_of_order = self.queue.out_of_order.as_ref().expect("just asked");
        out_of_order.footprints.in_the_way(&claim, (Timestamp(above), nobody), |_| true).is_none()
    }
}
