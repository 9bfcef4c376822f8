//! Groups without faults whose members have more commands in flight than there are objects.

use std::collections::{BTreeMap, BTreeSet};

use muesli_broadcast::m2paxos::{M2Paxos, M2PaxosSwitch, Switches};
use muesli_broadcast::{BroadcastSettings, Command, CommandId, EffectsOf, MemberId};
use muesli_core::Nanos;
use muesli_core::sabotage::Sabotage as _;

use crate::group::{Made, Subject, command, made, members};
use crate::simulation::Chance;

/// What members have in flight.
#[derive(Clone, Debug)]
pub struct Load {
    pub members: usize,
    /// Objects of each member.
    pub objects: u64,
    /// Commands of each member that are not delivered there.
    pub in_flight: usize,
    /// So many commands write an object of another member, too, in percent.
    pub complex: u64,
    /// So long it goes on, in milliseconds; then all come to their ends.
    pub ms: u64,
}

/// What came of it.
#[derive(Debug)]
pub struct Loaded {
    /// Commands that were delivered where they were proposed, a second.
    pub a_second: u64,
    pub messages_each: u64,
    pub commands: u64,
    /// Messages that refuse something under M²Paxos.
    pub refused: u64,
    /// What the run was to look at, at the member that saw the most of it.
    pub looked: u64,
    /// How long it took until all were delivered everywhere, in milliseconds, if they were.
    pub rest_ms: Option<u64>,
}

struct Group<B: Subject> {
    members: Vec<B>,
    now: Nanos,
    chance: Chance,
    orders: Vec<Vec<CommandId>>,
    open: Vec<BTreeSet<CommandId>>,
    on_their_way: BTreeMap<(Nanos, u64), (MemberId, MemberId, B::Message)>,
    sent: u64,
    refused: u64,
    commands: BTreeMap<CommandId, Command>,
}

const MS: u64 = 1_000_000;

/// What is not delivered so long after the last proposal stands still.
const REST_MOST_MS: u64 = 10_000;

impl<B: Subject> Group<B> {
    fn act(&mut self, at: usize, act: impl FnOnce(&mut B, &mut EffectsOf<B>)) {
        let mut out = EffectsOf::<B>::at(self.now);
        act(&mut self.members[at], &mut out);
        let Made { sent, delivered, .. } = made::<B>(out);
        for id in &delivered {
            self.open[at].remove(id);
        }
        self.orders[at].extend(delivered);
        for (to, message) in sent {
            self.sent += 1;
            self.refused += u64::from(format!("{message:?}").contains("Refuse("));
            let due = Nanos(self.now.0 + MS / 2 + self.chance.below(MS / 2));
            self.on_their_way.insert((due, self.sent), (MemberId(at as u16), to, message));
        }
    }

    fn propose(&mut self, at: usize, load: &Load) {
        let of =
            |member: u64, chance: &mut Chance| member * load.objects + chance.below(load.objects);
        let mut objects = vec![of(at as u64, &mut self.chance)];
        if self.chance.percent(load.complex) {
            let other =
                (at as u64 + 1 + self.chance.below(load.members as u64 - 1)) % load.members as u64;
            objects.push(of(other, &mut self.chance));
        }
        let command = command(&self.commands.len().to_string(), &objects);
        let mut id = None;
        self.act(at, |it, out| id = Some(it.propose(command.clone(), out)));
        let id = id.expect("proposed");
        self.commands.insert(id, command);
        if !self.orders[at].contains(&id) {
            self.open[at].insert(id);
        }
    }

    /// A quarter of a millisecond passes.
    fn pass(&mut self, tick: u64) {
        self.now = Nanos(self.now.0 + MS / 4);
        while let Some(entry) = self.on_their_way.first_entry() {
            if entry.key().0 > self.now {
                break;
            }
            let (from, to, message) = entry.remove();
            self.act(to.place(), |it, out| it.receive(from, message, out));
        }
        for at in 0..self.members.len() {
            if tick % 40 == at as u64 % 40 {
                self.act(at, |it, out| it.tick(out));
            }
        }
    }
}

/// Members keep so many commands in flight; then all are delivered everywhere.
pub fn run<B: Subject>(
    seed: u64,
    load: &Load,
    switches: &B::Switches,
    look: impl Fn(&B) -> u64,
) -> Loaded {
    let mut group: Group<B> = Group {
        members: members(load.members, &BroadcastSettings::default(), switches),
        now: Nanos(0),
        chance: Chance::new(seed),
        orders: vec![Vec::new(); load.members],
        open: vec![BTreeSet::new(); load.members],
        on_their_way: BTreeMap::new(),
        sent: 0,
        refused: 0,
        commands: BTreeMap::new(),
    };
    for tick in 0..load.ms * 4 {
        for at in 0..load.members {
            while group.open[at].len() < load.in_flight {
                group.propose(at, load);
            }
        }
        group.pass(tick);
    }
    let open: usize = group.open.iter().map(BTreeSet::len).sum();
    let ended = group.commands.len() - open;
    let mut rest = 0;
    let is_over =
        |group: &Group<B>| group.orders.iter().all(|order| order.len() == group.commands.len());
    while !is_over(&group) && rest < 4 * REST_MOST_MS {
        rest += 1;
        group.pass(rest);
    }
    let members: Vec<&B> = group.members.iter().collect();
    let contradiction = B::contradiction(&members, &group.commands);
    assert_eq!(contradiction, None);
    Loaded {
        a_second: ended as u64 * 1_000 / load.ms,
        commands: group.commands.len() as u64,
        refused: group.refused,
        looked: group.members.iter().map(look).max().unwrap_or(0),
        messages_each: group.sent / group.commands.len() as u64,
        rest_ms: is_over(&group).then_some(rest / 4),
    }
}

fn load(
    switches: &Switches,
    (members, objects, in_flight, complex): (usize, u64, usize, u64),
) -> Loaded {
    let load = Load { members, objects, in_flight, complex, ms: 500 };
    let found = run::<M2Paxos>(1, &load, switches, |_| 0);
    println!("{load:?} {switches:?}: {found:?}");
    found
}

/// Half of the commands write objects of two members: these come together at one member, and do not
/// move to and fro.
#[test]
fn more_commands_than_objects_are_in_flight_and_many_are_of_several_objects() {
    for (members, switch) in [(7, M2PaxosSwitch::HoldsObjects), (3, M2PaxosSwitch::AgreesOnOwners)]
    {
        let found = load(&Switches::default(), (members, 10, 32, 50));
        assert!(found.a_second > 5_000, "{found:?}");
        assert!(found.messages_each < 30, "{found:?}");
        assert!(found.rest_ms.is_some_and(|it| it < 1_000), "{found:?}");
        let broken = load(&Switches::broken(switch), (members, 10, 32, 50));
        let is_slow = broken.a_second * 3 < found.a_second;
        let is_refused = broken.refused > 3 * found.refused;
        assert!(is_slow || is_refused, "{switch:?}: {broken:?}");
    }
}

/// An owner has many places of an object open at once: a command a round trip would be 1,500 a
/// second.
#[test]
fn an_owner_asks_for_many_places_of_an_object_at_once() {
    let found = load(&Switches::default(), (3, 1, 64, 0));
    assert!(found.a_second > 50_000, "{found:?}");
}
