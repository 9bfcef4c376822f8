//! Partial Order Broadcast.

mod ends;
mod epochs;
mod fast;
mod positions;
mod records;

use std::collections::BTreeMap;

use muesli_broadcast::pob::{Pob, PobSwitch, Switches};
use muesli_broadcast::{Command, CommandId, MemberId};
use muesli_core::sabotage::Sabotage;

use crate::exploration::{Scope, explore};
use crate::group::Subject;
use crate::script::Script;
use crate::simulation::{Faults, Simulated, noticed, seeds, simulate};

impl Subject for Pob {
    fn contradiction(members: &[&Pob], ids: &BTreeMap<CommandId, Command>) -> Option<String> {
        for id in ids.keys() {
            let mut finals = members.iter().filter_map(|member| member.final_position(*id));
            let Some(first) = finals.next() else { continue };
            if let Some(other) = finals.find(|other| *other != first) {
                return Some(format!("{id} is final at {first:?} and at {other:?}"));
            }
        }
        None
    }

    fn has_ended(&self, id: CommandId) -> bool {
        self.delivered().contains(id) || self.final_position(id).is_some()
    }
}

/// A script with all rules kept is sound; with one of them broken members contradict each other in
/// this way.
fn assert_needed(
    switches: &Switches,
    broken: PobSwitch,
    what: &str,
    run: impl Fn(&Switches) -> Script<Pob>,
) -> Script<Pob> {
    let sound = run(switches);
    sound.assert_invariants();
    assert_eq!(sound.violation(), None, "{broken:?}");
    let found = run(&switches.clone().without(broken)).violation();
    assert!(found.as_ref().is_some_and(|it| it.contains(what)), "{broken:?}: {found:?}");
    sound
}

/// What members have of two final positions of one command.
const TWO_POSITIONS: &str = "is final at";

/// What members have of two orders.
const TWO_ORDERS: &str = "before";

/// `cargo xtask explore` goes to the last state of each.
#[test]
fn explore_two_commands_in_every_interleaving() {
    for (switches, recoveries, all) in [
        (Switches::default(), 0, Some(679_481)),
        (Switches::fast(), 0, Some(201_925)),
        (Switches::default(), 1, None),
        (Switches::fast(), 1, None),
    ] {
        let scope = Scope { recoveries, ..Scope::of(&[(0, &[1]), (1, &[1])], 60_000) };
        let found = explore::<Pob>(&scope, &switches);
        found.assert_sound(&format!("{switches:?}, {recoveries}"));
        let all = all.filter(|_| found.is_complete).unwrap_or(found.states);
        assert_eq!(found.states, all, "a change of the protocol changes this on purpose");
    }
}

/// Some commands conflict with all others.
#[test]
fn what_touches_everything_is_ordered_with_all_commands() {
    for (members, dead) in [(3, 0), (3, 1), (5, 0)] {
        let faults = Faults { everything: 15, ..Faults::with_dead(members, dead) };
        for seed in seeds(10) {
            for switches in [Switches::default(), Switches::fast()] {
                let found = simulate::<Pob>(seed, &faults, &switches, Pob::known);
                found.assert_sound(members, seed, dead);
            }
        }
    }
}

fn run(seed: u64, members: usize, switches: &Switches) -> Simulated {
    simulate::<Pob>(seed, &Faults::of(members), switches, Pob::known)
}

fn run_with_dead(seed: u64, switches: &Switches) -> Simulated {
    simulate::<Pob>(seed, &Faults::with_dead(3, 1), switches, Pob::known)
}

#[test]
fn groups_among_faults_deliver_everything_in_one_order() {
    for members in [1, 2, 3, 5] {
        for seed in seeds(40) {
            run(seed, members, &Switches::default()).assert_sound(members, seed, 0);
            run(seed, members, &Switches::fast()).assert_sound(members, seed, 0);
        }
    }
}

/// Of two positions that were accepted that of the later epoch may be final.
#[test]
fn who_takes_over_goes_by_the_epoch_in_which_a_position_was_accepted() {
    let run = |switches: &Switches| {
        let mut group = Script::<Pob>::new(3, switches);
        let id = group.propose(0, &[1]);
        group.deliver(0, 1, id);
        group.deliver(1, 0, id); // Member 0 accepts position 1; nobody hears of it.
        group.recover(1, id);
        for _ in 0..3 {
            group.deliver(1, 2, id);
            group.deliver(2, 1, id);
        } // Members 1 and 2 accept position 2, and member 1 knows that it is final.
        (0..2).for_each(|_| group.lose(0, 2, id));
        group.recover(2, id); // It asks member 0, and not member 1.
        for _ in 0..2 {
            group.deliver(2, 0, id);
            group.deliver(0, 2, id);
        }
        group
    };
    let broken = PobSwitch::AcceptedEpochs;
    let sound = assert_needed(&Switches::default(), broken, TWO_POSITIONS, run);
    let id = CommandId { leader: MemberId(0), sequence: 1 };
    let known = [1, 2].map(|at: usize| sound.members[at].final_position(id).map(|it| it.0));
    assert_eq!(known, [Some(2), Some(2)]);
}

/// With three of five, as printed, one member that agrees with a leader does not tell whether it
/// has decided: another command may be final that has not heard of this one.
#[test]
fn fast_quorums_as_printed_are_too_small() {
    let run = |switches: &Switches| {
        let mut group = Script::<Pob>::new(5, switches);
        let before = group.propose(3, &[2]);
        for member in [2, 4] {
            group.deliver(3, member, before);
            group.deliver(member, 3, before);
        }
        if group.is_on_its_way(3, 4, before) {
            group.deliver(3, 4, before);
        }
        let first = group.propose(0, &[1]);
        group.deliver(0, 1, first);
        let second = group.propose(4, &[1, 2]);
        for member in [2, 3] {
            group.deliver(4, member, second);
            group.deliver(member, 4, second);
        }
        group.recover(1, first);
        for _ in 0..2 {
            for member in [2, 3] {
                group.deliver(1, member, first);
                group.deliver(member, 1, first);
            }
        }
        while group.is_on_its_way(3, 1, before) {
            group.lose(3, 1, before); // Member 1 does not hear of what the second one waits for.
        }
        group.deliver_all();
        group.recover(1, before);
        group.deliver_all();
        group
    };
    let sound = run(&Switches::fast());
    assert_eq!(sound.violation(), None);
    assert_eq!(sound.order(0).len(), 3);
    let broken = run(&Switches::fast().without(PobSwitch::FastQuorums));
    assert!(broken.violation().is_some_and(|it| it.contains("before")));
}

/// A command's position, as a member knows it, may be higher than its final one: from an epoch that
/// came to nothing. So who accepts `second` names `first`, though that seems to come after it.
#[test]
fn what_is_accepted_names_commands_that_seem_to_be_higher() {
    let run = |switches: &Switches| {
        let mut group = Script::<Pob>::new(3, switches);
        // Member 2 has come to position 4 with commands of which nobody has heard.
        let others: Vec<_> = [7, 8, 9, 2].map(|object| group.propose(2, &[object])).to_vec();
        let second = group.propose(1, &[1, 2]);
        group.deliver(1, 2, second); // It is to be at 5. Member 1 does not hear of that yet.
        let first = group.propose(0, &[1]);
        group.deliver(0, 1, first);
        group.deliver(1, 0, first); // Member 0 alone accepts it, at 2.
        group.recover(2, first);
        group.deliver(2, 1, first);
        group.deliver(1, 2, first);
        group.deliver(2, 1, first); // Members 1 and 2 have it at 6, in an epoch that is left now.
        group.lose(1, 2, first);
        group.lose(2, 0, first);
        group.lose(2, 0, first);
        group.deliver(2, 1, second);
        group.deliver(1, 2, second);
        group.deliver(2, 1, second); // The second one is final, at 5.
        group.deliver(2, 1, others[3]);
        group.deliver(1, 2, others[3]);
        group.deliver(2, 1, others[3]);
        group.deliver(1, 2, others[3]);
        group.deliver(2, 1, others[3]);
        // Member 0 does not hear of what the second one waits for.
        (0..3).for_each(|_| group.lose(2, 0, others[3]));
        group.recover(0, first);
        group.deliver_all();
        group.recover(0, first);
        group.deliver_all();
        group.recover(0, others[3]);
        group.deliver_all();
        group
    };
    let sound = run(&Switches::default());
    assert_eq!(sound.violation(), None);
    assert_eq!(sound.order(0).len(), 6, "all are delivered: {:?}", sound.order(0));
    let broken = run(&Switches::broken(PobSwitch::AcceptsUnfiltered));
    assert!(broken.violation().is_some(), "{:?} {:?}", broken.order(0), broken.order(1));
}

/// Where a minority does not come back the others go on.
#[test]
fn groups_with_dead_members_go_on() {
    for switches in [Switches::default(), Switches::fast()] {
        seeds(40).for_each(|seed| run_with_dead(seed, &switches).assert_sound(3, seed, 1));
    }
}

/// What the paper prints in their place is seen to be wrong by some seed.
#[test]
fn rules_that_are_broken_are_noticed() {
    let broken = Switches::broken;
    for (members, switches) in [
        (3, broken(PobSwitch::AcceptsComplete)),
        (3, broken(PobSwitch::TieBreak)),
        (3, broken(PobSwitch::AwaitsLower)),
        (3, broken(PobSwitch::StatusAdvances)),
        (3, broken(PobSwitch::StableInAnyEpoch)),
        (3, broken(PobSwitch::NamesDelivered)),
        (3, broken(PobSwitch::CollectsDelivered)),
    ] {
        let seed = noticed(5_000, |seed| run(seed, members, &switches));
        println!("{switches:?}: {seed:?}");
        assert!(seed.is_some(), "{switches:?}");
    }
    for switch in [PobSwitch::OwnPromise, PobSwitch::RecoversUnknown, PobSwitch::SuspectsOthers] {
        let seed = noticed(3_000, |seed| run_with_dead(seed, &broken(switch)));
        println!("{switch:?}: {seed:?}");
        assert!(seed.is_some(), "{switch:?}");
    }
}
