//! M²Paxos.

mod agreement;
mod delivery;
mod progress;

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};

use muesli_broadcast::m2paxos::message::{Message, NamedCommand, ObjectSlot};
use muesli_broadcast::m2paxos::{M2Paxos, M2PaxosSwitch, Switches};
use muesli_broadcast::{
    Broadcast as _, BroadcastSettings, Command, CommandId, EffectsOf, IdSet, MemberId, ObjectSet,
};
use muesli_core::sabotage::Sabotage;
use muesli_core::wire::encoded_bytes;
use muesli_core::{Nanos, Rejection};

use crate::exploration::{Scope, explore};
use crate::group::{Subject, command, made, members};
use crate::script::Script;
use crate::simulation::{Faults, Simulated, noticed, seeds, simulate};

impl Subject for M2Paxos {
    fn contradiction(members: &[&M2Paxos], _: &BTreeMap<CommandId, Command>) -> Option<String> {
        different_places(members, M2Paxos::decided, M2Paxos::delivered)
    }

    fn has_ended(&self, id: CommandId) -> bool {
        self.delivered().contains(id)
    }
}

/// A place at which members have decided different things.
pub fn different_places<'a, B, I>(
    members: &[&'a B],
    decided: impl Fn(&'a B) -> I,
    delivered: impl Fn(&'a B) -> &'a IdSet,
) -> Option<String>
where
    I: Iterator<Item = (ObjectSlot, Option<CommandId>)>,
{
    let mut all = BTreeMap::new();
    for member in members {
        for (place, value) in decided(member) {
            let known = all.insert(place, value);
            let Some(known) = known.filter(|known| *known != value) else { continue };
            // What all have delivered is nothing to who knows that.
            let over = |id: CommandId| members.iter().all(|it| delivered(it).contains(id));
            let is_nothing = |value: Option<CommandId>| value.is_none_or(over);
            if !is_nothing(known) || !is_nothing(value) {
                return Some(format!("{place:?} is {known:?} and {value:?}"));
            }
        }
    }
    None
}

/// `cargo xtask explore` goes to the last state of each.
#[test]
fn explore_commands_of_two_objects() {
    for (proposals, ticks) in [
        (&[(0, &[1, 2][..]), (1, &[2])][..], 1),
        (&[(0, &[1, 2]), (1, &[1, 2])], 1),
        (&[(0, &[1, 2]), (1, &[1, 2]), (2, &[2])], 1),
    ] {
        let scope = Scope { ticks, ..Scope::of(proposals, 30_000) };
        let found = explore::<M2Paxos>(&scope, &Switches::default());
        found.assert_sound(&format!("{proposals:?}"));
    }
}

fn run(seed: u64, members: usize, switches: &Switches) -> Simulated {
    simulate::<M2Paxos>(seed, &Faults::of(members), switches, M2Paxos::known)
}

fn run_with_dead(seed: u64, switches: &Switches) -> Simulated {
    simulate::<M2Paxos>(seed, &Faults::with_dead(3, 1), switches, M2Paxos::known)
}

#[test]
fn groups_among_faults_deliver_everything_in_one_order() {
    for members in [1, 2, 3, 5] {
        for seed in seeds(30) {
            run(seed, members, &Switches::default()).assert_sound(members, seed, 0);
        }
    }
}

/// Where a minority does not come back the others go on.
#[test]
fn groups_with_dead_members_go_on() {
    seeds(60).for_each(|seed| run_with_dead(seed, &Switches::default()).assert_sound(3, seed, 1));
}

#[test]
fn rules_that_are_broken_are_noticed() {
    for switch in [
        M2PaxosSwitch::OneValue,
        M2PaxosSwitch::OwnsByPromise,
        M2PaxosSwitch::ForcesVotes,
        M2PaxosSwitch::DeliversCycles,
        M2PaxosSwitch::CollectsDelivered,
    ] {
        let seed = noticed(500, |seed| run(seed, 3, &Switches::broken(switch)));
        println!("{switch:?}: {seed:?}");
        assert!(seed.is_some(), "{switch:?}");
    }
    for switch in [M2PaxosSwitch::HelpsOthers, M2PaxosSwitch::ForwardsOnce] {
        let seed = noticed(500, |seed| run_with_dead(seed, &Switches::broken(switch)));
        println!("{switch:?}: {seed:?}");
        assert!(seed.is_some(), "{switch:?}");
    }
}

/// Scripts show these, too; seeds come upon them soon.
#[test]
fn broken_switches_that_scripts_show_are_noticed_among_faults() {
    for switch in [
        M2PaxosSwitch::OwnsByMajority,
        M2PaxosSwitch::UniqueEpochs,
        M2PaxosSwitch::AsksOnce,
        M2PaxosSwitch::AsksFromPrefix,
        M2PaxosSwitch::ShowsAllPlaces,
        M2PaxosSwitch::ShowsDecisions,
        M2PaxosSwitch::StoresVotes,
        M2PaxosSwitch::ForcesByPlace,
        M2PaxosSwitch::AwaitsAncestors,
        M2PaxosSwitch::AwaitsPrefix,
        M2PaxosSwitch::OrdersCycles,
    ] {
        let seed = noticed(50, |seed| run(seed, 3, &Switches::broken(switch)));
        println!("{switch:?}: {seed:?}");
        assert!(seed.is_some(), "{switch:?}");
    }
}

/// It has no owner: who says it is not believed.
#[test]
fn a_command_that_touches_everything_is_refused() {
    let mut members = members::<M2Paxos>(3, &BroadcastSettings::default(), &Switches::default());
    assert!(!members[0].orders_everything());
    let id = CommandId { leader: MemberId(0), sequence: 1 };
    let everything = ObjectSet::everything().into();
    let command = Command { objects: everything, payload: b"".as_slice().into() };
    let forward = Message::Forward(NamedCommand { id, command: command.clone() });
    assert_eq!(members[1].judge(MemberId(0), &forward), Err(Rejection::Range));
    let mut out = EffectsOf::<M2Paxos>::at(Nanos(0));
    let proposal = AssertUnwindSafe(|| members[0].propose(command, &mut out));
    assert!(catch_unwind(proposal).is_err(), "it was proposed");
}

/// A command of three objects goes to the member that owns two of them: one object moves.
#[test]
fn a_command_goes_to_where_the_fewest_objects_are_to_move() {
    let mut group = Script::<M2Paxos>::new(3, &Switches::default());
    for (at, objects) in [(1, &[1, 2][..]), (2, &[3])] {
        group.propose(at, objects);
        group.deliver_all();
    }
    (0..3).for_each(|at| group.tick(at, 1_000)); // These objects are there for a while.
    group.deliver_all();
    let id = group.propose(2, &[1, 2, 3]);
    assert_eq!(group.kinds(), ["2 to 1: Forward"]);
    group.deliver(2, 1, id);
    assert_eq!(group.kinds(), ["1 to 0: Prepare", "1 to 2: Prepare"]);
    let asked = group.last_message();
    assert!(asked.contains("object: 3") && !asked.contains("object: 2"), "{asked}");
    group.deliver_all();
    assert!(group.order(0).contains(&id) && group.violation().is_none());
    // All are at member 1 now: nobody need be asked.
    let again = group.propose(1, &[2, 3]);
    assert_eq!(group.kinds(), ["1 to 0: Accept", "1 to 2: Accept"]);
    group.deliver_all();
    assert!(group.order(2).contains(&again));
}

/// Of three members the first owns object 1, and the second one object 2.
fn two_owners(switches: &Switches) -> Script<M2Paxos> {
    let mut group = Script::new(3, switches);
    for (at, object) in [(0, 1), (1, 2)] {
        group.propose(at, &[object]);
        group.deliver_all();
    }
    group
}

/// An object is not acquired again right after it has moved.
#[test]
fn an_object_that_has_moved_stays_where_it_is_for_a_while() {
    let run = |switches: &Switches| {
        let mut group = two_owners(switches);
        let id = group.propose(1, &[1, 2]);
        (group, id)
    };
    let (mut group, id) = run(&Switches::default());
    assert_eq!(group.kinds(), [""; 0], "it waits for an object");
    group.tick(1, 60);
    assert_eq!(group.kinds()[0], "1 to 0: Prepare", "after 50 milliseconds it asks");
    group.deliver_all();
    assert!(group.order(0).contains(&id) && group.violation().is_none());
    let (group, _) = run(&Switches::broken(M2PaxosSwitch::HoldsObjects));
    assert_eq!(group.kinds()[0], "1 to 0: Prepare");
}

/// Two members each own one of a command's two objects and acquire the other one, both at the same
/// times: they do not exchange them for ever.
#[test]
fn members_that_take_objects_from_each_other_end() {
    let rounds = |switches: &Switches| {
        let mut group = two_owners(switches);
        let id = group.propose(0, &[1, 2]);
        group.deliver_all();
        (0..2).for_each(|at| group.recover(at, id));
        (1..30).find(|round| {
            (0..2).for_each(|at| group.tick(at, round * 60));
            group.deliver_all();
            assert_eq!(group.violation(), None);
            (0..3).all(|at| group.order(at).contains(&id))
        })
    };
    assert_eq!(rounds(&Switches::default()), Some(2));
    assert_eq!(rounds(&Switches::broken(M2PaxosSwitch::YieldsObjects)), None);
}

/// Answers are as long as what is missing.
#[test]
fn others_are_asked_once_for_what_many_commands_wait_for() {
    let mut group = Script::<M2Paxos>::new(3, &Switches::default());
    group.propose(0, &[1]);
    group.deliver_all();
    let unknown = group.propose(0, &[1]);
    group.lose(0, 2, unknown);
    (0..9).for_each(|_| _ = group.propose(0, &[1]));
    group.deliver_all();
    assert_eq!((group.order(1).len(), group.order(2).len()), (11, 1));
    let asked = |group: &mut Script<M2Paxos>, ms: u64| {
        group.tick(2, ms);
        group.kinds().iter().filter(|it| it.ends_with("Missing")).count()
    };
    assert_eq!(asked(&mut group, 20_000), 2, "each other member once");
    group.deliver_all();
    assert_eq!(group.order(2), group.order(1));
}

/// A command was decided at a second place as well, which one member does not know of when all have
/// delivered it and forget it. Who acquires the object puts nothing else there.
#[test]
fn a_second_place_of_what_is_forgotten_holds_nothing_else() {
    let violation = |switches: &Switches| {
        let mut group = Script::<M2Paxos>::new(3, switches);
        let twice = group.propose(1, &[1]);
        group.deliver_all();
        let again = ObjectSlot { object: 1, slot: 2 };
        let decide = Message::Decide { value: Some(twice), slots: vec![again] };
        (0..2).for_each(|to| group.receive(2, to, decide.clone()));
        for ms in (100..2_000).step_by(100) {
            (0..3).for_each(|at| group.tick(at, ms));
            group.deliver_all();
        }
        assert!(group.members.iter().all(|it| it.known() == 0), "all have forgotten it");
        // Who owns the object is dead, and then who comes to own it.
        let mut times = (2_000..20_000).step_by(100);
        for (at, dead) in [(2, 1), (0, 2)] {
            let next = group.propose(at, &[1]);
            while !group.order(at).contains(&next) {
                group.deliver_all_but(dead);
                let ms = times.next().expect("it is delivered in time");
                (0..3).filter(|at| *at != dead).for_each(|at| group.tick(at, ms));
            }
            group.lose_all_to(dead);
        }
        // All live.
        while (0..3).any(|at| group.order(at).len() < 3) {
            let ms = times.next().expect("everything is delivered in time");
            (0..3).for_each(|at| group.tick(at, ms));
            group.deliver_all();
        }
        group.violation()
    };
    assert_eq!(violation(&Switches::default()), None);
    assert!(violation(&Switches::broken(M2PaxosSwitch::KeepsRepetitions)).is_some());
}

/// What is pending may be more than a message should have: commands go ahead of a promise then.
#[test]
fn a_promise_is_short_whatever_is_pending() {
    const DEAD: MemberId = MemberId(0);
    type Sent = VecDeque<(MemberId, MemberId, Message)>;
    let mut all = members::<M2Paxos>(3, &BroadcastSettings::default(), &Switches::default());
    let mut sent = Sent::new();
    let mut act =
        |sent: &mut Sent, at: MemberId, ms: u64, act: &mut dyn FnMut(&mut M2Paxos, &mut _)| {
            let mut out = EffectsOf::<M2Paxos>::at(Nanos(ms * 1_000_000));
            act(&mut all[usize::from(at.0)], &mut out);
            sent.extend(made::<M2Paxos>(out).sent.into_iter().map(|(to, it)| (at, to, it)));
            all[usize::from(at.0)].delivered().clone()
        };
    let propose = |name: &str, it: &mut M2Paxos, out: &mut _| {
        it.propose(command(name, &[1]), out);
    };
    act(&mut sent, DEAD, 0, &mut |it, out| propose("first", it, out));
    while let Some((from, to, message)) = sent.pop_front() {
        act(&mut sent, to, 0, &mut |it, out| it.receive(from, message.clone(), out));
    }
    // Member 1 alone accepts these, and then their owner is dead.
    (0..40).for_each(|_| {
        act(&mut sent, DEAD, 1, &mut |it, out| propose(&"x".repeat(1_000), it, out));
    });
    while let Some((from, to, message)) = sent.pop_front() {
        if (from, to) == (DEAD, MemberId(1)) {
            act(&mut sent, to, 1, &mut |it, out| it.receive(from, message.clone(), out));
        }
    }
    act(&mut sent, MemberId(2), 2, &mut |it, out| propose("last", it, out));
    let (mut longest, mut delivered) = (0, IdSet::default());
    for ms in (100..30_000).step_by(100) {
        for at in [MemberId(1), MemberId(2)] {
            delivered = act(&mut sent, at, ms, &mut |it, out| it.tick(out));
            while let Some((from, to, message)) = sent.pop_front() {
                longest = longest.max(encoded_bytes(&message));
                if from != DEAD && to != DEAD {
                    act(&mut sent, to, ms, &mut |it, out| it.receive(from, message.clone(), out));
                }
            }
        }
    }
    assert_eq!(delivered.iter().count(), 42, "all are delivered by those that live");
    assert!(longest <= 12 << 10, "a message has {longest} bytes");
}
