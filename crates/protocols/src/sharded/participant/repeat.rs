//! What is missing of transactions is asked for, and what was not done by who should is done by
//! others.

use muesli_core::{Abort, Decision, Nanos, RepositoryId, TxnId};

use super::ShardMember;
use crate::sharded::Context;
use crate::sharded::locator::{ShardId, members, shard_of};
use crate::sharded::message::Message;

/// What is to be done about a transaction.
struct MissingAnswers {
    txn: TxnId,
    /// The shards to ask.
    ask: Vec<ShardId>,
    /// Of all that take part.
    participants: Vec<ShardId>,
    attempts: u32,
    in_doubt: bool,
    has_ended: bool,
    /// Its end is to be put into the order.
    end: Option<Decision>,
    /// The clock is to come to its timestamp.
    advance: Option<u64>,
}

impl ShardMember {
    /// Looks after the transactions that were not looked after for a while.
    pub(super) fn look_after_transactions(&mut self, cx: &mut Context<'_>) {
        let shard = shard_of(self.id, cx.catalog);
        for missing in self.missing(shard, cx) {
            let MissingAnswers { txn, ask, participants, attempts, .. } = missing;
            for peer in ask {
                assert!(peer != shard, "{shard:?} asks itself");
                let all = members(peer, cx.catalog);
                let turned = (u32::from(self.id.0) + attempts) % all.len() as u32;
                let member = RepositoryId(all.start + turned as u16);
                assert!(all.contains(&member.0), "{member:?} is not of {peer:?}");
                let (in_doubt, has_ended) = (missing.in_doubt, missing.has_ended);
                let participants = participants.clone();
                let question = Message::Ask { txn, participants, in_doubt, has_ended };
                cx.send_to_repository(member, question);
            }
            if let Some(to) = missing.advance {
                self.advance_to(to);
            }
            if let Some(decision) = missing.end {
                self.propose_end(txn, decision);
            }
            self.transactions.drop_if_over(txn);
        }
    }

    fn missing(&mut self, shard: ShardId, cx: &Context<'_>) -> Vec<MissingAnswers> {
        let (now, settings) = (cx.now(), cx.settings);
        let late = |since: Nanos, after: Nanos| since + after <= now;
        let all = self.transactions.iter();
        let due: Vec<TxnId> = all
            .filter(|(_, it)| late(it.looked, settings.retry_after))
            .map(|(txn, _)| txn)
            .collect();
        let missing = due.into_iter().filter_map(|txn| {
            self.transactions.change(txn, |it| {
                (it.looked, it.attempts) = (now, it.attempts + 1);
                let in_doubt = late(it.since, settings.in_doubt_after);
                let known = &it.prepared;
                let has_ended = known.outcome.is_some();
                let lacks = |peer: &super::transaction::PeerShard| match has_ended {
                    true => known.is_settled && in_doubt && !peer.is_settled,
                    false => !peer.has_voted && !peer.is_refused,
                };
                let ask = known.peers.iter().filter(|(_, peer)| lacks(peer));
                let is_refused = !has_ended && known.peers.values().any(|it| it.is_refused);
                let refused = is_refused.then_some(Decision::Abort(Abort::Abandoned));
                let takes_over = known.is_proposer || in_doubt;
                let participants = known.peers.keys().copied().chain([shard]);
                let mut participants: Vec<_> = participants.collect();
                participants.sort_unstable();
                let ascend = participants.is_sorted_by(|a, b| a < b);
                assert!(ascend, "{txn} has a participant twice");
                MissingAnswers {
                    txn,
                    ask: ask.map(|(shard, _)| *shard).collect(),
                    participants,
                    attempts: it.attempts,
                    in_doubt,
                    has_ended,
                    end: known.outcome.or(refused).filter(|_| takes_over && !known.is_settled),
                    advance: known.at.filter(|_| !has_ended).map(|at| at.counter()),
                }
            })
        });
        missing.collect()
    }

    /// Drops what waits for too long: whoever waits has given up, or asks again.
    pub(super) fn expire_waiting(&mut self, cx: &Context<'_>) {
        let (now, patience) = (cx.now(), cx.settings.give_up_after);
        self.waiting_reads.retain(|_, read| read.since + patience > now);
        self.early.retain(|_, early| early.since + patience > now);
    }
}
