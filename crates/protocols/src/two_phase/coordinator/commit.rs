//! The coordinator's commit: one step where one repository here is enough, else two phases.

use std::sync::Arc;

use muesli_core::links::patience_for;
use muesli_core::parts::transaction::TransactionSets;
use muesli_core::parts::votes::{Counted, Votes};
use muesli_core::recorder::Status;
use muesli_core::{
    Abort, Answer, Catalog, Committed, Decision, Doubt, Failure, Here, Nanos, OpId, Outcome,
    RepositoryId, Role, Step, Timestamp, Txn, TxnId,
};
use smallvec::SmallVec;

use super::Coordinator;
use super::awaited::{Awaited, strayed};
use super::delays::Delays;
use crate::two_phase::message::{Ballot, Few, Message, Prepare, Repositories, Vote};
use crate::two_phase::participant::one_phase::Alone;
use crate::two_phase::policy::{Rule, validation::Validation};
use crate::two_phase::time::{Snapshot, Time};
use crate::two_phase::{Context, Standing, TwoPhase, Variant, shown_votes};
use muesli_core::parts::watermark::Bound;

/// So many transactions of unknown outcome are remembered, the newest ones.
pub(super) const UNANSWERED_MAX: usize = 10_000;

/// Something for each of a transaction's participants, by ascending repository.
type Parts<T> = SmallVec<[(RepositoryId, T); 2]>;

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
    prepares: Parts<Arc<Prepare<V>>>,
    pub(in crate::two_phase) phase: Phase<V>,
    /// At a client: the votes, to be shown with what they decide.
    ballots: Few<Ballot<V>>,
    /// What delayed actions gave that the client asked for.
    pub(in crate::two_phase) awaited: Awaited,
    /// When something of it was sent last.
    sent: Nanos,
    /// Somebody was asked for a vote more than once.
    repeated: bool,
    /// When that was, or when something of it was on its way still.
    quiet: Nanos,
    since: Nanos,
}

#[derive(Clone, Debug)]
pub(in crate::two_phase) enum Phase<V: Variant> {
    /// Votes come in.
    Preparing(Votes<RepositoryId, V::Yes>),
    /// The votes decided; these have not acknowledged.
    Deciding { decision: Decision<V::Place>, unacknowledged: Repositories },
}

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
        let slot = match self.open(txn) {
            Ok(slot) => slot,
            Err(failure) => return Step::Done(Err(failure)),
        };
        let snapshot = slot.reads_at().clone();
        if !V::Validation::READS {
            slot.sets.reads.clear();
            slot.sets.scans.clear();
        }
        let has_read = !(slot.sets.reads.is_empty() && slot.sets.scans.is_empty());
        let (writes_nothing, strict) = (slot.sets.writes.is_empty(), slot.options.strict);
        let delays = !slot.delays.is_empty();
        let counts =
            V::Validation::READERS || strict && V::rules(&self.rules).keeps(Rule::ValidatesStrict);
        if writes_nothing && !delays && !(has_read && counts) {
            self.remember(&snapshot);
            return self.finish_at_once(txn, Ok(snapshot.at()), cx);
        }
        let only = if delays { None } else { self.only_repository(txn, &here, cx) };
        if let Some(participant) = only.and_then(|only| here.repository(only)) {
            let role = Role::Repository(only.expect("there is one"));
            let reader = V::reader(self.id, self.incarnation, txn);
            let on_the_node = self.runs_alone(cx);
            let slot = self.slot(txn).expect("an open transaction");
            let standing = Standing::new(snapshot.clone(), slot.options.strict);
            let alone = Alone { since: slot.undisturbed_since, on_the_node };
            let at = &mut cx.at(role);
            let done = participant.commit_here(&mut slot.sets, standing, alone, reader, at);
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
        Step::Wait(self.start_commit(txn, snapshot, cx))
    }

    /// A transaction of this node has committed that saw this.
    #[inline]
    fn remember(&mut self, seen: &V::Snapshot) {
        if V::NODES_REMEMBER {
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
        let sets = &self.slot(txn)?.sets;
        if catalog.replicas > 1 || V::EVERYBODY_TAKES_PART || !sets.scans.is_empty() {
            return None;
        }
        let written = |at: usize| {
            let partition = catalog.partition(sets.writes[at].space, &sets.writes[at].key);
            catalog.replicas_of(partition).next()
        };
        let first = match sets.writes.first() {
            Some(_) => written(0)?,
            None => sets.reads.first()?.repository,
        };
        let reads = sets.reads.iter().all(|read| read.repository == first);
        let writes = (1..sets.writes.len()).all(|at| written(at) == Some(first));
        (reads && writes && here.holds(first)).then_some(first)
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
        let gate = self.slot(txn).map(|slot| slot.gate).unwrap_or_default();
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

    /// Sends each participant its part of the transaction.
    fn start_commit(&mut self, txn: Txn, snapshot: V::Snapshot, cx: &mut Context<'_, V>) -> OpId {
        let settled_below = self.settled_below();
        let id = self.next_txn_id();
        let (op, now) = (self.next_op(), cx.now());
        let (node, incarnation) = (self.id, self.incarnation);
        let slot = self.slot(txn).expect("an open transaction");
        slot.committing = Some(id.sequence);
        let whole = Prepare {
            txn: id,
            settled_below,
            participants: Repositories::new(),
            snapshot,
            reader: V::reader(node, incarnation, txn),
            strict: slot.options.strict,
            reads: Few::new(),
            writes: Few::new(),
            scans: vec![],
            delayed: vec![],
            extra: None,
        };
        let parts = divide(&slot.sets, &slot.delays, &whole, cx.catalog);
        let asked = parts.iter().map(|(repository, part)| (*repository, part));
        let awaited = Awaited::new(slot.delays.answers, asked);
        let participants: Repositories = parts.iter().map(|(id, _)| *id).collect();
        assert!(!participants.is_empty(), "{id} asks nobody to commit");
        assert!(participants.windows(2).all(|pair| pair[0] < pair[1]), "participants ascend");
        let prepares: Parts<_> = parts
            .into_iter()
            .map(|(repository, mut part)| {
                part.participants = participants.clone();
                (repository, Arc::new(part))
            })
            .collect();
        for (repository, prepare) in &prepares {
            cx.send_to_repository(*repository, Message::Prepare(prepare.clone()));
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
            phase,
            ballots: Few::new(),
            awaited,
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
        ballot: Ballot<V>,
        cx: &mut Context<'_, V>,
    ) {
        let is_client = self.is_client(cx);
        let Some(commit) = self.committing.get_mut(txn.sequence) else { return };
        let (is_late, rules) = (is_client && commit.is_late(cx), V::rules(&self.rules));
        let is_unsure = is_late || is_client && commit.repeated;
        let Phase::Preparing(votes) = &mut commit.phase else { return };
        if is_late && rules.keeps(Rule::DecidesInTime) && matches!(ballot.vote, Vote::Yes(_)) {
            return; // They end it among themselves, and say how when they are asked again.
        }
        let is_not_known = matches!(ballot.vote, Vote::No(Abort::Forgotten | Abort::Superseded));
        if is_unsure && is_not_known && rules.keeps(Rule::DoubtsForgotten) {
            return self.give_up_for_good(txn.sequence, cx);
        }
        if is_client {
            shown_votes::keep(&mut commit.ballots, &ballot);
        }
        let Ballot { repository, vote, .. } = ballot;
        let decision = match vote {
            Vote::No(reason) => Decision::Abort(reason),
            Vote::Decided(decision) => decision,
            Vote::Yes(at) => match votes.count(repository, at) {
                Counted::Complete => V::Time::decide(&self.rules, votes),
                Counted::Waiting | Counted::Ignored => return,
            },
        };
        self.decide(txn.sequence, decision, cx);
    }

    /// The votes force a decision: the client hears it, and every participant.
    fn decide(&mut self, sequence: u64, decision: Decision<V::Place>, cx: &mut Context<'_, V>) {
        let commit = self.committing.get_mut(sequence).expect("a known commit");
        assert!(matches!(commit.phase, Phase::Preparing(_)), "{} is decided twice", commit.id);
        let unacknowledged: Repositories = commit.prepares.iter().map(|(id, _)| *id).collect();
        for &repository in &unacknowledged {
            cx.send_to_repository(repository, commit.told(&decision));
        }
        commit.phase = Phase::Deciding { decision: decision.clone(), unacknowledged };
        commit.prepares.clear();
        (commit.sent, commit.quiet) = (cx.now(), cx.now());
        let (txn, id) = (commit.txn, commit.id);
        let waits = matches!(decision, Decision::Commit(_)) && !commit.awaited.are_all_there();
        let op = if waits { None } else { commit.op.take() };
        let late = op.is_none() && !waits;
        let reason = commit.awaited.strayed.take();
        let (status, at, result) = match decision {
            Decision::Commit(place) => {
                let known = V::Time::known_by(&place);
                self.heard.join(&known);
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
                let said = reason.filter(|_| why == Abort::Strayed && !late).map(|it| strayed(&it));
                let result = said.unwrap_or(Err(Failure::Aborted(why)));
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

    /// The end of a transaction is known after its client was told that nobody knows.
    fn learn_late(
        &mut self,
        id: TxnId,
        result: Result<Answer, Failure>,
        at: Option<Timestamp>,
        cx: &mut Context<'_, V>,
    ) {
        if let (Some(recorder), Some(at)) = (&mut cx.effects.recorder, at) {
            recorder.applied(id, at);
        }
        let outcome = match result {
            Ok(Answer::Committed(committed)) => Outcome::Committed(committed),
            Err(Failure::Aborted(reason)) => Outcome::Aborted(reason),
            other => unreachable!("a decision answers a commit, not with {other:?}"),
        };
        let Some(known) = self.unanswered.get_mut(&id.sequence) else { return };
        *known = Some(outcome);
    }

    /// What has become of a commit that was not answered in time.
    pub(in crate::two_phase) fn outcome_of(&self, txn: TxnId) -> Outcome {
        if txn.incarnation != self.incarnation {
            return Outcome::NotKnown(Doubt::Elsewhere);
        }
        match self.unanswered.get(&txn.sequence) {
            Some(Some(outcome)) => *outcome,
            Some(None) => Outcome::NotKnown(Doubt::UnderWay),
            None => Outcome::NotKnown(Doubt::Forgotten),
        }
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

    /// Prepares and decisions that were not answered go out again. A client does not wait for
    /// ever: in the end it is told that the outcome is unknown, and the commit goes on.
    pub(in crate::two_phase) fn retry_commits(&mut self, cx: &mut Context<'_, V>) {
        let (now, settings) = (cx.now(), cx.settings);
        let (mut given_up, is_client) = (Vec::new(), self.is_client(cx));
        for commit in self.committing.values_mut() {
            if commit.is_under_way(cx) {
                commit.quiet = now;
                continue;
            }
            let is_late = commit.is_late(cx);
            if is_late && commit.op.is_some() {
                given_up.push(commit.id.sequence);
            }
            if commit.quiet + settings.retry_after > now
                || commit.quiet + settings.retry_after + commit.patience() > now
            {
                continue;
            }
            (commit.sent, commit.quiet) = (now, now);
            match &commit.phase {
                Phase::Preparing(votes) => {
                    let missing: Vec<_> = votes.missing().collect();
                    let asks_all = is_late && is_client;
                    let asked = |id: &RepositoryId| asks_all || missing.contains(id);
                    commit.repeated = true;
                    for (repository, prepare) in commit.prepares.iter().filter(|it| asked(&it.0)) {
                        cx.send_to_repository(*repository, Message::Prepare(prepare.clone()));
                    }
                }
                Phase::Deciding { decision, unacknowledged } => {
                    let missing = commit.awaited.missing_from();
                    let missing = missing.filter(|it| !unacknowledged.contains(it));
                    for repository in unacknowledged.iter().copied().chain(missing) {
                        cx.send_to_repository(repository, commit.told(decision));
                    }
                }
            }
        }
        for sequence in given_up {
            self.give_up(sequence, cx);
        }
    }

    /// A repository may have forgotten how a commit ended of which it was asked before, and so
    /// nobody will know: what is in doubt elsewhere is ended there.
    fn give_up_for_good(&mut self, sequence: u64, cx: &mut Context<'_, V>) {
        self.give_up(sequence, cx);
        self.unanswered.remove(&sequence);
        self.abandon_answers(sequence);
        self.committing.remove(sequence);
    }

    /// A client has waited for too long: it is told what is known.
    fn give_up(&mut self, sequence: u64, cx: &mut Context<'_, V>) {
        let Some(commit) = self.committing.get_mut(sequence) else { return };
        if let Phase::Deciding { decision: Decision::Commit(place), .. } = &commit.phase {
            let at = V::Time::version_of(place);
            return self.answer_commit(sequence, at, cx);
        }
        let (txn, id, op) = (commit.txn, commit.id, commit.op.take());
        commit.awaited.abandon();
        let after_ms = cx.settings.give_up_after.as_millis();
        if let Some(op) = op {
            cx.effects.maintenance.given_up += 1;
            self.end(txn, Some(id), Status::Unknown, None, cx);
            self.unanswered.insert(id.sequence, None);
            if self.unanswered.len() > UNANSWERED_MAX {
                self.unanswered.pop_first();
            }
            cx.complete(op, Err(Failure::Unknown { after_ms, txn: id }));
        }
    }
}

impl<V: Variant> Committing<V> {
    /// Checks the invariants.
    ///
    /// # Panics
    /// One of them does not hold.
    pub(super) fn assert_invariants(&self) {
        let id = self.id;
        let ascend = |all: &[RepositoryId]| all.windows(2).all(|pair| pair[0] < pair[1]);
        self.awaited.assert_invariants();
        match &self.phase {
            Phase::Preparing(votes) => {
                votes.assert_invariants();
                assert!(!votes.is_complete(), "all have voted on {id}, and nothing is decided");
                let asked: Vec<_> = self.prepares.iter().map(|(voter, _)| *voter).collect();
                assert!(ascend(&asked), "{id} was asked of {asked:?}");
                assert_eq!(asked.len(), votes.voters(), "how many are asked about {id}");
                let same = |(_, part): &(_, Arc<Prepare<V>>)| part.participants[..] == asked[..];
                assert!(self.prepares.iter().all(same), "who takes part in {id}");
            }
            Phase::Deciding { unacknowledged, .. } => {
                assert!(self.prepares.is_empty(), "{id} is decided, and asks for votes");
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

    /// What participants are told of its end.
    fn told(&self, decision: &Decision<V::Place>) -> Message<V> {
        let (decision, ballots) = (decision.clone(), self.ballots.iter().cloned().collect());
        Message::Decide { txn: self.id, decision, ballots }
    }

    /// Whether its client has been waiting for as long as it may.
    fn is_late(&self, cx: &Context<'_, V>) -> bool {
        self.since + cx.settings.give_up_after <= cx.now()
    }

    /// Whether something that was sent for it last is on its way still.
    fn is_under_way(&self, cx: &Context<'_, V>) -> bool {
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
    fn patience(&self) -> Nanos {
        let largest = self.prepares.iter().map(|(_, prepare)| prepare.counted_bytes()).max();
        patience_for(largest.unwrap_or_default())
    }
}

/// A transaction's part for each repository that holds a key it read, wrote, or could have seen
/// in a scan.
fn divide<V: Variant>(
    sets: &TransactionSets,
    delays: &Delays,
    empty: &Prepare<V>,
    catalog: &Catalog,
) -> Parts<Prepare<V>> {
    let mut parts = Parts::new();
    if V::EVERYBODY_TAKES_PART {
        let all = (0..catalog.repositories() as u16).map(RepositoryId);
        parts.extend(all.map(|repository| (repository, empty.clone())));
    }
    for read in &sets.reads {
        for replica in catalog.replicas_of(catalog.partition(read.space, &read.key)) {
            let part = part_of(&mut parts, replica, empty);
            part.reads.push((read.space, read.key.clone(), read.version));
        }
    }
    for write in &sets.writes {
        for replica in catalog.replicas_of(catalog.partition(write.space, &write.key)) {
            let part = part_of(&mut parts, replica, empty);
            part.writes.push((write.space, write.key.clone(), write.value.clone()));
        }
    }
    if !delays.is_empty() {
        divide_delays(&mut parts, delays, empty, catalog);
    }
    for range in &sets.scans {
        let partitions = catalog.partitions_of_range(range.space, &range.lo, range.hi.as_ref());
        let mut holders: Vec<_> = partitions.flat_map(|p| catalog.replicas_of(p)).collect();
        holders.sort();
        holders.dedup();
        for holder in holders {
            part_of(&mut parts, holder, empty).scans.push(range.clone());
        }
    }
    parts
}

/// What is left to the turn, for each repository that does it.
#[cold]
fn divide_delays<V: Variant>(
    parts: &mut Parts<Prepare<V>>,
    delays: &Delays,
    empty: &Prepare<V>,
    catalog: &Catalog,
) {
    let mut asked = delays.asked.iter().peekable();
    for (count, (space, key, action)) in delays.actions.iter().enumerate() {
        let number = asked.next_if(|(place, _)| *place == count).map(|(_, number)| *number);
        for replica in catalog.replicas_of(catalog.partition(*space, key)) {
            let part = part_of(parts, replica, empty);
            if let Some(number) = number {
                let place = part.delayed.len() as u32;
                part.extra.get_or_insert_default().asked.push((place, number));
            }
            if delays.result_bytes > 0 {
                part.extra.get_or_insert_default().result_bytes = delays.result_bytes;
            }
            part.delayed.push((*space, key.clone(), action.clone()));
        }
    }
    for (call, number) in &delays.calls {
        for replica in catalog.replicas_of(call.partition) {
            let part = part_of(parts, replica, empty);
            let before = part.delayed.len();
            let extra = part.extra.get_or_insert_default();
            let place = (before + extra.calls.len()) as u32;
            extra.asked.extend(number.map(|number| (place, number)));
            extra.calls.push(call.clone());
        }
    }
}

/// The part of `repository`, made from `empty` if there is none.
fn part_of<'a, V: Variant>(
    parts: &'a mut Parts<Prepare<V>>,
    repository: RepositoryId,
    empty: &Prepare<V>,
) -> &'a mut Prepare<V> {
    let place = match parts.binary_search_by_key(&repository, |(id, _)| *id) {
        Ok(place) => place,
        Err(place) => {
            parts.insert(place, (repository, empty.clone()));
            place
        }
    };
    &mut parts[place].1
}
