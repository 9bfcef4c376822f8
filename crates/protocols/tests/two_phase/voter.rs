//! Limits of memory at a repository that votes: what was voted on and nobody decides.

use std::sync::Arc;

use muesli_core::limits::Limits;
use muesli_core::memory::Memory;
use muesli_core::parts::locator::Static;
use muesli_core::{
    Abort, Address, Catalog, Decision, Effect, Effects, Envelope, Node, NodeId, RepositoryId,
    Sender, Settings, SmallBytes, SpaceId, SpaceOptions, Step, Timestamp, Txn, TxnId, TxnOptions,
};
use muesli_protocols::two_phase::message::{Message, Mostly, Prepare, Vote};
use muesli_protocols::two_phase::{ReaderBounds as _, TwoPhase, Variant};

const SPACE: SpaceId = SpaceId(0);
pub const MIB: usize = 1 << 20;
const HERE: RepositoryId = RepositoryId(0);
const OTHER: NodeId = NodeId(1);

/// One of two repositories. The other one's node coordinates.
pub struct Voter<V: Variant> {
    pub node: Node<TwoPhase<V>>,
    pub effects: Effects<TwoPhase<V>>,
    pub memory: Memory,
}

impl<V: Variant> Voter<V> {
    pub fn new(limits: Limits) -> Voter<V> {
        let homes = [NodeId(0), OTHER];
        let catalog = Catalog::new(&homes, 1, &homes).unwrap();
        let catalog = Arc::new(catalog.with_space("s", SpaceOptions::default()).unwrap());
        let memory = Memory::new(8 * MIB as u64, u64::MAX >> 1);
        let settings = Settings { memory: memory.clone(), limits, ..Settings::default() };
        let (settings, switches) = (Arc::new(settings), V::Switches::default());
        let mut node = Node::new(NodeId(0), 1, catalog, settings, &switches);
        let mut effects = Effects::default();
        node.start(&mut effects);
        Voter { node, effects, memory }
    }

    /// Some key that lives here.
    pub fn key(&self, number: usize) -> SmallBytes {
        let catalog = self.node.catalog();
        let keys = (0u32..).map(|number| SmallBytes::new(&number.to_be_bytes()));
        let mut here =
            keys.filter(|key| Static.holds(HERE, catalog.partition(SPACE, key), catalog));
        here.nth(number).unwrap()
    }

    pub fn receive(&mut self, message: Message<V>) {
        let (from, to) = (Address::coordinator(OTHER), Address::repository(NodeId(0), HERE));
        let envelope = Envelope { from, to, message };
        self.effects.list.clear();
        self.node.receive(Sender::Member, envelope, &mut self.effects).unwrap();
    }

    /// How it votes on a transaction that reads a key of so many bytes, and writes one.
    pub fn vote(&mut self, number: usize, reads: usize, value: Option<SmallBytes>) -> Vote<V> {
        let (key, read) = (self.key(number), self.long_key(reads));
        let snapshot = self.node.participants()[0].1.committed();
        let reader = V::Reader::new(
            OTHER,
            1,
            Txn { slot: number as u32, generation: 1 },
            muesli_core::Nanos(0),
        );
        let prepare = Arc::new(Prepare {
            txn: txn(number),
            settled_below: 0,
            participants: [HERE, RepositoryId(1)].into_iter().collect(),
            snapshot,
            reader,
            strict: false,
            reads: read.into_iter().map(|key| (SPACE, key, Timestamp::ZERO)).collect(),
            writes: [(SPACE, key, value)].into_iter().collect(),
            scans: Vec::new(),
            delayed: Vec::new(),
            extra: None,
            leaving: Default::default(),
            arriving: Default::default(),
        });
        self.receive(Message::Prepare(prepare.clone()));
        if V::POLICIES.deciding.may_have_validators() {
            // Whoever asks again is answered, and no validator.
            self.receive(Message::Prepare(prepare));
        }
        let vote = self.effects.list.iter().find_map(|effect| match effect {
            Effect::Send { envelope, .. } => match &envelope.message {
                Message::Vote { vote, .. } => Some(vote.clone()),
                _ => None,
            },
            _ => None,
        });
        vote.expect("a vote")
    }

    /// A key of so many bytes that lives here; none of none.
    pub fn long_key(&self, bytes: usize) -> Option<SmallBytes> {
        let catalog = self.node.catalog();
        let key = |fill| SmallBytes::from(vec![fill; bytes]);
        let here = |key: &SmallBytes| Static.holds(HERE, catalog.partition(SPACE, key), catalog);
        (bytes > 0).then(|| (0..=u8::MAX).map(key).find(here).unwrap())
    }

    pub fn abort(&mut self, number: usize) {
        let (txn, decision) = (txn(number), Decision::Abort(Abort::Abandoned));
        self.receive(Message::Decide { txn, decision, ballots: Mostly::new() });
    }

    pub fn get(&mut self, number: usize) -> Option<SmallBytes> {
        let key = self.key(number);
        let txn = self.node.begin(TxnOptions::default(), &mut self.effects).unwrap();
        let Step::Done(Ok(found)) = self.node.get(txn, SPACE, &key, &mut self.effects) else {
            panic!("it is here")
        };
        self.node.rollback(txn, &mut self.effects);
        found
    }
}

pub fn txn(number: usize) -> TxnId {
    TxnId { node: OTHER, incarnation: 1, sequence: number as u64 + 1 }
}

/// What was voted on and nobody decides counts, and keeps further writes out; nothing else.
pub fn undecided_ones_meet_the_limit<V: Variant>() {
    let mut voter = Voter::<V>::new(Limits::default());
    let large = SmallBytes::from(vec![7; MIB]);
    let refused = (0..64).find(|number| {
        let vote = voter.vote(*number, 0, Some(large.clone()));
        assert!(matches!(vote, Vote::Yes(_) | Vote::No(Abort::OutOfMemory)), "{vote:?}");
        matches!(vote, Vote::No(_))
    });
    let refused = refused.expect("there is a limit");
    assert!((8..12).contains(&refused), "{}: {refused} MiB", V::NAME);
    assert!(voter.memory.held().all < 12 * MIB as u64, "{}: {:?}", V::NAME, voter.memory.held());
    // Reads, deletes and decisions go on.
    assert_eq!(voter.get(70), None);
    let deletes = voter.vote(71, 0, None);
    assert!(matches!(deletes, Vote::Yes(_)), "{}: {deletes:?}", V::NAME);
    (0..refused).for_each(|number| voter.abort(number));
    assert!(voter.memory.held().all < MIB as u64, "{}: {:?}", V::NAME, voter.memory.held());
    let again = voter.vote(72, 0, Some(large));
    assert!(matches!(again, Vote::Yes(_)), "{}: {again:?}", V::NAME);
}
