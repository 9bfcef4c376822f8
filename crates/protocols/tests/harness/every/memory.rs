//! Limits of memory: what open snapshots hold, and what all versions take.

use std::sync::Arc;

use muesli_core::memory::Memory;
use muesli_core::{
    Abort, Answer, Catalog, Effect, Effects, Failure, Nanos, Node, NodeId, OpId, Operation,
    Protocol, RepositoryId, Settings, SmallBytes, SpaceId, SpaceOptions, Step, Txn, TxnOptions,
};

pub const SPACE: SpaceId = SpaceId(0);
pub const VALUE_BYTES: usize = 1_000;
pub const MIB: usize = 1 << 20;
pub const HERE: RepositoryId = RepositoryId(0);
pub const OTHER: NodeId = NodeId(1);

/// A node with all there is.
pub struct Alone<P: Protocol> {
    pub node: Node<P>,
    pub effects: Effects<P>,
}

impl<P: Protocol> Alone<P> {
    pub fn new(settings: Settings) -> Alone<P> {
        let homes = [NodeId(0)];
        let catalog = Catalog::new(&homes, 1, &homes).unwrap();
        let catalog = Arc::new(catalog.with_space("s", SpaceOptions::default()).unwrap());
        let mut node = Node::new(NodeId(0), 1, catalog, Arc::new(settings), &Default::default());
        let mut effects = Effects::default();
        node.start(&mut effects);
        Alone { node, effects }
    }

    pub fn begin(&mut self) -> Txn {
        self.node.begin(TxnOptions::default(), &mut self.effects).unwrap()
    }

    pub fn get(&mut self, txn: Txn, key: &str) -> Result<Option<SmallBytes>, Failure> {
        self.operate(Operation::Get(txn, SPACE, key.into())).map(Answer::value)
    }

    pub fn operate(&mut self, operation: Operation) -> Result<Answer, Failure> {
        match self.node.operate(operation, &mut self.effects) {
            Step::Done(answer) => answer,
            Step::Wait(op) => self.result_of(op),
        }
    }

    /// What an operation comes to that is answered by messages within the node.
    pub fn result_of(&mut self, op: OpId) -> Result<Answer, Failure> {
        loop {
            let list = std::mem::take(&mut self.effects.list);
            assert!(!list.is_empty(), "{}: nothing is under way", P::NAME);
            let mut found = None;
            for effect in list {
                match effect {
                    Effect::Send { envelope, .. } => self.node.deliver(envelope, &mut self.effects),
                    Effect::SetTimer { role, timer, after: Nanos(0) } => {
                        self.node.timer(role, timer, &mut self.effects);
                    }
                    Effect::Complete { op: of, result, .. } if of == op => found = Some(result),
                    Effect::Complete { .. } | Effect::SetTimer { .. } | Effect::Log { .. } => {}
                }
            }
            if let Some(result) = found {
                return result;
            }
        }
    }

    pub fn write(&mut self, key: &str, value: Option<SmallBytes>) -> Result<(), Failure> {
        let txn = self.begin();
        self.node.put(txn, SPACE, key.into(), value, &mut self.effects).unwrap();
        self.operate(Operation::Commit(txn)).map(drop)
    }

    pub fn put(&mut self, key: &str) -> Result<(), Failure> {
        self.write(key, Some(vec![7; VALUE_BYTES].into()))
    }
}

pub fn too_old<T>(answer: Result<T, Failure>) -> bool {
    matches!(answer, Err(Failure::Aborted(Abort::SnapshotTooOld)))
}

pub fn old_versions_have_a_budget<P: Protocol>() {
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

pub fn snapshots_have_an_age<P: Protocol>() {
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

/// A transaction that timed out gives its snapshot back, though its body goes on waiting.
pub fn a_timeout_gives_the_snapshot_back<P: Protocol>() {
    let memory = Memory::new(u64::MAX >> 1, u64::MAX >> 1);
    let mut alone = Alone::<P>::new(Settings { memory: memory.clone(), ..Settings::default() });
    alone.put("a").unwrap();
    let reader = alone.begin();
    alone.get(reader, "a").unwrap();
    (0..1_000).for_each(|_| alone.put("a").unwrap());
    assert!(memory.held().old > 900 * VALUE_BYTES as u64, "{}", P::NAME);
    let why = Failure::TransactionTimeout { after_ms: 5 };
    alone.node.operate(Operation::Abort(reader, why.clone()), &mut alone.effects);
    assert_eq!(alone.node.oldest_snapshot(), None, "{}", P::NAME);
    (0..1_000).for_each(|_| alone.put("a").unwrap());
    assert!(memory.held().old < 600 * VALUE_BYTES as u64, "{}: {:?}", P::NAME, memory.held());
    assert_eq!(alone.get(reader, "a"), Err(why), "{}", P::NAME);
}

/// Whatever an open transaction reads, what it holds back has the same budget.
pub fn open_transactions_hold_no_more<P: Protocol>() {
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

/// A write is refused at the limit, reads and deletes are not, and it is taken again below.
pub fn memory_has_a_limit<P: Protocol>() {
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

/// What is counted between two reports is little, however large the values are.
pub fn large_values_meet_the_limit<P: Protocol>() {
    let memory = Memory::new(8 * MIB as u64, u64::MAX >> 1);
    let mut alone = Alone::<P>::new(Settings { memory: memory.clone(), ..Settings::default() });
    let large = SmallBytes::from(vec![7; MIB]);
    let written = (0..64).filter(|number: &u32| {
        let written = alone.write(&number.to_string(), Some(large.clone()));
        let refused = Err(Failure::Aborted(Abort::OutOfMemory));
        assert!(written.is_ok() || written == refused, "{}: {written:?}", P::NAME);
        written.is_ok()
    });
    let written = written.count();
    assert!((8..12).contains(&written), "{}: {written} MiB", P::NAME);
    assert!(memory.held().all < 12 * MIB as u64, "{}: {:?}", P::NAME, memory.held());
}
