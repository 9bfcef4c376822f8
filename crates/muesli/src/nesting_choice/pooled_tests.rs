//! Nodes that choose together, each with clients in a closed loop, and the row between them.

use super::*;

const FLAT: NestingModel = NestingModel::Flat;
const CLOSED: NestingModel = NestingModel::Closed;
const OPEN: NestingModel = NestingModel::Open;
const ALL: [NestingModel; 3] = [FLAT, CLOSED, OPEN];

const MILLIS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MILLIS;
/// When a test begins, by a clock that is right.
const BEGIN: u64 = 1_000_000 * SECOND;

struct ClientNode {
    policy: ChoicePolicy,
    /// By how much its clock is ahead.
    ahead: u64,
    reaches_row: bool,
    /// It runs transactions.
    runs: bool,
    /// When whose transaction ends, by the right clock, and as what it runs.
    ends: Vec<(u64, NestingModel)>,
    /// As what it began the last one.
    last: NestingModel,
    /// When it looks whether something is to be told, by the right clock.
    looks: Option<u64>,
}

/// How long a transaction takes on this node, as this model, where another node has that one.
type TransactionTimes = fn(usize, NestingModel, NestingModel) -> u64;

struct PooledNodes {
    nodes: Vec<ClientNode>,
    row: Option<PooledComparison>,
    now: u64,
    takes: TransactionTimes,
    number: u64,
    committed: u64,
}

impl PooledNodes {
    fn new(nodes: usize, takes: TransactionTimes) -> PooledNodes {
        let mut system = PooledNodes {
            nodes: Vec::new(),
            row: None,
            now: BEGIN,
            takes,
            number: 0,
            committed: 0,
        };
        (0..nodes).for_each(|_| system.join());
        system
    }

    fn join(&mut self) {
        let share = (self.nodes.len() as u32).wrapping_mul(0x5555_5555);
        self.nodes.push(ClientNode {
            policy: ChoicePolicy::new(&ALL, Nanos(self.now), Some(PoolMember::new(share))),
            ahead: 0,
            reaches_row: true,
            runs: true,
            ends: vec![(self.now, FLAT); 8],
            last: FLAT,
            looks: None,
        });
    }

    /// The next transaction of all ends, and another one begins; or a node looks whether it has
    /// something to tell.
    fn step(&mut self) {
        let running = self.nodes.iter().enumerate().filter(|(_, it)| it.runs);
        let clients = running.clone().flat_map(|(at, node)| {
            node.ends.iter().enumerate().map(move |(client, end)| (end.0, at, Some(client)))
        });
        let looks = running.filter_map(|(at, node)| Some((node.looks?, at, None)));
        let (now, at, client) = clients.chain(looks).min().expect("somebody runs");
        self.now = now;
        match client {
            Some(client) => self.end_transaction(at, client),
            None => self.look(at),
        }
    }

    fn end_transaction(&mut self, at: usize, client: usize) {
        let others = self.nodes.iter().enumerate().filter(|(it, node)| *it != at && node.runs);
        let other = others.map(|(_, node)| node.last).max().unwrap_or(FLAT);
        let node = &mut self.nodes[at];
        let (now, model) = node.ends[client];
        let own_now = Nanos(now + node.ahead);
        if node.policy.begun >= node.ends.len() as u64 {
            let conflicts = NestingObservation { in_part: [1, 0, 0, 0], after_part: 1, ..SEEN };
            node.policy.observe(own_now, model, &conflicts);
            node.policy.ended(own_now, true);
            self.committed += 1;
        }
        node.last = node.policy.begin(own_now);
        node.looks.get_or_insert(now);
        self.number += 1;
        let drawn = self.number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54;
        let took = (self.takes)(at, node.last, other) * (512 + drawn) / 1_024;
        node.ends[client] = (now + took, node.last);
    }

    fn look(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        let own_now = Nanos(self.now + node.ahead);
        let report = match node.policy.report(own_now) {
            ReportTime::Now(report) => report,
            ReportTime::After(length) => return node.looks = Some(self.now + length),
            ReportTime::Never => return node.looks = None,
        };
        let found = node.reaches_row.then(|| PooledComparison::after(self.row.clone(), &report));
        if let Some(Ok(Some(row))) = &found {
            self.row = Some(row.clone());
        }
        node.policy.exchanged(own_now, found);
    }

    fn run(&mut self, seconds: u64) {
        let until = self.now + seconds * SECOND;
        while self.now < until {
            self.step();
        }
    }

    fn chosen(&self) -> Vec<Option<NestingModel>> {
        self.nodes.iter().map(|it| it.policy.chosen()).collect()
    }
}

const SEEN: NestingObservation = NestingObservation {
    aborted: 0,
    in_part: [0; 4],
    after_part: 0,
    partial: [0; 4],
    refused: 0,
    lost: std::time::Duration::ZERO,
    sub_commits: std::time::Duration::ZERO,
    parts: 1,
    depth: 1,
};

/// The first node gains by open children, whatever the others have. It is in their way then: they
/// lose more than it gains, and less where they have open children, too.
fn external(node: usize, model: NestingModel, other: NestingModel) -> u64 {
    let millis = match (node, model, other) {
        (0, FLAT, _) => 150,
        (0, CLOSED, _) => 100,
        (0, OPEN, _) => 60,
        (_, FLAT, OPEN) => 250,
        (_, CLOSED, OPEN) => 200,
        (_, OPEN, OPEN) => 130,
        (_, FLAT, _) => 70,
        (_, CLOSED | OPEN, _) => 50,
    };
    millis * MILLIS
}

fn fixed<const CLOSED_MILLIS: u64>(_: usize, model: NestingModel, _: NestingModel) -> u64 {
    match model {
        FLAT => 100 * MILLIS,
        CLOSED => CLOSED_MILLIS * MILLIS,
        OPEN => 150 * MILLIS,
    }
}

#[test]
fn what_a_node_gains_and_others_lose_is_not_chosen_by_all() {
    let mut alone = PooledNodes::new(2, external);
    alone.nodes.iter_mut().for_each(|it| it.policy.member = None);
    alone.run(300);
    assert_eq!(alone.chosen(), [Some(OPEN); 2], "one gains, and the other one follows");
    let mut pooled = PooledNodes::new(2, external);
    pooled.run(100);
    assert_eq!(pooled.chosen(), [Some(CLOSED); 2]);
    let before = [alone.committed, pooled.committed];
    alone.run(200);
    pooled.run(200);
    let gained = [alone.committed - before[0], pooled.committed - before[1]];
    assert!(10 * gained[1] > 12 * gained[0], "{gained:?}");
    let decided = pooled.nodes[0].policy.take_decided().unwrap();
    assert_eq!((decided.nodes, decided.model), (Some(2), CLOSED));
}

/// The first node gains by open children, and none of the others' transactions commits in a slot in
/// which it has them.
fn starving(node: usize, model: NestingModel, other: NestingModel) -> u64 {
    let millis = match (node, model, other) {
        (0, FLAT, _) => 150,
        (0, CLOSED, _) => 100,
        (0, OPEN, _) => 60,
        (_, _, OPEN) => 1_400,
        (_, FLAT, _) => 70,
        (_, CLOSED | OPEN, _) => 50,
    };
    millis * MILLIS
}

#[test]
fn who_is_held_up_for_slots_counts_in_them() {
    let mut system = PooledNodes::new(2, starving);
    system.nodes[1].ends.truncate(4);
    system.run(200);
    assert_eq!(system.chosen(), [Some(CLOSED); 2]);
}

#[test]
fn a_node_that_joins_learns_what_is_chosen_and_one_that_crashes_is_not_missed() {
    let mut system = PooledNodes::new(2, fixed::<60>);
    system.run(100);
    assert_eq!(system.chosen(), [Some(CLOSED); 2]);
    system.join();
    system.run(2);
    assert_eq!(system.chosen(), [Some(CLOSED); 3]);
    system.nodes[0].runs = false;
    system.takes = fixed::<170>;
    system.run(200);
    assert_eq!(system.chosen()[1..], [Some(FLAT); 2], "a change is followed");
    system.nodes[0].runs = true;
    system.nodes[0].ends.fill((system.now, FLAT));
    system.nodes[0].looks = Some(system.now);
    system.run(5);
    assert_eq!(system.chosen(), [Some(FLAT); 3]);
}

#[test]
fn a_node_that_does_not_reach_the_others_chooses_by_itself() {
    let mut pooled = PooledNodes::new(2, fixed::<60>);
    pooled.nodes[1].reaches_row = false;
    for reaches_row in [false, true, false, true] {
        pooled.nodes[1].reaches_row = reaches_row;
        pooled.run(100);
        assert_eq!(pooled.chosen(), [Some(CLOSED); 2], "{reaches_row}");
        let by_itself = pooled.nodes.iter().map(|it| it.policy.own.is_some());
        assert_eq!(by_itself.collect::<Vec<_>>(), [false, !reaches_row]);
    }
}

#[test]
fn clocks_that_differ_a_little_do_not_matter_much() {
    let mut system = PooledNodes::new(3, external);
    system.nodes[1].ahead = 900 * MILLIS;
    system.nodes[2].ahead = 450 * MILLIS;
    system.run(150);
    assert_eq!(system.chosen(), [Some(CLOSED); 3]);
}

#[test]
fn a_clock_that_is_far_ahead_is_in_nobody_s_way_once_it_is_gone() {
    let mut system = PooledNodes::new(2, fixed::<60>);
    system.nodes[1].ahead = 3_600 * SECOND;
    system.run(100);
    assert_eq!(system.chosen(), [Some(CLOSED); 2], "one of them by itself");
    assert!(system.nodes[0].policy.own.is_some(), "and the row is the other's");
    system.nodes[1].runs = false;
    system.run(60);
    assert!(system.nodes[0].policy.own.is_some(), "it may only have nothing to tell");
    system.run(100);
    let node = &system.nodes[0].policy;
    assert!(node.own.is_none() && node.chosen() == Some(CLOSED));
}

#[test]
fn the_same_transactions_lead_to_the_same_row() {
    let row = || {
        let mut system = PooledNodes::new(3, external);
        system.run(60);
        system.row.expect("nodes have told of what they saw")
    };
    assert_eq!(row(), row());
}
