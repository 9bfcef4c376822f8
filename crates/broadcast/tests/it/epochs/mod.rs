//! Members that are exchanged.

mod exchanged;
mod exploration;
mod faults;
mod script;
mod site;

use muesli_broadcast::epaxos::Epaxos;
use muesli_broadcast::epochs::{EpochSettings, EpochSwitch, EpochSwitches};
use muesli_broadcast::generalized::Generalized;
use muesli_broadcast::m2paxos_bounded::{BoundedSwitches, M2PaxosBounded};
use muesli_broadcast::multipaxos::{MultiPaxos, PlacedLeader};
use muesli_broadcast::pob::{self, Pob};
use muesli_broadcast::{BatchLimits, Broadcast, MemberId};
use muesli_core::sabotage::Sabotage as _;

use crate::simulation::seeds;
use exchanged::Exchanged;
use exploration::{ExchangeScope, Explored, FoundStates, explore};
use faults::{ExchangeFaults, exchange};

fn run<B: Broadcast>(seed: u64, members: usize, choice: B::Switches) -> Exchanged {
    let settings = EpochSettings { choice, ..EpochSettings::default() };
    exchange::<B>(seed, &ExchangeFaults::of(members), &settings)
}

/// What is found in all runs together is what they are to come upon.
fn run_all<B: Broadcast>(few: u64, choice: &B::Switches) {
    let mut all = Exchanged::default();
    for members in [3, 5] {
        for seed in seeds(few) {
            let found = run::<B>(seed, members, choice.clone());
            found.assert_sound(members, seed);
            all.add(&found);
        }
    }
    println!("{}: {all:?}", B::NAME);
    all.assert_complete();
}

#[test]
fn members_are_exchanged_among_faults() {
    run_all::<Pob>(12, &pob::Switches::default());
    run_all::<Pob>(12, &pob::Switches::fast());
    run_all::<Epaxos>(12, &Default::default());
    run_all::<Generalized>(12, &Default::default());
    run_all::<MultiPaxos>(12, &PlacedLeader(MemberId(1)));
    run_all::<M2PaxosBounded<MultiPaxos>>(12, &Default::default());
    run_all::<M2PaxosBounded<MultiPaxos>>(12, &BoundedSwitches::acquiring());
}

/// Requests wait for those before them, and are ordered together.
#[test]
fn members_are_exchanged_while_requests_wait_for_batches() {
    fn run_batches<B: Broadcast>(few: u64, choice: &B::Switches) -> usize {
        let batches = Some(BatchLimits { commands: 3, ..BatchLimits::default() });
        let settings = EpochSettings { choice: choice.clone(), batches, ..Default::default() };
        let mut all = Exchanged::default();
        for (members, seed) in
            [3, 5].into_iter().flat_map(|it| seeds(few).map(move |seed| (it, seed)))
        {
            let found = exchange::<B>(seed, &ExchangeFaults::crowded(members), &settings);
            found.assert_sound(members, seed);
            all.add(&found);
        }
        println!("{}: {all:?}", B::NAME);
        all.several
    }
    let several = [
        run_batches::<Pob>(3, &pob::Switches::default()),
        run_batches::<Epaxos>(3, &Default::default()),
        run_batches::<Generalized>(3, &Default::default()),
        run_batches::<MultiPaxos>(3, &PlacedLeader(MemberId(1))),
    ];
    assert!(several.iter().all(|it| *it > 100), "few are ordered together: {several:?}");
    // Where members contend for objects, commands leave by themselves.
    run_batches::<M2PaxosBounded<MultiPaxos>>(3, &Default::default());
}

/// All members that it was to ask for the state have been exchanged since: it asks those that speak
/// to it (found by a search; without that it stood still).
#[test]
fn a_new_member_asks_others_where_all_that_it_knew_are_gone() {
    run::<Pob>(207, 3, pob::Switches::default()).assert_sound(3, 207);
}

fn explore_scope<B: Explored>(
    (commands, asks, most): (&[usize], usize, usize),
    choice: B::Switches,
    all: Option<usize>,
) -> FoundStates {
    let is_whole = std::env::var_os("MUESLI_EXPLORE_WHOLE").is_some();
    let states_most = if is_whole { usize::MAX } else { most };
    let scope = ExchangeScope { commands: commands.to_vec(), change: 1, asks, states_most };
    let settings = EpochSettings { choice, ..EpochSettings::default() };
    let found = explore::<B>(&scope, &settings);
    println!("{} {commands:?} {asks}: {found:?}", B::NAME);
    assert!(found.violation.is_none(), "{found:#?}");
    assert!(found.replaced > 0, "nobody was replaced: {found:?}");
    let all = all.filter(|_| found.is_complete).unwrap_or(found.states);
    assert_eq!(found.states, all, "a change of the protocol changes this on purpose");
    found
}

/// A change alone, with one command, and with two; `cargo xtask explore` goes to the last state of
/// each.
#[test]
fn explore_an_exchange_in_every_interleaving() {
    let leader = PlacedLeader(MemberId(0));
    explore_scope::<MultiPaxos>((&[], 1, 100_000), leader, Some(3_643));
    explore_scope::<MultiPaxos>((&[0], 1, 20_000), leader, None);
    explore_scope::<MultiPaxos>((&[0, 1], 1, 20_000), leader, None);
    explore_scope::<Pob>((&[], 1, 100_000), pob::Switches::fast(), Some(209));
    explore_scope::<Pob>((&[0], 1, 20_000), pob::Switches::default(), None);
    explore_scope::<Epaxos>((&[0], 1, 20_000), Default::default(), None);
}

/// Each rule of epochs is needed: without it runs go wrong.
#[test]
fn rules_that_are_broken_are_noticed() {
    let all = [
        EpochSwitch::ChangesEndEpochs,
        EpochSwitch::DeliversOnce,
        EpochSwitch::ProposesAnew,
        EpochSwitch::RemembersNumbers,
    ];
    for switch in all {
        let switches = EpochSwitches::broken(switch);
        let settings = EpochSettings::<pob::Switches> { switches, ..EpochSettings::default() };
        let noticed = (0..200).find(|seed| {
            let run = || exchange::<Pob>(*seed, &ExchangeFaults::of(3), &settings);
            let ran = std::panic::catch_unwind(run);
            ran.map_or(true, |found| found.violation.is_some() || !found.stuck.is_empty())
        });
        println!("{switch:?}: {noticed:?}");
        assert!(noticed.is_some(), "nobody notices {switch:?}");
    }
}
