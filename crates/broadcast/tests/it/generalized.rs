//! Generalized Paxos.

use std::collections::BTreeMap;

use muesli_broadcast::generalized::{Generalized, GeneralizedSwitch, Switches};
use muesli_broadcast::{Command, CommandId, IdSet, MemberId, OrderedAfter};
use muesli_core::sabotage::Sabotage;

use crate::exploration::{Scope, explore};
use crate::group::Subject;
use crate::script::Script;
use crate::simulation::{Faults, Simulated, noticed, seeds, simulate};

impl Subject for Generalized {
    /// Members agree on what a command says and comes after, but for what all have delivered; of
    /// two that conflict one comes after the other.
    fn contradiction(
        members: &[&Generalized],
        ids: &BTreeMap<CommandId, Command>,
    ) -> Option<String> {
        let mut over = members[0].delivered().clone();
        members[1..].iter().for_each(|it| over.intersect(it.delivered()));
        let mut learned: BTreeMap<CommandId, OrderedAfter> = BTreeMap::new();
        for id in ids.keys() {
            for mut value in members.iter().filter_map(|member| member.learned(*id)) {
                value.dependencies = value.dependencies.without(&over);
                match learned.get(id) {
                    Some(known) if *known != value => {
                        return Some(format!("{id} is {known:?} and {value:?}"));
                    }
                    _ => learned.insert(*id, value),
                };
            }
        }
        let are_apart = |a: &CommandId, b: &CommandId| {
            let after = |one: &CommandId, other: &CommandId| {
                let dependencies: &IdSet = &learned[one].dependencies;
                dependencies.contains(*other)
            };
            let conflict = ids[a].conflicts_with(&ids[b]);
            let are_something = learned[a].command.is_some() && learned[b].command.is_some();
            conflict && are_something && !after(a, b) && !after(b, a)
        };
        // What all have delivered comes before all that is new.
        let open: Vec<&CommandId> = learned.keys().filter(|id| !over.contains(**id)).collect();
        for (at, a) in open.iter().enumerate() {
            if let Some(b) = open[at + 1..].iter().find(|b| are_apart(a, b)) {
                return Some(format!("neither of {a} and {b} comes after the other"));
            }
        }
        None
    }

    fn has_ended(&self, id: CommandId) -> bool {
        self.delivered().contains(id) || self.learned(id).is_some()
    }
}

/// `cargo xtask explore` goes to the last state of each.
#[test]
fn explore_two_commands_in_every_interleaving() {
    for (recoveries, all) in [(0, Some(344_054)), (1, None)] {
        let scope = Scope { recoveries, ..Scope::of(&[(0, &[1]), (1, &[1])], 60_000) };
        let found = explore::<Generalized>(&scope, &Switches::default());
        found.assert_sound(&format!("{recoveries}"));
        let all = all.filter(|_| found.is_complete).unwrap_or(found.states);
        assert_eq!(found.states, all, "a change of the protocol changes this on purpose");
    }
}

fn run(seed: u64, members: usize, switches: &Switches) -> Simulated {
    simulate::<Generalized>(seed, &Faults::of(members), switches, Generalized::known)
}

#[test]
fn groups_among_faults_deliver_everything_in_one_order() {
    for members in [1, 2, 3, 5, 7] {
        for seed in seeds(30) {
            run(seed, members, &Switches::default()).assert_sound(members, seed, 0);
        }
    }
}

/// Where a minority does not come back, among them perhaps the placed leader, the others go on.
#[test]
fn groups_with_dead_members_go_on() {
    for (members, dead) in [(3, 1), (5, 2)] {
        for seed in seeds(60) {
            let faults = Faults::with_dead(members, dead);
            let leader = Switches::led_by(MemberId((seed % members as u64) as u16));
            let found = simulate::<Generalized>(seed, &faults, &leader, Generalized::known);
            found.assert_sound(members, seed, dead);
        }
    }
}

#[test]
fn rules_that_are_broken_are_noticed() {
    for switch in [
        GeneralizedSwitch::KeepsReported,
        GeneralizedSwitch::FreeVoteQuorums,
        GeneralizedSwitch::ComparesVotes,
        GeneralizedSwitch::KeepsOwnOrder,
        GeneralizedSwitch::NamesDelivered,
        GeneralizedSwitch::CollectsDelivered,
    ] {
        let seed = noticed(100, |seed| run(seed, 3, &Switches::broken(switch)));
        println!("{switch:?}: {seed:?}");
        assert!(seed.is_some(), "{switch:?}");
    }
}

/// A command is learned after two delays where all agree, and after four where they do not: its
/// leader orders it.
#[test]
fn who_agrees_learns_at_once_and_the_leader_orders_the_rest() {
    let mut group = Script::<Generalized>::new(3, &Switches::led_by(MemberId(2)));
    let first = group.propose(0, &[1]);
    for member in [1, 2] {
        group.deliver(0, member, first);
        group.deliver(member, 0, first);
    }
    assert_eq!(group.order(0), [first]);
    group.deliver_all();
    let (second, third) = (group.propose(0, &[1]), group.propose(1, &[1]));
    group.deliver(0, 2, second); // With the vote of member 0.
    group.deliver(1, 2, third); // With that of member 1, who has no `second` before it.
    group.deliver_kind(2, 1, "Accept"); // No three members can agree on it any more.
    assert_eq!(group.order(1), [first, third], "`second` is not chosen without it any more");
    group.deliver_all();
    assert_eq!(group.violation(), None);
    for member in 0..3 {
        assert_eq!(group.order(member), [first, third, second], "{member}");
    }
}

/// A member that did not vote in time is not waited for again until something comes from it.
#[test]
fn who_is_silent_is_waited_for_once() {
    let mut group = Script::<Generalized>::new(3, &Switches::default());
    let vote = |group: &mut Script<Generalized>| {
        let id = group.propose(0, &[1]);
        group.deliver(0, 1, id);
        group.deliver(1, 0, id);
        id
    };
    let accept = |group: &mut Script<Generalized>| {
        group.deliver_kind(0, 1, "Accept");
        group.deliver_kind(1, 0, "AckAccept");
    };
    let first = vote(&mut group);
    group.tick(0, 200);
    assert!(group.order(0).is_empty(), "member 2 may make it three that agree");
    group.tick(0, 400);
    accept(&mut group);
    let second = vote(&mut group);
    accept(&mut group);
    assert_eq!(group.order(0), [first, second]);
    group.deliver_all(); // Member 2 is there again.
    let third = vote(&mut group);
    assert!(!group.order(0).contains(&third), "it is waited for");
    group.deliver(0, 2, third);
    group.deliver(2, 0, third);
    assert_eq!(group.order(0), [first, second, third]);
    assert_eq!(group.violation(), None);
}

/// What may have been chosen of its last ballot a new leader keeps as it is.
#[test]
fn who_begins_a_ballot_keeps_what_may_have_been_chosen() {
    let run = |switches: &Switches| {
        let mut group = Script::<Generalized>::new(3, switches);
        let first = group.propose(2, &[1]);
        for member in [0, 1] {
            group.deliver(2, member, first);
            group.deliver(member, 2, first);
        } // Member 2 has learned it. Nobody knows of that.
        let second = group.propose(0, &[1]);
        group.recover(1, second);
        group.deliver_kind(1, 0, "Prepare");
        group.deliver_kind(0, 1, "Prepared");
        for _ in 0..2 {
            group.deliver_kind(1, 0, "Accept");
            group.deliver_kind(0, 1, "AckAccept");
        }
        group
    };
    assert_eq!(run(&Switches::default()).violation(), None);
    let broken = run(&Switches::broken(GeneralizedSwitch::KeepsReported));
    assert!(broken.violation().is_some_and(|it| it.contains("and after")));
}

/// Four of five members know nothing of what the leader of a new ballot has ordered.
#[test]
fn who_votes_in_a_new_ballot_knows_what_its_leader_has_ordered() {
    let run = |switches: &Switches| {
        let mut group = Script::<Generalized>::new(5, switches);
        let first = group.propose(1, &[1]);
        [0, 2, 3, 4].into_iter().for_each(|to| group.lose(1, to, first));
        group.recover(1, first);
        for member in [2, 3] {
            group.deliver_kind(1, member, "Prepare");
            group.deliver_kind(member, 1, "Prepared");
        }
        [0, 2, 3, 4].into_iter().for_each(|to| group.deliver_kind(1, to, "Start"));
        let second = group.propose(0, &[1]);
        for member in [2, 3, 4] {
            group.deliver(0, member, second);
            if group.is_on_its_way(member, 0, second) {
                group.deliver(member, 0, second); // They are a fast quorum with member 0.
            }
        }
        for member in [2, 3] {
            group.deliver(1, member, first);
            group.deliver(member, 1, first); // It is learned as its leader has ordered it.
        }
        group
    };
    let mut sound = run(&Switches::default());
    assert_eq!(sound.violation(), None);
    sound.deliver_all();
    assert_eq!(sound.violation(), None);
    assert_eq!(sound.order(0).len(), 2);
    let broken = run(&Switches::broken(GeneralizedSwitch::StartsComplete));
    assert!(broken.violation().is_some_and(|it| it.contains("comes after the other")));
}

/// A leader asks a dead member to vote in its ballot less and less often; one that speaks again is
/// asked as soon as others are.
#[test]
fn who_does_not_answer_that_it_votes_is_asked_less_often() {
    let run = |switches: &Switches| {
        let mut group = Script::<Generalized>::new(3, switches);
        let id = group.propose(1, &[1]);
        group.recover(1, id);
        group.deliver_all_but(2);
        let mut asked = 0;
        for ms in (0..600_000).step_by(100) {
            group.tick(1, ms);
            asked += group.lose_kind(1, 2, "Start");
            group.deliver_all_but(2);
        }
        (group, asked)
    };
    let (mut sound, asked) = run(&Switches::default());
    assert!((10..60).contains(&asked), "{asked} times in ten minutes");
    sound.tick(2, 600_000); // Member 2 says what it has delivered.
    sound.deliver_all();
    sound.tick(1, 600_300);
    assert_eq!(sound.lose_kind(1, 2, "Start"), 1, "it lives");
    let (_, asked) = run(&Switches::broken(GeneralizedSwitch::AsksLessOften));
    assert!(asked > 2_000, "{asked} times in ten minutes");
}
