//! Messages that wait for each other: what a machine holds back and when it leaves, which way links
//! go in a tree, and that histories hold and packets get fewer, whatever the protocol is.

use std::sync::Arc;

use muesli_core::catalog::{TreePlan, TreeShape};
use muesli_core::machine::OutgoingMessage;
use muesli_core::parts::locator::Static;
use muesli_core::{
    Address, Answer, AnyMachine, BatchLinks, Batching, Catalog, Driver, Encode, Environment,
    Failure, LinkBatch, LinkClass, MachineTimer, Nanos, Node, NodeId, Note, OpId, Operation,
    Protocol, Put, Reader, RepositoryId, Role, Sender, Settings, SmallBytes, SpaceId, SpaceOptions,
    Step, Txn, TxnOptions,
};
use muesli_group::{Grouped, layout};
use muesli_protocols::hierarchy::HierarchicalValidation;
use muesli_protocols::score::Score;
use muesli_protocols::two_phase_commit::TwoPhaseCommit;
use muesli_sim::plan::fault::FaultKinds;
use muesli_workloads::available;
use muesli_workloads::embedded::Length;
use muesli_workloads::seeded_run::SeededRun;
use muesli_workloads::simulated::{self, Simulated, SimulatedOutcome};
use muesli_workloads::tally::Tallies;
use serde_json::Map;

use crate::workloads::{CLIENTS, assert_checks, assert_serializable, drawn, workload};

fn over(links: BatchLinks, size: usize, micros: u64) -> Batching {
    Batching::over(links, LinkBatch::new(size, Nanos::from_micros(micros)).unwrap())
}

fn catalog(nodes: u32) -> Catalog {
    let nodes: Vec<NodeId> = (0..nodes).map(NodeId).collect();
    let catalog = Catalog::new(&nodes, 1, &nodes).unwrap();
    catalog.with_space("s", SpaceOptions::default()).unwrap()
}

/// What left, by receiver, and what is to be called later.
#[derive(Default)]
struct Seen {
    sent: Vec<u32>,
    messages: Vec<(Address, Address, Vec<u8>)>,
    armed: Vec<MachineTimer>,
}

impl Seen {
    fn take(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.sent)
    }
}

impl Driver for Seen {
    fn begin(&mut self, _: &mut Environment) {}

    fn send(&mut self, outgoing: OutgoingMessage<'_>) {
        self.sent.push(outgoing.to.node.0);
        let mut bytes = Vec::new();
        outgoing.message.encode_to(&mut bytes);
        self.messages.push((outgoing.from, outgoing.to, bytes));
    }

    fn append(&mut self, _: Role, _: &dyn Encode, _bytes: usize) {}

    fn arm(&mut self, _: Nanos, timer: MachineTimer, _: Nanos) {
        self.armed.push(timer);
    }

    fn note(&mut self, _: &Result<Answer, Failure>, _waits: bool) -> Note {
        Note::default()
    }

    fn answer(&mut self, _: &Environment, _: OpId, _: Result<Answer, Failure>, _: Note) {}
}

/// The first node of three under SCORe, which has started, and what has left since.
fn machine(batching: Batching) -> (Box<dyn AnyMachine>, Seen) {
    machine_of(0, false, batching)
}

fn machine_of(node: u32, logging: bool, batching: Batching) -> (Box<dyn AnyMachine>, Seen) {
    let settings = Arc::new(Settings { logging, batching, ..Settings::default() });
    let protocol = muesli_registry::protocol(Score::NAME, None).unwrap();
    let (catalog, environment) = (Arc::new(catalog(3)), Environment::default());
    let mut machine = protocol.machine(NodeId(node), 1, catalog, settings, environment);
    let mut seen = Seen::default();
    machine.start(&[]);
    machine.perform(&mut seen);
    machine.send_held(&mut seen);
    (machine, Seen::default())
}

fn begin(machine: &mut dyn AnyMachine) -> Txn {
    let begun = machine.operate(Operation::Begin(TxnOptions::default()));
    let Step::Done(Ok(Answer::Begun(txn))) = begun else { panic!("{begun:?}") };
    txn
}

fn space(machine: &dyn AnyMachine) -> SpaceId {
    machine.catalog().space_named("s").unwrap()
}

/// A key that lives on a node.
fn key_of(machine: &dyn AnyMachine, node: u32) -> SmallBytes {
    let (catalog, space) = (machine.catalog(), space(machine));
    let is_home = |key: &SmallBytes| {
        let mut replicas = Static.replicas_of(catalog.partition(space, key), catalog);
        replicas.next() == Some(RepositoryId(node as u16))
    };
    let mut keys = (0..100u32).map(|it| SmallBytes::from(it.to_be_bytes().to_vec()));
    keys.find(is_home).expect("a key of each node")
}

/// Reads a key of a node.
fn read(machine: &mut dyn AnyMachine, seen: &mut Seen, node: u32) {
    let txn = begin(machine);
    let get = Operation::Get(txn, space(machine), key_of(machine, node));
    machine.operate(get);
    machine.perform(seen);
}

#[test]
fn a_machine_holds_back_what_is_for_others_until_a_batch_is_full_or_late() {
    let (mut machine, mut seen) = machine(over(BatchLinks::All, 3, 100));
    for (node, left) in [(1, vec![]), (2, vec![]), (1, vec![]), (0, vec![]), (1, vec![1, 1, 1])] {
        read(&mut *machine, &mut seen, node);
        assert_eq!(seen.take(), left, "a read at node {node}");
    }
    let batches: Vec<_> =
        seen.armed.drain(..).filter(|it| matches!(it, MachineTimer::Batches(_))).collect();
    assert_eq!(batches.len(), 1, "one timer for all links");
    machine.environment_mut().now = Nanos::from_micros(100);
    machine.timer(batches[0], &mut seen);
    assert_eq!(seen.take(), [2]);
    let counts = machine.batch_counts();
    assert_eq!((counts.messages, counts.full, counts.late, counts.asked), (4, 1, 1, 0));
    assert_eq!(counts.held_longest, Nanos::from_micros(100));
}

#[test]
fn a_broken_link_and_an_end_let_go_of_what_is_held() {
    let (mut machine, mut seen) = machine(over(BatchLinks::All, 10, 100));
    for node in [1, 2, 1, 2] {
        read(&mut *machine, &mut seen, node);
    }
    assert!(seen.take().is_empty());
    machine.unlinked(NodeId(1), &mut seen);
    assert_eq!(seen.take().iter().filter(|to| **to == 1).count(), 2, "they go the way of the link");
    assert!(machine.send_held(&mut seen));
    assert!(seen.take().iter().filter(|to| **to == 2).count() >= 2);
    assert!(!machine.send_held(&mut seen), "all has left");
}

#[test]
fn by_default_nothing_waits() {
    let (mut machine, mut seen) = machine(Batching::default());
    for node in [1, 2, 1] {
        read(&mut *machine, &mut seen, node);
        assert_eq!(seen.take(), [node]);
    }
    assert!(seen.armed.iter().all(|it| matches!(it, MachineTimer::Role(..))));
}

/// What waits for the log is in no batch before the log is stable.
#[test]
fn a_message_waits_for_the_log_and_then_for_its_batch() {
    let (mut client, mut on_client) = machine(Batching::default());
    let txn = begin(&mut *client);
    let put = Put {
        space: space(&*client),
        key: key_of(&*client, 1),
        value: Some("v".into()),
        may_wait: false,
    };
    client.operate(Operation::Put(txn, put));
    client.operate(Operation::Commit(txn));
    client.perform(&mut on_client);
    assert_eq!(on_client.sent, [1]);

    let (mut server, mut seen) = machine_of(1, true, over(BatchLinks::All, 2, 100));
    let (from, to, prepare) = on_client.messages.pop().unwrap();
    let mut prepare = Reader::new(&prepare);
    let taken = server.receive(Sender::Member, (from, to), &mut prepare, &mut seen);
    assert_eq!(taken, Ok(Ok(())));
    let waits_for = server.waits_for().expect("a vote that waits for its record");
    assert!(!server.send_held(&mut seen), "it is in no batch yet");
    server.learn_stable(waits_for);
    server.let_go(&mut seen);
    assert_eq!((server.waits_for(), seen.take()), (None, vec![]));
    assert!(server.send_held(&mut seen));
    assert_eq!(seen.take(), [0]);
}

fn class<P: Protocol>(catalog: &Catalog, from: u32, to: u32) -> LinkClass
where
    P::Switches: Default,
{
    let (catalog, settings) = (Arc::new(catalog.clone()), Arc::new(Settings::default()));
    let node = Node::<P>::new(NodeId(from), 1, catalog, settings, &P::Switches::default());
    node.link_class(NodeId(to))
}

fn two_by_two() -> TreePlan {
    TreePlan::from("2x2".parse::<TreeShape>().unwrap())
}

#[test]
fn links_go_up_and_down_the_tree_of_protocols_that_have_one() {
    let plan = two_by_two();
    // The root lives on n0, and so does the inner node above n0 and n1; the other one on n2.
    let tree = catalog(4).with_tree(&plan, &[]).unwrap();
    let of = |from, to| class::<HierarchicalValidation>(&tree, from, to);
    for (from, to) in [(1, 0), (2, 0), (3, 0), (3, 2)] {
        assert_eq!((of(from, to), of(to, from)), (LinkClass::Up, LinkClass::Down), "{from} {to}");
    }
    for (from, to) in [(1, 2), (1, 3), (0, 9), (9, 0)] {
        assert_eq!((of(from, to), of(to, from)), (LinkClass::Other, LinkClass::Other));
    }
    assert_eq!(class::<TwoPhaseCommit>(&tree, 1, 0), LinkClass::Other);
    // Without a tree a root lives where the first repository does.
    let bare = catalog(3);
    assert_eq!(class::<HierarchicalValidation>(&bare, 2, 0), LinkClass::Up);
    assert_eq!(class::<HierarchicalValidation>(&bare, 0, 2), LinkClass::Down);
    assert_eq!(class::<HierarchicalValidation>(&bare, 1, 2), LinkClass::Other);
    // Validators on nodes of their own: what has one above it goes up, that of clients does not.
    let apart = catalog(4).with_tree(&plan, &[NodeId(4), NodeId(5)]).unwrap();
    let of = |from, to| class::<HierarchicalValidation>(&apart, from, to);
    assert_eq!((of(0, 5), of(5, 4), of(4, 5)), (LinkClass::Up, LinkClass::Up, LinkClass::Down));
    assert_eq!((of(4, 0), of(0, 6)), (LinkClass::Down, LinkClass::Other));
}

/// Four groups, each on three of six nodes.
#[test]
fn members_of_a_group_are_below_what_is_above_the_group() {
    let homes = layout::homes(4, 3, 6).unwrap();
    let nodes: Vec<NodeId> = (0..6).map(NodeId).collect();
    let catalog = Catalog::new(&homes, 1, &nodes).unwrap();
    let tree = layout::with_tree(&catalog, &two_by_two(), &[NodeId(6), NodeId(7), NodeId(8)]);
    let tree = tree.unwrap();
    let of = |from, to| class::<Grouped<HierarchicalValidation>>(&tree, from, to);
    // The root lives on n6, the inner node of the first two groups on n7, the other one on n8.
    let members = |groups: [u16; 2]| {
        let of_these = |node: &NodeId| {
            groups
                .into_iter()
                .any(|it| (0..3).any(|place| catalog.home(layout::member(it, place)) == *node))
        };
        nodes.iter().copied().filter(of_these).collect::<Vec<_>>()
    };
    for (validator, groups) in [(7, [0, 1]), (8, [2, 3])] {
        for node in &nodes {
            let is_below = members(groups).contains(node);
            let expected = if is_below { LinkClass::Up } else { LinkClass::Other };
            assert_eq!(of(node.0, validator), expected, "{node:?} to {validator}");
            assert_eq!(of(node.0, 6), LinkClass::Up, "{node:?} to the root");
        }
    }
}

/// Two validators for each of three inner nodes, on six nodes: those of the root first.
#[test]
fn each_validator_of_an_inner_node_is_above_what_that_is_above() {
    let apart: Vec<NodeId> = (4..10).map(NodeId).collect();
    let plan = TreePlan { validators: 2, ..two_by_two() };
    let tree = catalog(4).with_tree(&plan, &apart).unwrap();
    let of = |from, to| class::<HierarchicalValidation>(&tree, from, to);
    for (from, to) in [(0, 6), (1, 7), (2, 8), (3, 9), (6, 4), (7, 5), (8, 5), (0, 4)] {
        assert_eq!((of(from, to), of(to, from)), (LinkClass::Up, LinkClass::Down), "{from} {to}");
    }
    for (from, to) in [(0, 8), (3, 6), (6, 7), (6, 8), (4, 5)] {
        assert_eq!((of(from, to), of(to, from)), (LinkClass::Other, LinkClass::Other));
    }
}

/// A run without faults, whose history is serializable.
fn calm(protocol: &str, batching: Batching) -> SimulatedOutcome {
    const MANY: u32 = 48;
    let workload =
        available::find("bank").unwrap().build(&["objects=4000".to_owned()], MANY).unwrap();
    let plan = Simulated {
        batching,
        history: true,
        tree: protocol.starts_with("hierarchy").then(two_by_two),
        ..Simulated::calm(protocol, 4, 3, Length::Transactions(2_000))
    };
    let outcome = simulated::run(&workload, &plan, &Arc::new(Tallies::new(MANY))).unwrap();
    let context = format!("{protocol}, {batching:?}");
    assert_checks(&outcome.checks, &context);
    assert_serializable(&outcome.run.history(Map::new()).unwrap(), &context);
    outcome
}

#[test]
fn larger_batches_leave_in_fewer_packets_and_histories_hold() {
    for protocol in ["2pc", "hierarchy", "hierarchy-locking", "score"] {
        let packets = |outcome: &SimulatedOutcome| {
            outcome.traffic.packets as f64 / outcome.tally.committed as f64
        };
        let (one, many) = (Batching::default(), over(BatchLinks::All, 50, 500));
        let (one, many) = (calm(protocol, one), calm(protocol, many));
        assert!(packets(&many) < 0.7 * packets(&one), "{protocol}: {}", packets(&many));
        assert_eq!(one.traffic.batches.messages, 0, "{protocol}");
        let batches = many.traffic.batches;
        // What is for a broken link or at an end is not here: every packet was full or late.
        assert!(batches.messages == many.traffic.messages && batches.late > 0, "{batches:?}");
        let mean = batches.held.0 / batches.messages;
        assert!((1_000..600_000).contains(&mean), "{protocol}: held for {mean} ns");
        let kinds: u64 = many.traffic.kinds.values().sum();
        assert_eq!(kinds, many.traffic.messages, "{protocol}");
        let each: u64 = many.run.traffic.iter().map(|node| node.messages).sum();
        assert!(each > many.traffic.messages, "{protocol}: loading sends messages, too");
    }
}

#[test]
fn batches_over_the_links_of_a_tree_leave_others_alone() {
    let over_tree = |protocol| calm(protocol, over(BatchLinks::Tree, 50, 500)).traffic;
    let hierarchy = over_tree("hierarchy");
    let held = hierarchy.batches.messages;
    assert!(0 < held && held < hierarchy.messages, "{held} of {}", hierarchy.messages);
    assert_eq!(over_tree("2pc").batches.messages, 0, "it has no validators");
}

/// Links break while messages are held for them, and timers come early.
#[test]
fn histories_hold_where_links_break_over_held_messages_and_timers_are_early() {
    let mut asked = 0;
    for seed in 0..12 {
        let case = ("bank", "objects=20 reads=30 totals=10");
        let plan = Simulated {
            batching: over(BatchLinks::All, 20, 2_000),
            early_timers: true,
            ..drawn(seed, "link,crash")
        };
        let context = format!("seed {seed}, {}", plan.plan);
        let tallies = Arc::new(Tallies::new(CLIENTS));
        let outcome = simulated::run(&workload(&case), &plan, &tallies).unwrap();
        assert_checks(&outcome.checks, &context);
        assert_serializable(&outcome.run.history(Map::new()).unwrap(), &context);
        asked += outcome.run.traffic.iter().map(|node| node.batches.asked).sum::<u64>();
    }
    assert!(asked > 0, "no link broke over held messages");
}

#[test]
fn searches_hold_with_batches_whatever_the_protocol() {
    for (protocol, links) in [
        ("score", BatchLinks::All),
        ("2pc", BatchLinks::All),
        ("hierarchy", BatchLinks::All),
        ("hierarchy", BatchLinks::Tree),
        ("hierarchy-locking", BatchLinks::Up),
        ("granola", BatchLinks::All),
    ] {
        let search = SeededRun {
            protocol: protocol.to_owned(),
            batching: Some(over(links, 10, 1_000)),
            faults: FaultKinds::all(),
            transactions_least: 200,
            ..SeededRun::of(available::find("bank").unwrap())
        };
        for seed in 1..5 {
            let found = search.run(seed, false).unwrap();
            assert!(found.problems.is_empty(), "{protocol}, seed {seed}: {:?}", found.problems);
        }
    }
}

/// The searches of every day cover it: some seeds have batches, and the same seed has the same.
#[test]
fn a_run_with_batches_can_be_repeated() {
    let run = || {
        let plan = Simulated { batching: over(BatchLinks::All, 5, 300), ..drawn(7, "all") };
        let tallies = Arc::new(Tallies::new(CLIENTS));
        simulated::run(&workload(&("bank", "objects=20")), &plan, &tallies).unwrap().run.digest
    };
    assert_eq!(run(), run());
}
