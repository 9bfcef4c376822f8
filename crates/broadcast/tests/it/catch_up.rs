//! A member that has missed much is sent it part by part, each as soon as the last one has come.

use std::collections::VecDeque;

use muesli_broadcast::epaxos::{self, Epaxos};
use muesli_broadcast::generalized::{self, Generalized};
use muesli_broadcast::m2paxos::{self, M2Paxos};
use muesli_broadcast::m2paxos_bounded::M2PaxosBounded;
use muesli_broadcast::multipaxos::{MultiPaxos, PlacedLeader};
use muesli_broadcast::pob::{self, Pob};
use muesli_broadcast::{Broadcast, BroadcastSettings, CommandId, EffectsOf, MemberId};
use muesli_core::Nanos;

use crate::group::{Made, Subject, command, made, members};

/// Members 0 and 1 go on while member 2 hears nothing.
struct Parted<B: Broadcast> {
    members: Vec<B>,
    orders: Vec<Vec<CommandId>>,
    on_their_way: VecDeque<(MemberId, MemberId, B::Message)>,
    is_parted: bool,
    /// At most so many messages were on their way at once.
    most: usize,
    now: Nanos,
}

impl<B: Subject> Parted<B> {
    fn act(&mut self, at: usize, act: impl FnOnce(&mut B, &mut EffectsOf<B>)) {
        let mut out = EffectsOf::<B>::at(self.now);
        act(&mut self.members[at], &mut out);
        let Made { sent, delivered, .. } = made::<B>(out);
        self.orders[at].extend(delivered);
        let from = MemberId(at as u16);
        let all = sent.into_iter().map(|(to, message)| (from, to, message));
        self.on_their_way.extend(all.filter(|(_, to, _)| !self.is_parted || to.0 != 2));
        self.most = self.most.max(self.on_their_way.len());
    }

    fn arrive(&mut self) {
        while let Some((from, to, message)) = self.on_their_way.pop_front() {
            assert_eq!(self.members[to.place()].judge(from, &message), Ok(()));
            self.act(to.place(), |it, out| it.receive(from, message, out));
        }
    }

    fn tick(&mut self, after: u64) {
        self.now = Nanos(self.now.0 + after);
        (0..3).for_each(|at| self.act(at, |it, out| it.tick(out)));
        self.arrive();
    }
}

const MS: u64 = 1_000_000;

fn check<B: Subject>(switches: &B::Switches) {
    let mut group: Parted<B> = Parted {
        members: members(3, &BroadcastSettings::default(), switches),
        orders: vec![Vec::new(); 3],
        on_their_way: VecDeque::new(),
        is_parted: true,
        most: 0,
        now: Nanos(0),
    };
    for number in 0..3_000_u64 {
        group.act(number as usize % 2, |it, out| {
            it.propose(command("", &[number % 5]), out);
        });
        if number % 3 == 0 {
            group.arrive();
        }
        if number % 100 == 0 {
            group.tick(MS);
        }
    }
    (0..40).for_each(|_| group.tick(50 * MS)); // What is decided at once may have waited.
    assert_eq!([0, 1, 2].map(|at: usize| group.orders[at].len()), [3_000, 3_000, 0]);
    (group.is_parted, group.most) = (false, 0);
    // Reports come each 500 milliseconds where nothing is new: two, and nothing is asked again.
    (0..11).for_each(|_| group.tick(100 * MS));
    assert_eq!(group.orders[2].len(), 3_000, "it has all after two reports");
    assert!(group.most < 3_000, "not all was sent at once: {}", group.most);
}

#[test]
fn who_has_missed_much_is_sent_it_part_by_part_without_waiting() {
    check::<Pob>(&pob::Switches::default());
    check::<Pob>(&pob::Switches::fast());
    check::<Epaxos>(&epaxos::Switches::default());
    check::<Generalized>(&generalized::Switches::default());
    check::<M2Paxos>(&m2paxos::Switches::default());
    check::<M2PaxosBounded<MultiPaxos>>(&Default::default());
    check::<MultiPaxos>(&PlacedLeader(MemberId(0)));
}
