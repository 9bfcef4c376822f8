//! How fast the event queue is: a push and a pop, with a steady number of events waiting.
//!
//! A binary heap does the same beside it, to show what the radix queue is worth.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;

use divan::Bencher;
use divan::counter::ItemsCount;
use muesli_sim::queue::EventQueue;
use muesli_sim::random::{Random, Seed};
use muesli_sim::time::{Span, VirtualTime};

/// What an event of the simulated world weighs, in words.
type Payload = [u64; 4];
const ROUNDS: u64 = 10_000;
/// How many events wait.
const WAITING: [u64; 3] = [100, 10_000, 200_000];

fn delay(random: &mut Random) -> Span {
    Span::from_nanos(50_000 + random.below(200_000))
}

#[divan::bench(args = WAITING)]
fn radix_queue(bencher: Bencher<'_, '_>, waiting: u64) {
    let mut random = Seed::new(1).stream();
    let mut queue: EventQueue<Payload> = EventQueue::new();
    for number in 0..waiting {
        queue.push(VirtualTime::ZERO + delay(&mut random), [number; 4]);
    }
    bencher.counter(ItemsCount::new(ROUNDS)).bench_local(|| {
        for _ in 0..ROUNDS {
            let (now, event) = queue.pop().expect("the number of events is steady");
            queue.push(now + delay(&mut random), black_box(event));
        }
    });
}

#[divan::bench(args = WAITING)]
fn binary_heap(bencher: Bencher<'_, '_>, waiting: u64) {
    let mut random = Seed::new(1).stream();
    let mut heap: BinaryHeap<Reverse<(VirtualTime, u64, Payload)>> = BinaryHeap::new();
    let mut sequence = 0;
    for number in 0..waiting {
        sequence += 1;
        heap.push(Reverse((VirtualTime::ZERO + delay(&mut random), sequence, [number; 4])));
    }
    bencher.counter(ItemsCount::new(ROUNDS)).bench_local(|| {
        for _ in 0..ROUNDS {
            let Reverse((now, _, event)) = heap.pop().expect("the number of events is steady");
            sequence += 1;
            heap.push(Reverse((now + delay(&mut random), sequence, black_box(event))));
        }
    });
}

fn main() {
    divan::main();
}
