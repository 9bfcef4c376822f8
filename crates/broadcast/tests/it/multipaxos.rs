//! Multi-Paxos.

use std::collections::BTreeMap;

use muesli_broadcast::multipaxos::{MultiPaxos, PlacedLeader};
use muesli_broadcast::{Command, CommandId, MemberId};

use crate::group::Subject;
use crate::m2paxos::different_places;
use crate::script::Script;
use crate::simulation::{Faults, seeds, simulate};

impl Subject for MultiPaxos {
    fn contradiction(members: &[&MultiPaxos], _: &BTreeMap<CommandId, Command>) -> Option<String> {
        different_places(members, MultiPaxos::decided, MultiPaxos::delivered)
    }

    fn has_ended(&self, id: CommandId) -> bool {
        self.delivered().contains(id)
    }
}

#[test]
fn groups_among_faults_deliver_everything_in_one_order() {
    for (members, dead) in [(1, 0), (3, 0), (3, 1), (5, 0), (5, 2)] {
        let faults = Faults { objects: 1, ..Faults::with_dead(members, dead) };
        for seed in seeds(40) {
            let leader = PlacedLeader(MemberId((seed % members as u64) as u16));
            let found = simulate::<MultiPaxos>(seed, &faults, &leader, MultiPaxos::known);
            found.assert_sound(members, seed, dead);
        }
    }
}

/// Commands that have nothing to do with each other are in one order, by the placed leader.
#[test]
fn everything_is_in_one_order_at_the_placed_leader() {
    let mut group = Script::<MultiPaxos>::new(3, &PlacedLeader(MemberId(2)));
    let first = group.propose(0, &[1]);
    group.deliver(0, 2, first);
    let second = group.propose(1, &[2]);
    group.deliver_all();
    assert_eq!(group.violation(), None);
    for member in 0..3 {
        assert_eq!(group.order(member), [first, second], "{member}");
    }
}

/// Some commands conflict with all others.
#[test]
fn what_touches_everything_is_ordered_with_all_commands() {
    for (members, dead) in [(3, 0), (3, 1), (5, 0)] {
        let faults = Faults { everything: 15, ..Faults::with_dead(members, dead) };
        for seed in seeds(10) {
            let found = simulate::<MultiPaxos>(
                seed,
                &faults,
                &PlacedLeader(MemberId(1)),
                MultiPaxos::known,
            );
            found.assert_sound(members, seed, dead);
        }
    }
}
