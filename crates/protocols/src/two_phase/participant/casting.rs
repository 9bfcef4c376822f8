//! Where a vote goes: to who asked, or to a validator.

use muesli_core::{Abort, Address, Decision, Role, SmallBytes, SpaceId, Timestamp, TxnId};

use super::Participant;
use crate::two_phase::message::merged_vote::MergedVote;
use crate::two_phase::message::voted_footprint::VotedFootprint;
use crate::two_phase::message::{Message, Prepare, Repositories, Vote};
use crate::two_phase::policy::TreeSwitch;
use crate::two_phase::validator::gathering::Gathering;
use crate::two_phase::{Context, Time, Variant};

/// What of a transaction tells where a vote on it goes.
pub(in crate::two_phase) struct VotedOn {
    txn: TxnId,
    participants: Repositories,
    votes_directly: bool,
}

impl VotedOn {
    /// That of this one.
    pub fn of<V: Variant>(prepare: &Prepare<V>) -> VotedOn {
        let (txn, participants) = (prepare.txn, prepare.participants.clone());
        VotedOn { txn, participants, votes_directly: prepare.votes_directly() }
    }
}

impl<V: Variant> Participant<V> {
    /// Votes for the first time. Who asks again is answered directly, by [`vote`](Self::vote): so
    /// no validator is waited for in vain.
    #[inline]
    pub(in crate::two_phase) fn cast(
        &mut self,
        asked_by: Address,
        voted_on: VotedOn,
        vote: Result<V::Yes, Abort>,
        cx: &mut Context<'_, V>,
    ) {
        let VotedOn { txn, participants, votes_directly } = voted_on;
        if V::POLICIES.deciding.may_have_validators() {
            match &vote {
                Ok(yes) if participants.len() == 1 => {
                    return self.decide_alone(asked_by, txn, yes.clone(), cx);
                }
                _ if participants.len() == 1 => {}
                _ if asked_by.role != Role::Coordinator || votes_directly => {}
                // A client may have told the copies of a key different things: it shows the votes.
                _ if cx.catalog.replicas > 1 && cx.catalog.is_client(txn.node) => {}
                _ => {
                    let decider = V::tree(&self.protocol_switches).decider;
                    let gathering = Gathering::new(decider, cx.catalog);
                    let first = gathering.first(self.id, txn, &participants);
                    if let Some(to) = first
                        && let Some(ballot) = self.ballot((txn, participants), &vote)
                    {
                        let ballot = Message::MergedVote(Box::new(ballot));
                        return cx.send_when_logged(to, ballot);
                    }
                }
            }
        }
        let vote = vote.map_or_else(Vote::No, Vote::Yes);
        self.vote(asked_by, txn, vote, cx);
    }

    /// Nobody else takes part: the vote decides.
    fn decide_alone(
        &mut self,
        asked_by: Address,
        txn: TxnId,
        yes: V::Yes,
        cx: &mut Context<'_, V>,
    ) {
        let decision = self.time.decide_alone(&self.protocol_switches, yes);
        assert!(matches!(decision, Decision::Commit(_)), "{txn} is refused, and was voted for");
        // Elsewhere a decision comes of votes that are stable. This one is seen by readers at once,
        // so whatever is said from now on waits for the vote.
        cx.wait_for_log();
        self.on_decide(txn, decision.clone(), cx);
        self.vote(asked_by, txn, Vote::Decided(decision), cx);
    }

    /// The vote as validators merge it, if they can.
    fn ballot(
        &self,
        (txn, participants): (TxnId, Repositories),
        vote: &Result<V::Yes, Abort>,
    ) -> Option<MergedVote> {
        assert!(participants.len() > 1, "{txn} is voted on by one, who decides");
        let ballot = MergedVote::of(txn, participants, self.id);
        match vote {
            Ok(yes) => {
                let (proposal, upper_bound) = V::Time::bounds_of(yes)?;
                assert!(proposal <= upper_bound, "{txn} is refused, and not voted on so");
                assert!(proposal > Timestamp::ZERO, "{txn} is proposed for a time");
                let carried = self.carried(txn).map(Box::new);
                Some(MergedVote { proposal, upper_bound, carried, ..ballot })
            }
            Err(reason) => Some(MergedVote { refused: Some(*reason), ..ballot }),
        }
    }

    /// What goes up with the vote as printed.
    fn carried(&self, txn: TxnId) -> Option<VotedFootprint> {
        let values_climb = !self.keeps(TreeSwitch::VotesAloneClimb);
        if !values_climb && self.keeps(TreeSwitch::ParentsKeepNoVersions) {
            return None;
        }
        let prepare = &self.table.get(self.table.owner(txn)?).prepare;
        let written = |(space, key, value): &(SpaceId, SmallBytes, Option<SmallBytes>)| {
            (*space, key.clone(), value.clone().filter(|_| values_climb))
        };
        let read = |(space, key, _): &(SpaceId, SmallBytes, Timestamp)| (*space, key.clone());
        Some(VotedFootprint {
            snapshot: Timestamp(self.time.reached(&prepare.snapshot)),
            reads: prepare.reads.iter().map(read).collect(),
            writes: prepare.writes.iter().map(written).collect(),
        })
    }
}
