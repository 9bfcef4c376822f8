//! A member, its disk, and its user, whose state is what it was given in its order.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hash;
use std::ops::Bound;

use muesli_broadcast::epochs::{
    EpochEffect, EpochEffectsOf, EpochMember, EpochMessage, EpochRecord, EpochSettings, GroupEpoch,
    KeptSnapshots, MemberName, RequestId,
};
use muesli_broadcast::{Broadcast, CommandId};
use muesli_core::Nanos;

/// What is on its way.
pub type Sent<B> = (MemberName, EpochMessage<<B as Broadcast>::Message>);

/// What the user of a member has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Applied {
    pub order: Vec<RequestId>,
    staged: Option<Vec<RequestId>>,
}

/// How often something happened to a site.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Happened {
    pub snapshots: usize,
    pub voids: usize,
    pub replaced: usize,
    pub taken_as_delivered: usize,
    pub refused: usize,
    /// Requests that were delivered with the one before them.
    pub several: usize,
    /// Own commands that it has applied in a later epoch than the one in which they were asked
    /// for.
    pub carried: usize,
}

/// A checkpoint, with what the user had.
#[derive(Clone, Debug)]
struct SavedSite {
    pieces: Vec<Vec<u8>>,
    records: usize,
    applied: Applied,
}

/// A member with all that belongs to it.
#[derive(Clone, Debug)]
pub struct Site<B: Broadcast> {
    pub member: EpochMember<B>,
    /// As it is without any memory.
    blank: EpochMember<B>,
    pub disk: Vec<EpochRecord<B::Record>>,
    pub applied: Applied,
    kept: KeptSnapshots<u64, RequestId>,
    /// Own requests that are over without a delivery.
    pub over: BTreeSet<RequestId>,
    pub happened: Happened,
    /// As which command the last request was delivered.
    last: Option<CommandId>,
    /// The epoch in which it is, as its user was told.
    epoch: GroupEpoch,
    /// Own commands, and the epochs in which they were asked for.
    asked: BTreeMap<RequestId, GroupEpoch>,
    saved: Option<SavedSite>,
}

/// A piece of a snapshot has one command.
fn one_by_one() -> KeptSnapshots<u64, RequestId> {
    KeptSnapshots::with_pieces_of(0)
}

impl<B: Broadcast> Site<B> {
    pub fn founded(
        name: MemberName,
        members: u64,
        settings: &EpochSettings<B::Switches>,
    ) -> Site<B> {
        Site::of(EpochMember::founded(name, (0..members).map(MemberName), settings))
    }

    pub fn empty(
        name: MemberName,
        members: usize,
        peers: impl IntoIterator<Item = MemberName>,
        settings: &EpochSettings<B::Switches>,
    ) -> Site<B> {
        Site::of(EpochMember::empty(name, members, peers, settings))
    }

    fn of(member: EpochMember<B>) -> Site<B> {
        Site {
            blank: member.clone(),
            member,
            disk: Vec::new(),
            applied: Applied::default(),
            kept: one_by_one(),
            over: BTreeSet::new(),
            happened: Happened::default(),
            last: None,
            epoch: GroupEpoch::FIRST,
            asked: BTreeMap::new(),
            saved: None,
        }
    }

    pub fn name(&self) -> MemberName {
        self.member.name()
    }

    /// Does what its member wants done, up to so many effects; what it sends.
    pub fn perform(&mut self, out: EpochEffectsOf<B>, most: usize) -> Vec<Sent<B>> {
        let (now, mut sent) = (out.now, Vec::new());
        for effect in out.effects.into_iter().take(most) {
            match effect {
                EpochEffect::Send { to, message } => sent.push((to, message)),
                EpochEffect::Log(record) => self.disk.push(record),
                EpochEffect::ReadPiece { to, snapshot, number } => {
                    sent.extend(self.read_piece(to, (snapshot, number), now));
                }
                other => self.apply(other),
            }
        }
        sent
    }

    fn read_piece(
        &mut self,
        to: MemberName,
        (snapshot, number): (u64, u32),
        now: Nanos,
    ) -> Vec<Sent<B>> {
        let order = &self.applied.order;
        let piece = self.kept.piece((snapshot, number), |from| {
            let first = match from {
                Bound::Included(first) => *first,
                Bound::Excluded(last) => last + 1,
                Bound::Unbounded => 0,
            };
            (first..).zip(order.iter().skip(first as usize))
        });
        let Some(piece) = piece else { return Vec::new() };
        let mut out = EpochEffectsOf::<B>::at(now);
        self.member.give(to, (snapshot, number), piece, &mut out);
        self.perform(out, usize::MAX)
    }

    fn apply(&mut self, effect: EpochEffect<B::Message, B::Record>) {
        match effect {
            EpochEffect::Deliver(delivered) => {
                let asked = self.asked.get(&delivered.request);
                self.happened.carried += usize::from(asked.is_some_and(|it| *it < self.epoch));
                let with_last = self.last.replace(delivered.id) == Some(delivered.id);
                self.happened.several += usize::from(with_last);
                self.kept.before_change(&(self.applied.order.len() as u64), None);
                self.applied.order.push(delivered.request);
            }
            EpochEffect::TakenAsDelivered(request) => {
                self.happened.taken_as_delivered += 1;
                assert!(self.applied.order.contains(&request), "{request} is in no snapshot");
            }
            EpochEffect::ChangeVoid(request) => {
                self.happened.voids += 1;
                self.over.insert(request);
            }
            EpochEffect::Replaced => self.happened.replaced += 1,
            EpochEffect::Refused => self.happened.refused += 1,
            EpochEffect::KeepSnapshot { snapshot } => {
                self.kept.keep(snapshot);
            }
            EpochEffect::FreeSnapshot { snapshot } => self.kept.free(snapshot),
            EpochEffect::BeginTaking => self.applied.staged = Some(Vec::new()),
            EpochEffect::TakePiece(bytes) => {
                let part = KeptSnapshots::<u64, RequestId>::entries(bytes.as_slice());
                let part = part.expect("a piece").into_iter().map(|(_, request)| request);
                self.applied.staged.as_mut().expect("it has begun").extend(part);
            }
            EpochEffect::Install => {
                self.happened.snapshots += 1;
                self.applied.order = self.applied.staged.take().expect("it has begun");
            }
            EpochEffect::EpochBegan(list) => self.epoch = list.epoch,
            EpochEffect::Send { .. } | EpochEffect::Log(_) | EpochEffect::ReadPiece { .. } => {
                unreachable!("done elsewhere")
            }
        }
    }

    /// It comes back from its disk, and its user has again what it had.
    pub fn come_back(&mut self, now: Nanos) {
        let mut back = Site::of(self.blank.clone());
        back.replay(&self.disk, now);
        if let Some(saved) = &self.saved {
            let mut short = Site::of(self.blank.clone());
            let (last, others) = saved.pieces.split_last().expect("no checkpoint is empty");
            for piece in others {
                assert_eq!(short.member.restore(piece, now), Ok(false));
            }
            assert_eq!(short.member.restore(last, now), Ok(true));
            short.applied = saved.applied.clone();
            short.replay(&self.disk[saved.records..], now);
            assert_eq!(short.applied.order, back.applied.order, "{}", self.name());
            let ticked = |site: &Site<B>| {
                let mut member = site.member.clone();
                member.tick(&mut EpochEffectsOf::<B>::at(now));
                member
            };
            assert_eq!(ticked(&short), ticked(&back), "from {} records on", saved.records);
        }
        let has = |request: &RequestId| back.applied.order.contains(request);
        assert!(self.applied.order.iter().all(has), "something is forgotten: {}", self.name());
        self.member = back.member;
        self.applied = back.applied;
        self.kept = one_by_one();
        self.member.assert_invariants();
    }

    fn replay(&mut self, records: &[EpochRecord<B::Record>], now: Nanos) {
        let mut out = EpochEffectsOf::<B>::at(now);
        for record in records {
            self.member.replay(record.clone(), &mut out);
        }
        for effect in out.effects {
            self.apply(effect);
        }
    }

    /// A command of its own was asked for.
    pub fn note_asked(&mut self, request: RequestId) {
        self.asked.insert(request, self.epoch);
    }

    /// All of it but its disk.
    pub fn hashed(&self) -> impl Hash + '_
    where
        EpochMember<B>: Hash,
    {
        (&self.member, &self.applied, &self.kept, &self.over)
    }

    /// How often it has begun to take a state.
    pub fn begun(&self) -> usize {
        let begins =
            |record: &&EpochRecord<B::Record>| matches!(record, EpochRecord::TakingBegan(_));
        self.disk.iter().filter(begins).count()
    }

    /// It writes a checkpoint.
    pub fn save(&mut self, now: Nanos) {
        if self.member.is_taking() {
            return;
        }
        let pieces: Vec<Vec<u8>> = self.member.checkpoint().collect();
        let mut back = self.blank.clone();
        let done: Vec<bool> =
            pieces.iter().map(|piece| back.restore(piece, now).expect("a checkpoint")).collect();
        assert_eq!(done.iter().filter(|it| **it).count(), 1);
        back.assert_invariants();
        assert!(back.checkpoint().eq(pieces.iter().cloned()), "{back:?}");
        let (records, applied) = (self.disk.len(), self.applied.clone());
        self.saved = Some(SavedSite { pieces, records, applied });
    }
}
