//! Commands of a shard, as their turn comes: what they change is the same at all members.

use muesli_core::parts::single_repository::KnownOutcome;
use muesli_core::{Abort, Decision, NodeId, Timestamp, TxnId};

use super::transaction::{PreparedTransaction, ShardTransaction};
use super::{ShardClient, ShardMember};
use crate::certified::message::command::{CallsEnd, CertifiedCommand};
use crate::certified::message::objects::{WholeObject, objects_of};
use crate::sharded::Context;
use crate::sharded::locator::{ShardId, shard_of};
use crate::sharded::message::ShardAnswer;
use crate::sharded::message::command::{ShardCommand, TransactionPart};
use crate::sharded::switches::ShardedSwitch;

impl ShardMember {
    /// Takes a command whose turn has come; `is_own`: this member has proposed it.
    pub(super) fn take(&mut self, command: ShardCommand, is_own: bool, cx: &mut Context<'_>) {
        if let Some(txn) = command.transaction() {
            self.proposing.remove(&txn);
        }
        match command {
            ShardCommand::Prepare { part } => self.prepare(part, is_own, cx),
            ShardCommand::Refuse { txn, participants, reason, calls } => {
                self.refuse((txn, participants), (reason, calls), is_own, cx);
            }
            ShardCommand::Advance { to } => self.clock = self.clock.max(to),
            ShardCommand::Decide { txn, decision } => self.settle(txn, decision, cx),
            ShardCommand::Forget { client } => self.forget(client, cx),
            ShardCommand::Barrier => {} // Whoever waits for it is told where it is delivered.
        }
    }

    /// A transaction is given a timestamp, unless it was before.
    fn prepare(&mut self, part: TransactionPart, is_own: bool, cx: &mut Context<'_>) {
        let TransactionPart { command, participants, settled_below, since } = part;
        let txn = command.txn;
        if self.is_of_forgotten(txn) && since < self.horizon {
            return;
        }
        self.observe(txn, txn.sequence, cx);
        let known = self.outcomes.ask(txn, settled_below);
        let settled = TxnId { sequence: settled_below, ..txn };
        let first = TxnId { incarnation: 0, sequence: 0, ..txn };
        self.calls.extract_if(first..settled, |_, _| true).for_each(drop);
        let once = self.switches.keeps(ShardedSwitch::PreparesOnce);
        if self.transactions.has(txn) {
            return;
        }
        if known != KnownOutcome::New && once {
            self.waiting.remove(&txn); // Its coordinator knows, or asks again.
            return;
        }
        let shard = shard_of(self.id, cx.catalog);
        self.clock = self.clock.max(command.after) + 1;
        assert!(self.clock > command.after, "{txn} comes before what its client has seen");
        let proposed = Timestamp::new(self.clock, muesli_core::RepositoryId(shard.0));
        let peers = participants.into_iter().filter(|peer| *peer != shard);
        let prepared = PreparedTransaction::new(command, peers, proposed, is_own);
        self.insert(txn, prepared, cx);
        assert!(proposed.counter() <= self.clock, "{proposed} is above {}", self.clock);
        if is_own {
            self.tell_peers(txn, ShardAnswer::Proposed { at: proposed }, cx);
        }
        if !self.is_replaying {
            self.take_early(txn);
            self.conclude(txn, cx);
        }
    }

    /// Adds a transaction, with the objects by which it is in the way of others.
    pub(super) fn insert(&mut self, txn: TxnId, prepared: PreparedTransaction, cx: &Context<'_>) {
        let whole = WholeObject::IsAnObject;
        let objects = objects_of(&prepared.command, whole, (cx.catalog, cx.settings));
        // What cannot be run is found to be so as its turn comes, and is in nobody's way.
        let objects = objects.unwrap_or_default();
        self.transactions.insert(txn, ShardTransaction::new(prepared, objects, cx.now()));
    }

    /// A transaction takes no effect, unless it was prepared before.
    fn refuse(
        &mut self,
        (txn, participants): (TxnId, Vec<ShardId>),
        (reason, calls): (Abort, Option<CallsEnd>),
        is_own: bool,
        cx: &mut Context<'_>,
    ) {
        // It may be one that was forgotten: then it is to be so, whenever it comes again.
        self.observe(txn, txn.sequence + 1, cx);
        let known = self.outcomes.ask(txn, 0);
        if self.transactions.has(txn) || matches!(known, KnownOutcome::Decided(_)) {
            return;
        }
        let decision = Decision::Abort(reason);
        if known == KnownOutcome::New {
            self.outcomes.decide(txn, decision);
            self.calls.extend(calls.map(|calls| (txn, calls)));
        }
        let shard = shard_of(self.id, cx.catalog);
        let peers = participants.into_iter().filter(|peer| *peer != shard);
        let (after, spaces, reads, ranges, writes, calls) = Default::default();
        let command = CertifiedCommand { txn, after, spaces, reads, ranges, writes, calls };
        let prepared = PreparedTransaction {
            outcome: Some(decision),
            has_ended: true,
            is_settled: true,
            ..PreparedTransaction::new(command, peers, Timestamp::ZERO, is_own)
        };
        self.insert(txn, prepared, cx);
        if is_own {
            self.tell_peers(txn, ShardAnswer::Ended { decision }, cx);
            self.tell_peers(txn, ShardAnswer::Settled, cx);
        }
        if !self.is_replaying {
            self.answer_waiting(txn, decision, cx);
            self.take_early(txn);
            self.transactions.drop_if_over(txn);
        }
    }

    /// The end of a transaction is in the order: the first that is counts.
    fn settle(&mut self, txn: TxnId, decision: Decision, cx: &mut Context<'_>) {
        let settled = self.transactions.change(txn, |it| {
            let it = &mut it.prepared;
            match decision {
                Decision::Commit(at) => it.observe_commit(at),
                Decision::Abort(_) => it.outcome = it.outcome.or(Some(decision)),
            }
            it.is_settled = true;
            it.is_proposer
        });
        let Some(is_proposer) = settled else { return };
        if is_proposer {
            self.tell_peers(txn, ShardAnswer::Settled, cx);
        }
        if !self.is_replaying {
            self.conclude(txn, cx);
            self.transactions.drop_if_over(txn);
        }
    }

    /// A transaction of a coordinator comes to this shard; of those below `from` nothing is known
    /// where it is the first.
    fn observe(&mut self, txn: TxnId, from: u64, cx: &Context<'_>) {
        let (at, from) = (cx.now(), (txn.incarnation, from));
        let client = ShardClient { at, from, until: from };
        let client = self.clients.entry(txn.node).or_insert(client);
        client.at = client.at.max(at);
        client.until = client.until.max((txn.incarnation, txn.sequence + 1));
    }

    /// Whether a transaction may be one of a client that was forgotten.
    pub(super) fn is_of_forgotten(&self, txn: TxnId) -> bool {
        let client = self.clients.get(&txn.node);
        client.is_none_or(|client| (txn.incarnation, txn.sequence) < client.from)
    }

    /// Whether a transaction is one of a client that was forgotten since it was asked for.
    pub(super) fn is_from_before_forgetting(&self, txn: TxnId) -> bool {
        let remembers = self.switches.keeps(ShardedSwitch::RemembersForgotten);
        remembers && self.forgotten_clients.may_have(txn)
    }

    /// Forgets how transactions of a client ended. What was proposed before may be of one of these,
    /// and is not taken from now on.
    fn forget(&mut self, client: NodeId, cx: &Context<'_>) {
        if let Some(ShardClient { until, .. }) = self.clients.remove(&client) {
            self.forgotten_clients.insert(client, until, cx.now());
        }
        self.outcomes.forget(client);
        self.clock += 1;
        self.horizon = self.clock;
        let left = self.outcomes.count_of(client);
        assert_eq!(left, 0, "ends of n{} are remembered", client.0);
        assert!(self.is_of_forgotten(TxnId { node: client, ..TxnId::default() }), "it is known");
        let first = TxnId { node: client, incarnation: 0, sequence: 0 };
        let last = TxnId { node: client, incarnation: u32::MAX, sequence: u64::MAX };
        self.calls.extract_if(first..=last, |_, _| true).for_each(drop);
    }
}
