//! A map that three members keep alike, each taking changes: a state machine of one's own over
//! Alvin's Partial Order Broadcast, without a database.
//!
//! The members live in one process here, and what they say to each other goes from hand to hand;
//! in a program of one's own each is a process, messages go over its sockets, and records to its
//! disk before the messages after them leave. Run it with
//! `cargo run -p muesli-examples --bin replicated_map`.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use muesli::broadcast::pob::Pob;
use muesli::broadcast::{
    Broadcast, BroadcastEffect, BroadcastSettings, Command, EffectsOf, MemberId, Nanos,
    ObjectAccess, ObjectSet, TouchedObject,
};

const MEMBERS: usize = 3;
const TICK: Nanos = Nanos(10_000_000);

type Message = <Pob as Broadcast>::Message;
type Record = <Pob as Broadcast>::Record;

/// A member: the order, what it has written down, and the map that it keeps.
struct Member {
    order: Pob,
    log: Vec<Record>,
    map: BTreeMap<String, String>,
}

impl Member {
    fn new(place: usize) -> Member {
        let (me, settings) = (MemberId(place as u16), BroadcastSettings::default());
        let order = Pob::new(me, MEMBERS, &settings, &Default::default());
        Member { order, log: Vec::new(), map: BTreeMap::new() }
    }

    /// Applies a change whose turn it is.
    fn apply(&mut self, command: &Command) {
        let text = String::from_utf8_lossy(command.payload.as_ref());
        let (key, value) = text.split_once('=').expect("all members propose `key=value`");
        self.map.insert(key.to_owned(), value.to_owned());
    }

    /// A member that comes back with nothing but what was written down.
    fn restarted(place: usize, log: Vec<Record>, now: Nanos) -> Member {
        let mut member = Member::new(place);
        for record in log {
            let mut out = EffectsOf::<Pob>::at(now);
            member.order.replay(record.clone(), &mut out);
            member.log.push(record);
            for effect in out.effects {
                if let BroadcastEffect::Deliver(delivered) = effect {
                    member.apply(&delivered.command);
                }
            }
        }
        member
    }
}

/// All members, and what is on its way between them.
struct Group {
    members: Vec<Member>,
    links: VecDeque<(MemberId, MemberId, Message)>,
    now: Nanos,
    /// Nothing reaches it, and nothing that it says reaches others.
    cut_off: Option<MemberId>,
}

impl Group {
    /// Has a member do something, and then what it wants done.
    fn step(&mut self, place: usize, act: impl FnOnce(&mut Pob, &mut EffectsOf<Pob>)) {
        let mut out = EffectsOf::<Pob>::at(self.now);
        let member = &mut self.members[place];
        act(&mut member.order, &mut out);
        let from = MemberId(place as u16);
        for effect in out.effects {
            match effect {
                BroadcastEffect::Log(record) => member.log.push(record),
                BroadcastEffect::Send { to, message } => self.links.push_back((from, to, message)),
                BroadcastEffect::Deliver(delivered) => member.apply(&delivered.command),
                BroadcastEffect::GivenUp(id) => println!("{id} is to be proposed again"),
            }
        }
    }

    /// Two changes of one key are in each other's way; others may be applied in any order.
    fn put(&mut self, place: usize, key: &str, value: &str) {
        let number = key.bytes().fold(0, |sum: u64, byte| sum * 31 + u64::from(byte));
        let objects = ObjectSet::new([TouchedObject { number, access: ObjectAccess::Write }]);
        let payload = format!("{key}={value}").as_str().into();
        let command = Command { objects: Arc::new(objects), payload };
        self.step(place, |order, out| {
            order.propose(command, out);
            order.flush(out);
        });
    }

    /// Carries all that is said, and lets time pass.
    fn run(&mut self, ticks: usize) {
        for _ in 0..ticks {
            self.now = Nanos(self.now.0 + TICK.0);
            for place in 0..MEMBERS {
                self.step(place, |order, out| order.tick(out));
            }
            while let Some((from, to, message)) = self.links.pop_front() {
                if [from, to].into_iter().any(|end| Some(end) == self.cut_off) {
                    continue;
                }
                // Messages from another process may say anything.
                if self.members[to.place()].order.judge(from, &message).is_ok() {
                    self.step(to.place(), |order, out| order.receive(from, message, out));
                }
            }
        }
    }
}

fn main() {
    let members = (0..MEMBERS).map(Member::new).collect();
    let mut group = Group { members, links: VecDeque::new(), now: Nanos(0), cut_off: None };
    // All members change the same five keys, and the third one is cut off for a while.
    for round in 0..20 {
        group.cut_off = (5..15).contains(&round).then_some(MemberId(2));
        for place in 0..MEMBERS {
            group.put(place, &format!("key {}", round % 5), &format!("{round} by member {place}"));
        }
        group.run(2);
    }
    group.run(500);
    // The second member loses its memory, and comes back from what it has written down.
    let log = std::mem::take(&mut group.members[1].log);
    let records = log.len();
    group.members[1] = Member::restarted(1, log, group.now);
    group.put(1, "key 5", "after the restart");
    group.run(100);
    let [first, second, third] = &group.members[..] else { unreachable!("there are three") };
    assert!(first.map == second.map && second.map == third.map, "all are alike");
    assert_eq!(first.map.get("key 5").map(String::as_str), Some("after the restart"));
    let keys = first.map.len();
    println!("three members hold the same {keys} keys; one came back from {records} records");
}
