use proptest::prelude::*;

use super::*;
use crate::latency::Latency;
use crate::network::racks::{RackLink, Racks};
use crate::network::topology::ChannelClass;
use crate::queue::EventQueue;
use crate::random::Seed;

const LEFT: NodeId = NodeId(0);
const RIGHT: NodeId = NodeId(1);
const CHANNELS: [ChannelId; 2] = [(LEFT, RIGHT), (RIGHT, LEFT)];

#[derive(Clone, Copy, Debug)]
enum Step {
    Send { channel: usize, bytes: u64 },
    Sever,
    Reconnect,
    Block { channel: usize },
    Unblock { channel: usize },
    Wait { nanos: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..2_usize, 0..2_000_u64).prop_map(|(channel, bytes)| Step::Send { channel, bytes }),
        1 => Just(Step::Sever),
        2 => Just(Step::Reconnect),
        1 => (0..2_usize).prop_map(|channel| Step::Block { channel }),
        2 => (0..2_usize).prop_map(|channel| Step::Unblock { channel }),
        6 => (0..120_000_u64).prop_map(|nanos| Step::Wait { nanos }),
    ]
}

enum Event {
    Due(ChannelId, Departure, u64),
    ReportedTransaction(ChannelId),
}

/// A number sent, and the life of the channel that it was sent in.
type Sent = (u64, u64);

/// Two nodes that number what they send, and note what arrives.
struct Pair {
    network: Network<u64>,
    queue: EventQueue<Event>,
    now: VirtualTime,
    next: u64,
    sent: BTreeMap<ChannelId, Vec<Sent>>,
    received: BTreeMap<ChannelId, Vec<u64>>,
    /// Counts the lives of the link, and per channel the newest whose end its receiver was told of.
    incarnation: u64,
    notified: BTreeMap<ChannelId, u64>,
    blocks: [u32; 2],
}

impl Pair {
    fn new(latency: Latency, bandwidth: u64, seed: u64) -> Self {
        Pair::on(Topology::uniform(2, ChannelClass { latency, bandwidth }), seed)
    }

    fn on(topology: Topology, seed: u64) -> Self {
        Pair {
            network: Network::new(topology, Seed::new(seed).stream()),
            queue: EventQueue::new(),
            now: VirtualTime::ZERO,
            next: 0,
            sent: BTreeMap::new(),
            received: BTreeMap::new(),
            incarnation: 1,
            notified: BTreeMap::new(),
            blocks: [0; 2],
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Send { channel, bytes } => self.send(CHANNELS[channel], bytes),
            Step::Sever => self.sever(),
            Step::Reconnect => {
                let broken = self.network.is_broken(LEFT, RIGHT);
                if broken && self.network.reconnect(self.now, LEFT, RIGHT) {
                    self.incarnation += 1;
                }
            }
            Step::Block { channel } => {
                self.blocks[channel] += 1;
                self.network.block(self.now, CHANNELS[channel].0, CHANNELS[channel].1);
            }
            Step::Unblock { channel } => {
                self.blocks[channel] = self.blocks[channel].saturating_sub(1);
                let (from, to) = CHANNELS[channel];
                let held = self.network.unblock(from, to);
                held.into_iter().for_each(|number| self.receive((from, to), number));
            }
            Step::Wait { nanos } => self.run_until(self.now + Span::from_nanos(nanos)),
        }
    }

    fn send(&mut self, channel: ChannelId, bytes: u64) {
        self.next += 1;
        if let Some(departure) = self.network.send(self.now, channel.0, channel.1, bytes) {
            assert!(departure.due >= self.now);
            self.queue.push(departure.due, Event::Due(channel, departure, self.next));
            self.sent.entry(channel).or_default().push((self.next, self.incarnation));
        } else {
            assert!(self.network.is_broken(LEFT, RIGHT));
        }
    }

    fn sever(&mut self) {
        let broken = self.network.is_broken(LEFT, RIGHT);
        let Some(cut) = self.network.sever(self.now, LEFT, RIGHT) else {
            return assert!(broken);
        };
        self.queue.push(cut.first_notified, Event::ReportedTransaction((RIGHT, LEFT)));
        self.queue.push(cut.second_notified, Event::ReportedTransaction((LEFT, RIGHT)));
    }

    fn run_until(&mut self, limit: VirtualTime) {
        while let Some((time, event)) = self.queue.pop_until(limit) {
            self.now = time;
            match event {
                Event::Due(channel, departure, number) => {
                    let (from, to) = channel;
                    if let Some(next) = self.network.pass(time, from, to, departure) {
                        self.queue.push(next.due, Event::Due(channel, next, number));
                        continue;
                    }
                    let arrival = self.network.arrive(time, from, to, departure.epoch, number);
                    if let Arrival::Delivered(number) = arrival {
                        self.receive(channel, number);
                    }
                }
                Event::ReportedTransaction(channel) => {
                    self.notified.insert(channel, self.incarnation);
                }
            }
        }
        self.now = limit;
    }

    fn receive(&mut self, channel: ChannelId, number: u64) {
        let incarnation = self.incarnation_of(channel, number);
        let notified = self.notified.get(&channel).copied().unwrap_or(0);
        // A link can be made anew before the word of its end; then the word comes late.
        assert!(
            incarnation > notified || incarnation == self.incarnation,
            "a message after the word of its link's end"
        );
        self.received.entry(channel).or_default().push(number);
    }

    fn incarnation_of(&self, channel: ChannelId, number: u64) -> u64 {
        let sent = self.sent[&channel].iter().find(|(sent, _)| *sent == number);
        sent.expect("only what was sent arrives").1
    }

    /// In every life of every channel, what was received is a prefix of what was sent.
    fn assert_prefixes(&self) {
        for (channel, received) in &self.received {
            let in_order = received.windows(2).all(|pair| pair[0] < pair[1]);
            assert!(in_order, "{channel:?} delivered out of order: {received:?}");
            for incarnation in 1..=self.incarnation {
                let sent = self.sent[channel].iter().filter(|(_, sent_in)| *sent_in == incarnation);
                let sent: Vec<u64> = sent.map(|(number, _)| *number).collect();
                let got = received
                    .iter()
                    .filter(|number| self.incarnation_of(*channel, **number) == incarnation);
                let got: Vec<u64> = got.copied().collect();
                assert!(
                    sent.starts_with(&got),
                    "life {incarnation} of {channel:?}: {got:?} of {sent:?}"
                );
            }
        }
    }

    /// Ends all partitions and waits for everything under way.
    fn settle(&mut self) {
        for channel in [0, 1] {
            while self.blocks[channel] > 0 {
                self.step(Step::Unblock { channel });
            }
        }
        self.run_until(self.now + Span::from_secs(1_000));
    }
}

fn pair() -> impl Strategy<Value = Pair> {
    let micros = Span::from_micros;
    let latency = prop_oneof![
        Just(Latency::Constant(micros(50))),
        Just(Latency::Uniform(micros(10), micros(90))),
        Just(Latency::Exponential { least: micros(20), mean_tail: micros(60) }),
        Just(Latency::LogNormal { median: micros(50), partitions_per_repository: 3.0 }),
    ];
    let bandwidth = prop_oneof![Just(0), Just(10_000_000_u64), Just(1_000_000_000)];
    let link = (prop_oneof![Just(0), Just(20_000_u64)], prop_oneof![Just(0), Just(30_000_000_u64)]);
    let link = link.prop_map(|(packets, bandwidth)| RackLink { packets, bandwidth });
    (latency, bandwidth, proptest::option::of(link), any::<u64>()).prop_map(|(l, b, link, seed)| {
        let near = Topology::uniform(2, ChannelClass { latency: l, bandwidth: b });
        let apart = |link| near.clone().with_racks(Racks::new(vec![0, 1], link));
        Pair::on(link.map_or_else(|| near.clone(), apart), seed)
    })
}

impl std::fmt::Debug for Pair {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{:?}", self.network.topology())
    }
}

proptest! {
    /// FIFO without gaps in every life of a link, whatever happens to it.
    #[test]
    fn each_incarnation_delivers_a_prefix(
        mut pair in pair(),
        steps in prop::collection::vec(step(), 1..120),
    ) {
        steps.into_iter().for_each(|step| pair.step(step));
        pair.settle();
        pair.assert_prefixes();
    }

    /// A link that never breaks loses nothing, partitioned or not.
    #[test]
    fn unbroken_links_lose_nothing(
        mut pair in pair(),
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let gentle = steps.into_iter().filter(|step| !matches!(step, Step::Sever));
        gentle.for_each(|step| pair.step(step));
        pair.settle();
        for channel in CHANNELS {
            let sent = pair.sent.remove(&channel).unwrap_or_default().into_iter();
            let sent: Vec<u64> = sent.map(|(number, _)| number).collect();
            prop_assert_eq!(sent, pair.received.remove(&channel).unwrap_or_default());
        }
    }
}

#[test]
fn a_break_loses_some_suffix_in_some_runs_and_nothing_in_others() {
    let lengths = (0..200).map(|seed| {
        let mut pair = Pair::new(Latency::Constant(Span::from_micros(50)), 0, seed);
        for _ in 0..8 {
            pair.step(Step::Send { channel: 0, bytes: 10 });
            pair.step(Step::Wait { nanos: 5_000 });
        }
        pair.step(Step::Sever);
        pair.step(Step::Send { channel: 0, bytes: 10 });
        pair.settle();
        pair.received.get(&CHANNELS[0]).map_or(0, Vec::len)
    });
    let lengths: BTreeSet<usize> = lengths.collect();
    assert_eq!(lengths, (0..=8).collect());
}

#[test]
fn bandwidth_delays_what_is_sent_behind() {
    let mut pair = Pair::new(Latency::Constant(Span::from_micros(50)), 1_000_000, 1);
    let send = |pair: &mut Pair, bytes| pair.network.send(VirtualTime::ZERO, LEFT, RIGHT, bytes);
    let dues = [1_000, 2_000].map(|bytes| send(&mut pair, bytes).map(|departure| departure.due));
    let expected = [1_050, 3_050].map(|micros| Some(VirtualTime::ZERO + Span::from_micros(micros)));
    assert_eq!(dues, expected);
}

#[test]
fn nothing_reaches_a_node_that_crashed_and_it_is_connected_to_after_its_restart() {
    let mut pair = Pair::new(Latency::Constant(Span::from_micros(50)), 0, 1);
    pair.step(Step::Send { channel: 0, bytes: 1 });
    let others = pair.network.crash(pair.now, RIGHT);
    assert_eq!(others.iter().map(|(other, _)| *other).collect::<Vec<_>>(), [LEFT]);
    pair.step(Step::Wait { nanos: 1_000_000 });
    assert_eq!(pair.received.get(&CHANNELS[0]), None);
    assert!(!pair.network.reconnect(pair.now, LEFT, RIGHT));
    pair.network.restart(RIGHT);
    assert!(pair.network.reconnect(pair.now, LEFT, RIGHT));
    pair.incarnation += 1;
    pair.step(Step::Send { channel: 0, bytes: 1 });
    pair.step(Step::Wait { nanos: 1_000_000 });
    assert_eq!(pair.received[&CHANNELS[0]].len(), 1);
}

#[test]
fn a_partition_one_way_holds_one_channel_only() {
    let mut pair = Pair::new(Latency::Constant(Span::from_micros(50)), 0, 1);
    pair.step(Step::Block { channel: 0 });
    pair.step(Step::Send { channel: 0, bytes: 1 });
    pair.step(Step::Send { channel: 1, bytes: 1 });
    pair.step(Step::Wait { nanos: 1_000_000 });
    assert_eq!((pair.received.get(&CHANNELS[0]), pair.received[&CHANNELS[1]].len()), (None, 1));
    pair.settle();
    assert_eq!(pair.received[&CHANNELS[0]].len(), 1);
}

/// Four nodes, two to a rack, always 50 us apart.
fn two_racks(link: RackLink) -> Network<u32> {
    let class = ChannelClass { latency: Latency::Constant(Span::from_micros(50)), bandwidth: 0 };
    let racks = Racks::new(vec![0, 0, 1, 1], link);
    Network::new(Topology::uniform(4, class).with_racks(racks), Seed::new(1).stream())
}

/// Sends these messages, by when, from, to and bytes; when each arrives, in microseconds.
fn arrivals(network: &mut Network<u32>, sent: &[(u64, u32, u32, u64)]) -> Vec<u64> {
    let mut queue = EventQueue::new();
    for (number, (at, from, to, bytes)) in sent.iter().enumerate() {
        let at = VirtualTime::ZERO + Span::from_micros(*at);
        let departure = network.send(at, NodeId(*from), NodeId(*to), *bytes).unwrap();
        queue.push(departure.due, (number, departure));
    }
    let mut arrived = vec![0; sent.len()];
    while let Some((now, (number, departure))) =
        queue.pop_until(VirtualTime::ZERO + Span::from_secs(9))
    {
        let (_, from, to, _) = sent[number];
        match network.pass(now, NodeId(from), NodeId(to), departure) {
            Some(next) => queue.push(next.due, (number, next)),
            None => arrived[number] = now.as_nanos() / 1_000,
        }
    }
    arrived
}

#[test]
fn racks_share_an_uplink_and_a_downlink_in_the_order_of_coming() {
    // A packet takes 100 us of a link.
    let link = RackLink { packets: 10_000, bandwidth: 0 };
    let mut network = two_racks(link);
    let sent = [(500, 0, 2, 10), (0, 1, 3, 10), (20, 0, 3, 10), (30, 0, 1, 10), (30, 2, 1, 10)];
    // The first was sent first and comes last; the neighbour's message meets nobody, and what goes
    // the other way has links of its own.
    assert_eq!(arrivals(&mut network, &sent), [750, 250, 350, 80, 280]);
    let RackTraffic { messages, packets, bytes, occupied } = network.between_racks();
    assert_eq!((messages, packets, bytes, occupied), (4, 4, 40, Span::from_micros(400)));
}

#[test]
fn what_leaves_for_one_node_at_one_moment_shares_packets() {
    let link = RackLink { packets: 10_000, bandwidth: 1_000_000 };
    let mut network = two_racks(link);
    let sent = [(0, 0, 2, 600), (0, 0, 2, 600), (0, 0, 2, 600), (0, 0, 3, 100), (9, 0, 2, 0)];
    arrivals(&mut network, &sent);
    let between = network.between_racks();
    assert_eq!((between.packets, between.bytes), (2 + 1 + 1, 1_900));
    assert_eq!(between.occupied, Span::from_micros(4 * 100 + 1_900));
}

#[test]
fn a_saturated_link_carries_its_rate_whoever_sends() {
    let link = RackLink { packets: 100_000, bandwidth: 0 };
    let sent: Vec<_> =
        (0..5_000).map(|n| (n, (n % 2) as u32, 2 + (n / 7 % 2) as u32, 50)).collect();
    let arrived = arrivals(&mut two_racks(link), &sent);
    // Ten times as much is sent as a link takes, 10 us each.
    let last = arrived.iter().max().unwrap();
    assert_eq!(*last, 5_000 * 10 + 50 + 10);
    assert_eq!(arrived, arrivals(&mut two_racks(link), &sent), "a run can be repeated");
    let free = arrivals(&mut two_racks(RackLink::default()), &sent);
    assert!(free.iter().zip(&sent).all(|(at, sent)| *at == sent.0 + 50), "no cost where none is");
}
