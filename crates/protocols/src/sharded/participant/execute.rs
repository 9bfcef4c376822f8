//! Transactions are certified in the order of their timestamps, and end.

use muesli_core::parts::single_repository::NewValues;
use muesli_core::parts::transaction::TransactionSets;
use muesli_core::parts::versions::Handle;
use muesli_core::{Abort, Decision, Timestamp, TxnId};

use super::ShardMember;
use crate::certified::message::command::{CallsEnd, CertifiedCommand};
use crate::certified::message::objects::{key_object, range_object};
use crate::certified::state::{CertificationSwitches, CertifiedData};
use crate::sharded::Context;
use crate::sharded::locator::shard_of;
use crate::sharded::message::command::ShardCommand;
use crate::sharded::message::{Record, ShardAnswer};
use crate::sharded::switches::ShardedSwitch;

impl ShardMember {
    /// What is kept of keys.
    pub(super) fn data(&self) -> CertifiedData<'_> {
        CertifiedData { spaces: &self.spaces, objects: &self.objects }
    }

    fn certification(&self) -> CertificationSwitches {
        CertificationSwitches {
            validates: self.switches.keeps(ShardedSwitch::Validates),
            validates_ranges: self.switches.keeps(ShardedSwitch::ValidatesRanges),
            counts_deletions: self.switches.keeps(ShardedSwitch::CountsDeletions),
        }
    }

    /// Certifies all that can be.
    pub(super) fn certify_next(&mut self, cx: &mut Context<'_>) {
        let waits = self.switches.keeps(ShardedSwitch::WaitsForProposals);
        while let Some(txn) = self.transactions.next(self.clock, waits) {
            self.certify(txn, cx);
            self.conclude(txn, cx);
            self.transactions.drop_if_over(txn);
        }
        self.collect_sometimes(cx);
    }

    /// Certifies a transaction, or runs its procedures, and tells the other shards.
    fn certify(&mut self, txn: TxnId, cx: &mut Context<'_>) {
        let it = &self.transactions.get(txn).expect("it is next").prepared;
        let (at, is_proposer) = (it.at.unwrap_or(it.proposed), it.is_proposer);
        let (objection, writes, calls) = match it.command.calls.is_empty() {
            true => (self.data().objection(&it.command, self.certification()), Vec::new(), None),
            false => self.run(&it.command, at, cx),
        };
        assert!(at.counter() <= self.clock, "{txn} is certified before its time");
        cx.log_lazily(|| {
            let (writes, calls) = (writes.clone(), calls.clone());
            Record::Voted { txn, at, objection, writes, calls }
        });
        self.take_vote(txn, (at, objection), (writes, calls));
        if is_proposer {
            self.tell_peers(txn, ShardAnswer::Voted { at, objection }, cx);
        }
    }

    /// Runs the procedures of a transaction: whether the shard objects, what they wrote, and what
    /// came of them.
    fn run(
        &self,
        command: &CertifiedCommand,
        at: Timestamp,
        cx: &mut Context<'_>,
    ) -> (Option<Abort>, NewValues, Option<CallsEnd>) {
        let mut sets = TransactionSets::default();
        let (seen_by, recording) = ((cx.catalog, cx.settings), cx.effects.recorder.is_some());
        let results = match self.data().run(command, &mut sets, seen_by, recording) {
            Ok(results) => results,
            Err(stop) => return (Some(Abort::Rollback), Vec::new(), Some(stop.into())),
        };
        if let Some(recorder) = &mut cx.effects.recorder {
            let shard = shard_of(self.id, cx.catalog);
            recorder.ran(command.txn, shard.0, at, sets.operations);
        }
        let writes = sets.writes.into_iter().map(|it| (it.space, it.key, it.value)).collect();
        (None, writes, Some(CallsEnd::Given { results }))
    }

    /// Notes what came of the certification of a transaction.
    pub(super) fn take_vote(
        &mut self,
        txn: TxnId,
        (at, objection): (Timestamp, Option<Abort>),
        (writes, calls): (NewValues, Option<CallsEnd>),
    ) {
        let one_timestamp = self.switches.keeps(ShardedSwitch::OneTimestamp);
        let is_there = self.transactions.change(txn, |it| {
            let it = &mut it.prepared;
            (it.has_voted, it.objection) = (true, objection);
            if one_timestamp {
                it.at = Some(at);
            }
            if calls.is_some() {
                it.command.writes = writes;
            }
        });
        assert!(is_there.is_some(), "{txn} is certified, and was not prepared");
        self.calls.extend(calls.map(|calls| (txn, calls)));
    }

    /// Finds out the timestamp of a transaction and how it ends, as far as that is known now, and
    /// ends it.
    pub(super) fn conclude(&mut self, txn: TxnId, cx: &mut Context<'_>) {
        let counts_votes = self.switches.keeps(ShardedSwitch::CountsVotes);
        let found = self.transactions.change(txn, |it| {
            let it = &mut it.prepared;
            let proposed = it.peers.values().map(|peer| peer.proposed);
            let proposed = proposed.chain([Some(it.proposed)]).collect::<Option<Vec<_>>>();
            it.at = it.at.or_else(|| proposed?.into_iter().max());
            if it.outcome.is_none() {
                it.outcome = it.decided(counts_votes);
            }
            let wanted = it.at.filter(|_| it.is_proposer && it.outcome.is_none());
            let ends = match it.outcome {
                Some(Decision::Commit(_)) => it.has_voted,
                Some(Decision::Abort(_)) => true,
                None => false,
            };
            let is_refused = it.outcome.is_none() && it.peers.values().any(|it| it.is_refused);
            (wanted, it.outcome.filter(|_| ends && !it.has_ended), is_refused && it.is_proposer)
        });
        let Some((wanted, ended, is_refused)) = found else { return };
        if let Some(at) = wanted {
            self.advance_to(at.counter());
        }
        if is_refused {
            self.propose_end(txn, Decision::Abort(Abort::Abandoned));
        }
        let Some(decision) = ended else { return };
        cx.log_lazily(|| Record::Ended { txn, decision });
        self.finish(txn, decision, cx);
        self.answer_waiting(txn, decision, cx);
        if self.transactions.get(txn).is_some_and(|it| it.prepared.is_proposer) {
            self.propose_end(txn, decision);
        }
    }

    /// Has the end of a transaction put into the order, once.
    pub(super) fn propose_end(&mut self, txn: TxnId, decision: Decision) {
        let is_first = self.transactions.change(txn, |it| {
            let is_first = !it.prepared.is_settled && !it.proposes_end;
            it.proposes_end = true;
            is_first
        });
        if is_first == Some(true) {
            self.wanted.push_back(ShardCommand::Decide { txn, decision });
        }
    }

    /// A transaction takes effect or does not.
    pub(super) fn finish(&mut self, txn: TxnId, decision: Decision, cx: &mut Context<'_>) {
        let writes = self.transactions.change(txn, |it| {
            let it = &mut it.prepared;
            assert!(!it.has_ended, "{txn} ends twice");
            it.outcome = Some(decision);
            if let (Decision::Commit(at), None) = (decision, it.at) {
                it.at = Some(at);
            }
            it.has_ended = true;
            // Alone, nobody else need know of it.
            it.is_settled |= it.peers.is_empty();
            let command = &mut it.command;
            (command.reads, command.ranges, command.calls) = Default::default();
            std::mem::take(&mut command.writes)
        });
        let writes = writes.expect("what ends was prepared");
        if let Decision::Commit(at) = decision {
            if let Some(recorder) = &mut cx.effects.recorder {
                recorder.applied(txn, at);
            }
            self.apply(writes, at, cx);
        }
        if self.clients.contains_key(&txn.node) {
            self.outcomes.decide(txn, decision);
        }
        self.uncollected += 1;
    }

    /// Makes versions, but for those that a checkpoint has brought.
    fn apply(&mut self, writes: NewValues, at: Timestamp, cx: &mut Context<'_>) {
        let one_order = self.switches.keeps(ShardedSwitch::OneTimestamp)
            && self.switches.keeps(ShardedSwitch::WaitsForProposals);
        let mut deletions = Vec::new();
        for (space, key, value) in writes {
            if value.is_none() {
                let objects = [key_object(space, &key), range_object(space, &key)];
                objects.into_iter().for_each(|object| self.objects.delete(object));
                deletions.extend(objects);
            }
            let store = self.spaces.get_or_make(space, cx.catalog);
            let handle = store.find_or_create(Handle::NONE, &key);
            let is_there = store.newest(handle).at >= at;
            let may_be_there = self.is_restored || !one_order;
            assert!(!is_there || may_be_there, "{at} comes after a newer version of a key");
            if !is_there {
                store.install(handle, value, at);
                if !self.watches.is_empty() {
                    self.tell_watchers(space, &key, cx);
                }
            }
        }
        self.deletions.insert(at, deletions);
    }
}
