//! Requests as they come, and the votes on them (section 4.3.3).

use std::sync::Arc;

use muesli_core::parts::execution::{missing_places, unknown};
use muesli_core::parts::votes::Votes;
use muesli_core::{Abort, Address, LogPosition, Procedure, RepositoryId, Stop, Timestamp};

use crate::granola::message::{
    Agreement, Ballots, Message, Noted, Part, Record, Refusal, ReplyOutcome, Request, Task,
    TimestampVote, evidence,
};
use crate::granola::participant::modes::active::Active;
use crate::granola::participant::outcomes::{Age, Over};
use crate::granola::participant::{Context, Participant};
use crate::granola::switches::GranolaSwitch;

impl Participant {
    /// A request of a coordinator, or of a participant that was asked before.
    pub(in super::super) fn on_request(&mut self, request: Arc<Request>, cx: &mut Context<'_>) {
        let txn = request.txn;
        if !request.participants.contains(&self.id) {
            return; // Whoever sent it here is mistaken.
        }
        // Of a client that only reads, nothing need be known.
        if !request.reads_alone() || self.memory.knows(txn.node) {
            self.memory.observe(txn, request.settled_below);
        }
        self.observe_client(txn, cx);
        if self.active.contains_key(&txn) || self.is_deferred(txn) {
            return self.vote_again(txn, cx); // It is under way.
        }
        if let Some(over) = self.memory.get(txn) {
            let (end, noted, about) = (over.end.clone(), over.noted.clone(), over.about);
            if let (Some(_), Some(ballot)) = (request.master, over.ballot.clone()) {
                // One that has started again counts anew.
                self.vote_to_master(&request, ballot, about, cx);
            }
            return self.tell_end(&request, end, noted, cx);
        }
        match self.memory.age(txn) {
            Age::Current => match self.may_be_forgotten(&request, cx) {
                None => self.take_up(request, cx),
                Some(lower_bound) => {
                    let forgotten = Refusal::Aborted(Abort::Forgotten);
                    self.refuse(&request, TimestampVote::Abort(lower_bound, forgotten), cx);
                }
            },
            Age::Settled => {}
            // Its client says that it is settled, and it was done.
            Age::EarlierIncarnation if self.memory.retired(txn).is_some() => {}
            Age::EarlierIncarnation if cx.catalog.is_client(txn.node) => {
                // Another process has come with this client's number: it would try again for ever.
                let superseded = Refusal::Aborted(Abort::Superseded);
                self.refuse(&request, TimestampVote::Abort(Timestamp::ZERO, superseded), cx);
            }
            Age::EarlierIncarnation => self.refuse(&request, TimestampVote::Conflict, cx),
        }
    }

    fn take_up(&mut self, request: Arc<Request>, cx: &mut Context<'_>) {
        let early = self.early_votes.take(request.txn);
        let against =
            early.iter().find(|(_, (ballot, _))| !matches!(ballot, TimestampVote::Commit(_)));
        if let Some((_, (ballot, _))) = against {
            // It is dead already, of what the other one says: a conflict would be tried again.
            return self.refuse(&request, ballot.clone(), cx);
        }
        let lacks_capacity = || self.lacks_capacity(&request, cx);
        if let Some(reason) = request.judge_size(&cx.settings.limits).or_else(lacks_capacity) {
            let ballot = TimestampVote::Abort(Timestamp::ZERO, Refusal::Aborted(reason));
            return self.refuse(&request, ballot, cx);
        }
        if let [Part { task: Task::Take { .. }, .. }] = request.parts[..] {
            return self.on_take(&request, cx);
        }
        if let Some(at) = self.is_elsewhere(&request, cx) {
            return self.refuse(&request, TimestampVote::Moved(at), cx);
        }
        if request.moving().is_some_and(|order| self.refuses_move(order, cx)) {
            return self.refuse(&request, TimestampVote::Moved(self.clock.done), cx);
        }
        // Who is alone finds out as it runs; but for one that says that it only reads, and for a
        // plan of which a fragment is missing.
        let is_plain = request.agreement == Agreement::Alone && !request.read_only;
        let asks = !is_plain || self.has_plans(&request, cx);
        if let Some(refusal) = asks.then(|| self.lacks(&request, cx)).flatten() {
            let at = self.clock.done;
            return self.refuse(&request, TimestampVote::Abort(at, refusal), cx);
        }
        match request.agreement {
            Agreement::Alone if self.locking => self.perform_alone(&request, cx),
            Agreement::Alone => self.take_up_alone(request, cx),
            Agreement::Independent if self.locking && request.exchanges_data() => {
                self.claim_untold(request, early, cx);
            }
            Agreement::Independent if self.locking => self.prepare(request, early, cx),
            Agreement::Independent => self.vote_in_timestamp_mode(request, early, cx),
            Agreement::Coordinated => self.take_up_coordinated(request, early, cx),
        }
    }

    /// A procedure that this node does not know; or that may write, in a transaction that says that
    /// it only reads: what it wrote would be in no log, and at no other copy.
    pub(in super::super) fn lacks(&self, request: &Request, cx: &Context<'_>) -> Option<Refusal> {
        let own = request.parts.iter().filter(|part| part.is_held_by(self.id, cx.catalog));
        for part in own {
            let Task::Call { procedure, .. } = &part.task else { continue };
            match cx.settings.procedures.get(procedure) {
                Some(known) if known.read_only || !request.read_only => {
                    if let Some(refusal) = self.lacks_places(request, part, known, cx) {
                        return Some(refusal);
                    }
                }
                Some(_) => {
                    let text = format!("procedure {procedure} may write, and was called to read");
                    return Some(Refusal::Faulty(text));
                }
                None => {
                    if let Stop::Faulty(text) = unknown(procedure, cx.settings) {
                        return Some(Refusal::Faulty(text));
                    }
                }
            }
        }
        None
    }

    /// Whether it runs procedures that say themselves where they have fragments.
    pub(in super::super) fn has_plans(&self, request: &Request, cx: &Context<'_>) -> bool {
        let is_plan = |part: &Part| match &part.task {
            Task::Call { procedure, .. } => {
                cx.settings.procedures.get(procedure).is_some_and(|it| it.places.is_some())
            }
            _ => false,
        };
        request.parts.iter().any(is_plan)
    }

    /// A plan of which the call lacks a fragment. All participants find the same, since it follows
    /// from the arguments: where one finds it later, the others have done their share.
    fn lacks_places(
        &self,
        request: &Request,
        part: &Part,
        known: &Procedure,
        cx: &Context<'_>,
    ) -> Option<Refusal> {
        let Task::Call { procedure, arguments, .. } = &part.task else { return None };
        if known.places.is_none() || !self.switches.keeps(GranolaSwitch::PlacesChecked) {
            return None;
        }
        let is_same = |it: &&Part| match &it.task {
            Task::Call { procedure: other, arguments: given, .. } => {
                other == procedure && given == arguments
            }
            _ => false,
        };
        let named: Vec<u16> =
            request.parts.iter().filter(is_same).map(|part| part.partition).collect();
        let missing = missing_places(known, cx.catalog, arguments, &named);
        let is_part = || !self.switches.keeps(GranolaSwitch::PlacesWhole) && !named.is_empty();
        match missing {
            Ok(None) => None,
            Ok(Some(_)) if is_part() => None,
            Ok(Some(text)) => Some(Refusal::Faulty(format!("procedure {procedure}: {text}"))),
            Err(stop) => Some(Refusal::from(stop)),
        }
    }

    /// A timestamp above all that was done here and all that the session has seen. It enters the
    /// queue, or is done, in the same step.
    pub(in super::super) fn propose(
        &mut self,
        request: &Request,
        cx: &mut Context<'_>,
    ) -> Timestamp {
        let lower_bound = if self.switches.keeps(GranolaSwitch::CarriesLowerBound) {
            request.lower_bound
        } else {
            Timestamp::ZERO
        };
        self.propose_above(lower_bound, cx)
    }

    /// A timestamp above all that was done and proposed here, and above `lower_bound`.
    pub(in super::super) fn propose_above(
        &mut self,
        lower_bound: Timestamp,
        cx: &mut Context<'_>,
    ) -> Timestamp {
        let at = self.clock.propose(lower_bound, cx.now());
        self.cover(at, cx);
        at
    }

    /// Sees to it that a next life of this repository proposes above `at`.
    pub(in super::super) fn cover(&mut self, at: Timestamp, cx: &mut Context<'_>) {
        if cx.settings.logging
            && self.switches.keeps(GranolaSwitch::UpperBound)
            && let Some(upper_bound) =
                self.clock.upper_bound_for(at, cx.settings.pace.upper_bound_steps / 2)
        {
            cx.log(|| Record::UpperBound { at: upper_bound });
        }
    }

    /// The only participant: its timestamp is final as soon as it is chosen.
    fn take_up_alone(&mut self, request: Arc<Request>, cx: &mut Context<'_>) {
        let waits = self.waits_for_company(&request, cx) && self.queue.is_all_placed();
        let looks = request.read_only && !self.queue.is_empty() && !waits;
        if looks && self.reads_at_once(&request, cx) {
            return self.perform(&request, 0, self.clock.done, cx);
        }
        let at = self.propose(&request, cx);
        if self.queue.is_empty() && self.footprint_locks.is_empty() && !waits {
            return self.perform(&request, 0, at, cx);
        }
        let votes = Votes::from_voters([]);
        self.enter((request, 0), at, votes, cx);
        self.go_on(cx);
    }

    /// Whether a reader of this repository alone can lie right behind what was done last, instead
    /// of waiting for its turn behind all that is queued: its session has seen nothing later, and
    /// nobody will come to stand below (section 7.2, where backups read so). In a new life, only
    /// what was done in it is as new as what clients were told of before.
    pub(in super::super) fn reads_at_once(
        &mut self,
        request: &Request,
        cx: &mut Context<'_>,
    ) -> bool {
        let done = self.clock.done;
        if !self.switches.keeps(GranolaSwitch::ReadersCheck) {
            return done > Timestamp::ZERO;
        }
        let is_seen = done > self.clock.earlier && request.lower_bound <= done;
        is_seen && self.footprint_locks.is_empty() && self.reads_ahead_of_all(request, cx)
    }

    pub(in super::super) fn vote_in_timestamp_mode(
        &mut self,
        request: Arc<Request>,
        early: Ballots,
        cx: &mut Context<'_>,
    ) {
        let (txn, at) = (request.txn, self.propose(&request, cx));
        let is_logged = request.is_update();
        let voted = self.log_vote(is_logged, &request, at, cx);
        let about = evidence::about(&request, cx.settings, cx.catalog);
        self.send_vote(&request, TimestampVote::Commit(at), about, cx);
        if !self.switches.keeps(GranolaSwitch::DataSentInOrder) {
            self.send_data(&request, at, cx);
        }
        let votes = Votes::from_voters(self.others(&request));
        self.enter((request, about), at, votes, cx);
        self.active.get_mut(&txn).expect("just entered").voted = voted;
        self.set_sweep_timer(cx);
        for (repository, vote) in early {
            self.on_vote(txn, repository, vote, cx);
        }
    }

    /// Puts a transaction into the queue at its proposal.
    pub(in super::super) fn enter(
        &mut self,
        (request, about): (Arc<Request>, u64),
        at: Timestamp,
        votes: Votes<RepositoryId, Timestamp>,
        cx: &Context<'_>,
    ) {
        let txn = request.txn;
        assert!(request.participants.contains(&self.id), "{txn} is done elsewhere");
        assert_eq!(votes.voters() + 1, request.participants.len(), "who votes on {txn}");
        let mut active = Active::new(request, about, at, votes, cx.now());
        active.wait_queue = self.vote_sequences.wait_queue_of(&active);
        self.moves.begin(&active.request);
        self.queue.insert(active.wait_queue, (at, txn));
        self.active.insert(active);
        self.report_what_moved(cx.settings);
    }

    /// Logs a vote for a transaction, if it `is_logged`. The vote itself waits for that, and so
    /// does whatever is said of the transaction once it is done, or of what comes after it; what
    /// is said of others in the meantime does not.
    pub(in super::super) fn log_vote(
        &mut self,
        is_logged: bool,
        request: &Arc<Request>,
        at: Timestamp,
        cx: &mut Context<'_>,
    ) -> LogPosition {
        if !is_logged {
            return LogPosition(0);
        }
        cx.log_lazily(|| Record::Voted { request: request.clone(), at });
        cx.logged()
    }

    /// A transaction is about to be done, or what it does is told: nothing may be said of that
    /// before its vote is stable. Without it, its place would be another one after a crash.
    pub(in super::super) fn rest_on_vote(&self, active: &Active, cx: &mut Context<'_>) {
        if self.switches.keeps(GranolaSwitch::AnswersRestOnVotes) {
            cx.wait_for_log_up_to(active.voted);
        }
    }

    pub(in super::super) fn send_vote(
        &mut self,
        request: &Request,
        ballot: TimestampVote,
        about: u64,
        cx: &mut Context<'_>,
    ) {
        if self.switches.has_master() {
            return self.vote_to_master(request, ballot, about, cx);
        }
        assert_ne!(request.agreement, Agreement::Alone, "whom a vote on {} is for", request.txn);
        self.memory.note_vote(request.txn);
        for other in self.others(request) {
            let order = self.number_vote(other, &ballot, cx);
            let (txn, repository, ballot) = (request.txn, self.id, ballot.clone());
            let vote = Message::Vote { txn, repository, ballot, about, tag: 0, order };
            cx.send_to_repository_when_logged(other, vote);
        }
    }

    /// Votes against a transaction that was never voted on here, for ever.
    pub(in super::super) fn refuse(
        &mut self,
        request: &Request,
        ballot: TimestampVote,
        cx: &mut Context<'_>,
    ) {
        let txn = request.txn;
        assert!(!self.active.contains_key(&txn), "{txn} was voted for, and is refused");
        let end = ballot.end_against().expect("a vote against it");
        let alone = request.agreement == Agreement::Alone;
        if alone && !request.is_update() {
            // Done again or not, it changes nothing.
            return self.tell_end(request, end, Noted::default(), cx);
        }
        if self.switches.keeps(GranolaSwitch::StableConflicts) {
            cx.log(|| Record::Against { txn, ballot: ballot.clone() });
        }
        if !alone {
            self.send_vote(request, ballot.clone(), 0, cx);
        }
        let (ballot, noted) = (Some(ballot), Noted::default());
        self.memory.remember(txn, Over { ballot, about: 0, end: end.clone(), noted });
        self.tell_end(request, end, Noted::default(), cx);
    }

    /// Tells the coordinator how a transaction ended here; once more, if it asks once more.
    pub(in super::super) fn tell_end(
        &mut self,
        request: &Request,
        end: ReplyOutcome,
        noted: Noted,
        cx: &mut Context<'_>,
    ) {
        let (txn, repository) = (request.txn, self.id);
        cx.send(Address::coordinator(txn.node), Message::Reply { txn, repository, end, noted });
        if request.agreement != Agreement::Alone {
            self.acknowledge(txn, cx);
        }
    }
}
