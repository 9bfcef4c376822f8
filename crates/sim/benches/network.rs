//! How fast the network is: a message sent and settled, among 160 nodes.

use divan::Bencher;
use divan::counter::ItemsCount;
use muesli_core::NodeId;
use muesli_sim::latency::Latency;
use muesli_sim::network::topology::{ChannelClass, Topology};
use muesli_sim::network::{Arrival, Network};
use muesli_sim::random::Seed;
use muesli_sim::time::{Span, VirtualTime};

const NODES: u32 = 160;
const ROUNDS: u64 = 10_000;

#[divan::bench(args = ["constant", "exponential", "lognormal"])]
fn send_and_arrive(bencher: Bencher<'_, '_>, latency: &str) {
    let (least, mean_tail) = (Span::from_micros(40), Span::from_micros(20));
    let latency = match latency {
        "constant" => Latency::Constant(least),
        "exponential" => Latency::Exponential { least, mean_tail },
        _ => Latency::LogNormal { median: least, partitions_per_repository: 1.5 },
    };
    let class = ChannelClass { latency, bandwidth: 1_250_000_000 };
    let topology = Topology::uniform(NODES as usize, class);
    let mut network = Network::new(topology, Seed::new(1).stream());
    let mut nodes = Seed::new(2).stream();
    let mut now = VirtualTime::ZERO;
    bencher.counter(ItemsCount::new(ROUNDS)).bench_local(|| {
        for number in 0..ROUNDS {
            now += Span::from_nanos(100);
            let from = NodeId(nodes.below(NODES.into()) as u32);
            let to = NodeId(nodes.below(NODES.into()) as u32);
            let departure = network.send(now, from, to, 200).expect("links are up");
            let arrival = network.arrive(now, from, to, departure.epoch, number);
            assert_eq!(arrival, Arrival::Delivered(number));
        }
    });
}

fn main() {
    divan::main();
}
