//! Finishing transactions whose coordinator died.
//!
//! The outcome of a transaction is a function of its stable votes: everyone's yes commits it, at
//! the largest proposal; anyone's no aborts it. So a participant that has waited too long asks the
//! others how they voted, and whoever has not voted votes no, stably, before answering. Then all
//! the votes are known, and they are the same for everyone who asks, the coordinator included if
//! it was merely slow.

use muesli_core::parts::votes::{Counted, Votes};
use muesli_core::{Abort, Address, Decision, Nanos, RepositoryId, TxnId};

use super::Participant;
use crate::two_phase::message::{About, Message, Mostly, Record, Vote};
use crate::two_phase::policy::FamilySwitch;
use crate::two_phase::time::Time;
use crate::two_phase::{Context, Variant, shown_votes};

/// The pause between two rounds of asking doubles this often at most.
const BACK_OFF_DOUBLINGS_MAX: u32 = 6;

/// The votes that a participant in doubt has gathered.
///
/// Invariants: all who take part vote, its own vote is counted first, and what votes are about is
/// known of as many as have voted.
#[derive(Clone, Debug)]
pub(in crate::two_phase) struct Finishing<V: Variant> {
    votes: Votes<RepositoryId, V::Yes>,
    /// What they are about, its own first.
    abouts: Vec<(RepositoryId, Option<Box<About>>)>,
    /// How often the others were asked; each time it is longer to the next.
    asked: u32,
    next: Nanos,
}

impl<V: Variant> Finishing<V> {
    /// What all votes decide: nothing is committed that was not asked of all alike.
    fn decide(&self, switches: &V::Switches, cx: &Context<'_, V>) -> Decision<V::Place> {
        assert!(self.votes.is_complete(), "votes decide once all are there");
        let abouts = self.abouts.iter().map(|(voter, about)| (*voter, about.as_deref()));
        match shown_votes::are_about_one(abouts, cx.catalog) {
            true => V::Time::decide(switches, &self.votes),
            false => Decision::Abort(Abort::Abandoned),
        }
    }

    /// Checks the invariants; `me` gathers the votes of these.
    ///
    /// # Panics
    /// One of them does not hold.
    pub fn assert_invariants(&self, participants: &[RepositoryId], me: RepositoryId) {
        self.votes.assert_invariants();
        assert_eq!(self.votes.voters(), participants.len(), "how many vote");
        assert_eq!(self.votes.by_voter().count(), self.abouts.len(), "what votes are about");
        assert_eq!(self.abouts.first().map(|(voter, _)| *voter), Some(me), "who gathers votes");
        assert!(self.asked > 0, "nobody was asked for a vote");
    }

    /// Whether somebody was told the same of who takes part.
    fn has_same_participants(&self, about: Option<&About>) -> bool {
        shown_votes::same_participants(self.abouts[0].1.as_deref(), about)
    }
}

impl<V: Variant> Participant<V> {
    /// Asks about every transaction that has been in doubt for too long.
    pub(in crate::two_phase) fn ask_about_doubtful(&mut self, cx: &mut Context<'_, V>) {
        let (now, patience) = (cx.now(), cx.settings.in_doubt_after);
        let doubtful: Vec<TxnId> = self
            .table
            .in_doubt()
            .filter(|(_, prepared)| prepared.since + patience <= now)
            .filter(|(_, prepared)| self.may_ask_about(prepared.prepare.txn, now))
            .map(|(_, prepared)| prepared.prepare.txn)
            .collect();
        for txn in doubtful {
            self.ask_about(txn, cx);
        }
    }

    fn may_ask_about(&self, txn: TxnId, now: Nanos) -> bool {
        self.finishing.get(&txn).is_none_or(|finishing| finishing.next <= now)
    }

    fn ask_about(&mut self, txn: TxnId, cx: &mut Context<'_, V>) {
        let Some(owner) = self.table.owner(txn) else { return };
        let prepared = self.table.get(owner);
        let (participants, own) = (prepared.prepare.participants.clone(), prepared.yes.clone());
        let (id, about) = (self.id, prepared.about.clone());
        let finishing = self.finishing.entry(txn).or_insert_with(|| {
            let mut votes = Votes::from_voters(participants.iter().copied());
            votes.count(id, own);
            Finishing { votes, abouts: vec![(id, about)], asked: 0, next: cx.now() }
        });
        let pause = cx.settings.retry_after.0 << finishing.asked.min(BACK_OFF_DOUBLINGS_MAX);
        finishing.next = cx.now() + Nanos(pause);
        finishing.asked += 1;
        if finishing.votes.is_complete() {
            let decision = finishing.decide(&self.protocol_switches, cx);
            self.finish_as(txn, decision, cx);
            return;
        }
        for repository in finishing.votes.missing() {
            cx.send_to_repository(repository, Message::Ask { txn });
        }
    }

    /// Another participant wants to finish `txn`: whatever was not voted yet becomes a no.
    pub(in crate::two_phase) fn on_ask(
        &mut self,
        from: Address,
        txn: TxnId,
        cx: &mut Context<'_, V>,
    ) {
        if let Some(vote) = self.table.known_vote(txn) {
            self.vote(from, txn, vote, cx);
            return;
        }
        if self.table.is_settled(txn) {
            // Whoever asked has been told since; or the client has said so before that was true,
            // and nobody knows the end any more.
            self.vote(from, txn, Vote::No(Abort::Abandoned), cx);
            return;
        }
        self.forget_waiting(txn);
        if self.table.is_of_earlier_incarnation(txn) {
            // It will never be prepared here: nothing to remember, unless the log is all that is.
            cx.log_lazily(|| Record::Refused { txn, reason: Abort::Abandoned });
        } else {
            self.refuse(txn, Abort::Abandoned, cx);
        }
        self.vote(from, txn, Vote::No(Abort::Abandoned), cx);
    }

    /// The answer to an [`Ask`](Message::Ask).
    pub(in crate::two_phase) fn on_vote(
        &mut self,
        txn: TxnId,
        repository: RepositoryId,
        (vote, about): (Vote<V>, Option<Box<About>>),
        cx: &mut Context<'_, V>,
    ) {
        // An end that cannot be this transaction's is that of another one, which the client gave
        // the same number.
        let is_end = match &vote {
            Vote::Decided(decision) => self.can_end_as(txn, decision),
            Vote::Yes(_) | Vote::No(_) => false,
        };
        let Some(finishing) = self.finishing.get_mut(&txn) else { return };
        let decision = match vote {
            Vote::Decided(decision)
                if is_end && finishing.has_same_participants(about.as_deref()) =>
            {
                decision
            }
            Vote::No(_) | Vote::Decided(_) => Decision::Abort(Abort::Abandoned),
            Vote::Yes(at) => {
                let counted = finishing.votes.count(repository, at);
                if counted != Counted::Ignored {
                    let is_new = finishing.abouts.iter().all(|(voter, _)| *voter != repository);
                    assert!(is_new, "{repository:?} votes twice on {txn}, and both count");
                    finishing.abouts.push((repository, about));
                }
                match counted {
                    Counted::Complete => finishing.decide(&self.protocol_switches, cx),
                    Counted::Waiting | Counted::Ignored => return,
                }
            }
        };
        self.finish_as(txn, decision, cx);
    }

    /// Applies a decision reached from the votes, and tells the others.
    fn finish_as(&mut self, txn: TxnId, decision: Decision<V::Place>, cx: &mut Context<'_, V>) {
        let Some(owner) = self.table.owner(txn) else { return };
        assert!(self.table.get(owner).decided.is_none(), "{txn} is not in doubt");
        let participants = self.table.get(owner).prepare.participants.clone();
        assert!(participants.contains(&self.id), "{txn} ends here, and takes no part");
        cx.effects.maintenance.finished += 1;
        // The own vote was counted, and may not be stable: without it the decision could fall.
        if self.switches.keeps(FamilySwitch::FinishWaitsForLog) {
            cx.wait_for_log();
        }
        self.on_decide(txn, decision.clone(), cx);
        for &repository in participants.iter().filter(|&&other| other != self.id) {
            let decision = decision.clone();
            let ballots = Mostly::new();
            cx.send_to_repository(repository, Message::Decide { txn, decision, ballots });
        }
    }
}
