//! Checkpoints: what a member writes, it has back, and what is damaged is refused.

use muesli_broadcast::epaxos::{self, Epaxos};
use muesli_broadcast::generalized::{self, Generalized};
use muesli_broadcast::m2paxos::{self, M2Paxos};
use muesli_broadcast::m2paxos_bounded::M2PaxosBounded;
use muesli_broadcast::multipaxos::{MultiPaxos, PlacedLeader};
use muesli_broadcast::pob::{self, Pob};
use muesli_broadcast::{
    Broadcast, BroadcastEffect, BroadcastSettings, CheckpointError, CommandId, EffectsOf, MemberId,
};
use muesli_core::Nanos;
use xxhash_rust::xxh3::xxh3_64;

use crate::group::{Subject, command, made, members};
use crate::simulation::Chance;

/// A checkpoint, and what came before it.
#[derive(Clone, Debug)]
pub struct Saved {
    pub pieces: Vec<Vec<u8>>,
    /// So many records.
    pub records: usize,
    /// What was delivered.
    pub order: Vec<CommandId>,
}

impl Saved {
    /// A member without memory takes it, and the records after it; what it has delivered then.
    pub fn replay<B: Subject>(
        &self,
        member: &mut B,
        records: &[B::Record],
        now: Nanos,
    ) -> Vec<CommandId> {
        let (last, others) = self.pieces.split_last().expect("no checkpoint is empty");
        for piece in others {
            assert_eq!(member.restore(piece, now), Ok(false));
        }
        assert_eq!(member.restore(last, now), Ok(true));
        let mut out = EffectsOf::<B>::at(now);
        records.iter().for_each(|record| member.replay(record.clone(), &mut out));
        self.order.iter().copied().chain(made::<B>(out).delivered).collect()
    }

    /// Bytes that changed are refused by the sum of their piece; where that is right, they are
    /// refused, or taken for a state that a member can go on from, among others without memory.
    pub fn take_garbled<B: Subject>(&self, empties: &[B], me: usize, chance: &mut Chance) {
        let empty = &empties[me];
        let mut pieces = self.pieces.clone();
        let piece = chance.below(pieces.len() as u64) as usize;
        let bytes = &mut pieces[piece];
        let place = chance.below(bytes.len() as u64) as usize;
        bytes[place] ^= 1 + chance.below(255) as u8;
        let damaged = Err(CheckpointError::Damaged);
        assert_eq!(empty.clone().restore(bytes, Nanos(0)), damaged, "{piece} {place}");
        reseal(bytes);
        let mut member = empty.clone();
        if pieces.iter().try_for_each(|it| member.restore(it, Nanos(0)).map(|_| ())).is_err() {
            return;
        }
        member.assert_invariants();
        let mut all = empties.to_vec();
        all[me] = member;
        go_on(&mut all, me);
    }
}

/// A member proposes something, and takes over all that it knows; others answer.
fn go_on<B: Subject>(all: &mut [B], me: usize) {
    let late = Nanos(20_000_000_000);
    let mut out = EffectsOf::<B>::at(late);
    all[me].propose(command("more", &[1, 2]), &mut out);
    all[me].tick(&mut out);
    let mut sent: Vec<_> = made::<B>(out).sent.into_iter().map(|it| (me, it)).collect();
    for _ in 0..6 {
        let mut next = Vec::new();
        for (from, (to, message)) in sent {
            let mut out = EffectsOf::<B>::at(late);
            if all[to.place()].judge(MemberId(from as u16), &message).is_ok() {
                all[to.place()].receive(MemberId(from as u16), message, &mut out);
            }
            next.extend(made::<B>(out).sent.into_iter().map(|it| (to.place(), it)));
        }
        sent = next;
    }
}

/// Makes the sum of a piece right.
fn reseal(piece: &mut [u8]) {
    let (bytes, sum) = piece.split_last_chunk_mut().expect("a piece has its sum");
    *sum = xxh3_64(bytes).to_le_bytes();
}

fn member<B: Broadcast>(me: u16, members: usize, switches: &B::Switches) -> B {
    B::new(MemberId(me), members, &BroadcastSettings::default(), switches)
}

/// One of three members proposes many commands, of which nobody hears.
fn check<B: Subject>(switches: &B::Switches) {
    let mut written: B = member(0, 3, switches);
    let mut replayed = written.clone();
    let mut out = EffectsOf::<B>::at(Nanos(0));
    for number in 0..40_u64 {
        written.propose(command(&"x".repeat(3_000), &[number % 7]), &mut out);
    }
    for effect in out.effects {
        if let BroadcastEffect::Log(record) = effect {
            replayed.replay(record, &mut EffectsOf::<B>::at(Nanos(7)));
        }
    }
    let pieces: Vec<Vec<u8>> = written.checkpoint().collect();
    assert!(pieces.len() > 4, "{}", pieces.len());
    assert!(pieces.iter().all(|piece| piece.len() < 40_000), "a piece is bounded");
    let saved = Saved { pieces: pieces.clone(), records: 0, order: Vec::new() };
    let mut back: B = member(0, 3, switches);
    saved.replay(&mut back, &[], Nanos(7));
    assert_eq!(back, replayed);
    assert_ne!(back, written, "who counts answers has forgotten them");

    let taken = |pieces: &[Vec<u8>], me, members| {
        let mut back: B = member(me, members, switches);
        pieces.iter().try_fold(false, |_, piece| back.restore(piece, Nanos(7)))
    };
    let is_incomplete = |it| matches!(it, Err(CheckpointError::Incomplete { .. }));
    assert_eq!(taken(&pieces[..2], 0, 3), Ok(false), "more is to come");
    assert!(is_incomplete(taken(&pieces[1..], 0, 3)), "the first piece is not there");
    let foreign = Err(CheckpointError::Foreign { member: MemberId(0), members: 3 });
    assert_eq!(taken(&pieces, 1, 3), foreign);
    assert_eq!(taken(&pieces, 0, 5), foreign);
    assert_eq!(taken(&[Vec::new()], 0, 3), Err(CheckpointError::Damaged));
    let mut chance = Chance::new(1);
    let empties: Vec<B> = members(3, &BroadcastSettings::default(), switches);
    (0..100).for_each(|_| saved.take_garbled(&empties, 0, &mut chance));
}

/// Three members have heard of each other's commands, and delivered the first ones.
fn check_garbled<B: Subject>(seed: u64, switches: &B::Switches) {
    let mut chance = Chance::new(seed);
    let empties: Vec<B> = members(3, &BroadcastSettings::default(), switches);
    let mut all = empties.clone();
    let mut on_their_way = Vec::new();
    for number in 0..300_u64 {
        let at = chance.below(3) as usize;
        let mut out = EffectsOf::<B>::at(Nanos(number));
        if number % 40 == 0 {
            all[at].propose(command("", &[number % 3, 7]), &mut out);
        }
        let (at, out) = match on_their_way.is_empty() {
            true => (at, out),
            false => {
                let place = chance.below(on_their_way.len() as u64) as usize;
                let (from, (to, message)): (usize, (MemberId, B::Message)) =
                    on_their_way.swap_remove(place);
                let sent = made::<B>(out).sent;
                on_their_way.extend(sent.into_iter().map(|it| (at, it)));
                let mut out = EffectsOf::<B>::at(Nanos(number));
                all[to.place()].receive(MemberId(from as u16), message, &mut out);
                (to.place(), out)
            }
        };
        on_their_way.extend(made::<B>(out).sent.into_iter().map(|it| (at, it)));
        if number % 10 == 0 {
            for (me, member) in all.iter().enumerate() {
                let pieces = member.checkpoint().collect();
                let saved = Saved { pieces, records: 0, order: Vec::new() };
                (0..20).for_each(|_| saved.take_garbled(&empties, me, &mut chance));
            }
        }
    }
}

#[test]
fn whatever_bytes_a_checkpoint_has_no_member_fails_by_it() {
    for seed in 0..10 {
        check_garbled::<Pob>(seed, &pob::Switches::default());
        check_garbled::<Pob>(seed, &pob::Switches::fast());
        check_garbled::<Epaxos>(seed, &epaxos::Switches::default());
        check_garbled::<Generalized>(seed, &generalized::Switches::default());
        check_garbled::<M2Paxos>(seed, &m2paxos::Switches::default());
        check_garbled::<M2PaxosBounded<MultiPaxos>>(seed, &Default::default());
    }
}

#[test]
fn a_checkpoint_is_what_the_records_before_it_are() {
    check::<Pob>(&pob::Switches::default());
    check::<Epaxos>(&epaxos::Switches::default());
    check::<Generalized>(&generalized::Switches::default());
    check::<M2Paxos>(&m2paxos::Switches::default());
    check::<M2PaxosBounded<MultiPaxos>>(&Default::default());
    check::<MultiPaxos>(&PlacedLeader(MemberId(0)));
}
