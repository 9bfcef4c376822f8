//! Several commands ordered as one.

use std::collections::BTreeMap;

use muesli_broadcast::epaxos::Epaxos;
use muesli_broadcast::generalized::Generalized;
use muesli_broadcast::m2paxos::M2Paxos;
use muesli_broadcast::multipaxos::MultiPaxos;
use muesli_broadcast::pob::{self, Pob};
use muesli_broadcast::{
    BatchLimits, BatchSwitch, Batched, BatchedSwitches, Broadcast, Command, CommandId,
};
use muesli_core::sabotage::Sabotage;

use crate::group::Subject;
use crate::script::Script;
use crate::simulation::{Faults, Simulated, noticed, seeds, simulate};

impl<B: Subject> Subject for Batched<B> {
    const WAITS: bool = true;

    /// That is looked at without batches.
    fn contradiction(_: &[&Batched<B>], _: &BTreeMap<CommandId, Command>) -> Option<String> {
        None
    }

    fn has_ended(&self, id: CommandId) -> bool {
        self.has_delivered(id)
    }
}

/// Small batches, so many open at once.
fn limits(open: usize) -> BatchLimits {
    BatchLimits { commands: 3, open, ..BatchLimits::default() }
}

fn run<B: Subject>(
    seed: u64,
    faults: &Faults,
    switches: &BatchedSwitches<B::Switches>,
    kept: fn(&B) -> usize,
) -> Simulated {
    simulate::<Batched<B>>(seed, faults, switches, |it| kept(it.inside()) + it.kept())
}

fn check<B: Subject>(few: u64, inside: &B::Switches, kept: fn(&B) -> usize) {
    for (members, dead) in [(1, 0), (3, 0), (3, 1), (5, 0)] {
        for seed in seeds(few) {
            let open = 1 + seed as usize % 2;
            let switches = BatchedSwitches::new(limits(open), inside.clone());
            let faults = Faults::with_dead(members, dead);
            let found = run::<B>(seed, &faults, &switches, kept);
            found.assert_sound(members, seed, dead);
        }
    }
}

#[test]
fn groups_among_faults_deliver_everything_in_one_order() {
    check::<M2Paxos>(40, &Default::default(), M2Paxos::known);
    check::<MultiPaxos>(20, &Default::default(), MultiPaxos::known);
    check::<Epaxos>(20, &Default::default(), Epaxos::known);
    check::<Pob>(20, &pob::Switches::fast(), Pob::known);
    check::<Generalized>(20, &Default::default(), Generalized::known);
}

#[test]
fn rules_that_are_broken_are_noticed() {
    for switch in [BatchSwitch::NamesWithin, BatchSwitch::RemembersNumbers] {
        let run = |seed| {
            let mut switches = BatchedSwitches::broken(switch);
            switches.limits = limits(1);
            run::<M2Paxos>(seed, &Faults::of(3), &switches, M2Paxos::known)
        };
        let seed = noticed(500, run);
        println!("{switch:?}: {seed:?}");
        assert!(seed.is_some(), "{switch:?}");
    }
}

/// What comes while a batch is under way leaves when that is delivered, as one command.
#[test]
fn commands_that_come_together_leave_together() {
    let mut group = Script::<Batched<M2Paxos>>::new(3, &BatchedSwitches::default());
    // Nobody owns these objects: each is acquired for its command.
    let first = group.propose_all(0, &[&[1], &[2]]);
    assert_eq!(group.kinds().len(), 4, "two commands, each to two others: {:?}", group.kinds());
    group.deliver_all();
    let second = group.propose_all(0, &[&[1], &[2], &[1]]);
    let accepts = ["0 to 1: Accept", "0 to 2: Accept"];
    assert_eq!(group.kinds(), accepts, "they are one");
    let third = group.propose(0, &[2]);
    let fourth = group.propose(0, &[1]);
    assert_eq!(group.kinds(), accepts, "these wait");
    while group.kinds().iter().filter(|it| it.ends_with(": Accept")).count() > 0 {
        group.deliver_next();
    }
    while !group.kinds().iter().any(|it| it.ends_with(": Accept")) {
        group.deliver_next();
    }
    let sent = group.kinds();
    assert_eq!(sent.iter().filter(|it| it.ends_with(": Accept")).count(), 2, "{sent:?}");
    group.deliver_all();
    let all = [first, second, vec![third, fourth]].concat();
    assert_eq!(group.order(0).len(), all.len());
    assert_eq!((group.order(1), group.order(2)), (group.order(0), group.order(0)));
    assert_eq!(group.violation(), None);
}

/// Whose objects are at several members leaves by itself, and nothing waits for it.
#[test]
fn a_command_of_several_owners_leaves_by_itself() {
    let mut group = Script::<Batched<M2Paxos>>::new(3, &BatchedSwitches::default());
    for (at, object) in [(0, 1), (1, 2)] {
        group.propose(at, &[object]);
        group.deliver_all();
    }
    let ids = group.propose_all(0, &[&[1], &[1, 2], &[2], &[1]]);
    let kinds = group.kinds();
    let count = |kind: &str| kinds.iter().filter(|it| it.contains(kind)).count();
    assert_eq!(count("0 to 1: Accept"), 1, "those of the own object: {kinds:?}");
    assert_eq!(count("0 to 1: Forward"), 2, "that of both, and that of the other one: {kinds:?}");
    group.deliver_all();
    for ms in (10..2_000).step_by(10) {
        (0..3).for_each(|at| group.tick(at, ms));
        group.deliver_all();
    }
    assert!(ids.iter().all(|id| group.order(2).contains(id)), "{ids:?}");
    assert_eq!(group.violation(), None);
}

#[test]
fn commands_that_wait_are_known_as_proposed() {
    let mut group = Script::<Batched<MultiPaxos>>::new(3, &BatchedSwitches::default());
    let first = group.propose(0, &[1]);
    let second = group.propose(0, &[2]);
    let open: Vec<CommandId> = group.members[0].proposed().map(|(id, _)| id).collect();
    assert_eq!(open, [first, second]);
    assert!(!group.members[0].waits(first));
    assert!(group.members[0].waits(second));
    assert!(group.members[0].proposed_command(second).is_some());
    group.deliver_all();
    assert_eq!(group.members[0].proposed().count(), 0);
    assert!((0..3).all(|at| group.members[at].has_delivered(second)));
}
