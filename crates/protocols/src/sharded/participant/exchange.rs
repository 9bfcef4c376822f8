//! What shards say to each other of a transaction.

use muesli_core::parts::single_repository::KnownOutcome;
use muesli_core::{Abort, Address, Decision, RepositoryId, Role, TxnId};

use super::{EarlyAnswers, ShardMember};
use crate::sharded::Context;
use crate::sharded::locator::{ShardId, members, shard_of};
use crate::sharded::message::command::ShardCommand;
use crate::sharded::message::{Message, ShardAnswer};
use crate::sharded::switches::ShardedSwitch;

/// Of so many transactions at most answers are kept before they are prepared here; what is not kept
/// is asked for.
const EARLY_MOST: usize = 4096;

impl ShardMember {
    /// Tells all members of the other shards that take part.
    pub(super) fn tell_peers(&self, txn: TxnId, answer: ShardAnswer, cx: &mut Context<'_>) {
        let Some(it) = self.transactions.get(txn).filter(|_| !self.is_replaying) else { return };
        let own = shard_of(self.id, cx.catalog);
        for peer in it.prepared.peers.keys() {
            assert!(*peer != own, "{txn} has {own:?} as another shard");
            for member in members(*peer, cx.catalog) {
                cx.send_to_repository(RepositoryId(member), Message::Answer { txn, answer });
            }
        }
    }

    /// Another shard says something of a transaction.
    pub(super) fn on_answer(
        &mut self,
        from: Address,
        txn: TxnId,
        answer: ShardAnswer,
        cx: &mut Context<'_>,
    ) {
        let Role::Repository(from) = from.role else { return };
        let shard = shard_of(from, cx.catalog);
        if !self.transactions.has(txn) {
            let is_of_use =
                matches!(answer, ShardAnswer::Proposed { .. } | ShardAnswer::Voted { .. });
            if is_of_use && self.outcomes.known(txn) == KnownOutcome::New {
                self.keep_early(txn, (shard, answer), cx);
            }
            return;
        }
        self.take_answer(txn, shard, answer);
        self.conclude(txn, cx);
        self.transactions.drop_if_over(txn);
    }

    fn keep_early(&mut self, txn: TxnId, answer: (ShardId, ShardAnswer), cx: &Context<'_>) {
        if self.early.len() >= EARLY_MOST && !self.early.contains_key(&txn) {
            return;
        }
        let empty = EarlyAnswers { since: cx.now(), answers: Vec::new() };
        let answers = &mut self.early.entry(txn).or_insert(empty).answers;
        if !answers.contains(&answer) && answers.len() < 2 * usize::from(u8::MAX) {
            answers.push(answer);
        }
        assert!(self.early.len() <= EARLY_MOST, "early answers have a bound");
    }

    /// Takes what was said of a transaction before it was prepared.
    pub(super) fn take_early(&mut self, txn: TxnId) {
        for (shard, answer) in self.early.remove(&txn).into_iter().flat_map(|it| it.answers) {
            self.take_answer(txn, shard, answer);
        }
        assert!(!self.early.contains_key(&txn), "{txn} was prepared, and has early answers");
    }

    /// Notes what a shard says. What contradicts the timestamp that was given here is left out: no
    /// member says it.
    fn take_answer(&mut self, txn: TxnId, shard: ShardId, answer: ShardAnswer) {
        let one_timestamp = self.switches.keeps(ShardedSwitch::OneTimestamp);
        self.transactions.change(txn, |it| {
            let it = &mut it.prepared;
            let fits = |at| at >= it.proposed && it.at.is_none_or(|known| known == at);
            let Some(peer) = it.peers.get_mut(&shard) else { return };
            match answer {
                ShardAnswer::Proposed { at } => {
                    peer.proposed.get_or_insert(at);
                }
                ShardAnswer::Voted { at, objection } if !one_timestamp => {
                    peer.proposed.get_or_insert(at);
                    (peer.has_voted, peer.objection) = (true, objection);
                }
                ShardAnswer::Voted { at, objection } if fits(at) => {
                    it.at = Some(at);
                    (peer.has_voted, peer.objection) = (true, objection);
                }
                ShardAnswer::Ended { decision: Decision::Commit(at) } if fits(at) => {
                    it.observe_commit(at);
                }
                ShardAnswer::Ended { decision: Decision::Abort(_) } => peer.is_refused = true,
                ShardAnswer::Settled => peer.is_settled = true,
                ShardAnswer::Voted { .. } | ShardAnswer::Ended { .. } => {}
            }
        });
    }

    /// A member of another shard asks what is said of a transaction here.
    pub(super) fn on_ask(
        &mut self,
        from: Address,
        (txn, participants): (TxnId, Vec<ShardId>),
        (in_doubt, has_ended): (bool, bool),
        cx: &mut Context<'_>,
    ) {
        let mut send = |answer| cx.send(from, Message::Answer { txn, answer });
        if let Some(it) = self.transactions.get(txn) {
            let it = &it.prepared;
            match (it.outcome, it.at) {
                (Some(decision), _) => send(ShardAnswer::Ended { decision }),
                (None, Some(at)) if it.has_voted => {
                    send(ShardAnswer::Voted { at, objection: it.objection });
                }
                (None, _) => send(ShardAnswer::Proposed { at: it.proposed }),
            }
            if it.is_settled {
                send(ShardAnswer::Settled);
            }
            return;
        }
        match self.outcomes.known(txn) {
            KnownOutcome::Decided(decision) => {
                send(ShardAnswer::Ended { decision });
                send(ShardAnswer::Settled);
            }
            // It was over here, or never came: in both cases nobody need tell this shard.
            KnownOutcome::New | KnownOutcome::Gone if has_ended => send(ShardAnswer::Settled),
            KnownOutcome::New | KnownOutcome::Gone => {
                if in_doubt && self.proposing.insert(txn) {
                    let (reason, calls) = (Abort::Abandoned, None);
                    let refusal = ShardCommand::Refuse { txn, participants, reason, calls };
                    self.wanted.push_back(refusal);
                }
            }
        }
    }
}
