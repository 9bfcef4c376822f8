//! The votes of others: counted, decided by, and asked for where they do not come (section 4.3.4).

use std::sync::Arc;

use muesli_core::parts::votes::Counted;
use muesli_core::{RepositoryId, Timestamp, TxnId};

use crate::granola::message::{
    Message, Noted, Record, ReplyOutcome, Repositories, Request, TimestampVote, Vote, evidence,
};
use crate::granola::participant::modes::WaitQueue;
use crate::granola::participant::modes::active::Active;
use crate::granola::participant::outcomes::{Age, Over};
use crate::granola::participant::{Context, Participant};
use crate::granola::switches::GranolaSwitch;

impl Participant {
    pub(in super::super) fn on_vote(
        &mut self,
        txn: TxnId,
        repository: RepositoryId,
        (ballot, about): Vote,
        cx: &mut Context<'_>,
    ) {
        let Some(active) = self.active.get_mut(&txn) else {
            if !self.vote_on_deferred(txn, &ballot, cx) {
                self.keep_early(txn, repository, (ballot, about), cx);
            }
            return;
        };
        if active.place.is_some() {
            // Late or repeated: all votes were there. But who votes against it now will tell
            // nothing any more: a client has asked it for something else, or it has forgotten a
            // reader. Whoever waits to be told ends that, which is safe where nothing is written.
            if !active.awaits_data() || active.request.is_update() {
                return;
            }
        }
        let TimestampVote::Commit(at) = ballot else {
            let end = ballot.end_against().expect("a vote against it");
            return self.drop_active(txn, end, cx);
        };
        if active.place.is_some() {
            return;
        }
        if about != active.about {
            // It was asked for something else.
            return self.drop_active(txn, ReplyOutcome::Conflict, cx);
        }
        match active.votes.count(repository, at) {
            Counted::Complete => {
                let was_asked_for = active.asked > active.since;
                cx.effects.maintenance.finished += u64::from(was_asked_for);
                self.decide(txn, cx);
            }
            Counted::Waiting => self.change_wait_queue(txn),
            Counted::Ignored => {}
        }
    }

    /// All votes are there: the highest proposal is the transaction's place.
    fn decide(&mut self, txn: TxnId, cx: &mut Context<'_>) {
        let active = self.active.get_mut(&txn).expect("an active transaction");
        assert!(active.votes.is_complete(), "{txn} has its place before all have voted");
        assert!(active.place.is_none(), "{txn} is decided twice");
        assert_eq!(active.bound, active.proposed, "what binds {txn} until all have voted");
        let highest = active.votes.so_far().copied().fold(active.proposed, Timestamp::max);
        let place = if self.switches.keeps(GranolaSwitch::HighestIsFinal) {
            highest
        } else {
            active.proposed
        };
        let (was, from) = (active.wait_queue, active.bound);
        let raises = active.request.is_update() || self.switches.keeps(GranolaSwitch::ReadsRaise);
        if self.switches.keeps(GranolaSwitch::RaisesLast)
            && raises
            && self.switches.raised_by(&active.request, self.id)
        {
            self.clock.place(place);
        }
        (active.place, active.wait_queue) = (Some(place), WaitQueue::Placed);
        let is_prepared = active.is_prepared();
        // In locking mode nothing that is queued touches what this one has claimed.
        let first = self.queue.first().filter(|_| !self.locking);
        let before = first.is_some_and(|first| first < (place, txn));
        if is_prepared && !before {
            self.perform_prepared(txn, cx);
        } else {
            active.bound = place;
            if self.active.put_aside(&txn, None) {
                self.footprint_locks.release(txn);
            }
            match is_prepared {
                true => self.queue.insert(WaitQueue::Placed, (place, txn)),
                false => self.queue.rise(was, (from, txn), (place, txn)),
            }
        }
        self.go_on(cx);
    }

    /// Somebody voted against a transaction that was voted on here.
    pub(in super::super) fn drop_active(
        &mut self,
        txn: TxnId,
        end: ReplyOutcome,
        cx: &mut Context<'_>,
    ) {
        let active = self.active.remove(&txn).expect("an active transaction");
        self.queue.remove(active.wait_queue, &(active.bound, txn));
        self.footprint_locks.release(txn);
        self.end_dropped(&active, end, cx);
        self.report_what_moved(cx.settings);
        self.go_on(cx);
    }

    /// Tells of a transaction that was voted on and is not done.
    pub(in super::super) fn end_dropped(
        &mut self,
        active: &Active,
        end: ReplyOutcome,
        cx: &mut Context<'_>,
    ) {
        let txn = active.request.txn;
        assert!(!self.active.contains_key(&txn), "{txn} is over, and under way");
        if self.is_logged(&active.request) {
            cx.log_lazily(|| Record::Dropped { txn, end: end.clone() });
        }
        let (ballot, noted) = (Some(TimestampVote::Commit(active.proposed)), Noted::default());
        let (about, end_here) = (active.about, end.clone());
        self.memory.remember(txn, Over { ballot, about, end: end_here, noted: noted.clone() });
        self.tell_end(&active.request, end, noted, cx);
        if active.request.moving().is_some() {
            self.set_loose_timer(cx);
        }
    }

    /// A participant misses votes, ours among them.
    pub(in super::super) fn on_ask(
        &mut self,
        request: Arc<Request>,
        repository: RepositoryId,
        ballot: TimestampVote,
        cx: &mut Context<'_>,
    ) {
        let txn = request.txn;
        let waits = self.active.contains_key(&txn) || self.is_deferred(txn);
        let known = waits || self.memory.get(txn).is_some();
        if let Some(vote) = self.memory.retired(txn).filter(|_| !known) {
            // It was done, and its client has said that this is known everywhere.
            return self.tell_vote(repository, txn, vote, cx);
        }
        if self.memory.age(txn) == Age::Settled && !known {
            // A copy of a request that was long under way, or a reader's that a crash had
            // forgotten: nobody waits for it any more. Or its client has said that it is settled
            // where it is not, and nobody knows more of it.
            return self.tell_vote(repository, txn, (TimestampVote::Conflict, 0), cx);
        }
        let about = evidence::about(&request, cx.settings, cx.catalog);
        self.send_data_again(repository, &request, cx);
        if !known {
            // Its request may never have come here, or this life does not know of it.
            self.on_request(request, cx);
        }
        self.on_vote(txn, repository, (ballot, about), cx);
        let vote = match self.active.get(&txn) {
            Some(active) => Some((TimestampVote::Commit(active.proposed), active.about)),
            None => self.memory.get(txn).map(|over| (over.vote(), over.about)),
        };
        if let Some(vote) = vote.filter(|_| known || self.switches.has_master()) {
            self.tell_vote(repository, txn, vote, cx);
        }
    }

    /// Tells of a vote again. It implies nothing: newer ones may have been cast since.
    fn tell_vote(&self, to: RepositoryId, txn: TxnId, vote: Vote, cx: &mut Context<'_>) {
        let ((ballot, about), repository) = (vote, self.id);
        let message = Message::Vote { txn, repository, ballot, about, tag: 0, order: None };
        cx.send_to_repository_when_logged(to, message);
    }

    /// Asks for the votes that should have come by now, of those who may never have heard of the
    /// transaction too.
    pub(in super::super) fn ask_for_votes(&mut self, cx: &mut Context<'_>) {
        let (now, me, patience) = (cx.now(), self.id, self.patience(cx.settings));
        let due = |active: &Active| active.asked + patience <= now;
        let waits = |active: &Active| active.place.is_none() || active.awaits_data();
        let late = self.active.values().filter(|active| due(active) && waits(active));
        let late: Vec<TxnId> = late.map(|active| active.request.txn).collect();
        for txn in late {
            let active = &self.active[&txn];
            let whom: Repositories = match active.place {
                None => active.votes.missing().collect(),
                Some(_) => self.data_holders(active, cx),
            };
            let active = self.active.get_mut(&txn).expect("just seen");
            active.asked = now;
            for other in whom {
                let (request, ballot) =
                    (active.request.clone(), TimestampVote::Commit(active.proposed));
                let ask = Message::Ask { request, repository: me, ballot };
                cx.send_to_repository_when_logged(other, ask);
            }
        }
    }
}
