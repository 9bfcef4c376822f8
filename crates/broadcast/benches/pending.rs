//! What a command costs from its proposal to its delivery, by how many are pending beside it.
//!
//! `cargo bench -p muesli-broadcast` prints one line a row: a group of three, and one of eleven, in
//! one thread, whose messages are passed from hand to hand in the order in which they are sent,
//! with so many commands under way at any time. The time of a command: all that its members do
//! about it, of the processor where Linux tells that, and else of the clock; how many messages they
//! handle for that, of how many bytes, and how often they deliver it. Those that conflict all write
//! one object; of the others each writes one of its own.
//! `cargo bench -p muesli-broadcast -- pob` measures the instances whose name has that in it.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use muesli_broadcast::epaxos::{self, Epaxos};
use muesli_broadcast::generalized::{self, Generalized};
use muesli_broadcast::m2paxos::{self, M2Paxos};
use muesli_broadcast::m2paxos_bounded::{BoundedSwitches, M2PaxosBounded};
use muesli_broadcast::multipaxos::{MultiPaxos, PlacedLeader};
use muesli_broadcast::pob::{self, Pob};
use muesli_broadcast::{
    BatchLimits, Batched, BatchedSwitches, Broadcast, BroadcastEffect, BroadcastSettings, Command,
    EffectsOf, MemberId, ObjectSet,
};
use muesli_core::Nanos;
use muesli_core::wire::Wire;

/// Members of a group: three, and of one more that shows what each member adds.
const GROUPS: [usize; 2] = [3, 11];

/// Each row takes about this long, twice.
const ROW: Duration = Duration::from_millis(500);

/// A message takes so long in the group's own time.
const MESSAGE: u64 = 1_000;

/// Members look at the time after so many messages.
const TICK: u64 = 1_000;

/// What this thread has used of a processor, or what a clock says.
struct Stopwatch(Instant);

impl Stopwatch {
    fn elapsed(&self) -> Duration {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
        let nanos = text.and_then(|it| it.split_whitespace().next()?.parse().ok());
        nanos.map_or_else(|| self.0.elapsed(), Duration::from_nanos)
    }
}

struct Group<B: Broadcast> {
    members: Vec<B>,
    on_their_way: VecDeque<(MemberId, MemberId, B::Message)>,
    now: u64,
    proposed: u64,
    /// At the members that proposed them.
    delivered: u64,
    /// At all of them.
    deliveries: u64,
    received: u64,
    /// Bytes of all messages, where they are counted: that is no part of what is timed.
    bytes: Option<u64>,
    conflicting: bool,
    pending: u64,
}

impl<B: Broadcast> Group<B> {
    fn new(switches: &B::Switches, members: usize, pending: u64, conflicting: bool) -> Group<B> {
        let settings = BroadcastSettings::default();
        let member = |me| B::new(MemberId(me), members, &settings, switches);
        Group {
            members: (0..members as u16).map(member).collect(),
            on_their_way: VecDeque::new(),
            now: 0,
            proposed: 0,
            delivered: 0,
            deliveries: 0,
            received: 0,
            bytes: None,
            conflicting,
            pending,
        }
    }

    fn act(&mut self, at: usize, act: impl FnOnce(&mut B, &mut EffectsOf<B>)) {
        let mut out = EffectsOf::<B>::at(Nanos(self.now));
        act(&mut self.members[at], &mut out);
        let from = MemberId(at as u16);
        for effect in out.effects {
            match effect {
                BroadcastEffect::Send { to, message } => {
                    self.on_their_way.push_back((from, to, message));
                }
                BroadcastEffect::Log(_) => {}
                BroadcastEffect::Deliver(it) => {
                    self.deliveries += 1;
                    self.delivered += u64::from(it.id.leader == from);
                }
                BroadcastEffect::GivenUp(_) => self.delivered += 1,
            }
        }
    }

    /// Keeps so many commands under way.
    fn propose(&mut self) {
        let before = self.proposed;
        while self.proposed < self.delivered + self.pending {
            let members = self.members.len();
            let at = self.proposed as usize % members;
            let own = self.proposed % (2 * self.pending.next_multiple_of(members as u64));
            let object = if self.conflicting { 0 } else { own };
            let objects = ObjectSet::writes([object]).into();
            let command = Command { objects, payload: vec![7; 16].into() };
            self.proposed += 1;
            self.act(at, |it, out| _ = it.propose(command, out));
        }
        if self.proposed > before {
            (0..self.members.len()).for_each(|at| self.act(at, |it, out| it.flush(out)));
        }
    }

    fn step(&mut self) {
        self.now += MESSAGE;
        if let Some((from, to, message)) = self.on_their_way.pop_front() {
            self.received += 1;
            if let Some(bytes) = &mut self.bytes {
                let mut encoded = Vec::new();
                message.encode(&mut encoded);
                *bytes += encoded.len() as u64;
            }
            self.act(to.place(), |it, out| {
                assert!(it.judge(from, &message).is_ok(), "{message:?}");
                it.receive(from, message, out);
            });
        } else {
            self.now += TICK * MESSAGE;
        }
        if self.on_their_way.is_empty() || (self.now / MESSAGE).is_multiple_of(TICK) {
            (0..self.members.len()).for_each(|at| self.act(at, |it, out| it.tick(out)));
        }
    }

    /// Until so many are delivered, or the time is over: how many were, and in which time.
    fn run(&mut self, most: u64, time: Duration) -> (u64, Duration) {
        let (watch, before) = (Stopwatch(Instant::now()), self.delivered);
        let start = watch.elapsed();
        while self.delivered - before < most && watch.elapsed() - start < time {
            for _ in 0..64 {
                self.propose();
                self.step();
            }
        }
        (self.delivered - before, watch.elapsed() - start)
    }
}

fn rows<B: Broadcast>(name: &str, switches: &B::Switches) {
    let named: Vec<String> = std::env::args().skip(1).filter(|it| !it.starts_with('-')).collect();
    if !named.is_empty() && !named.iter().any(|it| name.contains(it.as_str())) {
        return;
    }
    for members in GROUPS {
        for (pending, conflicting) in
            [(10, true), (100, true), (1_000, true), (10, false), (1_000, false), (10_000, false)]
        {
            row::<B>(name, switches, members, (pending, conflicting));
        }
    }
}

fn row<B: Broadcast>(
    name: &str,
    switches: &B::Switches,
    members: usize,
    (pending, conflicting): (u64, bool),
) {
    let mut group = Group::<B>::new(switches, members, pending, conflicting);
    group.run(4 * pending, ROW);
    let (received, deliveries) = (group.received, group.deliveries);
    let (count, time) = group.run(u64::MAX, ROW);
    let of = |number: u64| number as f64 / count.max(1) as f64;
    let each = time.as_secs_f64() * 1e6 / count.max(1) as f64;
    let kind = if conflicting { "conflicting" } else { "apart" };
    let (received, deliveries) = (of(group.received - received), of(group.deliveries - deliveries));
    let before = group.received;
    group.bytes = Some(0);
    group.run(u64::MAX, ROW / 10);
    // By message: in a short time as many commands do not end as begin.
    let bytes =
        group.bytes.unwrap_or(0) as f64 / (group.received - before).max(1) as f64 * received;
    println!(
        "{name:<18} {members:>2} members {pending:>6} {kind:<12} {each:>7.1} us each, \
         {received:>5.1} messages, {bytes:>7.0} bytes, {deliveries:>4.1} deliveries"
    );
}

/// The same where several commands of a member are ordered as one.
fn batched_rows<B: Broadcast>(name: &str, switches: &B::Switches) {
    let switches = BatchedSwitches::new(BatchLimits::default(), switches.clone());
    rows::<Batched<B>>(name, &switches);
}

fn main() {
    rows::<Pob>("pob", &pob::Switches::default());
    rows::<Pob>("pob-fast", &pob::Switches::fast());
    rows::<Epaxos>("epaxos", &epaxos::Switches::default());
    rows::<Generalized>("generalized", &generalized::Switches::default());
    rows::<M2Paxos>("m2paxos", &m2paxos::Switches::default());
    rows::<M2PaxosBounded<MultiPaxos>>("m2paxos-bounded", &BoundedSwitches::default());
    rows::<MultiPaxos>("multipaxos", &PlacedLeader(MemberId(0)));
    batched_rows::<Pob>("batched-pob-fast", &pob::Switches::fast());
    batched_rows::<Epaxos>("batched-epaxos", &epaxos::Switches::default());
    batched_rows::<M2Paxos>("batched-m2paxos", &m2paxos::Switches::default());
    batched_rows::<MultiPaxos>("batched-multipaxos", &PlacedLeader(MemberId(0)));
}
