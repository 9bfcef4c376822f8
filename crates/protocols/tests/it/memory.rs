//! Limits of memory: what open snapshots hold, and what all versions take.

use muesli_protocols::two_phase::ReaderBounds;
use std::sync::Arc;

use muesli_core::limits::Limits;
use muesli_core::memory::Memory;
use muesli_core::parts::locator::Static;
use muesli_core::procedure::{
    Call, Class, Fragment, Place, Procedure, ProcedureId, Procedures, Stop, Store,
};
use muesli_core::{
    Abort, Address, Answer, Catalog, Decision, Effect, Effects, Envelope, Failure, Nanos, Node,
    NodeId, OpId, Operation, Protocol, RepositoryId, Sender, Settings, SmallBytes, SpaceId,
    SpaceOptions, Step, Timestamp, Txn, TxnId, TxnOptions,
};
use muesli_protocols::bumper::{Bumper, TimeWarp};
use muesli_protocols::gmu::{Gmu, Vectors};
use muesli_protocols::granola::Granola;
use muesli_protocols::non_genuine_multiversioning::{Everybody, NonGenuineMultiversioning};
use muesli_protocols::repeatable_read::{NewestVersions, RepeatableRead};
use muesli_protocols::score::{Score, Snapshots};
use muesli_protocols::two_phase::message::{Message, Mostly, Prepare, Vote};
use muesli_protocols::two_phase::{TwoPhase, Variant};
use muesli_protocols::two_phase_commit::{TryLocks, TwoPhaseCommit};

const SPACE: SpaceId = SpaceId(0);
const VALUE_BYTES: usize = 1_000;
const MIB: usize = 1 << 20;
const HERE: RepositoryId = RepositoryId(0);
const OTHER: NodeId = NodeId(1);

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
        self.operate(Operation::Get(txn, SPACE, key.into())).map(Answer::value)
    }

    fn operate(&mut self, operation: Operation) -> Result<Answer, Failure> {
        match self.node.operate(operation, &mut self.effects) {
            Step::Done(answer) => answer,
            Step::Wait(op) => self.result_of(op),
        }
    }

    /// What an operation comes to that is answered by messages within the node.
    fn result_of(&mut self, op: OpId) -> Result<Answer, Failure> {
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

    fn write(&mut self, key: &str, value: Option<SmallBytes>) -> Result<(), Failure> {
        let txn = self.begin();
        self.node.put(txn, SPACE, key.into(), value, &mut self.effects).unwrap();
        self.operate(Operation::Commit(txn)).map(drop)
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
    old_versions_have_a_budget::<NonGenuineMultiversioning>();
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
    snapshots_have_an_age::<NonGenuineMultiversioning>();
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
    alone.node.operate(Operation::Abort(reader, why.clone()), &mut alone.effects);
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
    a_timeout_gives_the_snapshot_back::<NonGenuineMultiversioning>();
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
    open_transactions_hold_no_more::<TwoPhaseCommit>();
    open_transactions_hold_no_more::<RepeatableRead>();
    open_transactions_hold_no_more::<Granola>();
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
    memory_has_a_limit::<TwoPhaseCommit>();
    memory_has_a_limit::<RepeatableRead>();
    memory_has_a_limit::<NonGenuineMultiversioning>();
    memory_has_a_limit::<Granola>();
}

/// What is counted between two reports is little, however large the values are.
fn large_values_meet_the_limit<P: Protocol>() {
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

#[test]
fn large_values_pass_the_limit_by_little() {
    large_values_meet_the_limit::<Score>();
    large_values_meet_the_limit::<Gmu>();
    large_values_meet_the_limit::<Bumper>();
    large_values_meet_the_limit::<TwoPhaseCommit>();
    large_values_meet_the_limit::<RepeatableRead>();
    large_values_meet_the_limit::<NonGenuineMultiversioning>();
    large_values_meet_the_limit::<Granola>();
}

/// Puts as many bytes as it is told under a key of that name.
fn fill(store: &mut dyn Store, bytes: &SmallBytes) -> Result<SmallBytes, Stop> {
    let space = store.space("s")?;
    store.put(space, bytes.clone(), Some(vec![7; bytes.len() * VALUE_BYTES].into()))?;
    Ok(SmallBytes::EMPTY)
}

/// Where a procedure is run in the call that asks for it, the limit holds as well.
#[test]
fn procedures_that_are_run_at_once_meet_the_limit() {
    let memory = Memory::new(8 * MIB as u64, u64::MAX >> 1);
    let procedures = Procedures::default().with("fill", 1, Procedure::new(fill));
    let settings = Settings { memory: memory.clone(), procedures, ..Settings::default() };
    let mut alone = Alone::<Granola>::new(settings);
    // A key of a thousand bytes, and a megabyte.
    let mut call = |number: usize| {
        let name = SmallBytes::from(format!("{number:01000}").as_str());
        let procedure = ProcedureId { name: "fill".into(), version: 1 };
        let place = Place::Key(SPACE, name.clone());
        let fragments = vec![Fragment { procedure, place, arguments: name }];
        let call = Call { class: Class::Auto, fragments };
        alone.node.invoke(TxnOptions::default(), call, &mut alone.effects)
    };
    let done = (0..64).take_while(|number| matches!(call(*number), Step::Done(Ok(_)))).count();
    assert!((8..12).contains(&done), "{done} MB");
    assert!(memory.held().all < 12 * MIB as u64, "{:?}", memory.held());
}

/// One of two repositories. The other one's node coordinates.
struct Voter<V: Variant> {
    node: Node<TwoPhase<V>>,
    effects: Effects<TwoPhase<V>>,
    memory: Memory,
}

impl<V: Variant> Voter<V> {
    fn new(limits: Limits) -> Voter<V> {
        let homes = [NodeId(0), OTHER];
        let catalog = Catalog::new(&homes, 1, &homes).unwrap();
        let catalog = Arc::new(catalog.with_space("s", SpaceOptions::default()).unwrap());
        let memory = Memory::new(8 * MIB as u64, u64::MAX >> 1);
        let settings = Settings { memory: memory.clone(), limits, ..Settings::default() };
        let (settings, rules) = (Arc::new(settings), V::Rules::default());
        let mut node = Node::new(NodeId(0), 1, catalog, settings, &rules);
        let mut effects = Effects::default();
        node.start(&mut effects);
        Voter { node, effects, memory }
    }

    /// Some key that lives here.
    fn key(&self, number: usize) -> SmallBytes {
        let catalog = self.node.catalog();
        let keys = (0u32..).map(|number| SmallBytes::new(&number.to_be_bytes()));
        let mut here =
            keys.filter(|key| Static.holds(HERE, catalog.partition(SPACE, key), catalog));
        here.nth(number).unwrap()
    }

    fn hear(&mut self, message: Message<V>) {
        let (from, to) = (Address::coordinator(OTHER), Address::repository(NodeId(0), HERE));
        let envelope = Envelope { from, to, message };
        self.effects.list.clear();
        self.node.receive(Sender::Member, envelope, &mut self.effects).unwrap();
    }

    /// How it votes on a transaction that reads a key of so many bytes, and writes one.
    fn vote(&mut self, number: usize, reads: usize, value: Option<SmallBytes>) -> Vote<V> {
        let (key, read) = (self.key(number), self.long_key(reads));
        let snapshot = self.node.participants()[0].1.committed();
        let reader = V::Reader::new(OTHER, 1, Txn { slot: number as u32, generation: 1 });
        self.hear(Message::Prepare(Arc::new(Prepare {
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
        })));
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
    fn long_key(&self, bytes: usize) -> Option<SmallBytes> {
        let catalog = self.node.catalog();
        let key = |fill| SmallBytes::from(vec![fill; bytes]);
        let here = |key: &SmallBytes| Static.holds(HERE, catalog.partition(SPACE, key), catalog);
        (bytes > 0).then(|| (0..=u8::MAX).map(key).find(here).unwrap())
    }

    fn abort(&mut self, number: usize) {
        let (txn, decision) = (txn(number), Decision::Abort(Abort::Abandoned));
        self.hear(Message::Decide { txn, decision, ballots: Mostly::new() });
    }

    fn get(&mut self, number: usize) -> Option<SmallBytes> {
        let key = self.key(number);
        let txn = self.node.begin(TxnOptions::default(), &mut self.effects).unwrap();
        let Step::Done(Ok(found)) = self.node.get(txn, SPACE, &key, &mut self.effects) else {
            panic!("it is here")
        };
        self.node.rollback(txn, &mut self.effects);
        found
    }
}

fn txn(number: usize) -> TxnId {
    TxnId { node: OTHER, incarnation: 1, sequence: number as u64 + 1 }
}

/// What was voted on and nobody decides counts, and keeps further writes out; nothing else.
fn undecided_ones_meet_the_limit<V: Variant>() {
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

#[test]
fn prepares_that_nobody_decides_keep_further_writes_out_at_the_limit() {
    undecided_ones_meet_the_limit::<Snapshots>();
    undecided_ones_meet_the_limit::<Vectors>();
    undecided_ones_meet_the_limit::<TimeWarp>();
    undecided_ones_meet_the_limit::<TryLocks>();
    undecided_ones_meet_the_limit::<NewestVersions>();
    undecided_ones_meet_the_limit::<Everybody>();
}

/// What adds nothing is prepared at the limit, but not without end.
#[test]
fn at_the_limit_undecided_deletes_have_an_end_too() {
    let limits = Limits { transaction_bytes: MIB, value_bytes: MIB / 2, ..Limits::default() };
    let mut voter = Voter::<Snapshots>::new(limits);
    let value = SmallBytes::from(vec![7; MIB / 2]);
    let refused = (0..64).find(|number| {
        matches!(voter.vote(*number, 0, Some(value.clone())), Vote::No(Abort::OutOfMemory))
    });
    let first = refused.expect("there is a limit") + 1;
    let refused = (first..first + 64).find(|number| {
        let vote = voter.vote(*number, 60_000, None);
        assert!(matches!(vote, Vote::Yes(_) | Vote::No(Abort::Overloaded)), "{vote:?}");
        matches!(vote, Vote::No(_))
    });
    let refused = refused.expect("they have an end");
    assert!((10..20).contains(&(refused - first)), "{} of 60,000 bytes", refused - first);
    voter.abort(first);
    assert!(matches!(voter.vote(refused + 1, 60_000, None), Vote::Yes(_)));
}
