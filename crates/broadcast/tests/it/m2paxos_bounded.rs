//! M²Paxos that is bounded by the order of another broadcast.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hash;

use muesli_broadcast::epaxos::Epaxos;
use muesli_broadcast::generalized::Generalized;
use muesli_broadcast::m2paxos::message::ObjectSlot;
use muesli_broadcast::m2paxos::{M2PaxosSwitch, Switches};
use muesli_broadcast::m2paxos_bounded::{BoundedSwitches, M2PaxosBounded, OrdersOwnership};
use muesli_broadcast::multipaxos::{MultiPaxos, PlacedLeader};
use muesli_broadcast::pob::Pob;
use muesli_broadcast::{Broadcast, Command, CommandId, MemberId};
use muesli_core::sabotage::Sabotage;

use crate::contention::{Load, run as run_load};
use crate::exploration::{Scope, explore};
use crate::group::Subject;
use crate::m2paxos::different_places;
use crate::script::Script;
use crate::simulation::{Faults, Simulated, noticed, seeds, simulate};

impl<B: OrdersOwnership + Hash> Subject for M2PaxosBounded<B>
where
    B::Message: Hash,
    B::Record: Hash,
{
    /// Members agree on places, and places do not contradict each other.
    fn contradiction(members: &[&Self], _: &BTreeMap<CommandId, Command>) -> Option<String> {
        let different = different_places(members, Self::decided, Self::delivered);
        if !members[0].is_bounded() {
            return different;
        }
        different.or_else(|| cycle(members.iter().flat_map(|member| member.decided())))
    }

    /// Requests for objects that were ordered.
    fn steps(&self) -> u64 {
        u64::from(self.granted())
    }

    fn has_ended(&self, id: CommandId) -> bool {
        self.delivered().contains(id)
    }
}

/// Commands of which each comes before the next one at some object, and the last before the first.
fn cycle(decided: impl Iterator<Item = (ObjectSlot, Option<CommandId>)>) -> Option<String> {
    let mut first: BTreeMap<u64, BTreeMap<CommandId, u64>> = BTreeMap::new();
    for (place, value) in decided {
        if let Some(id) = value {
            let slot = first.entry(place.object).or_default().entry(id).or_insert(place.slot);
            *slot = (*slot).min(place.slot);
        }
    }
    let mut before: BTreeMap<CommandId, BTreeSet<CommandId>> = BTreeMap::new();
    for slots in first.into_values() {
        let order: BTreeMap<u64, CommandId> = slots.into_iter().map(|(id, at)| (at, id)).collect();
        let order: Vec<CommandId> = order.into_values().collect();
        for pair in order.windows(2) {
            before.entry(pair[1]).or_default().insert(pair[0]);
            before.entry(pair[0]).or_default();
        }
    }
    // Whoever has nothing before it goes, until nobody is left.
    while let Some(id) = before.iter().find(|(_, all)| all.is_empty()).map(|(id, _)| *id) {
        before.remove(&id);
        before.values_mut().for_each(|all| _ = all.remove(&id));
    }
    (!before.is_empty()).then(|| format!("before each other: {before:?}"))
}

type Bounded = M2PaxosBounded<MultiPaxos>;
type Choice<B> = BoundedSwitches<<B as Broadcast>::Switches>;

fn plain<B: Broadcast>(order: B::Switches) -> Choice<B> {
    BoundedSwitches { order, ..BoundedSwitches::default() }
}

fn broken(switch: M2PaxosSwitch) -> Choice<MultiPaxos> {
    BoundedSwitches { objects: Switches::broken(switch), ..BoundedSwitches::default() }
}

fn run(seed: u64, members: usize, switches: &Choice<MultiPaxos>) -> Simulated {
    simulate::<Bounded>(seed, &Faults::of(members), switches, Bounded::known)
}

fn run_all<B: OrdersOwnership + Hash>(few: u64, switches: &Choice<B>)
where
    B::Message: Hash,
    B::Record: Hash,
{
    let mut most = 0;
    for (members, dead) in [(1, 0), (2, 0), (3, 0), (3, 1), (5, 0)] {
        let faults = match dead {
            0 => Faults::of(members),
            _ => Faults::with_dead(members, dead),
        };
        for seed in seeds(few) {
            let known = M2PaxosBounded::<B>::known;
            let found = simulate::<M2PaxosBounded<B>>(seed, &faults, switches, known);
            found.assert_sound(members, seed, dead);
            // Each member asks once, and again where it suspects somebody.
            let bound = faults.commands * (1 + members as u64);
            assert!(found.steps <= bound, "{members} {seed}: {found:?}");
            most = most.max(found.steps * 100 / faults.commands);
        }
    }
    println!("{}: {most} grants of 100 commands at most", B::BOUNDED_NAME);
}

#[test]
fn groups_among_faults_deliver_everything_in_one_order() {
    run_all::<MultiPaxos>(20, &plain::<MultiPaxos>(PlacedLeader(MemberId(0))));
}

/// Requests are ordered by each of the others as well.
#[test]
fn groups_by_other_orders_deliver_everything_in_one_order() {
    run_all::<Pob>(5, &plain::<Pob>(Default::default()));
    run_all::<Epaxos>(5, &plain::<Epaxos>(Default::default()));
    run_all::<Generalized>(5, &plain::<Generalized>(Default::default()));
}

#[test]
fn rules_that_are_broken_are_noticed() {
    for switch in [
        M2PaxosSwitch::PlacesInOrder,
        M2PaxosSwitch::PreparesGranted,
        M2PaxosSwitch::CollectsDelivered,
    ] {
        let seed = noticed(300, |seed| run(seed, 3, &broken(switch)));
        println!("{switch:?}: {seed:?}");
        assert!(seed.is_some(), "{switch:?}");
    }
}

fn run_with_everything(
    seed: u64,
    (members, dead): (usize, usize),
    switches: &Choice<MultiPaxos>,
) -> Simulated {
    let faults = Faults { everything: 15, ..Faults::with_dead(members, dead) };
    simulate::<Bounded>(seed, &faults, switches, Bounded::known)
}

/// Some commands conflict with all others.
#[test]
fn groups_order_what_touches_everything_with_all_commands() {
    for (members, dead) in [(1, 0), (3, 0), (3, 1), (5, 0)] {
        for seed in seeds(20) {
            let order = plain::<MultiPaxos>(PlacedLeader(MemberId(0)));
            for switches in [order, BoundedSwitches::acquiring()] {
                let found = run_with_everything(seed, (members, dead), &switches);
                found.assert_sound(members, seed, dead);
            }
        }
    }
}

#[test]
fn rules_of_cuts_that_are_broken_are_noticed() {
    for switch in
        [M2PaxosSwitch::FreezesForCuts, M2PaxosSwitch::KeepsCutsApart, M2PaxosSwitch::NamesForCuts]
    {
        let seed = noticed(300, |seed| run_with_everything(seed, (3, 0), &broken(switch)));
        println!("{switch:?}: {seed:?}");
        assert!(seed.is_some(), "{switch:?}");
    }
}

#[test]
fn explore_commands_of_two_objects() {
    for (proposals, ticks) in
        [(&[(0, &[1, 2][..]), (1, &[2])][..], 0), (&[(0, &[1, 2]), (1, &[1, 2])], 0)]
    {
        let scope = Scope { ticks, ..Scope::of(proposals, 30_000) };
        let found = explore::<Bounded>(&scope, &plain::<MultiPaxos>(PlacedLeader(MemberId(0))));
        found.assert_sound(&format!("{proposals:?}"));
    }
}

/// Without faults each command of several objects is granted once, and nobody takes objects from
/// who acts on a grant.
#[test]
fn a_command_is_decided_by_its_first_grant_where_nobody_is_suspected() {
    let load = Load { members: 5, objects: 4, in_flight: 8, complex: 50, ms: 500 };
    let granted = |it: &Bounded| u64::from(it.granted());
    let order = plain::<MultiPaxos>(PlacedLeader(MemberId(0)));
    let sound = run_load::<Bounded>(1, &load, &order, granted);
    println!("{sound:?}");
    assert!(sound.looked <= sound.commands, "more grants than commands: {sound:?}");
    assert!(sound.a_second > 1_500, "{sound:?}");
    assert!(sound.rest_ms.is_some_and(|it| it < 300), "{sound:?}");
}

/// Two members ask for the same objects: the second one acts once the first one's command is
/// decided, so that nobody takes from the first one what it has just come to own.
#[test]
fn an_owner_acts_once_the_grant_before_its_own_is_over() {
    let run = |switches: &Choice<MultiPaxos>| {
        let mut group = Script::<Bounded>::new(3, switches);
        let first = group.propose(1, &[1, 2]);
        let second = group.propose(2, &[2, 3]);
        group.deliver_all_of("Order");
        assert!(group.kinds().iter().all(|it| it.starts_with("1 to")), "{:?}", group.kinds());
        group.tick(2, 10);
        let acts = group.kinds().iter().any(|it| it.starts_with("2 to 0: Objects"));
        group.deliver_all();
        assert_eq!(group.violation(), None);
        (group, acts, [first, second])
    };
    let (sound, acts, order) = run(&plain::<MultiPaxos>(PlacedLeader(MemberId(0))));
    assert!(!acts, "it acts");
    for at in 0..3 {
        assert_eq!(sound.order(at), order, "{at}");
    }
    let (_, acts, _) = run(&broken(M2PaxosSwitch::WaitsForGrants));
    assert!(acts, "it waits");
}

/// An owner is dead that has placed a command at an object by itself, of which the next one knows
/// nothing: the number of its request is a later epoch, and a vote in an earlier one counts.
#[test]
fn an_owner_by_a_request_sees_what_was_accepted_before() {
    let run = |switches: &Choice<MultiPaxos>| {
        let mut group = Script::<Bounded>::new(3, switches);
        group.propose(1, &[1, 2]);
        group.deliver_all();
        let unseen = group.propose(1, &[1]);
        group.lose(1, 0, unseen);
        group.deliver(1, 2, unseen);
        group.deliver_kind(2, 1, "Objects"); // It is decided by members 1 and 2.
        group.lose_all_from(1);
        let next = group.propose(0, &[1, 2]);
        let ends = (100..20_000).step_by(100).any(|ms| {
            [0, 2].into_iter().for_each(|at| group.tick(at, ms));
            group.deliver_all_but(1);
            group.violation().is_some() || group.order(0).contains(&next)
        });
        assert!(ends, "nothing comes of the request");
        group.violation()
    };
    assert_eq!(run(&plain::<MultiPaxos>(PlacedLeader(MemberId(0)))), None);
    let violation = run(&broken(M2PaxosSwitch::PreparesGranted));
    assert!(violation.is_some_and(|it| it.starts_with("ObjectSlot")));
}
