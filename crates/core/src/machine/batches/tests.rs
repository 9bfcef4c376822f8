use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::batching::BatchLinks;
use crate::roles::Address;

/// The time-out of all batches, in the ticks that times are counted in here.
const TIMEOUT: u64 = 100;
const ME: NodeId = NodeId(0);

/// So many ticks of 10 ns.
fn at(ticks: u64) -> Nanos {
    Nanos(10 * ticks)
}

fn batch_of(size: usize) -> LinkBatch {
    LinkBatch::new(size, at(TIMEOUT)).unwrap()
}

fn batches(size: usize) -> Box<Batches<u32>> {
    let batch = batch_of(size);
    Batches::new(Batching::over(BatchLinks::All, batch)).unwrap()
}

fn message(to: u32, text: u32) -> Envelope<u32> {
    let (from, to) = (Address::coordinator(ME), Address::coordinator(NodeId(to)));
    Envelope { from, to, message: text }
}

fn take(batches: &mut Batches<u32>, now: u64, to: u32, text: u32) -> Next {
    batches.take(at(now), (message(to, text), 10), 1, |_| LinkClass::Other)
}

/// What leaves as `leave` says, as node and text.
fn left(leave: impl FnOnce(&mut dyn FnMut(Envelope<u32>))) -> Vec<(u32, u32)> {
    let mut all = Vec::new();
    leave(&mut |it: Envelope<u32>| all.push((it.to.node.0, it.message)));
    all
}

fn released(batches: &mut Batches<u32>, now: u64, to: u32) -> Vec<(u32, u32)> {
    left(|mut send| batches.release(at(now), NodeId(to), &mut send))
}

fn timer(batches: &mut Batches<u32>, now: u64, number: u32) -> Vec<(u32, u32)> {
    left(|mut send| {
        batches.on_timer(at(now), number, &mut send);
    })
}

#[test]
fn where_nothing_is_held_there_are_no_batches() {
    assert!(Batches::<u32>::new(Batching::default()).is_none());
}

#[test]
fn a_full_batch_leaves_in_order_and_others_stay() {
    let mut batches = batches(3);
    assert_eq!(take(&mut batches, 1, 7, 70), Next::Arm(1, at(TIMEOUT)));
    assert_eq!(take(&mut batches, 2, 8, 80), Next::Wait);
    assert_eq!(take(&mut batches, 3, 7, 71), Next::Wait);
    assert!(!batches.is_empty());
    assert_eq!(take(&mut batches, 6, 7, 72), Next::Leave);
    assert_eq!(released(&mut batches, 6, 7), [(7, 70), (7, 71), (7, 72)]);
    let counts = BatchCounts {
        messages: 3,
        full: 1,
        held: at(5 + 3),
        held_longest: at(5),
        ..BatchCounts::default()
    };
    assert_eq!(batches.counts(), counts);
    assert_eq!(left(|mut send| batches.release_all(at(9), &mut send)), [(8, 80)]);
    assert_eq!((batches.is_empty(), batches.counts().asked), (true, 1));
}

#[test]
fn a_batch_whose_first_message_has_waited_leaves_however_short() {
    let mut batches = batches(3);
    assert_eq!(take(&mut batches, 0, 7, 70), Next::Arm(1, at(TIMEOUT)));
    assert_eq!(take(&mut batches, 40, 8, 80), Next::Wait);
    let mut sent = Vec::new();
    let next = batches.on_timer(at(100), 1, &mut |it| sent.push(it.message));
    assert_eq!((sent.as_slice(), next), ([70].as_slice(), Some((2, at(40)))));
    assert_eq!(batches.on_timer(at(140), 2, &mut |it| sent.push(it.message)), None);
    assert_eq!((sent, batches.counts().late), (vec![70, 80], 2));
}

#[test]
fn an_early_timer_is_armed_again_and_an_old_one_is_ignored() {
    let mut batches = batches(2);
    assert_eq!(take(&mut batches, 0, 7, 70), Next::Arm(1, at(TIMEOUT)));
    let mut none = |_: Envelope<u32>| panic!("it is not time yet");
    assert_eq!(batches.on_timer(at(30), 1, &mut none), Some((2, at(70))));
    assert_eq!(batches.on_timer(at(100), 1, &mut none), None, "a timer of the past");
    assert_eq!(timer(&mut batches, 100, 2), [(7, 70)]);
}

/// A batch that has left by being full leaves its timer behind, which comes early for the next.
#[test]
fn the_timer_of_a_full_batch_serves_the_next() {
    let mut batches = batches(2);
    take(&mut batches, 0, 7, 70);
    assert_eq!(take(&mut batches, 10, 7, 71), Next::Leave);
    released(&mut batches, 10, 7);
    assert_eq!(take(&mut batches, 50, 7, 72), Next::Wait, "the first timer still runs");
    let mut none = |_: Envelope<u32>| panic!("it is not time yet");
    assert_eq!(batches.on_timer(at(100), 1, &mut none), Some((2, at(50))));
    assert_eq!(timer(&mut batches, 150, 2), [(7, 72)]);
}

#[test]
fn a_clock_that_goes_back_holds_nothing_for_longer() {
    let mut batches = batches(3);
    assert_eq!(take(&mut batches, 5_000, 7, 70), Next::Arm(1, at(TIMEOUT)));
    assert_eq!(
        take(&mut batches, 10, 8, 80),
        Next::Arm(2, at(TIMEOUT)),
        "the first one is far away"
    );
    assert_eq!(timer(&mut batches, 110, 2), [(7, 70), (8, 80)]);
}

#[test]
fn what_is_held_for_a_broken_link_leaves_before_it_is_gone() {
    let mut batches = batches(3);
    take(&mut batches, 0, 7, 70);
    take(&mut batches, 0, 8, 80);
    let sent = left(|mut send| batches.unlinked(at(1), NodeId(7), &mut send));
    assert_eq!((sent, batches.counts().asked), (vec![(7, 70)], 1));
    assert_eq!(batches.links.keys().collect::<Vec<_>>(), [&NodeId(8)]);
}

#[test]
fn links_of_classes_without_batches_hold_nothing() {
    let batch = batch_of(3);
    let batching = Batching::over(BatchLinks::Up, batch);
    let mut batches = Batches::<u32>::new(batching).unwrap();
    let class = |to: NodeId| if to.0 == 7 { LinkClass::Up } else { LinkClass::Down };
    let mut take = |placement, to| batches.take(at(0), (message(to, 1), 10), placement, class);
    assert_eq!(take(1, 8), Next::Leave);
    assert!(matches!(take(1, 7), Next::Arm(..)));
    assert_eq!(released(&mut batches, 0, 8), [(8, 1)]);
    assert_eq!(batches.counts(), BatchCounts::default(), "nothing was held");
    // Elsewhere by a newer placement: what is held stays in front.
    let next = batches.take(at(0), (message(8, 2), 10), 2, |_| LinkClass::Up);
    assert_eq!((next, batches.links.len()), (Next::Wait, 2));
}

#[test]
fn long_messages_leave_before_they_are_as_many_as_a_batch() {
    let mut batches = batches(1024);
    let half = BYTES_MAX / 2;
    let mut long =
        |text, bytes| batches.take(at(0), (message(7, text), bytes), 1, |_| LinkClass::Other);
    assert!(matches!(long(1, half), Next::Arm(..)));
    assert_eq!((long(2, half - 1), long(3, 1)), (Next::Wait, Next::Leave));
    assert_eq!(released(&mut batches, 0, 7), [(7, 1), (7, 2), (7, 3)]);
    assert_eq!(take(&mut batches, 0, 7, 4), Next::Wait, "it counts from nothing");
}

#[test]
fn nodes_that_nothing_is_held_for_are_not_remembered_for_ever() {
    let batch = batch_of(3);
    let mut batches = Batches::<u32>::new(Batching::over(BatchLinks::Up, batch)).unwrap();
    for to in 0..3 * LINKS_KEPT as u32 {
        let next = batches.take(at(0), (message(to, 1), 10), 1, |_| LinkClass::Other);
        assert_eq!(next, Next::Leave);
        assert_eq!(released(&mut batches, 0, to), [(to, 1)]);
    }
    assert!(batches.links.len() <= LINKS_KEPT, "{} links", batches.links.len());
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Take(u32),
    Pass(u64),
    Break(u32),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1..4u32).prop_map(Step::Take),
        3 => (0..150u64).prop_map(Step::Pass),
        1 => (1..4u32).prop_map(Step::Break),
    ]
}

proptest! {
    /// Over each link all leaves once, in the order said, within the time-out, and no queue is ever
    /// as long as a batch.
    #[test]
    fn all_leaves_once_in_order_and_in_time(
        size in 2usize..6,
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let mut batches = batches(size);
        let (mut now, mut text, mut armed) = (0u64, 0u32, None::<(u32, u64)>);
        let (mut taken, mut sent) = (BTreeMap::<u32, Vec<u32>>::new(), Vec::new());
        for step in steps {
            match step {
                Step::Take(to) => {
                    text += 1;
                    taken.entry(to).or_default().push(text);
                    match take(&mut batches, now, to, text) {
                        Next::Leave => sent.extend(released(&mut batches, now, to)),
                        Next::Arm(number, after) => armed = Some((number, now + after.0 / 10)),
                        Next::Wait => prop_assert!(armed.is_some()),
                    }
                }
                Step::Break(to) => {
                    let gone = |mut send: &mut dyn FnMut(Envelope<u32>)| {
                        batches.unlinked(at(now), NodeId(to), &mut send);
                    };
                    sent.extend(left(gone));
                }
                Step::Pass(by) => {
                    let until = now + by;
                    while let Some((number, due)) = armed.filter(|(_, due)| *due <= until) {
                        now = due;
                        let mut next = None;
                        sent.extend(left(|mut send| {
                            next = batches.on_timer(at(now), number, &mut send);
                        }));
                        armed = next.map(|(number, after)| (number, now + after.0 / 10));
                    }
                    now = until;
                }
            }
            let longest = batches.links.values().map(|queue| queue.held.len()).max();
            prop_assert!(longest.unwrap_or(0) < size);
            prop_assert!(batches.counts().held_longest <= at(TIMEOUT));
        }
        sent.extend(left(|mut send| batches.release_all(at(now), &mut send)));
        let mut by_link = BTreeMap::<u32, Vec<u32>>::new();
        sent.into_iter().for_each(|(to, text)| by_link.entry(to).or_default().push(text));
        prop_assert_eq!(by_link, taken);
    }
}
