//! What a member has proposed itself.

use muesli_broadcast::epaxos::{self, Epaxos};
use muesli_broadcast::generalized::{self, Generalized};
use muesli_broadcast::m2paxos::{self, M2Paxos};
use muesli_broadcast::m2paxos_bounded::M2PaxosBounded;
use muesli_broadcast::m2paxos_bounded::message::BoundedMessage;
use muesli_broadcast::multipaxos::{MultiPaxos, PlacedLeader};
use muesli_broadcast::pob::{self, Pob};
use muesli_broadcast::{BroadcastSettings, EffectsOf, IdSet, MemberId};
use muesli_core::{Nanos, Rejection};

use crate::group::{Made, Subject, command, made, members};

/// One member proposes twice; the first command is delivered, and not the second one. `missing`
/// asks for what is not among some commands.
fn check<B: Subject>(switches: &B::Switches, missing: impl Fn(IdSet) -> B::Message) {
    let settings = BroadcastSettings::default();
    let mut all: Vec<B> = members(2, &settings, switches);
    let mut disk = Vec::new();
    let mut act = |all: &mut Vec<B>, at: usize, act: &dyn Fn(&mut B, &mut EffectsOf<B>)| {
        let mut out = EffectsOf::<B>::at(Nanos(0));
        act(&mut all[at], &mut out);
        let Made { sent, logged, delivered, .. } = made::<B>(out);
        disk.extend(logged.into_iter().filter(|_| at == 0));
        (sent, delivered)
    };
    let commands = [command("1", &[1]), command("2", &[2])];
    let [first, second] = commands.clone();
    let (mut sent, mut delivered) = act(&mut all, 0, &|it, out| {
        it.propose(first.clone(), out);
    });
    assert_eq!(all[0].proposed().map(|it| it.1).collect::<Vec<_>>(), [&commands[0]]);
    let mut from = 0;
    while !sent.is_empty() {
        let to = 1 - from;
        let mut answers = Vec::new();
        for (_, message) in sent {
            let from = MemberId(from as u16);
            let (more, now) = act(&mut all, to, &|it, out| it.receive(from, message.clone(), out));
            answers.extend(more);
            delivered.extend(now.into_iter().filter(|_| to == 0));
        }
        (sent, from) = (answers, to);
    }
    assert_eq!(delivered.len(), 1, "the first one");
    assert_eq!(all[0].proposed().count(), 0, "it is delivered");
    act(&mut all, 0, &|it, out| {
        it.propose(second.clone(), out);
    });
    let mut back = B::new(MemberId(0), 2, &settings, switches);
    for record in disk {
        back.replay(record, &mut EffectsOf::<B>::at(Nanos(0)));
    }
    for member in [&all[0], &back] {
        let open: Vec<_> = member.proposed().map(|(id, it)| (id.sequence, it)).collect();
        assert_eq!(open, [(2, &commands[1])]);
        let of = |leader, sequence| {
            let id = muesli_broadcast::CommandId { leader: MemberId(leader), sequence };
            member.judge(MemberId(1), &missing([id].into_iter().collect()))
        };
        let refused = Err(Rejection::Range);
        assert_eq!([of(0, 2), of(0, 3), of(1, 3)], [Ok(()), refused, Ok(())], "nobody has it yet");
    }
}

#[test]
fn a_member_knows_what_it_has_proposed_itself_also_after_a_crash() {
    for switches in [pob::Switches::default(), pob::Switches::fast()] {
        check::<Pob>(&switches, |ended| pob::message::Message::Missing { ended });
    }
    let epaxos = |ended| epaxos::message::Message::Missing { ended };
    check::<Epaxos>(&epaxos::Switches::default(), epaxos);
    let generalized = |ended| generalized::message::Message::Missing { ended };
    for leader in [0, 1].map(MemberId) {
        check::<Generalized>(&generalized::Switches::led_by(leader), generalized);
    }
    let m2paxos = |ended| m2paxos::message::Message::Missing { ended };
    check::<M2Paxos>(&m2paxos::Switches::default(), m2paxos);
    let bounded = |ended| {
        let message = m2paxos::message::Message::Missing { ended };
        BoundedMessage::Objects { cuts: 0, message }
    };
    check::<M2PaxosBounded<MultiPaxos>>(&Default::default(), bounded);
    for leader in [0, 1].map(MemberId) {
        check::<MultiPaxos>(&PlacedLeader(leader), m2paxos);
    }
}
