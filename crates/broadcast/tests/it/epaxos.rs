//! EPaxos.

use std::collections::BTreeMap;

use muesli_broadcast::epaxos::{Epaxos, EpaxosSwitch, Switches};
use muesli_broadcast::{Command, CommandId, IdSet, MemberId};
use muesli_core::sabotage::Sabotage;

use crate::exploration::{Scope, explore};
use crate::group::Subject;
use crate::script::Script;
use crate::simulation::{Faults, Simulated, noticed, seeds, simulate};

impl Subject for Epaxos {
    /// Members agree on what a command says and comes after; of two that conflict one comes after
    /// the other.
    fn contradiction(members: &[&Epaxos], ids: &BTreeMap<CommandId, Command>) -> Option<String> {
        let mut committed = BTreeMap::new();
        for id in ids.keys() {
            for value in members.iter().filter_map(|member| member.committed(*id)) {
                let known = *committed.entry(*id).or_insert(value);
                if known != value {
                    return Some(format!("{id} is {known:?} and {value:?}"));
                }
            }
        }
        let are_apart = |a: &CommandId, b: &CommandId| {
            let after = |one: &CommandId, other: &CommandId| {
                let dependencies: &IdSet = &committed[one].dependencies;
                dependencies.contains(*other)
            };
            let conflict = ids[a].conflicts_with(&ids[b]);
            let are_something = committed[a].command.is_some() && committed[b].command.is_some();
            conflict && are_something && !after(a, b) && !after(b, a)
        };
        // What all have delivered is forgotten, and comes before all that is new.
        let over = |id: &CommandId| members.iter().all(|it| it.delivered().contains(*id));
        for a in committed.keys() {
            for b in committed.keys().filter(|b| *b > a) {
                if are_apart(a, b) && !over(a) && !over(b) {
                    return Some(format!("neither of {a} and {b} comes after the other"));
                }
            }
        }
        None
    }

    fn has_ended(&self, id: CommandId) -> bool {
        self.delivered().contains(id) || self.committed(id).is_some()
    }
}

/// `cargo xtask explore` goes to the last state of each.
#[test]
fn explore_two_commands_in_every_interleaving() {
    for (recoveries, all) in [(0, Some(55_456)), (1, None)] {
        let scope = Scope { recoveries, ..Scope::of(&[(0, &[1]), (1, &[1])], 60_000) };
        let found = explore::<Epaxos>(&scope, &Switches::default());
        found.assert_sound(&format!("{recoveries}"));
        let all = all.filter(|_| found.is_complete).unwrap_or(found.states);
        assert_eq!(found.states, all, "a change of the protocol changes this on purpose");
    }
}

fn run(seed: u64, members: usize, switches: &Switches) -> Simulated {
    simulate::<Epaxos>(seed, &Faults::of(members), switches, Epaxos::known)
}

#[test]
fn groups_among_faults_deliver_everything_in_one_order() {
    for members in [1, 2, 3, 5, 7] {
        for seed in seeds(30) {
            run(seed, members, &Switches::default()).assert_sound(members, seed, 0);
        }
    }
}

/// Where a minority does not come back the others go on.
#[test]
fn groups_with_dead_members_go_on() {
    for (members, dead) in [(3, 1), (5, 2)] {
        for seed in seeds(60) {
            let faults = Faults::with_dead(members, dead);
            let found = simulate::<Epaxos>(seed, &faults, &Switches::default(), Epaxos::known);
            found.assert_sound(members, seed, dead);
        }
    }
}

#[test]
fn who_forgets_what_not_all_have_executed_is_noticed() {
    let broken = Switches::broken(EpaxosSwitch::CollectsExecuted);
    assert!(noticed(20, |seed| run(seed, 3, &broken)).is_some());
}

/// Of three that depend on each other in a cycle each may conflict with one that it does not name.
#[test]
fn who_names_what_members_have_agreed_on_alone_is_noticed() {
    let broken = Switches::broken(EpaxosSwitch::NamesDelivered);
    let seed = noticed(500, |seed| run(seed, 3, &broken));
    println!("NamesDelivered: {seed:?}");
    assert!(seed.is_some());
}

/// Of two that were accepted that of the later ballot may be final: Sutra's counterexample.
#[test]
fn who_takes_over_goes_by_the_ballot_in_which_dependencies_were_accepted() {
    let run = |switches: &Switches| {
        let mut group = Script::<Epaxos>::new(3, switches);
        let _other = group.propose(1, &[1]);
        let id = group.propose(0, &[1]);
        group.deliver(0, 1, id);
        group.deliver(1, 0, id); // Member 0 accepts it after the other one; nobody hears of that.
        group.recover(1, id);
        for _ in 0..2 {
            group.deliver(1, 2, id);
            group.deliver(2, 1, id);
        } // Members 1 and 2 accept that it is nothing, and member 1 knows that this is final.
        (0..2).for_each(|_| group.lose(0, 2, id));
        group.recover(2, id); // It asks member 0, and not member 1.
        for _ in 0..2 {
            group.deliver(2, 0, id);
            group.deliver(0, 2, id);
        }
        group
    };
    let sound = run(&Switches::default());
    assert_eq!(sound.violation(), None);
    let id = CommandId { leader: MemberId(0), sequence: 1 };
    let known =
        [1, 2].map(|at: usize| sound.members[at].committed(id).map(|it| it.command.is_none()));
    assert_eq!(known, [Some(true), Some(true)]);
    let broken = run(&Switches::broken(EpaxosSwitch::AcceptedBallots));
    assert!(broken.violation().is_some_and(|it| it.contains("is nothing and after")));
}

/// One of three that remain has a command as its proposer wanted. It may have been committed, for
/// all that they know of it; but another one is that was not told of it.
#[test]
fn who_takes_over_makes_sure_that_nothing_is_in_the_way() {
    let run = |switches: &Switches| {
        let mut group = Script::<Epaxos>::new(5, switches);
        let first = group.propose(0, &[1]);
        group.deliver(0, 1, first);
        let second = group.propose(4, &[1]);
        for member in [2, 3] {
            group.deliver(4, member, second);
            group.deliver(member, 4, second); // It is committed, and comes after nothing.
        }
        group.recover(1, first);
        for _ in 0..3 {
            for member in [2, 3] {
                if group.is_on_its_way(1, member, first) {
                    group.deliver(1, member, first);
                }
                if group.is_on_its_way(member, 1, first) {
                    group.deliver(member, 1, first);
                }
            }
        }
        group
    };
    let sound = run(&Switches::default());
    assert_eq!(sound.violation(), None);
    let id = CommandId { leader: MemberId(0), sequence: 1 };
    assert_eq!(sound.members[1].committed(id).map(|it| it.command.is_none()), Some(true));
    let broken = run(&Switches::broken(EpaxosSwitch::Validates));
    assert!(broken.violation().is_some_and(|it| it.contains("comes after the other")));
}

/// Some commands conflict with all others.
#[test]
fn what_touches_everything_is_ordered_with_all_commands() {
    for (members, dead) in [(3, 0), (3, 1), (5, 0)] {
        let faults = Faults { everything: 15, ..Faults::with_dead(members, dead) };
        for seed in seeds(10) {
            let found = simulate::<Epaxos>(seed, &faults, &Switches::default(), Epaxos::known);
            found.assert_sound(members, seed, dead);
        }
    }
}
