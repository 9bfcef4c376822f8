//! Limits of memory: what open snapshots hold, and what all versions take.

use std::sync::Arc;

use muesli_core::memory::Memory;
use muesli_core::{
    Abort, Catalog, Effects, Failure, Nanos, Node, NodeId, Protocol, Settings, SmallBytes, SpaceId,
    SpaceOptions, Step, Txn, TxnOptions,
};
use muesli_protocols::bumper::Bumper;
use muesli_protocols::gmu::Gmu;
use muesli_protocols::locking::TwoPhaseLocking;
use muesli_protocols::repeatable_read::RepeatableRead;
use muesli_protocols::score::Score;

const SPACE: SpaceId = SpaceId(0);
const VALUE_BYTES: usize = 1_000;

/// A node with all there is.
struct Alone<P: Protocol> {
    node: Node<P>,
    effects: Effects<P>,
}

impl<P: Protocol> Alone<P> {
    fn new(settings: Settings) -> Alone<P> {
        let homes = [NodeId(0)];
        let catalog = Catalog::new(&homes, 1, &homes).unwrap();
        let catalog = Arc::new(catalog.with_space("s", SpaceOptions::default()).unwrap());
        let mut node = Node::new(NodeId(0), 1, catalog, Arc::new(settings), &Default::default());
        let mut effects = Effects::default();
        node.start(&mut effects);
        Alone { node, effects }
    }

    fn begin(&mut self) -> Txn {
        self.node.begin(TxnOptions::default(), &mut self.effects).unwrap()
    }

    fn get(&mut self, txn: Txn, key: &str) -> Result<Option<SmallBytes>, Failure> {
        match self.node.get(txn, SPACE, &key.into(), &mut self.effects) {
            Step::Done(answer) => answer,
            Step::Wait(_) => panic!("it is here"),
        }
    }

    fn write(&mut self, key: &str, value: Option<SmallBytes>) -> Result<(), Failure> {
        let txn = self.begin();
        self.node.put(txn, SPACE, key.into(), value, &mut self.effects).unwrap();
        match self.node.commit(txn, &mut self.effects) {
            Step::Done(answer) => answer.map(|_| ()),
            Step::Wait(_) => panic!("it is here"),
        }
    }

    fn put(&mut self, key: &str) -> Result<(), Failure> {
        self.write(key, Some(vec![7; VALUE_BYTES].into()))
    }
}

fn too_old<T>(answer: Result<T, Failure>) -> bool {
    matches!(answer, Err(Failure::Aborted(Abort::SnapshotTooOld)))
}

fn old_versions_have_a_budget<P: Protocol>() {
    let most = 100 * VALUE_BYTES as u64;
    let memory = Memory::new(u64::MAX >> 1, most);
    let mut alone = Alone::<P>::new(Settings { memory: memory.clone(), ..Settings::default() });
    alone.put("a").unwrap();
    let reader = alone.begin();
    alone.get(reader, "a").unwrap();
    for _ in 0..5_000 {
        alone.put("a").unwrap();
        assert!(memory.held().old < 2 * most, "{:?}", memory.held());
    }
    assert!(too_old(alone.get(reader, "b")));
    let next = alone.begin();
    assert!(alone.get(next, "a").unwrap().is_some());
}

#[test]
fn old_versions_take_no_more_than_they_may() {
    old_versions_have_a_budget::<Score>();
    old_versions_have_a_budget::<Gmu>();
    old_versions_have_a_budget::<Bumper>();
}

fn snapshots_have_an_age<P: Protocol>() {
    let age = Settings::default().snapshot_age_max;
    let memory = Memory::new(u64::MAX >> 1, u64::MAX >> 1);
    let mut alone = Alone::<P>::new(Settings { memory: memory.clone(), ..Settings::default() });
    alone.put("a").unwrap();
    let reader = alone.begin();
    alone.get(reader, "a").unwrap();
    assert_eq!(alone.node.oldest_snapshot(), Some((NodeId(0), Some(Nanos(0)))));
    (0..1_000).for_each(|_| alone.put("a").unwrap());
    assert!(memory.held().old > 900 * VALUE_BYTES as u64);
    alone.effects.now = age + Nanos(1);
    (0..1_000).for_each(|_| alone.put("a").unwrap());
    assert!(memory.held().old < 600 * VALUE_BYTES as u64, "{:?}", memory.held());
    assert!(too_old(alone.get(reader, "b")));
}

#[test]
fn a_transaction_open_for_too_long_holds_nothing_back() {
    snapshots_have_an_age::<Score>();
    snapshots_have_an_age::<Gmu>();
    snapshots_have_an_age::<Bumper>();
}

/// A transaction that timed out gives its snapshot back, though its body goes on waiting.
fn a_timeout_gives_the_snapshot_back<P: Protocol>() {
    let memory = Memory::new(u64::MAX >> 1, u64::MAX >> 1);
    let mut alone = Alone::<P>::new(Settings { memory: memory.clone(), ..Settings::default() });
    alone.put("a").unwrap();
    let reader = alone.begin();
    alone.get(reader, "a").unwrap();
    (0..1_000).for_each(|_| alone.put("a").unwrap());
    assert!(memory.held().old > 900 * VALUE_BYTES as u64, "{}", P::NAME);
    let why = Failure::TransactionTimeout { after_ms: 5 };
    alone.node.abort(reader, &why, &mut alone.effects);
    assert_eq!(alone.node.oldest_snapshot(), None, "{}", P::NAME);
    (0..1_000).for_each(|_| alone.put("a").unwrap());
    assert!(memory.held().old < 600 * VALUE_BYTES as u64, "{}: {:?}", P::NAME, memory.held());
    assert_eq!(alone.get(reader, "a"), Err(why), "{}", P::NAME);
}

#[test]
fn transactions_that_timed_out_give_their_snapshots_back() {
    a_timeout_gives_the_snapshot_back::<Score>();
    a_timeout_gives_the_snapshot_back::<Gmu>();
    a_timeout_gives_the_snapshot_back::<Bumper>();
}

/// Whatever an open transaction reads, what it holds back has the same budget.
fn open_transactions_hold_no_more<P: Protocol>() {
    let most = 100 * VALUE_BYTES as u64;
    let memory = Memory::new(u64::MAX >> 1, most);
    let mut alone = Alone::<P>::new(Settings { memory: memory.clone(), ..Settings::default() });
    alone.put("a").unwrap();
    let reader = alone.begin();
    alone.get(reader, "a").unwrap();
    for _ in 0..3_000 {
        // It may hold a lock on what it has read, and none on others.
        alone.put("b").unwrap();
        assert!(memory.held().old < 2 * most, "{}: {:?}", P::NAME, memory.held());
    }
    let read = alone.get(reader, "b");
    assert!(too_old(read.clone()) || read.is_ok_and(|it| it.is_some()), "{}", P::NAME);
}

#[test]
fn transactions_without_a_snapshot_hold_no_more_versions_than_they_may() {
    open_transactions_hold_no_more::<TwoPhaseLocking>();
    open_transactions_hold_no_more::<RepeatableRead>();
}

/// A write is refused at the limit, reads and deletes are not, and it is taken again below.
fn memory_has_a_limit<P: Protocol>() {
    let memory = Memory::new(500 * VALUE_BYTES as u64, u64::MAX >> 1);
    let mut alone = Alone::<P>::new(Settings { memory: memory.clone(), ..Settings::default() });
    let keys: Vec<String> = (0..2_000).map(|number| number.to_string()).collect();
    let refused = keys.iter().position(|key| alone.put(key).is_err()).expect("there is a limit");
    assert!((300..700).contains(&refused), "{refused}");
    assert_eq!(alone.put("0"), Err(Failure::Aborted(Abort::OutOfMemory)));
    let reader = alone.begin();
    assert!(alone.get(reader, "0").unwrap().is_some());
    alone.node.rollback(reader, &mut alone.effects);
    for key in &keys[..refused] {
        assert_eq!(alone.write(key, None), Ok(()));
    }
    // What was deleted is collected as commits go by.
    (0..600).for_each(|_| alone.write("none", None).unwrap());
    assert_eq!(alone.put("0"), Ok(()));
}

#[test]
fn at_the_limit_writes_are_refused_and_nothing_else() {
    memory_has_a_limit::<Score>();
    memory_has_a_limit::<Gmu>();
    memory_has_a_limit::<Bumper>();
    memory_has_a_limit::<TwoPhaseLocking>();
    memory_has_a_limit::<RepeatableRead>();
}
