//! A checkpoint taken piece by piece while a repository works, restored, and the log replayed on
//! top, against the replay of the whole log and against the repository that went on.

use std::collections::BTreeMap;
use std::sync::Arc;

use muesli_core::parts::vector_clock::Number;
use muesli_core::parts::versions::Versions;
use muesli_core::parts::votes::Votes;
use muesli_core::parts::watermark::Bound;
use muesli_core::{
    Abort, Action, Address, Catalog, Checkpoint, Decision, Effect, Effects, Envelope, NodeId,
    Participant as _, Partitioning, Rejection, RepositoryId, Settings, SmallBytes, SpaceId,
    SpaceOptions, Step, Timestamp, TxnId, TxnOptions,
};
use muesli_protocols::bumper::TimeWarp;
use muesli_protocols::gmu::{VectorVote, Vectors};
use muesli_protocols::hierarchy::Leaves;
use muesli_protocols::non_genuine_multiversioning::Everybody;
use muesli_protocols::repeatable_read::NewestVersions;
use muesli_protocols::score::Snapshots;
use muesli_protocols::tfa::OwnedObjects;
use muesli_protocols::two_phase::message::{Mostly, Prepare, ReadRequest, ReadWants, Vote};
use muesli_protocols::two_phase::{
    Message, Participant, Record, Snapshot, Time, TwoPhase, Variant,
};
use muesli_protocols::two_phase_commit::TryLocks;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

pub type Node<V> = muesli_core::Node<TwoPhase<V>>;
/// What is said about a transaction.
pub type Answer<V> = (u64, Option<Vote<V>>);

pub const SPACE: SpaceId = SpaceId(0);
pub const REPOSITORY: RepositoryId = RepositoryId(0);
pub const HERE: NodeId = NodeId(0);
/// Where the coordinator of the prepared transactions would be.
pub const ELSEWHERE: NodeId = NodeId(1);

/// What happens to the repository.
#[derive(Clone, Debug)]
pub enum Happening {
    /// A transaction of one step writes these keys.
    OneStep(Vec<(u8, bool)>),
    /// A transaction of two phases reads some keys and writes others.
    Prepare(Vec<u8>, Vec<(u8, bool)>),
    /// One of those that are prepared is decided; how far above its proposal, or aborted.
    Decide(usize, Option<u64>),
    /// Somebody asks about a transaction that may never have prepared.
    Ask(u64),
    /// Somebody reads.
    Read(u8),
    /// Nobody reads below what is committed now.
    Watermark,
    /// A checkpoint is begun, or its next piece of so many bytes taken.
    Piece(usize),
}

pub fn happenings() -> impl Strategy<Value = Vec<Happening>> {
    let writes = || prop::collection::vec((0..12_u8, prop::bool::weighted(0.8)), 1..4);
    let one = prop_oneof![
        4 => writes().prop_map(Happening::OneStep),
        4 => (prop::collection::vec(0..12_u8, 0..3), writes())
            .prop_map(|(reads, writes)| Happening::Prepare(reads, writes)),
        4 => (any::<usize>(), prop::option::weighted(0.8, 0..200_u64))
            .prop_map(|(which, above)| Happening::Decide(which, above)),
        1 => (0..60_u64).prop_map(Happening::Ask),
        1 => (0..12_u8).prop_map(Happening::Read),
        1 => Just(Happening::Watermark),
        4 => (1..200_usize).prop_map(Happening::Piece),
    ];
    // The checkpoint is of a moment when much is under way.
    (prop::collection::vec(one, 1..120), 0..60_usize).prop_map(|(mut all, before)| {
        let mut place = 0;
        all.retain(|happening| {
            place += 1;
            place > before || !matches!(happening, Happening::Piece(_))
        });
        all
    })
}

/// A protocol of the family, by what repositories elsewhere vote.
pub trait Tested: Variant {
    /// A repository, and its vote, so far above that of the repository here.
    fn elsewhere(txn: TxnId, yes: &Self::Yes, above: u64) -> (RepositoryId, Self::Yes);
}

/// Protocols whose votes are timestamps.
macro_rules! tested {
    ($($variant:ty),*) => { $(impl Tested for $variant {
        fn elsewhere(txn: TxnId, yes: &Self::Yes, above: u64) -> (RepositoryId, Self::Yes) {
            // Unique, as only the proposals of others could be.
            let number = 2 * txn.sequence + u64::from(txn.node == HERE);
            let other = RepositoryId(1 + (number % 4000) as u16);
            let proposal: Timestamp = (*yes).into();
            (other, proposal.after(above, other).into())
        }
    })* };
}

tested!(Snapshots, TimeWarp, TryLocks, NewestVersions, Everybody, Leaves, OwnedObjects);

impl Tested for Vectors {
    fn elsewhere(txn: TxnId, yes: &VectorVote, above: u64) -> (RepositoryId, VectorVote) {
        let (other, mut ballot) = (RepositoryId(1), yes.clone());
        let counter = yes.vector.get(REPOSITORY).counter + above;
        ballot.vector.set(other, Number { counter, by: txn });
        (other, ballot)
    }
}

/// What the vote of this repository and that of another come to.
pub fn decided<V: Tested>(
    switches: &V::Switches,
    txn: TxnId,
    yes: V::Yes,
    above: u64,
) -> Decision<V::Place> {
    let (other, vote) = V::elsewhere(txn, &yes, above);
    let mut votes = Votes::from_voters([REPOSITORY, other]);
    votes.count(REPOSITORY, yes);
    votes.count(other, vote);
    V::Time::decide(switches, &votes)
}

pub fn key(number: u8) -> SmallBytes {
    SmallBytes::from(format!("key {number:02}").as_str())
}

pub struct Harness<V: Tested> {
    pub node: Node<V>,
    pub effects: Effects<TwoPhase<V>>,
    pub log: Vec<Record<V>>,
    pub prepared: BTreeMap<TxnId, V::Yes>,
    pub sequence: u64,
    /// What was committed when somebody asked last: some read at it still.
    pub earlier: V::Snapshot,
    pub checkpoint: Option<Checkpoint>,
    pub pieces: Vec<Vec<u8>>,
    pub switches: V::Switches,
}

pub fn node<V: Tested>(switches: &V::Switches, settings: Arc<Settings>) -> Node<V> {
    let both = [HERE, ELSEWHERE];
    let catalog = Catalog::new(&both, 1, &both).expect("two repositories");
    // All keys live here.
    let options = SpaceOptions {
        partitioning: Partitioning::Range(vec!["z".into()]),
        ..SpaceOptions::default()
    };
    let catalog = catalog.with_space("keys", options).expect("a space");
    Node::new(HERE, 1, Arc::new(catalog), settings, switches)
}

impl<V: Tested> Harness<V> {
    pub fn new(switches: V::Switches) -> Harness<V> {
        Harness {
            node: node(&switches, Arc::new(Settings { logging: true, ..Settings::default() })),
            effects: Effects::default(),
            log: Vec::new(),
            prepared: BTreeMap::new(),
            sequence: 0,
            earlier: V::Snapshot::default(),
            checkpoint: None,
            pieces: Vec::new(),
            switches,
        }
    }

    pub fn tell(&mut self, message: Message<V>) {
        let from = Address::coordinator(ELSEWHERE);
        let to = Address::repository(HERE, REPOSITORY);
        self.node.deliver(Envelope { from, to, message }, &mut self.effects);
        self.sort();
    }

    pub fn sort(&mut self) {
        for effect in std::mem::take(&mut self.effects.list) {
            match effect {
                Effect::Log { record, .. } => self.log.push(record),
                Effect::Send { envelope, .. } => {
                    if let Message::Vote { txn, vote: Vote::Yes(at), .. } = envelope.message {
                        self.prepared.insert(txn, at);
                    }
                }
                Effect::Complete { .. } | Effect::SetTimer { .. } => {}
            }
        }
    }

    pub fn txn(&self, sequence: u64) -> TxnId {
        TxnId { node: ELSEWHERE, incarnation: 1, sequence }
    }

    pub fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::OneStep(writes) => self.one_step(writes),
            Happening::Prepare(reads, writes) => self.prepare(reads, writes),
            Happening::Decide(which, above) => {
                let Some(&txn) = self.prepared.keys().nth(which % 5) else { return };
                let yes = self.prepared.remove(&txn).expect("just found");
                let decision = match above {
                    Some(steps) => decided::<V>(&self.switches, txn, yes, steps),
                    None => Decision::Abort(Abort::Locked),
                };
                self.tell(Message::Decide { txn, decision, ballots: Mostly::new() });
            }
            Happening::Ask(sequence) => {
                self.earlier = self.participant().committed();
                self.tell(Message::Ask { txn: self.txn(sequence) });
            }
            Happening::Read(number) => {
                let (request, keys) = (self.sequence, vec![(SPACE, key(number))]);
                let (snapshot, reader) = (V::Snapshot::default(), V::Reader::default());
                let read = ReadRequest {
                    request,
                    snapshot,
                    first: true,
                    wanted: ReadWants::Values,
                    reader,
                    keys: keys.into(),
                    known: Default::default(),
                };
                self.tell(Message::Read(read));
            }
            Happening::Watermark => {
                let low = self.participant().committed();
                let to = Address::coordinator(HERE);
                let from = Address::coordinator(ELSEWHERE);
                let message = Message::Watermark { low: low.clone(), newest: low };
                self.node.deliver(Envelope { from, to, message }, &mut self.effects);
                self.sort();
            }
            Happening::Piece(bytes) => self.piece(bytes),
        }
    }

    pub fn one_step(&mut self, writes: Vec<(u8, bool)>) {
        let txn = self.node.begin(TxnOptions::default(), &mut self.effects).expect("begun");
        for (number, live) in writes {
            self.sequence += 1;
            let value = live.then(|| SmallBytes::from(self.sequence.to_string().as_str()));
            self.node.put(txn, SPACE, key(number), value, &mut self.effects).expect("buffered");
        }
        let Step::Wait(_) = self.node.commit(txn, &mut self.effects) else {
            panic!("it is logged")
        };
        self.sort();
    }

    pub fn prepare(&mut self, mut reads: Vec<u8>, mut writes: Vec<(u8, bool)>) {
        self.sequence += 1;
        // Whoever reads a key that is about to be written waits for its writer, or misses it.
        let versions = self.participant().versions(SPACE);
        let locked = |number: u8| {
            let of = |it: &Versions| it.find(&key(number)).map(|handle| it.lock(handle));
            versions.and_then(of).is_some_and(|lock| lock.is_exclusive())
        };
        let late = V::POLICIES.installing.may_time_warp() && self.sequence.is_multiple_of(2);
        reads.retain(|&number| late || !locked(number));
        writes.sort_unstable();
        writes.dedup_by_key(|write| write.0);
        let delays = V::delays_actions(&self.switches) && self.sequence.is_multiple_of(3);
        let mut delayed = if delays { std::mem::take(&mut writes) } else { Vec::new() };
        delayed.retain(|(number, _)| !reads.contains(number));
        let committed = self.participant().committed();
        let snapshot = if late { self.earlier.clone() } else { committed };
        let read_at = if late { snapshot.at() } else { Timestamp::MAX };
        let seen = |number: u8| {
            let seen = versions.and_then(|it| Some(it.at(it.find(&key(number))?, read_at).at));
            seen.unwrap_or_default()
        };
        let value = |live: bool| live.then(|| SmallBytes::from(self.sequence.to_string().as_str()));
        let prepare = Prepare {
            txn: self.txn(self.sequence),
            settled_below: self.sequence.saturating_sub(25),
            participants: [REPOSITORY, RepositoryId(1)].into_iter().collect(),
            snapshot,
            reader: V::Reader::default(),
            strict: false,
            reads: reads.iter().map(|&number| (SPACE, key(number), seen(number))).collect(),
            writes: writes.iter().map(|&(it, live)| (SPACE, key(it), value(live))).collect(),
            scans: Vec::new(),
            delayed: delayed.iter().map(|&(it, _)| (SPACE, key(it), Action::append("+"))).collect(),
            extra: None,
            leaving: Default::default(),
            arriving: Default::default(),
        };
        self.tell(Message::Prepare(Arc::new(prepare)));
    }

    pub fn piece(&mut self, bytes: usize) {
        let checkpoint = self.checkpoint.get_or_insert_with(|| {
            self.node.begin_checkpoint(&self.effects).expect("the protocol has checkpoints")
        });
        let mut piece = Vec::new();
        if self.node.checkpoint_piece(checkpoint, bytes, &mut piece) {
            self.pieces.push(piece);
        } else {
            self.node.checkpoint_readiness(checkpoint, &self.effects);
        }
    }

    pub fn participant(&self) -> &Participant<V> {
        &self.node.participants()[0].1
    }

    /// Finishes the checkpoint and restores it, and replays the rest of the log.
    pub fn restored(&mut self) -> Harness<V> {
        while self.checkpoint.as_ref().is_none_or(|it| it.needs().is_none()) {
            self.piece(64);
        }
        let checkpoint = self.checkpoint.as_ref().expect("just made");
        assert!(checkpoint.needs().expect("it is over").0 <= self.log.len() as u64);
        let mut harness = Harness::new(self.switches.clone());
        for piece in &self.pieces {
            harness.node.restore(piece, &mut harness.effects).expect("its own piece");
        }
        harness.replay(&self.log[checkpoint.covers().0 as usize..]);
        harness
    }

    /// What a member of a group makes of a record.
    pub fn judge(&self, record: &Record<V>) -> Result<(), Rejection> {
        self.participant().judge_record(record, self.node.catalog())
    }

    pub fn replay(&mut self, records: &[Record<V>]) {
        for record in records {
            self.node.replay(REPOSITORY, record.clone(), &mut self.effects);
        }
        self.effects.list.clear();
        self.log.clear();
    }

    /// How it answers about every transaction there was.
    pub fn answers(&mut self, transactions: u64) -> Vec<Answer<V>> {
        let mut answers = Vec::new();
        for sequence in 0..transactions {
            let from = Address::coordinator(ELSEWHERE);
            let to = Address::repository(HERE, REPOSITORY);
            let message = Message::Ask { txn: self.txn(sequence) };
            self.node.deliver(Envelope { from, to, message }, &mut self.effects);
            let list = std::mem::take(&mut self.effects.list);
            let vote = list.into_iter().find_map(|effect| match effect {
                Effect::Send { envelope, .. } => match envelope.message {
                    Message::Vote { vote, .. } => Some(vote),
                    _ => None,
                },
                _ => None,
            });
            answers.push((sequence, vote));
        }
        answers
    }

    /// What is read at this snapshot.
    pub fn read(&self, at: Timestamp) -> Vec<Option<SmallBytes>> {
        let Some(versions) = self.participant().versions(SPACE) else { return vec![None; 12] };
        let value = |number| {
            let handle = versions.find(&key(number))?;
            versions.at(handle, at).value.cloned()
        };
        (0..12).map(value).collect()
    }
}

/// A script was followed, with a checkpoint in the middle of it: what was restored from that and
/// the log must be what is there.
pub fn restored_is_the_same<V: Tested>(script: Vec<Happening>) -> Result<(), TestCaseError> {
    let mut live = Harness::<V>::new(V::Switches::default());
    for happening in script {
        live.happen(happening);
    }
    let low = live.participant().low().at();
    let mut restored = live.restored();
    let mut replayed = Harness::<V>::new(V::Switches::default());
    replayed.replay(&live.log);
    let mut snapshots = vec![low, Timestamp::MAX];
    for (_, _, chain) in live.node.chains().into_iter().flat_map(|(_, chains)| chains) {
        snapshots.extend(chain.into_iter().filter(|at| *at >= low));
    }
    for at in snapshots {
        prop_assert_eq!(live.read(at), restored.read(at), "at {}", at);
    }
    prop_assert_eq!(live.read(Timestamp::MAX), replayed.read(Timestamp::MAX));
    prop_assert_eq!(live.node.unfinished().1, restored.node.unfinished().1);
    let (restored_at, replayed_at) = (restored.participant(), replayed.participant());
    prop_assert!(covers(&restored_at.newest(), &replayed_at.newest()));
    prop_assert!(covers(&restored_at.committed(), &replayed_at.committed()));
    let transactions = live.sequence + 60;
    // Who has heard that a transaction is settled everywhere knows nothing about it; that may
    // have been said beside a prepare that was not logged.
    let all = live.answers(transactions).into_iter().zip(restored.answers(transactions));
    for (one, other) in all {
        let txn = live.txn(one.0);
        let is_settled = |harness: &Harness<V>| harness.participant().has_settled(txn);
        if !is_settled(&live) && !is_settled(&restored) {
            prop_assert_eq!(one, other);
        }
    }
    Ok(())
}

/// Whether a snapshot has all that another one has.
pub fn covers<S: Bound + PartialEq>(snapshot: &S, other: &S) -> bool {
    let mut both = snapshot.clone();
    both.join(other);
    both == *snapshot
}

/// Which byte of which piece is changed, and to what.
pub fn changed_bytes() -> impl Strategy<Value = Vec<(usize, usize, u8)>> {
    prop::collection::vec((any::<usize>(), any::<usize>(), any::<u8>()), 0..6)
}

/// Pieces of a real checkpoint, some of them changed and moved, are refused or taken.
pub fn changed_pieces<V: Tested>(script: &[Happening], changes: &[(usize, usize, u8)]) {
    let mut live = Harness::<V>::new(V::Switches::default());
    script.iter().for_each(|happening| live.happen(happening.clone()));
    drop(live.restored());
    let mut pieces = live.pieces.clone();
    for (which, at, byte) in changes {
        let which = which % pieces.len();
        let piece = &mut pieces[which];
        let at = 2 + at % (piece.len() - 2);
        piece[at] = *byte;
        let other = at % pieces.len();
        pieces.swap(which, other);
    }
    let mut harness = Harness::<V>::new(V::Switches::default());
    for piece in &pieces {
        if harness.node.restore(piece, &mut harness.effects).is_err() {
            break;
        }
    }
}

/// A prepared transaction is not restored where its checkpoint leaves it out.
pub fn prepared_transactions_are_missed<V: Tested>(switches: V::Switches) {
    let mut live = Harness::<V>::new(switches);
    live.happen(Happening::Prepare(vec![], vec![(1, true)]));
    (0..9).for_each(|_| live.happen(Happening::Piece(64)));
    live.happen(Happening::Decide(0, Some(0)));
    let restored = live.restored();
    let newest = Timestamp::MAX;
    assert_ne!(live.read(newest), restored.read(newest), "its write is lost with it");
    assert!(live.pieces.len() >= 3);
}
