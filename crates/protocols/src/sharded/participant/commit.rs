//! Commits that coordinators ask for, and what they are told of their end.

use muesli_core::parts::execution::shared_keys;
use muesli_core::parts::single_repository::KnownOutcome;
use muesli_core::{Abort, Address, Decision, NodeId, Stop, TxnId};

use super::ShardMember;
use crate::certified::message::command::{CallsEnd, CertifiedCommand};
use crate::certified::message::objects::{WholeObject, objects_of};
use crate::certified::state::refusal;
use crate::sharded::Context;
use crate::sharded::locator::{ShardId, shard_of, shard_of_key};
use crate::sharded::message::Message;
use crate::sharded::message::command::{ShardCommand, TransactionPart};

/// So many commands of a member are under way at most; further transactions are asked for again.
const PROPOSED_MOST: usize = 4096;

impl ShardMember {
    /// A coordinator asks for a commit, perhaps once more.
    pub(super) fn on_commit(
        &mut self,
        from: Address,
        (settled_below, again): (u64, bool),
        participants: Vec<ShardId>,
        command: CertifiedCommand,
        cx: &mut Context<'_>,
    ) {
        let txn = command.txn;
        let is_under_way = self.transactions.has(txn) || self.proposing.contains(&txn);
        let known = self.outcomes.known(txn);
        let may_be_forgotten =
            (again && self.is_of_forgotten(txn)) || self.is_from_before_forgetting(txn);
        let may_be_forgotten = may_be_forgotten && cx.catalog.is_client(txn.node);
        match known {
            KnownOutcome::Decided(decision) => self.answer(from, txn, decision, cx),
            _ if is_under_way => {
                self.waiting.insert(txn, from);
            }
            KnownOutcome::Gone => {}
            KnownOutcome::New if may_be_forgotten => cx.send(from, Message::NotKnown { txn }),
            KnownOutcome::New if self.proposed.len() >= PROPOSED_MOST => {} // It comes again.
            KnownOutcome::New if self.remembers_much(txn.node, cx) => {}    // So does this.
            KnownOutcome::New => {
                self.waiting.insert(txn, from);
                self.proposing.insert(txn);
                let command = match self.admitted(&command, cx) {
                    Err((reason, calls)) => {
                        ShardCommand::Refuse { txn, participants, reason, calls }
                    }
                    Ok(()) => {
                        let spaces = cx.catalog.spaces().len() as u16;
                        let command = CertifiedCommand { spaces, ..command };
                        let since = self.clock;
                        let part = TransactionPart { command, participants, settled_below, since };
                        ShardCommand::Prepare { part }
                    }
                };
                self.wanted.push_back(command);
            }
        }
    }

    /// Whether so many ends of a client's transactions are remembered that no more is to be.
    fn remembers_much(&self, client: NodeId, cx: &Context<'_>) -> bool {
        let most = cx.settings.unsettled_max;
        cx.catalog.is_client(client) && self.outcomes.count_of(client) >= most
    }

    /// Whether a commit is to be prepared.
    fn admitted(
        &self,
        command: &CertifiedCommand,
        cx: &Context<'_>,
    ) -> Result<(), (Abort, Option<CallsEnd>)> {
        if let Some(reason) = refusal(command, cx.settings) {
            return Err((reason, None));
        }
        let faulty = |stop: Stop| (Abort::Rollback, Some(CallsEnd::from(stop)));
        self.check_shared(command, cx).map_err(faulty)?;
        let objects = objects_of(command, WholeObject::IsAnObject, (cx.catalog, cx.settings));
        objects.map(|_| ()).map_err(faulty)
    }

    /// What procedures want to be told of is here: no shard tells another what it has.
    fn check_shared(&self, command: &CertifiedCommand, cx: &Context<'_>) -> Result<(), Stop> {
        let shard = shard_of(self.id, cx.catalog);
        for call in &command.calls {
            let Some(procedure) = cx.settings.procedures.get(&call.procedure) else { continue };
            let shared = shared_keys(procedure, call.partition, cx.catalog, &call.arguments);
            if shared.into_iter().any(|(space, key)| shard_of_key(space, &key, cx.catalog) != shard)
            {
                let text = format!(
                    "procedure {}: it wants to be told of keys of other shards, which the sharded \
                     protocols do not do: read them in a transaction, or keep them in one shard",
                    call.procedure
                );
                return Err(Stop::Faulty(text));
            }
        }
        Ok(())
    }

    /// Tells a coordinator how a transaction ended.
    fn answer(&self, to: Address, txn: TxnId, decision: Decision, cx: &mut Context<'_>) {
        let calls = self.calls.get(&txn).cloned();
        // What another shard objects to has given nothing.
        let gives = matches!(decision, Decision::Commit(_));
        let calls = calls.filter(|end| matches!(end, CallsEnd::Given { .. }) == gives);
        cx.send(to, Message::Ended { txn, decision, calls });
    }

    /// Tells who waits how a transaction ended.
    pub(super) fn answer_waiting(&mut self, txn: TxnId, decision: Decision, cx: &mut Context<'_>) {
        if let Some(to) = self.waiting.remove(&txn) {
            self.answer(to, txn, decision, cx);
        }
    }

    /// Forgets the ends of transactions of clients that are silent for longer than any of them asks
    /// again. One member after the other proposes it.
    pub(super) fn forget_silent(&mut self, cx: &mut Context<'_>) {
        self.forgotten_clients.expire(cx.settings.client_lease, cx.now());
        let first = crate::sharded::locator::members(shard_of(self.id, cx.catalog), cx.catalog);
        assert!(first.contains(&self.id.0), "{:?} is no member here", self.id);
        let rank = u64::from(self.id.0 - first.start);
        let lease = muesli_core::Nanos(cx.settings.client_lease.0.saturating_mul(1 + rank));
        let proposed = |client: NodeId| {
            let all = self.proposed.values().chain(&self.wanted);
            all.into_iter().any(|it| *it == ShardCommand::Forget { client })
        };
        let silent = self.clients.iter().filter(|(node, client)| {
            cx.catalog.is_client(**node) && client.at + lease <= cx.now() && !proposed(**node)
        });
        let silent: Vec<NodeId> = silent.map(|(node, _)| *node).collect();
        for client in silent {
            let mut under_way = self.proposing.iter().copied();
            let is_under_way = under_way.any(|txn| txn.node == client)
                || self.transactions.iter().any(|(txn, _)| txn.node == client);
            if !is_under_way {
                cx.effects.maintenance.clients_forgotten += 1;
                self.wanted.push_back(ShardCommand::Forget { client });
            }
        }
    }
}
