//! Validators: inner nodes of the tree that votes climb.
//!
//! # The idea
//! Participants are leaves. Each votes to the validator above it, which waits for all participants
//! below it, [merges](MergedVote::merge) their votes, and says them as one to the validator above.
//! The lowest one that has all participants below it [decides](MergedVote::decide), and tells them
//! and the coordinator. So a vote leaves its subtree only where somebody else takes part, and once
//! for all.
//!
//! # Why nothing rests on it
//! A validator has nothing but votes in flight, and nothing of it is stable. The votes are, at the
//! repositories, and decide alike wherever they are gathered: a coordinator that has waited asks
//! again, and is then voted to itself; participants that have waited ask each other, as under all
//! of the family ([`termination`](super::participant::termination)). A validator that is slow, or
//! was, decides the same. What nobody votes to any more is dropped after a while.

pub(in crate::two_phase) mod gathering;
mod stable_queue;
pub(in crate::two_phase) mod tree;

use std::collections::BTreeMap;
use std::marker::PhantomData;

use muesli_core::{
    Address, Decision, LoggedRole, Nanos, NodeId, RepositoryId, Service, ServiceId, Settings,
    StateMachine, Timestamp, TxnId, timers,
};

use self::gathering::Gathering;
use self::stable_queue::StableQueue;
use self::tree::Tree;
use super::message::merged_vote::MergedVote;
use super::message::{Message, Mostly};
use super::policy::{TreeChoice, TreeSwitch};
use super::{Context, Scalar, TwoPhase};

/// A validator.
///
/// Invariants: it has votes of nobody who does not take part, and what it has said up or decided it
/// has the votes of all below for, or one that refuses.
#[derive(Clone, Debug)]
pub struct Validator<V> {
    /// Which one it is: an inner node's, or one beside a repository.
    number: u16,
    choice: TreeChoice,
    votes: BTreeMap<TxnId, Gathered>,
    /// As printed: votes of all, kept until they are stable.
    stable: StableQueue,
    sweep_timer_set: bool,
    variant: PhantomData<V>,
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

timers! {
    /// The timers of a validator.
    pub enum ValidatorTimer {
        /// Drops votes that nobody waits for.
        Sweep = 0,
    }
}

impl<V: Scalar> Validator<V> {
    /// Votes from below.
    fn on_ballot(&mut self, from: Address, ballot: MergedVote, cx: &mut Context<'_, V>) {
        let (txn, number, now) = (ballot.txn, self.number, cx.now());
        let gathering = Gathering::new(self.choice.decider, cx.catalog);
        let gathers = |it: &&RepositoryId| gathering.gathers(number, **it);
        if !ballot.voters.iter().all(|it| gathers(&it)) {
            return; // Of another tree: its coordinator asks again.
        }
        if !self.choice.keeps(TreeSwitch::DecidesAtOnce) && ballot.proposal > Timestamp::ZERO {
            self.stable.heard(from, ballot.proposal);
        }
        let gathered = match self.votes.get_mut(&txn) {
            // It was told otherwise who takes part: its coordinator sees to that itself.
            Some(known) if known.ballot.participants != ballot.participants => return,
            Some(known) => {
                known.ballot.merge(&ballot);
                known
            }
            None => self.votes.entry(txn).or_insert(Gathered { ballot, since: now, passed: false }),
        };
        gathered.ballot.assert_invariants();
        let all = gathered.ballot.participants.len();
        let expected = gathered.ballot.participants.iter().filter(gathers).count();
        let voted = gathered.ballot.voters.len();
        assert!(voted <= expected, "{txn} has votes of others than those below {number}");
        let are_all_there = voted == expected && self.has_all_children(voted, gathering, cx);
        let is_told_at_once = self.choice.keeps(TreeSwitch::RefusalsPassAtOnce);
        let gathered = self.votes.get_mut(&txn).expect("votes that were just kept");
        let is_refused = gathered.ballot.refused.is_some() && !gathered.passed;
        if are_all_there {
            let Gathered { ballot, passed, .. } =
                self.votes.remove(&txn).expect("votes that were just kept");
            if !passed || !is_told_at_once {
                self.pass(ballot, expected == all, gathering, cx);
            }
        } else if is_refused {
            gathered.passed = true;
            let ballot = gathered.ballot.clone();
            match is_told_at_once {
                true => self.pass(ballot, expected == all, gathering, cx),
                false => Self::tell_coordinator(&ballot, cx),
            }
        }
        while let Some(stable) = self.stable.next_stable() {
            Self::decide(&stable, cx);
        }
        self.set_sweep_timer(cx);
    }

    /// As printed every child is waited for, whoever takes part.
    fn has_all_children(
        &self,
        voted: usize,
        gathering: Gathering<'_>,
        cx: &Context<'_, V>,
    ) -> bool {
        let repositories = || (0..cx.catalog.repositories() as u16).map(RepositoryId);
        let below = || repositories().filter(|it| gathering.gathers(self.number, *it)).count();
        self.choice.keeps(TreeSwitch::WaitsForParticipants) || voted == below()
    }

    /// All votes below are known, or one that refuses: on to the validator above, or to the end.
    fn pass(
        &mut self,
        ballot: MergedVote,
        covers_all: bool,
        gathering: Gathering<'_>,
        cx: &mut Context<'_, V>,
    ) {
        match gathering.parent(self.number).filter(|_| !covers_all) {
            Some(parent) => {
                let to = Tree::of(cx.catalog).address(parent);
                cx.send(to, Message::MergedVote(Box::new(ballot)));
            }
            None if !covers_all => {} // Of another tree: its coordinator asks again.
            None if self.choice.keeps(TreeSwitch::DecidesAtOnce) => Self::decide(&ballot, cx),
            None => self.stable.keep(ballot, cx.now()),
        }
    }

    /// All votes are known, or one that refuses.
    fn decide(ballot: &MergedVote, cx: &mut Context<'_, V>) {
        let (txn, decision) = (ballot.txn, Self::decision(ballot));
        Self::tell_coordinator(ballot, cx);
        for &repository in &ballot.participants {
            let ballots = Mostly::new();
            cx.send_to_repository(repository, Message::Decide { txn, decision, ballots });
        }
    }

    fn tell_coordinator(ballot: &MergedVote, cx: &mut Context<'_, V>) {
        let (txn, decision, newest) = (ballot.txn, Self::decision(ballot), ballot.proposal);
        cx.send(Address::coordinator(txn.node), Message::Ended { txn, decision, newest });
    }

    fn decision(ballot: &MergedVote) -> Decision<V::Place> {
        match ballot.decide() {
            Decision::Commit(at) => Decision::Commit(at.into()),
            Decision::Abort(reason) => Decision::Abort(reason),
        }
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
    muesli_core::role_without_judgement!(TwoPhase<V>);

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
        let are_open = self.votes.values().all(|it| !it.passed || it.ballot.refused.is_some());
        assert!(are_open, "votes that were said are kept by validator {}", self.number);
        let waits = self.sweep_timer_set || self.votes.is_empty() && self.stable.is_empty();
        assert!(waits, "votes are kept by validator {}, and never dropped", self.number);
    }
}

impl<V: Scalar> LoggedRole<TwoPhase<V>> for Validator<V> {
    muesli_core::role_without_records!(TwoPhase<V>);
    muesli_core::role_that_stays!(TwoPhase<V>);

    fn start(&mut self, _: &mut Context<'_, V>) {}

    fn receive(&mut self, from: Address, message: Message<V>, cx: &mut Context<'_, V>) {
        if let Message::MergedVote(ballot) = message {
            self.on_ballot(from, *ballot, cx);
        }
    }

    fn timer(&mut self, timer: ValidatorTimer, cx: &mut Context<'_, V>) {
        match timer {
            ValidatorTimer::Sweep => {
                self.sweep_timer_set = false;
                let (now, patience) = (cx.now(), cx.settings.in_doubt_after);
                self.votes.retain(|_, it| it.since + patience > now);
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
            stable: StableQueue::default(),
            sweep_timer_set: false,
            variant: PhantomData,
        }
    }
}
