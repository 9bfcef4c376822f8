//! Commits that coordinators ask for, and how they end.

use std::sync::Arc;

use muesli_broadcast::{Command, CommandId, ObjectSet};
use muesli_core::parts::single_repository::KnownOutcome;
use muesli_core::{Abort, Address, Decision, NodeId, SmallBytes, TxnId, Wire as _};

use super::deliver::CommandEnd;
use super::{CertifiedSite, ProposedCommit};
use crate::certified::Context;
use crate::certified::message::command::{BroadcastCommit, CallsEnd, CertifiedCommand};
use crate::certified::message::objects::{claimed_objects, objects_of};
use crate::certified::message::{Message, Record};
use crate::certified::state::refusal;
use crate::certified::switches::CertifiedSwitch;
use crate::client_quota::ClientQuota;

/// So many commits of a site are under way at most; further ones are asked for again.
const PROPOSED_MAX: usize = 4096;

impl CertifiedSite {
    /// A coordinator asks for a commit, perhaps once more.
    pub(super) fn on_commit(
        &mut self,
        from: Address,
        commit: BroadcastCommit,
        cx: &mut Context<'_>,
    ) {
        let (txn, settled_below) = (commit.command.txn, commit.settled_below);
        let lets_through = self.switches.keeps(CertifiedSwitch::LetsLosersThrough);
        let tried_since = commit.tried_since.filter(|_| lets_through);
        let commit = BroadcastCommit { tried_since, ..commit };
        self.ends.observe_asked(txn, cx.now());
        self.ends.settle(txn, settled_below);
        match self.ends.known(txn) {
            KnownOutcome::Decided(decision) => self.answer(from, txn, decision, cx),
            KnownOutcome::Gone => {}
            KnownOutcome::New if self.proposed_ids.contains_key(&txn) => {
                self.waiting.insert(txn, from);
            }
            KnownOutcome::New if self.proposed.len() >= PROPOSED_MAX => {} // It comes again.
            KnownOutcome::New if self.remembers_much(txn.node, cx) => {}   // So does this.
            KnownOutcome::New => match self.admitted(&commit, cx) {
                Err((reason, calls)) => {
                    let kept = calls.clone();
                    cx.log(|| Record::Refused { txn, reason, calls: kept });
                    self.refuse(txn, reason, calls.clone(), cx);
                    self.send_end(from, txn, (Decision::Abort(reason), calls), cx);
                }
                Ok(objects) => {
                    let BroadcastCommit { settled_below, tried_since, command } = commit;
                    assert_eq!(command.after, 0, "{txn} comes with a place of its own");
                    self.waiting.insert(txn, from);
                    self.proposed_counter = self.proposed_counter.max(self.counter) + 1;
                    let spaces = cx.catalog.spaces().len() as u16;
                    let after = self.proposed_counter;
                    let command = CertifiedCommand { after, spaces, ..command };
                    let objects = Arc::new(objects);
                    let mut payload = Vec::new();
                    BroadcastCommit { settled_below, tried_since, command }.encode(&mut payload);
                    let payload = SmallBytes::from(payload);
                    let command = Command { objects, payload };
                    self.propose(ProposedCommit { txn, command }, cx);
                }
            },
        }
    }

    /// Whether the end of a transaction may be forgotten here.
    pub(super) fn is_forgotten(&self, txn: TxnId, cx: &Context<'_>) -> bool {
        self.ends.is_forgotten(txn, cx.catalog.is_client(txn.node))
    }

    /// A transaction takes no effect, and is not even proposed.
    pub(super) fn refuse(
        &mut self,
        txn: TxnId,
        reason: Abort,
        calls: Option<CallsEnd>,
        cx: &Context<'_>,
    ) {
        self.ends.observe_asked(txn, cx.now());
        self.remember(txn, (Decision::Abort(reason), calls), cx);
    }

    /// Keeps how a transaction ended.
    fn remember(&mut self, txn: TxnId, end: CommandEnd, cx: &Context<'_>) {
        let quota = (ClientQuota::of(cx.settings), cx.catalog.is_client(txn.node));
        self.ends.remember(txn, end, quota, cx.now());
    }

    /// Whether so many ends of a client's transactions are remembered that no more is to be.
    fn remembers_much(&self, client: NodeId, cx: &Context<'_>) -> bool {
        let quota = ClientQuota::of(cx.settings);
        cx.catalog.is_client(client) && self.ends.lacks_capacity(client, quota)
    }

    /// Whether it is known what has become of a transaction, or will be.
    pub(super) fn knows(&self, txn: TxnId) -> bool {
        self.ends.known(txn) != KnownOutcome::New || self.proposed_ids.contains_key(&txn)
    }

    /// Tells a coordinator how a transaction ended, as it is known.
    pub(super) fn answer(&self, to: Address, txn: TxnId, decision: Decision, cx: &mut Context<'_>) {
        let calls = self.ends.answer(txn).cloned();
        self.send_end(to, txn, (decision, calls), cx);
    }

    fn send_end(&self, to: Address, txn: TxnId, end: CommandEnd, cx: &mut Context<'_>) {
        let ((decision, calls), member) = (end, self.name());
        cx.send(to, Message::Ended { txn, decision, calls, member });
    }

    /// The objects of a commit, if it is to be proposed.
    fn admitted(
        &self,
        commit: &BroadcastCommit,
        cx: &Context<'_>,
    ) -> Result<ObjectSet, (Abort, Option<CallsEnd>)> {
        let command = &commit.command;
        if let Some(reason) = refusal(command, cx.settings) {
            return Err((reason, None));
        }
        let everything = self.switches.whole_object();
        let objects = objects_of(command, everything, (cx.catalog, cx.settings))
            .map_err(|stop| (Abort::Rollback, Some(CallsEnd::from(stop))))?;
        let is_ordered = self.switches.keeps(CertifiedSwitch::OrdersLosers);
        Ok(match commit.claim().filter(|_| is_ordered) {
            Some(_) => claimed_objects(&objects),
            None => objects,
        })
    }

    /// A command takes effect or does not.
    pub(super) fn finish(
        &mut self,
        id: CommandId,
        commit: BroadcastCommit,
        end: CommandEnd,
        cx: &mut Context<'_>,
    ) {
        self.note_claim(id, &commit, end.0, cx);
        let BroadcastCommit { settled_below, command, .. } = commit;
        let txn = command.txn;
        if let Decision::Commit(at) = end.0 {
            self.cuts.order.decide(at.counter());
            if let Some(recorder) = &mut cx.effects.recorder {
                recorder.applied(txn, at);
            }
            if !command.writes.is_empty() {
                self.apply(command, at, cx);
            }
        }
        let mut waiting = None;
        if id.leader.0 == self.id.0 {
            self.ends.observe_asked(txn, cx.now());
            assert!(!self.proposed_ids.contains_key(&txn), "{txn} is over, and under way");
            waiting = self.waiting.remove(&txn);
        }
        let answer = waiting.map(|to| (to, end.clone()));
        self.remember(txn, end, cx);
        self.ends.settle(txn, settled_below);
        if let Some((to, end)) = answer {
            self.send_end(to, txn, end, cx);
        }
    }

    /// Notes what the end of a command makes of claims: by nothing but that end, so that a replay
    /// comes to the same.
    fn note_claim(
        &mut self,
        id: CommandId,
        commit: &BroadcastCommit,
        decision: Decision,
        cx: &mut Context<'_>,
    ) {
        let has_claimed = self.claimed.note(&commit.command, commit.claim(), decision);
        if has_claimed && id.leader.0 == self.id.0 {
            cx.effects.maintenance.claimed += 1;
        }
    }

    /// Forgets the ends of transactions of coordinators that are silent for longer than any of them
    /// asks again.
    pub(super) fn forget_silent(&mut self, cx: &mut Context<'_>) {
        let lease = cx.settings.client_lease;
        self.ends.expire(cx.now(), lease);
        let silent = self.ends.silent(cx.now(), lease);
        let silent: Vec<NodeId> = silent.filter(|node| cx.catalog.is_client(*node)).collect();
        for client in silent {
            // What is under way of it would be taken for the first that is heard of it.
            let mut under_way = self.proposed.values();
            if under_way.any(|commit| commit.txn.node == client) {
                continue;
            }
            cx.effects.maintenance.clients_forgotten += 1;
            cx.log_lazily(|| Record::Forgotten { client });
            self.ends.forget(client, cx.now());
        }
    }
}

#[cfg(test)]
mod tests {
    use muesli_broadcast::MemberId;
    use muesli_broadcast::epochs::{MemberName, RequestId};
    use muesli_core::{Catalog, Effects, RepositoryId, Settings};

    use super::*;
    use crate::certified::Switches;

    #[test]
    #[should_panic(expected = "is over, and under way")]
    fn what_ends_is_not_under_way_any_more() {
        let catalog = Catalog::new(&[NodeId(0)], 1, &[]).expect("it can be");
        let (settings, id) = (Settings::default(), RepositoryId(0));
        let me = Address::repository(NodeId(0), id);
        let cx = &mut Context {
            me,
            catalog: &catalog,
            settings: &settings,
            effects: &mut Effects::default(),
        };
        let mut site: CertifiedSite =
            muesli_core::Participant::new(id, &settings, &Switches::default());
        let txn = TxnId { node: NodeId(0), incarnation: 1, sequence: 1 };
        site.proposed_ids.insert(txn, RequestId { member: MemberName(0), sequence: 1 });
        let (reads, ranges, writes, calls) = Default::default();
        let command = CertifiedCommand { txn, after: 0, spaces: 0, reads, ranges, writes, calls };
        let id = CommandId { leader: MemberId(0), sequence: 1 };
        let commit = BroadcastCommit { settled_below: 0, tried_since: None, command };
        site.finish(id, commit, (Decision::Abort(Abort::StaleRead), None), cx);
    }
}
