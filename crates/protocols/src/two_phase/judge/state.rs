//! Whether messages of other processes agree with what a role knows.

use muesli_core::judgement::ensure;
use muesli_core::{Decision, Rejection, Role, Sender, Timestamp, TxnId, View};

use crate::client_quota::ClientQuota;
use crate::two_phase::coordinator::asked::PendingRequest;
use crate::two_phase::message::{Message, Prepare, RepositoryVote, Vote, requests};
use crate::two_phase::participant::Participant;
use crate::two_phase::time::{Snapshot, Time};
use crate::two_phase::{Coordinator, Variant, shown_votes};

impl<V: Variant> Participant<V> {
    /// Whether a message agrees with what is known here of its transaction.
    pub(in crate::two_phase) fn judge_state(
        &self,
        message: &Message<V>,
        view: View<'_>,
    ) -> Result<(), Rejection> {
        match message {
            Message::Prepare(prepare) => self.judge_known_prepare(prepare),
            Message::Decide { txn, decision, ballots } => {
                self.judge_known_end(*txn, decision, view)?;
                match view.sender {
                    Sender::Member => Ok(()),
                    Sender::Client { .. } => self.judge_ballots(*txn, decision, ballots, view),
                }
            }
            Message::MergedDecision(ended) => {
                self.judge_known_end(ended.txn, &ended.decision, view)
            }
            Message::Vote { txn, vote: Vote::Decided(_), .. } => self.judge_voter(*txn, view),
            Message::Read(_)
            | Message::Scan(_)
            | Message::Lock(_)
            | Message::Unlock { .. }
            | Message::Ask { .. }
            | Message::Settled { .. }
            | Message::Vote { .. }
            | Message::NewOwners { .. }
            | Message::KnownOwners { .. }
            | Message::AskOwned(_)
            | Message::Owned(_)
            | Message::Watch(_)
            | Message::Unwatch { .. }
            | Message::AskDoubts { .. }
            | Message::NoDoubts { .. }
            | Message::Watermark { .. } => Ok(()),
            Message::ReadReply(_)
            | Message::ScanReply(_)
            | Message::Locked { .. }
            | Message::Acknowledge { .. }
            | Message::MergedVote(_)
            | Message::Ended { .. }
            | Message::Ran { .. }
            | Message::Changed { .. }
            | Message::Waiting { .. }
            | Message::Bound { .. } => Err(Rejection::Role),
        }
    }

    fn judge_known_prepare(&self, prepare: &Prepare<V>) -> Result<(), Rejection> {
        let delays = V::delays_actions(&self.protocol_switches);
        ensure(delays || !prepare.delays(), Rejection::State)
    }

    /// Whether there is room for what a client's message would leave: a client that does not
    /// settle its transactions gets no further ones in.
    pub(in crate::two_phase) fn judge_capacity(
        &self,
        message: &Message<V>,
        view: View<'_>,
    ) -> Result<(), Rejection> {
        let (txn, below, leaves) = match message {
            Message::Prepare(it) => {
                // One of an earlier life is answered, and leaves nothing.
                (it.txn, it.settled_below, !self.table.is_of_earlier_incarnation(it.txn))
            }
            Message::Decide { txn, .. } => (*txn, 0, true),
            _ => return Ok(()),
        };
        if view.sender.is_member() || !leaves {
            return Ok(());
        }
        let quota = ClientQuota::of(view.settings);
        let is_let_in = self.table.has_capacity(txn, below, quota) || self.table.knows(txn);
        ensure(is_let_in, Rejection::Full)
    }

    /// An end is the one that is known; or where none is, one that the vote of this repository
    /// allows.
    fn judge_known_end(
        &self,
        txn: TxnId,
        decision: &Decision<V::Place>,
        view: View<'_>,
    ) -> Result<(), Rejection> {
        self.judge_voter(txn, view)?;
        ensure(self.can_end_as(txn, decision), Rejection::State)
    }

    /// A repository speaks of the end of transactions in which it takes part.
    fn judge_voter(&self, txn: TxnId, view: View<'_>) -> Result<(), Rejection> {
        let Role::Repository(repository) = view.from.role else { return Ok(()) };
        let Some(owner) = self.table.owner(txn) else { return Ok(()) };
        let takes_part = self.table.get(owner).prepare.participants.contains(&repository);
        ensure(takes_part, Rejection::Sender)
    }

    /// Whether a transaction that is prepared here can have this end: it commits where the vote
    /// that was given here allows, and no end is followed by another one.
    pub(in crate::two_phase) fn can_end_as(
        &self,
        txn: TxnId,
        decision: &Decision<V::Place>,
    ) -> bool {
        let Some(owner) = self.table.owner(txn) else { return true };
        let prepared = self.table.get(owner);
        match (&prepared.decided, decision) {
            (Some(known), Decision::Commit(place)) => known == place,
            (Some(_), Decision::Abort(_)) => false,
            (None, Decision::Commit(place)) => self.time.can_decide(txn, &prepared.yes, place),
            (None, Decision::Abort(_)) => true,
        }
    }

    /// Where this repository waits for the end of a client's transaction, the client has to show
    /// the votes that decide it.
    fn judge_ballots(
        &self,
        txn: TxnId,
        decision: &Decision<V::Place>,
        ballots: &[RepositoryVote<V>],
        view: View<'_>,
    ) -> Result<(), Rejection> {
        let Some(owner) = self.table.owner(txn) else { return Ok(()) };
        let prepared = self.table.get(owner);
        if prepared.decided.is_some() {
            return Ok(());
        }
        shown_votes::judge(prepared, decision, ballots, &self.protocol_switches, view)
    }

    /// The largest timestamp that was issued here, or that members have told of.
    pub(in crate::two_phase) fn issued_here(&self) -> Timestamp {
        self.time.issued()
    }
}

impl<V: Variant> Coordinator<V> {
    /// Whether a message agrees with what was asked.
    pub(in crate::two_phase) fn judge_state(&self, message: &Message<V>) -> Result<(), Rejection> {
        match message {
            Message::ReadReply(reply) => {
                let Some(request) = self.requests.get(reply.request) else { return Ok(()) };
                let found = reply.found.len();
                ensure(reply.snapshot.is_none() || request.asks_for(found), Rejection::State)?;
                self.judge_served(request, reply.snapshot.as_ref())
            }
            Message::ScanReply(reply) => {
                let Some(request) = self.requests.get(reply.request) else { return Ok(()) };
                ensure(request.is_scan(), Rejection::State)?;
                self.judge_served(request, reply.snapshot.as_ref())
            }
            Message::MergedVote(_) | Message::MergedDecision(_) => Err(Rejection::Role),
            Message::Vote { .. }
            | Message::Ended { .. }
            | Message::Acknowledge { .. }
            | Message::Locked { .. }
            | Message::Ran { .. }
            | Message::Changed { .. }
            | Message::Waiting { .. }
            | Message::Bound { .. }
            | Message::NewOwners { .. }
            | Message::Watermark { .. } => Ok(()),
            requests!() => Err(Rejection::Role),
        }
    }

    /// A read is served at or above what its transaction began with, and a look at or above what it
    /// has read: others were told that it reads nothing below.
    fn judge_served(
        &self,
        request: &PendingRequest,
        snapshot: Option<&V::Snapshot>,
    ) -> Result<(), Rejection> {
        let served = snapshot.zip(self.base_of(request));
        ensure(served.is_none_or(|(at, base)| at.reaches(base)), Rejection::State)
    }
}
