//! The coordinator's commit: one step where one repository here is enough, else two phases.
//!
//! [`committing`] is a commit under way, `divide` says which repository is asked for what, and
//! `by_owner` the same where keys move. `awaited` collects the answers of deferred actions,
//! `unanswered` is what is told and remembered of commits that were not answered in time, and
//! [`mod@unreachable`] has the nodes with validators that votes are kept away from.

use std::sync::Arc;

use muesli_core::parts::locator::Static;
use muesli_core::parts::transaction::WriteEntry;
use muesli_core::parts::votes::{Counted, Votes};
use muesli_core::recorder::Status;
use muesli_core::{
    Abort, Address, Answer, Committed, Decision, Failure, Here, LogPosition, OpId, RepositoryId,
    Role, SmallBytes, Step, Timestamp, Txn, TxnId,
};

use super::Coordinator;
use super::slot::SlotPhase;
use crate::two_phase::message::moves::ArrivingWrite;
use crate::two_phase::message::{Few, Message, Prepare, Repositories, RepositoryVote, Vote};
use crate::two_phase::participant::one_phase::Alone;
use crate::two_phase::policy::FamilySwitch;
use crate::two_phase::time::{Snapshot, Time};
use crate::two_phase::{Context, TwoPhase, ValidationResult, Variant, shown_votes};
use awaited::{Awaited, violation};
use by_owner::divide_by_owner;
pub(in crate::two_phase) use committing::{Committing, Phase};
use muesli_core::parts::watermark::Bound;

use divide::{Parts, divide};

mod awaited;
mod by_owner;
pub(in crate::two_phase) mod committing;
mod divide;
mod unanswered;
pub(in crate::two_phase) mod unreachable;

impl<V: Variant> Coordinator<V> {
    #[inline(always)]
    pub(in crate::two_phase) fn on_commit(
        &mut self,
        txn: Txn,
        mut here: Here<'_, TwoPhase<V>>,
        cx: &mut Context<'_, V>,
    ) -> Step<Committed> {
        if !self.operations.is_empty() {
            // Reads that are under way as their transaction is to end have come too late.
            self.fail_operations(txn, &Failure::Ended, cx);
        }
        let may_delay = V::delays_actions(&self.switches);
        let slot = match self.open(txn) {
            Ok(slot) => slot,
            Err(failure) => return Step::Done(Err(self.not_committed(txn, failure, cx))),
        };
        let snapshot = slot.reads_at().clone();
        if !V::POLICIES.validation.has_reads() {
            slot.sets.reads.clear();
            slot.sets.scans.clear();
        }
        let has_read = !(slot.sets.reads.is_empty() && slot.sets.scans.is_empty());
        let (writes_nothing, strict) = (slot.sets.writes.is_empty(), slot.options.strict);
        let delays = may_delay && !slot.delays.is_empty();
        let family = V::switches(&self.switches);
        let counts = V::POLICIES.validation.has_readers()
            && family.keeps(FamilySwitch::ValidatesReaders)
            || strict && family.keeps(FamilySwitch::ValidatesStrict);
        if writes_nothing && !delays && !(has_read && counts) {
            self.remember(&snapshot);
            return self.finish_at_once(txn, Ok(snapshot.at()), cx);
        }
        let only = if delays { None } else { self.only_repository(txn, &here, cx) };
        if let Some(participant) = only.and_then(|only| here.repository(only)) {
            let role = Role::Repository(only.expect("there is one"));
            let reader = self.reader(txn);
            let on_the_node = self.runs_alone(cx);
            let slot = &mut self.slots[txn.slot as usize]; // It is open, as was seen above.
            let validation = ValidationResult::new(snapshot.clone(), slot.options.strict);
            let alone = Alone { since: slot.undisturbed_since, on_the_node };
            let at = &mut cx.at(role);
            let done = participant.commit_here(&mut slot.sets, validation, alone, reader, at);
            if let Some(result) = done {
                if cx.settings.logging {
                    slot.gate = slot.gate.max(cx.gate_of(role));
                }
                // A snapshot that is too old teaches nothing here: what reads at one repository
                // alone reads at what that has come to, also when it is tried again.
                if let Ok(place) = &result {
                    self.remember(&V::Time::known_by(place));
                }
                let result = result.map(|place| V::Time::version_of(&place));
                return self.finish_at_once(txn, result, cx);
            }
        }
        if let Err(failure) = self.slot(txn).map_or(Ok(()), |it| it.check_size(&cx.settings.limits))
        {
            self.abort(txn, &failure, cx);
            return Step::Done(Err(failure));
        }
        Step::Wait(self.start_commit(txn, snapshot, &here, cx))
    }

    /// A transaction of this node has committed that saw this.
    #[inline]
    fn remember(&mut self, seen: &V::Snapshot) {
        if V::POLICIES.reading.nodes_remember() {
            self.seen.join(seen);
        }
    }

    /// The repository on this node that is all of the transaction's footprint, if there is one.
    #[inline(always)]
    fn only_repository(
        &mut self,
        txn: Txn,
        here: &Here<'_, TwoPhase<V>>,
        cx: &Context<'_, V>,
    ) -> Option<RepositoryId> {
        let catalog = cx.catalog;
        if catalog.repositories() == 1 {
            return Some(RepositoryId(0)).filter(|&only| here.holds(only));
        }
        if V::keys_move(cx.catalog) {
            return self.only_owner(txn, here, cx);
        }
        let sets = &self.slot(txn)?.sets;
        if catalog.replicas > 1 || V::POLICIES.participation.is_all() || !sets.scans.is_empty() {
            return None;
        }
        let written = |at: usize| {
            let partition = catalog.partition(sets.writes[at].space, &sets.writes[at].key);
            Static.replicas_of(partition, catalog).next()
        };
        let first = match sets.writes.first() {
            Some(_) => written(0)?,
            None => sets.reads.first()?.repository,
        };
        let reads = sets.reads.iter().all(|read| read.repository == first);
        let writes = (1..sets.writes.len()).all(|at| written(at) == Some(first));
        (reads && writes && here.holds(first)).then_some(first)
    }

    /// The same where keys move: everything is at one repository here, and stays there.
    fn only_owner(
        &self,
        txn: Txn,
        here: &Here<'_, TwoPhase<V>>,
        cx: &Context<'_, V>,
    ) -> Option<RepositoryId> {
        let slot = self.slots.get(txn.slot as usize)?;
        let sets = &slot.sets;
        if cx.catalog.replicas > 1 || !sets.scans.is_empty() {
            return None;
        }
        let is_deleted = |write: &WriteEntry| write.value.is_none();
        if sets.writes.iter().any(is_deleted) {
            return None; // It goes back to its directory.
        }
        let owner = |space, key: &SmallBytes| self.owner_here(space, key, here, cx.catalog);
        let first = match sets.writes.first() {
            Some(write) => owner(write.space, &write.key)?,
            None => sets.reads.first()?.repository,
        };
        let reads = sets.reads.iter().all(|read| read.repository == first);
        let mut others = sets.writes.iter().skip(1);
        let writes = others.all(|write| owner(write.space, &write.key) == Some(first));
        let stays = self.new_owner(&slot.options, cx).is_none_or(|to| to == first);
        (reads && writes && stays && here.holds(first)).then_some(first)
    }

    /// Ends a transaction without a second phase. Where what it read or wrote here is not stable
    /// yet, its client hears of it only when it is.
    #[inline(always)]
    fn finish_at_once(
        &mut self,
        txn: Txn,
        result: Result<Timestamp, Abort>,
        cx: &mut Context<'_, V>,
    ) -> Step<Committed> {
        let gate = match cx.settings.logging {
            true => self.slot(txn).map(|slot| slot.gate).unwrap_or_default(),
            false => LogPosition(0),
        };
        let answer = match result {
            Ok(at) => {
                self.end(txn, None, Status::Committed, Some(at), cx);
                Ok(Committed { at })
            }
            Err(reason) => {
                self.end(txn, None, Status::Aborted, None, cx);
                Err(Failure::Aborted(reason))
            }
        };
        if !cx.settings.logging {
            return Step::Done(answer);
        }
        let op = self.next_op();
        cx.complete_after(op, answer.map(Answer::Committed), gate);
        Step::Wait(op)
    }

    /// What each participant is asked of the transaction.
    fn parts_of(
        &mut self,
        txn: Txn,
        whole: &Prepare<V>,
        here: &Here<'_, TwoPhase<V>>,
        cx: &Context<'_, V>,
    ) -> Parts<Prepare<V>> {
        let slot = self.slots.get(txn.slot as usize).expect("an open transaction");
        let new_owner = self.new_owner(&slot.options, cx);
        if !V::keys_move(cx.catalog) {
            return divide(&slot.sets, &slot.delays, whole, cx.catalog);
        }
        let owner = |space, key: &SmallBytes| self.whom_to_ask((space, key), here, cx);
        divide_by_owner(&slot.sets, owner, new_owner, whole, cx.catalog)
    }

    /// Sends each participant its part of the transaction.
    fn start_commit(
        &mut self,
        txn: Txn,
        mut snapshot: V::Snapshot,
        here: &Here<'_, TwoPhase<V>>,
        cx: &mut Context<'_, V>,
    ) -> OpId {
        let settled_below = self.settled_below();
        let id = self.next_txn_id();
        let (op, now) = (self.next_op(), cx.now());
        let reader = self.reader(txn);
        if !V::switches(&self.switches).keeps(FamilySwitch::ProposesUnderLocks) {
            snapshot.join(&self.observed);
        }
        let slot = self.slot(txn).expect("an open transaction");
        assert!(slot.held.is_empty(), "{id} commits, and has requests that are held back");
        slot.phase = SlotPhase::Committing(id.sequence);
        let strict = slot.options.strict;
        let whole = Prepare { settled_below, strict, ..Prepare::new(id, snapshot, reader) };
        let parts = self.parts_of(txn, &whole, here, cx);
        let slot = self.slot(txn).expect("an open transaction");
        // Where reads are validated the vote of who has shown them waits for what they rest on.
        let after = if V::POLICIES.validation.has_reads() { LogPosition(0) } else { slot.gate };
        let asked = parts.iter().map(|(repository, part)| (*repository, part));
        let awaited = Awaited::new(slot.delays.answers, asked);
        let participants: Repositories = parts.iter().map(|(id, _)| *id).collect();
        assert!(!participants.is_empty(), "{id} asks nobody to commit");
        assert!(participants.windows(2).all(|pair| pair[0] < pair[1]), "participants ascend");
        let votes_directly = self.must_gather(id, &participants, cx);
        let prepares: Parts<_> = parts
            .into_iter()
            .map(|(repository, mut part)| {
                part.participants = participants.clone();
                if votes_directly {
                    part.extra.get_or_insert_default().votes_directly = true;
                }
                (repository, Arc::new(part))
            })
            .collect();
        for (repository, prepare) in &prepares {
            cx.send_to_repository_after(*repository, Message::Prepare(prepare.clone()), after);
        }
        if self.is_client(cx) {
            self.took_part.extend(participants.iter().copied());
        }
        let phase = Phase::Preparing(Votes::from_voters(participants.iter().copied()));
        let commit = Committing {
            txn,
            id,
            op: Some(op),
            prepares,
            after,
            phase,
            ballots: Few::new(),
            awaited,
            waiting: Vec::new(),
            sent: now,
            repeated: false,
            quiet: now,
            since: now,
        };
        let before = self.committing.insert(id.sequence, commit);
        assert!(before.is_none(), "{id} commits twice");
        self.set_sweep_timer(cx);
        op
    }

    pub(in crate::two_phase) fn on_vote(
        &mut self,
        txn: TxnId,
        ballot: RepositoryVote<V>,
        cx: &mut Context<'_, V>,
    ) {
        let is_client = self.is_client(cx);
        let Some(commit) = self.committing.get_mut(txn.sequence) else { return };
        let (is_late, switches) = (is_client && commit.is_late(cx), V::switches(&self.switches));
        let is_unsure = is_late || is_client && commit.repeated;
        let Phase::Preparing(votes) = &mut commit.phase else { return };
        if is_late
            && switches.keeps(FamilySwitch::DecidesInTime)
            && matches!(ballot.vote, Vote::Yes(_))
        {
            return; // They end it among themselves, and say how when they are asked again.
        }
        let is_not_known = matches!(ballot.vote, Vote::No(Abort::Forgotten | Abort::Superseded));
        if is_unsure && is_not_known && switches.keeps(FamilySwitch::DoubtsForgotten) {
            return self.give_up_for_good(txn.sequence, cx);
        }
        if is_client {
            shown_votes::keep(&mut commit.ballots, &ballot);
        }
        let RepositoryVote { repository, vote, .. } = ballot;
        let decision = match vote {
            Vote::No(reason) => Decision::Abort(reason),
            Vote::Decided(decision) => decision,
            Vote::Yes(at) => match votes.count(repository, at) {
                Counted::Complete => {
                    // The next attempt begins above what this one was refused for.
                    if V::has_intervals(&self.switches) {
                        let proposals = votes.so_far().filter_map(V::Time::bounds_of);
                        for (proposal, _) in proposals {
                            self.observed.join(&V::Snapshot::from_lower_bound(proposal));
                        }
                    }
                    V::Time::decide(&self.switches, votes)
                }
                Counted::Waiting | Counted::Ignored => return,
            },
        };
        let decided_by_validators =
            V::POLICIES.deciding.may_have_validators() && commit.prepares.len() == 1;
        self.decide(txn.sequence, decision, decided_by_validators, cx);
    }

    /// Validators have decided, and tell all who take part. A client keeps that a member has said
    /// so: it shows it where somebody is not told, and it has to be itself who tells.
    pub(in crate::two_phase) fn on_ended(
        &mut self,
        txn: TxnId,
        decision: Decision<V::Place>,
        tag: u64,
        cx: &mut Context<'_, V>,
    ) {
        let is_client = self.is_client(cx);
        let Some(commit) = self.committing.get_mut(txn.sequence) else { return };
        assert_eq!(commit.id, txn, "whose end validators tell");
        if !matches!(commit.phase, Phase::Preparing(_)) {
            return;
        }
        if is_client && let Some((repository, _)) = commit.prepares.first() {
            let (repository, vote) = (*repository, Vote::Decided(decision.clone()));
            let ballot = RepositoryVote { repository, vote, about: None, tag };
            shown_votes::keep(&mut commit.ballots, &ballot);
        }
        self.decide(txn.sequence, decision, true, cx);
    }

    /// The votes force a decision: the client hears it, and every participant, unless all of them
    /// are told by others.
    fn decide(
        &mut self,
        sequence: u64,
        decision: Decision<V::Place>,
        notified_by_others: bool,
        cx: &mut Context<'_, V>,
    ) {
        if V::keys_move(cx.catalog) {
            self.learn_owners(sequence, &decision);
        }
        let commit = self.committing.get_mut(sequence).expect("a known commit");
        assert!(matches!(commit.phase, Phase::Preparing(_)), "{} is decided twice", commit.id);
        let unacknowledged: Repositories = commit.prepares.iter().map(|(id, _)| *id).collect();
        for &repository in unacknowledged.iter().filter(|_| !notified_by_others) {
            cx.send_to_repository(repository, commit.decision_message(&decision));
        }
        commit.phase = Phase::Deciding { decision: decision.clone(), unacknowledged };
        commit.prepares.clear();
        (commit.sent, commit.quiet) = (cx.now(), cx.now());
        let waiting = std::mem::take(&mut commit.waiting);
        if matches!(decision, Decision::Commit(_)) {
            for (node, request) in waiting {
                cx.send(Address::coordinator(node), Message::Changed { request });
            }
        }
        let (txn, id) = (commit.txn, commit.id);
        let waits = matches!(decision, Decision::Commit(_)) && !commit.awaited.are_all_there();
        let op = if waits { None } else { commit.op.take() };
        let late = op.is_none() && !waits;
        let reason = commit.awaited.violation.take();
        let (status, at, result) = match decision {
            Decision::Commit(place) => {
                let known = V::Time::known_by(&place);
                self.observed.join(&known);
                self.remember(&known);
                let at = V::Time::version_of(&place);
                let result = match late || waits {
                    true => Ok(Answer::Committed(Committed { at })),
                    false => self.awaited_by(sequence, Committed { at }),
                };
                (Status::Committed, Some(at), result)
            }
            Decision::Abort(why) => {
                self.learn_from(why);
                let reported = reason
                    .filter(|_| why == Abort::FootprintViolation && !late)
                    .map(|it| violation(&it));
                let result = reported.unwrap_or(Err(Failure::Aborted(why)));
                self.abandon_answers(sequence);
                (Status::Aborted, None, result)
            }
        };
        if waits {
            return; // Its turn comes, and what it was asked.
        }
        if let Some(op) = op {
            self.end(txn, Some(id), status, at, cx);
            cx.complete(op, result);
        } else {
            self.learn_late(id, result, at, cx);
        }
    }

    /// What an end tells of where keys are that its transaction writes.
    fn learn_owners(&mut self, sequence: u64, decision: &Decision<V::Place>) {
        let Some(commit) = self.committing.get_mut(sequence) else { return };
        let prepares = std::mem::take(&mut commit.prepares);
        for (repository, prepare) in &prepares {
            match decision {
                Decision::Commit(place) => {
                    let at = V::Time::version_of(place);
                    let arrives = |it: &ArrivingWrite| prepare.writes.get(it.place as usize);
                    for (space, key, _) in prepare.arriving.iter().filter_map(arrives) {
                        self.learn_owner((*space, key.clone()), (*repository, at));
                    }
                }
                Decision::Abort(_) => {}
            }
        }
        self.committing.get_mut(sequence).expect("found above").prepares = prepares;
    }

    pub(in crate::two_phase) fn on_acknowledge(&mut self, txn: TxnId, repository: RepositoryId) {
        let Some(commit) = self.committing.get_mut(txn.sequence) else { return };
        if commit.id != txn {
            return; // Of an earlier life.
        }
        let Phase::Deciding { unacknowledged, .. } = &mut commit.phase else { return };
        unacknowledged.retain(|other| *other != repository);
        self.settle_if_over(txn.sequence);
    }
}
