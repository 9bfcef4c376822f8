//! A commit under way: what was asked of whom, the votes so far, and who has to hear the end.

use std::sync::Arc;

use muesli_core::links::patience_for;
use muesli_core::parts::votes::Votes;
use muesli_core::{Decision, LogPosition, Nanos, NodeId, OpId, RepositoryId, Txn, TxnId};

use super::awaited::Awaited;
use super::divide::Parts;
use crate::two_phase::message::{Few, Message, Prepare, Repositories, RepositoryVote};
use crate::two_phase::participant::waits::watches::WAITING_MAX;
use crate::two_phase::{Context, Variant};

/// A commit under way, until everybody has acknowledged its end.
///
/// Invariants: as long as votes are missing it knows what each voter was asked, by ascending
/// repository; once they decided it asks nobody for a vote, and tells only those who took part. A
/// vote is shown once for each voter.
#[derive(Clone, Debug)]
pub(in crate::two_phase) struct Committing<V: Variant> {
    pub(in crate::two_phase) txn: Txn,
    pub(in crate::two_phase) id: TxnId,
    /// Whom to tell; nobody once told.
    pub(in crate::two_phase) op: Option<OpId>,
    pub(super) prepares: Parts<Arc<Prepare<V>>>,
    /// What it writes rests on what was read here, which is stable once the log is up to here: they
    /// leave then.
    pub(super) after: LogPosition,
    pub(in crate::two_phase) phase: Phase<V>,
    /// At a client: the votes, to be shown with what they decide.
    pub(super) ballots: Few<RepositoryVote<V>>,
    /// What delayed actions gave that the client asked for.
    pub(in crate::two_phase) awaited: Awaited,
    /// Who waits for what it writes, to hear of it when it is decided.
    pub(super) waiting: Vec<(NodeId, u64)>,
    /// When something of it was sent last.
    pub(super) sent: Nanos,
    /// Somebody was asked for a vote more than once.
    pub(super) repeated: bool,
    /// When that was, or when something of it was on its way still.
    pub(super) quiet: Nanos,
    pub(super) since: Nanos,
}

#[derive(Clone, Debug)]
pub(in crate::two_phase) enum Phase<V: Variant> {
    /// Votes come in.
    Preparing(Votes<RepositoryId, V::Yes>),
    /// The votes decided; these have not acknowledged.
    Deciding { decision: Decision<V::Place>, unacknowledged: Repositories },
}

impl<V: Variant> Committing<V> {
    /// Checks the invariants.
    ///
    /// # Panics
    /// One of them does not hold.
    pub(in crate::two_phase) fn assert_invariants(&self) {
        let id = self.id;
        let ascend = |all: &[RepositoryId]| all.windows(2).all(|pair| pair[0] < pair[1]);
        self.awaited.assert_invariants();
        match &self.phase {
            Phase::Preparing(votes) => {
                votes.assert_invariants();
                assert!(!votes.is_complete(), "all have voted on {id}, and nothing is decided");
                let asked: Vec<_> = self.prepares.iter().map(|(voter, _)| *voter).collect();
                assert!(ascend(&asked), "{id} was asked of {asked:?}");
                assert!(self.waiting.len() <= WAITING_MAX, "too many are known to wait for {id}");
                assert_eq!(asked.len(), votes.voters(), "how many are asked about {id}");
                let same = |(_, part): &(_, Arc<Prepare<V>>)| part.participants[..] == asked[..];
                assert!(self.prepares.iter().all(same), "who takes part in {id}");
            }
            Phase::Deciding { unacknowledged, .. } => {
                assert!(self.prepares.is_empty(), "{id} is decided, and asks for votes");
                assert!(self.waiting.is_empty(), "{id} is decided, and some wait for it");
                assert!(ascend(unacknowledged), "{id} is not acknowledged by {unacknowledged:?}");
            }
        }
        let mut voters: Vec<_> = self.ballots.iter().map(|ballot| ballot.repository).collect();
        voters.sort_unstable();
        assert!(ascend(&voters), "votes on {id} are shown twice");
    }

    /// Whether everybody has acknowledged its end, and nobody waits for answers.
    pub(in crate::two_phase) fn is_over(&self) -> bool {
        match &self.phase {
            Phase::Deciding { unacknowledged, .. } => {
                unacknowledged.is_empty() && self.awaited.are_all_there()
            }
            Phase::Preparing(_) => false,
        }
    }

    /// These wait for what it writes. There is room for some, and nobody counts on being told from
    /// here.
    pub(in crate::two_phase) fn note_waiting(&mut self, waiting: Vec<(NodeId, u64)>) {
        if matches!(self.phase, Phase::Preparing(_)) {
            self.waiting.extend(waiting);
            self.waiting.sort_unstable();
            self.waiting.dedup();
            self.waiting.truncate(WAITING_MAX);
        }
    }

    /// What participants are told of its end.
    pub(super) fn decision_message(&self, decision: &Decision<V::Place>) -> Message<V> {
        let (decision, ballots) = (decision.clone(), self.ballots.iter().cloned().collect());
        Message::Decide { txn: self.id, decision, ballots }
    }

    /// Whether its client has been waiting for as long as it may.
    pub(super) fn is_late(&self, cx: &Context<'_, V>) -> bool {
        self.since + cx.settings.give_up_after <= cx.now()
    }

    /// Whether something that was sent for it last is on its way still.
    pub(super) fn is_under_way(&self, cx: &Context<'_, V>) -> bool {
        let outstanding = |to: RepositoryId| cx.is_outstanding(to, self.sent);
        match &self.phase {
            Phase::Preparing(votes) => votes.missing().any(outstanding),
            Phase::Deciding { unacknowledged, .. } => {
                unacknowledged.iter().any(|to| outstanding(*to))
            }
        }
    }

    /// What was sent may be lost: it is sent again as soon as the time comes.
    pub(in crate::two_phase) fn expect_no_answer(&mut self) {
        self.quiet = Nanos(0);
    }

    /// How much longer than others it may take to be answered, for its size.
    pub(super) fn patience(&self) -> Nanos {
        let largest = self.prepares.iter().map(|(_, prepare)| prepare.counted_bytes()).max();
        patience_for(largest.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use muesli_core::Timestamp;

    use super::*;
    use crate::score::Snapshots;

    const ID: TxnId = TxnId { node: NodeId(1), incarnation: 1, sequence: 1 };

    /// A commit of which these are asked, each told that those take part.
    fn committing(asked: &[u16], decided_at: &[u16]) -> Committing<Snapshots> {
        let all = |some: &[u16]| some.iter().copied().map(RepositoryId).collect::<Vec<_>>();
        let prepare = Arc::new(Prepare {
            settled_below: 1,
            participants: all(decided_at).into_iter().collect(),
            ..Prepare::new(ID, Timestamp(1), ())
        });
        let prepares = all(asked).into_iter().map(|it| (it, prepare.clone())).collect();
        Committing {
            txn: Txn { slot: 0, generation: 0 },
            id: ID,
            op: None,
            prepares,
            after: LogPosition(0),
            phase: Phase::Preparing(Votes::from_voters(all(asked))),
            ballots: Few::new(),
            awaited: Awaited::default(),
            waiting: Vec::new(),
            sent: Nanos(1),
            repeated: false,
            quiet: Nanos(1),
            since: Nanos(1),
        }
    }

    #[test]
    #[should_panic(expected = "who takes part in n1.1-1")]
    fn a_part_that_names_others_is_noticed() {
        committing(&[0, 1], &[0, 1]).assert_invariants();
        committing(&[0, 1], &[0, 2]).assert_invariants();
    }

    #[test]
    #[should_panic(expected = "all have voted on n1.1-1, and nothing is decided")]
    fn votes_that_decide_and_do_not_are_noticed() {
        committing(&[], &[]).assert_invariants();
    }

    #[test]
    fn who_waits_is_noted_once_and_up_to_a_bound_and_until_the_decision() {
        let mut commit = committing(&[0], &[0]);
        let many = |from: u64| (from..from + 50).map(|request| (NodeId(2), request)).collect();
        commit.note_waiting(many(0));
        commit.note_waiting(many(0));
        assert_eq!(commit.waiting.len(), 50);
        commit.note_waiting(many(50));
        assert_eq!(commit.waiting.len(), WAITING_MAX);
        commit.assert_invariants();
        let decision = Decision::Commit(Timestamp(2));
        commit.phase = Phase::Deciding { decision, unacknowledged: Repositories::new() };
        (commit.waiting, commit.prepares) = (Vec::new(), Parts::new());
        commit.note_waiting(many(0));
        assert!(commit.waiting.is_empty(), "they hear of it once it is applied");
    }

    #[test]
    #[should_panic(expected = "n1.1-1 is decided, and asks for votes")]
    fn a_decision_that_asks_for_votes_is_noticed() {
        let phase = Phase::Deciding {
            decision: Decision::Commit(Timestamp(2)),
            unacknowledged: Repositories::new(),
        };
        Committing { phase, ..committing(&[0], &[0]) }.assert_invariants();
    }
}
