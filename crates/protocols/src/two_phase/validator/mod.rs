//! Validators: inner nodes of the tree that votes climb.
//!
//! # The idea
//! Participants are leaves. Each votes to the validator above it, which waits for all participants
//! below it, [merges](MergedVote::merge) their votes, and says them as one to the validator above.
//! The lowest one that has all participants below it [decides](MergedVote::decide), tells the
//! coordinator, and passes the [decision](MergedDecision) down again, to the validators where the
//! paths to the participants part. So a vote leaves its subtree only where somebody else takes
//! part, and once for all; and a decision comes into it once.
//!
//! # Why nothing rests on it
//! A validator has nothing but votes in flight, and nothing of it is stable. The votes are, at the
//! repositories, and decide alike wherever they are gathered: a coordinator that has waited asks
//! again, and is then voted to itself; participants that have waited ask each other, as under all
//! of the family ([`termination`](super::participant::termination)). A validator that is slow, or
//! was, decides the same. What nobody votes to any more is dropped after a while. A decision that
//! is lost on its way down is missed by the coordinator, to which all who take part acknowledge it:
//! it tells them itself. Where it is gone as well they ask each other.
//!
//! The tree may change at any moment, at each node at another one. A validator that hears of it
//! drops what it has, and takes no votes that are not for it by the new tree; they are given up for
//! lost, like any. Whatever tree a merged vote has climbed, it says whose votes it has, and nobody
//! decides to commit without the votes of all participants. A decision is what it is by any tree:
//! where it comes by another one, the participants that it names are told directly. So it goes down
//! by one tree, and never round.

pub(in crate::two_phase) mod gathering;
mod latest;
mod stable_queue;
pub(in crate::two_phase) mod tree;

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use muesli_core::{
    Address, Decision, LoggedRole, Nanos, NodeId, Rejection, RepositoryId, Role, Service,
    ServiceId, Settings, StateMachine, Timestamp, TxnId, View, timers,
};

use self::gathering::{Gathering, Recipient};
use self::latest::LatestVersions;
use self::stable_queue::StableQueue;
use super::message::merged_decision::MergedDecision;
use super::message::merged_vote::MergedVote;
use super::message::voted_footprint::VotedFootprint;
use super::message::{Message, Mostly, Repositories, RepositoryVote, Vote};
use super::policy::{TreeChoice, TreeSwitch};
use super::{Context, Scalar, TwoPhase};

/// A validator.
///
/// Invariants: it has votes of nobody who does not take part, and what it has said up or decided it
/// has the votes of all below for, or one that refuses.
#[derive(Clone, Debug)]
pub struct Validator<V> {
    /// Which of all validators it is; the tree, or who decides, says what for.
    number: u16,
    choice: TreeChoice,
    votes: BTreeMap<TxnId, Gathered>,
    counted: VotesCounted,
    /// The largest timestamp that members have proposed or decided here.
    issued: Timestamp,
    /// As printed: votes of all, kept until they are stable.
    stable: StableQueue,
    /// As printed: what has passed here.
    latest: LatestVersions,
    sweep_timer_set: bool,
    variant: PhantomData<V>,
}

/// What a validator has done since its node started. Nothing that it does depends on it.
#[derive(Clone, Copy, Default)]
struct VotesCounted {
    /// Messages from below that it has merged.
    merged: u64,
    /// Merged votes that it has said to the one above.
    passed_up: u64,
    /// Decisions of validators above that it has passed on.
    passed_down: u64,
    /// Transactions that it has decided.
    decided: u64,
    /// Votes that came or were kept in vain: of another tree, or nobody else voted in time.
    dropped: u64,
}

/// The votes on a transaction that have come so far.
#[derive(Clone, Debug)]
struct Gathered {
    ballot: MergedVote,
    since: Nanos,
    /// It was said up, or decided: what comes now comes late. As printed: a refusal was told to the
    /// coordinator.
    passed: bool,
}

/// Where votes go from a validator.
#[derive(Clone, Copy)]
enum PassedTo {
    /// To the validator above; `None`: there is none, as these are of another tree.
    Above(Option<Address>),
    /// It has those of all who take part, and decides.
    End,
}

/// Says nothing: validators that do the same from now on are shown alike, whatever they did.
impl fmt::Debug for VotesCounted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("..")
    }
}

timers! {
    /// The timers of a validator.
    pub enum ValidatorTimer {
        /// Drops votes that nobody waits for.
        Sweep = 0,
    }
}

impl<V: Scalar> Validator<V> {
    /// Votes from below.
    fn on_ballot(&mut self, from: Address, mut ballot: MergedVote, cx: &mut Context<'_, V>) {
        let (txn, now) = (ballot.txn, cx.now());
        let climbs = [TreeSwitch::VotesAloneClimb, TreeSwitch::ParentsKeepNoVersions];
        if climbs.into_iter().all(|switch| self.choice.keeps(switch)) {
            ballot.carried = None; // Nobody here says such a thing.
        }
        let gathering = Gathering::new(self.choice.decider, cx.catalog);
        // A vote that has waited for this node's log is not judged again, and the tree has changed.
        let inner = gathering.working_for(self.number, txn);
        let gathers_all =
            |inner: &u16| ballot.voters.iter().all(|it| gathering.gathers(*inner, *it));
        let Some(inner) = inner.filter(gathers_all) else {
            self.counted.dropped += 1;
            return;
        };
        if !self.choice.keeps(TreeSwitch::DecidesAtOnce) && ballot.proposal > Timestamp::ZERO {
            self.stable.observe(from, ballot.proposal);
        }
        let gathered = match self.votes.get_mut(&txn) {
            // It was told otherwise who takes part: its coordinator sees to that itself.
            Some(known) if known.ballot.participants != ballot.participants => {
                self.counted.dropped += 1;
                return;
            }
            Some(known) => {
                known.ballot.merge(&ballot);
                known
            }
            None => self.votes.entry(txn).or_insert(Gathered { ballot, since: now, passed: false }),
        };
        self.counted.merged += 1;
        self.issued = self.issued.max(gathered.ballot.proposal);
        gathered.ballot.assert_invariants();
        let below = |it: &&RepositoryId| gathering.gathers(inner, **it);
        let all = gathered.ballot.participants.len();
        let expected = gathered.ballot.participants.iter().filter(below).count();
        let voted = gathered.ballot.voters.len();
        assert!(voted <= expected, "{txn} has votes of others than those below {inner}");
        let to = if expected < all {
            PassedTo::Above(gathering.above(inner, txn))
        } else {
            PassedTo::End
        };
        let are_all_there = voted == expected && self.has_all_children(inner, voted, cx);
        self.go_on(txn, are_all_there, to, cx);
        while let Some(stable) = self.stable.next_stable() {
            self.decide(&stable, cx);
        }
        self.set_sweep_timer(cx);
    }

    /// As printed every child is waited for, whoever takes part.
    fn has_all_children(&self, inner: u16, voted: usize, cx: &Context<'_, V>) -> bool {
        let gathering = Gathering::new(self.choice.decider, cx.catalog);
        let repositories = || (0..cx.catalog.repositories() as u16).map(RepositoryId);
        let below = || repositories().filter(|it| gathering.gathers(inner, *it)).count();
        self.choice.keeps(TreeSwitch::WaitsForParticipants) || voted == below()
    }

    /// Passes on the votes on a transaction once all are there, or one that refuses.
    fn go_on(&mut self, txn: TxnId, are_all_there: bool, to: PassedTo, cx: &mut Context<'_, V>) {
        let passes_at_once = self.choice.keeps(TreeSwitch::RefusalsPassAtOnce);
        let gathered = self.votes.get_mut(&txn).expect("votes that were just kept");
        assert_eq!(gathered.ballot.txn, txn, "whose votes go on");
        let (was_passed, is_refused) = (gathered.passed, gathered.ballot.refused.is_some());
        if !are_all_there && (was_passed || !is_refused) {
            return;
        }
        gathered.passed = true;
        let mut ballot = gathered.ballot.clone();
        if are_all_there {
            self.votes.remove(&txn);
            if !self.choice.keeps(TreeSwitch::ParentsKeepNoVersions) {
                self.latest.check(&mut ballot);
            }
        }
        match (are_all_there, passes_at_once) {
            (true, true) if was_passed => {}
            (true, _) | (false, true) => self.pass(ballot, to, cx),
            (false, false) => Self::tell_coordinator(&ballot, cx),
        }
    }

    /// On to the validator above, or to the end.
    fn pass(&mut self, ballot: MergedVote, to: PassedTo, cx: &mut Context<'_, V>) {
        match to {
            PassedTo::Above(Some(to)) => {
                self.counted.passed_up += 1;
                cx.send(to, Message::MergedVote(Box::new(ballot)));
            }
            PassedTo::Above(None) => self.counted.dropped += 1, // Its coordinator asks again.
            PassedTo::End if self.choice.keeps(TreeSwitch::DecidesAtOnce) => {
                self.decide(&ballot, cx)
            }
            PassedTo::End => self.stable.keep(ballot, cx.now()),
        }
    }

    /// All votes are known, or one that refuses.
    fn decide(&mut self, ballot: &MergedVote, cx: &mut Context<'_, V>) {
        let are_all_there = ballot.voters.len() == ballot.participants.len();
        assert!(are_all_there || ballot.refused.is_some(), "{} is decided early", ballot.txn);
        self.counted.decided += 1;
        let (txn, decision) = (ballot.txn, Self::decision(ballot));
        Self::tell_coordinator(ballot, cx);
        let inner = Gathering::new(self.choice.decider, cx.catalog).working_for(self.number, txn);
        let participants = ballot.participants.clone();
        let goes_back = !self.choice.keeps(TreeSwitch::VotesAloneClimb);
        let carried = ballot.carried.clone().filter(|_| goes_back);
        self.tell_those_below(inner, MergedDecision { txn, decision, participants, carried }, cx);
    }

    /// A decision of a validator above. If that is none by the tree of this node, those named are
    /// told directly.
    fn on_decision(
        &mut self,
        from: Address,
        mut ended: MergedDecision<V>,
        cx: &mut Context<'_, V>,
    ) {
        if self.choice.keeps(TreeSwitch::VotesAloneClimb) {
            ended.carried = None; // Nobody here says such a thing.
        }
        let gathering = Gathering::new(self.choice.decider, cx.catalog);
        let is_above = |inner: &u16| match from.role {
            Role::Service(upper) => gathering.is_above(upper.number(), *inner, ended.txn),
            Role::Repository(_) | Role::Coordinator => false,
        };
        let inner = gathering.working_for(self.number, ended.txn).filter(is_above);
        self.counted.passed_down += 1;
        if let Decision::Commit(place) = &ended.decision {
            self.issued = self.issued.max((*place).into());
        }
        self.tell_those_below(inner, ended, cx);
    }

    /// Tells participants how a transaction ended, by validators of lower inner nodes where there
    /// is an inner node to go down from.
    fn tell_those_below(
        &self,
        inner: Option<u16>,
        ended: MergedDecision<V>,
        cx: &mut Context<'_, V>,
    ) {
        assert!(ended.is_well_formed(), "{} ends for {:?}", ended.txn, ended.participants);
        let gathering = Gathering::new(self.choice.decider, cx.catalog);
        let goes_down = self.choice.keeps(TreeSwitch::DecisionsGoDown);
        let recipients = match inner.filter(|_| goes_down) {
            Some(inner) => gathering.recipients(inner, ended.txn, &ended.participants),
            None => ended.participants.iter().copied().map(Recipient::Participant).collect(),
        };
        let MergedDecision { txn, decision, carried, .. } = ended;
        for recipient in recipients {
            match (recipient, &carried) {
                (Recipient::Participant(it), None) => {
                    let ballots = Mostly::new();
                    cx.send_to_repository(it, Message::Decide { txn, decision, ballots });
                }
                (Recipient::Participant(it), Some(all)) => {
                    let carried = Some(Box::new(all.of(&[it], cx.catalog)));
                    let participants = Repositories::from_slice(&[it]);
                    let ended = MergedDecision { txn, decision, participants, carried };
                    cx.send_to_repository(it, Message::MergedDecision(Box::new(ended)));
                }
                (Recipient::Validator(to, participants), _) => {
                    let of = |all: &VotedFootprint| Box::new(all.of(&participants, cx.catalog));
                    let carried = carried.as_deref().map(of);
                    let ended = MergedDecision { txn, decision, participants, carried };
                    cx.send(to, Message::MergedDecision(Box::new(ended)));
                }
            }
        }
    }

    fn tell_coordinator(ballot: &MergedVote, cx: &mut Context<'_, V>) {
        let (txn, decision, newest) = (ballot.txn, Self::decision(ballot), ballot.proposal);
        let to = Address::coordinator(txn.node);
        let issuer = cx.settings.issuer.filter(|_| cx.catalog.shows_votes(to));
        let shown = RepositoryVote::<V> {
            repository: ballot.participants[0],
            vote: Vote::Decided(decision),
            about: None,
            tag: 0,
        };
        let tag = issuer.map_or(0, |it| shown.vouched(it, txn, &mut Vec::new()));
        cx.send(to, Message::Ended { txn, decision, newest, tag });
    }

    fn decision(ballot: &MergedVote) -> Decision<V::Place> {
        match ballot.decide() {
            Decision::Commit(at) => Decision::Commit(at.into()),
            Decision::Abort(reason) => Decision::Abort(reason),
        }
    }

    /// On how many transactions votes wait for others.
    fn waiting(&self) -> u64 {
        self.votes.values().filter(|it| !it.passed).count() as u64
    }

    fn set_sweep_timer(&mut self, cx: &mut Context<'_, V>) {
        let keeps_votes = !self.votes.is_empty() || !self.stable.is_empty();
        if !self.sweep_timer_set && keeps_votes {
            self.sweep_timer_set = true;
            cx.set_timer(ValidatorTimer::Sweep, cx.settings.in_doubt_after);
        }
    }
}

impl<V: Scalar> StateMachine<TwoPhase<V>> for Validator<V> {
    type Timer = ValidatorTimer;

    muesli_core::role_without_links!(TwoPhase<V>);
    fn judge(&self, _: &Message<V>, _: View<'_>) -> Result<(), Rejection> {
        Ok(())
    }

    /// A client that is told an end reads above it next, and has to show a repository that this was
    /// issued: what this node tells it proves that.
    fn issued(&self) -> Timestamp {
        self.issued
    }

    /// What it has is also at the participants: nobody waits for a validator alone.
    fn unfinished(&self) -> usize {
        0
    }

    fn assert_invariants(&self) {
        for (txn, gathered) in &self.votes {
            gathered.ballot.assert_invariants();
            assert_eq!(*txn, gathered.ballot.txn, "where votes are kept");
        }
        self.stable.assert_invariants();
        self.latest.assert_invariants();
        let are_open = self.votes.values().all(|it| !it.passed || it.ballot.refused.is_some());
        assert!(are_open, "votes that were said are kept by validator {}", self.number);
        let waits = self.sweep_timer_set || self.votes.is_empty() && self.stable.is_empty();
        assert!(waits, "votes are kept by validator {}, and never dropped", self.number);
    }
}

impl<V: Scalar> LoggedRole<TwoPhase<V>> for Validator<V> {
    muesli_core::role_without_records!(TwoPhase<V>);

    /// There is another tree, or repositories live elsewhere.
    fn placed(&mut self, _: &mut Context<'_, V>) {
        self.counted.dropped += self.waiting();
        self.votes.clear();
        self.stable = StableQueue::default();
    }

    fn start(&mut self, _: &mut Context<'_, V>) {}

    fn receive(&mut self, from: Address, message: Message<V>, cx: &mut Context<'_, V>) {
        match message {
            Message::MergedVote(ballot) => self.on_ballot(from, *ballot, cx),
            Message::MergedDecision(ended) => self.on_decision(from, *ended, cx),
            _ => {} // For others: who sent it here is mistaken.
        }
    }

    fn timer(&mut self, timer: ValidatorTimer, cx: &mut Context<'_, V>) {
        match timer {
            ValidatorTimer::Sweep => {
                self.sweep_timer_set = false;
                let (now, patience) = (cx.now(), cx.settings.in_doubt_after);
                let before = self.waiting();
                self.votes.retain(|_, it| it.since + patience > now);
                self.counted.dropped += before - self.waiting();
                self.stable.drop_kept_until(Nanos(now.0.saturating_sub(patience.0)));
                self.set_sweep_timer(cx);
            }
        }
    }
}

impl<V: Scalar> Service<TwoPhase<V>> for Validator<V> {
    fn new(id: ServiceId, _: NodeId, _: u32, _: &Settings, switches: &V::Switches) -> Validator<V> {
        Validator {
            number: id.number(),
            choice: V::tree(switches),
            votes: BTreeMap::new(),
            counted: VotesCounted::default(),
            issued: Timestamp::ZERO,
            stable: StableQueue::default(),
            latest: LatestVersions::default(),
            sweep_timer_set: false,
            variant: PhantomData,
        }
    }

    fn figures(&self) -> Vec<(&'static str, u64)> {
        let VotesCounted { merged, passed_up, passed_down, decided, dropped } = self.counted;
        vec![
            ("merged", merged),
            ("passed-up", passed_up),
            ("passed-down", passed_down),
            ("decided", decided),
            ("dropped", dropped),
            ("waiting", self.waiting()),
        ]
    }
}
