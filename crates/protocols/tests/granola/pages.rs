//! Large reads of interactive transactions where a repository holds many partitions, whose keys lie
//! between each other: a request looks at a page of entries, whoever wants them, and no second one
//! of an operation is under way to the same repository.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use muesli_core::ranges::KeyRange;
use muesli_core::{
    Abort, Answer, Catalog, Effect, Effects, Envelope, Failure, Limits, Nanos, Node, NodeId, OpId,
    RepositoryId, Role, Scan, Sender, Settings, SmallBytes, SpaceId, SpaceOptions, Step, Txn,
    TxnId, TxnOptions,
};
use muesli_protocols::granola::message::{Message, Part, PartAnswer, ReplyOutcome, Request, Task};
use muesli_protocols::granola::{Granola, Switches};

pub const SPACE: SpaceId = SpaceId(0);
pub const SERVER: NodeId = NodeId(0);
pub const CLIENT: NodeId = NodeId(1);
const ROWS: usize = 100_000;

pub fn key(number: usize) -> SmallBytes {
    SmallBytes::from(format!("{number:08}").as_str())
}

fn everything(reverse: bool, limit: usize) -> Scan {
    Scan { space: SPACE, lo: SmallBytes::EMPTY, hi: None, reverse, limit }
}

/// A client and a server with all repositories, and what is said between them.
pub struct Pair {
    nodes: [Node<Granola>; 2],
    pub effects: [Effects<Granola>; 2],
    sent: VecDeque<Envelope<Message>>,
    /// Timers without delay.
    /// Timers that are set, but for those that are due at once.
    timers: Vec<(usize, Role, u32)>,
    left_over: VecDeque<(usize, Role, u32)>,
    answers: BTreeMap<(NodeId, OpId), Result<Answer, Failure>>,
    /// Requests of the client that are not answered, and the most that there were of a repository.
    under_way: BTreeMap<TxnId, RepositoryId>,
    most_under_way: usize,
    /// How many reads were answered.
    pages: usize,
}

impl Pair {
    fn new(partitions_per_repository: usize, repositories: usize) -> Pair {
        let mut pair = Pair::empty(partitions_per_repository, repositories, Settings::default());
        for first in (0..ROWS).step_by(1_000) {
            pair.write(SERVER, first..first + 1_000);
        }
        pair
    }

    /// The same without rows.
    pub fn empty(
        partitions_per_repository: usize,
        repositories: usize,
        settings: Settings,
    ) -> Pair {
        let homes = vec![SERVER; repositories];
        let catalog = Catalog::new(&homes, 1, &[SERVER, CLIENT]).unwrap();
        let catalog = catalog.with_partitions_per_repository(partitions_per_repository).unwrap();
        let catalog = Arc::new(catalog.with_space("s", SpaceOptions::default()).unwrap());
        let settings = Arc::new(settings);
        let node = |id| {
            let (catalog, settings) = (Arc::clone(&catalog), Arc::clone(&settings));
            Node::new(id, 1, catalog, settings, &Switches::default())
        };
        let mut pair = Pair {
            nodes: [SERVER, CLIENT].map(node),
            effects: [Effects::default(), Effects::default()],
            sent: VecDeque::new(),
            timers: Vec::new(),
            left_over: VecDeque::new(),
            answers: BTreeMap::new(),
            under_way: BTreeMap::new(),
            most_under_way: 0,
            pages: 0,
        };
        pair.on(SERVER, |node, effects| node.start(effects));
        pair.on(CLIENT, |node, effects| node.start(effects));
        pair
    }

    pub fn on<T>(
        &mut self,
        node: NodeId,
        run: impl FnOnce(&mut Node<Granola>, &mut Effects<Granola>) -> T,
    ) -> T {
        let at = node.0 as usize;
        let given = run(&mut self.nodes[at], &mut self.effects[at]);
        for effect in std::mem::take(&mut self.effects[at].list) {
            match effect {
                Effect::Send { envelope, .. } => self.send(envelope),
                Effect::SetTimer { role, timer, after: Nanos(0) } => {
                    self.left_over.push_back((at, role, timer));
                }
                Effect::Complete { op, result, .. } => {
                    self.answers.insert((node, op), result);
                }
                Effect::SetTimer { role, timer, .. } => self.timers.push((at, role, timer)),
                Effect::Log { .. } => {}
            }
        }
        given
    }

    fn send(&mut self, envelope: Envelope<Message>) {
        match &envelope.message {
            Message::Request(request) if request.txn.node == CLIENT => {
                let at = request.participants[0];
                self.under_way.insert(request.txn, at);
                let there = self.under_way.values().filter(|it| **it == at).count();
                self.most_under_way = self.most_under_way.max(there);
            }
            Message::Reply { txn, end, .. } if txn.node == CLIENT => {
                self.under_way.remove(txn);
                self.judge_page(end);
            }
            _ => {}
        }
        self.sent.push_back(envelope);
    }

    /// No answer has more than a page, of all its parts together.
    fn judge_page(&mut self, end: &ReplyOutcome) {
        let ReplyOutcome::Done { answers, .. } = end else { return };
        let rows = answers.iter().map(|(_, answer)| match answer {
            PartAnswer::Rows(rows, _) => rows.len(),
            PartAnswer::Found(found) => found.len(),
            _ => 0,
        });
        let rows = rows.sum::<usize>();
        assert!(rows <= Limits::default().page_rows, "{rows} rows at once");
        self.pages += 1;
    }

    /// Until nothing more is said; or, with `most`, until so many messages were.
    fn run(&mut self, most: usize) {
        for _ in 0..most {
            if let Some(envelope) = self.sent.pop_front() {
                let to = envelope.to.node;
                let taken =
                    self.on(to, |node, effects| node.receive(Sender::Member, envelope, effects));
                assert_eq!(taken, Ok(()));
            } else if let Some((at, role, timer)) = self.left_over.pop_front() {
                self.on(NodeId(at as u32), |node, effects| node.timer(role, timer, effects));
            } else {
                return;
            }
        }
    }

    /// So much time passes for a node, whose timers ring; nothing that was sent arrives meanwhile.
    pub fn time_passes(&mut self, node: NodeId, time: Nanos) {
        self.effects[node.0 as usize].now.0 += time.0;
        let is_its_own = |it: &(usize, Role, u32)| it.0 == node.0 as usize;
        let due: Vec<_> = self.timers.iter().copied().filter(is_its_own).collect();
        self.timers.retain(|it| !is_its_own(it));
        for (_, role, timer) in due {
            self.on(node, |node, effects| node.timer(role, timer, effects));
        }
    }

    pub fn begin(&mut self, node: NodeId) -> Txn {
        self.on(node, |node, effects| node.begin(TxnOptions::default(), effects)).unwrap()
    }

    fn write(&mut self, node: NodeId, rows: std::ops::Range<usize>) {
        let txn = self.begin(node);
        self.on(node, |node, effects| {
            for row in rows {
                node.put(txn, SPACE, key(row), Some("row".into()), effects).unwrap();
            }
        });
        assert_eq!(self.commit(node, txn), Ok(()));
    }

    pub fn commit(&mut self, node: NodeId, txn: Txn) -> Result<(), Failure> {
        let op = match self.on(node, |node, effects| node.commit(txn, effects)) {
            Step::Wait(op) => op,
            Step::Done(done) => return done.map(|_| ()),
        };
        match self.answer(node, op) {
            Ok(Answer::Committed(_)) => Ok(()),
            Err(failure) => Err(failure),
            other => panic!("{other:?}"),
        }
    }

    pub fn answer(&mut self, node: NodeId, op: OpId) -> Result<Answer, Failure> {
        self.run(usize::MAX);
        self.answers.remove(&(node, op)).expect("an answer")
    }

    /// Begins something of the client's that takes several messages.
    pub fn begins(
        &mut self,
        run: impl FnOnce(&mut Node<Granola>, &mut Effects<Granola>) -> OpId,
    ) -> OpId {
        (self.most_under_way, self.pages) = (0, 0);
        self.on(CLIENT, run)
    }

    fn scans(&mut self, txn: Txn, scan: Scan) -> OpId {
        self.begins(|node, effects| waits(node.scan(txn, scan, effects)))
    }
}

/// The operation that is waited for.
pub fn waits<T: std::fmt::Debug>(step: Step<T>) -> OpId {
    match step {
        Step::Wait(op) => op,
        Step::Done(done) => panic!("nobody was asked: {done:?}"),
    }
}

fn rows_of(result: Result<Answer, Failure>) -> Vec<SmallBytes> {
    match result {
        Ok(Answer::Rows(rows)) => rows.into_iter().map(|(key, _)| key).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_scan_looks_at_a_page_of_entries_of_all_partitions_for_each_request() {
    // Two hundred partitions at one repository are asked in four lots.
    for (partitions_per_repository, repositories, lots) in [(64, 1, 1), (200, 1, 4), (64, 2, 1)] {
        let mut pair = Pair::new(partitions_per_repository, repositories);
        for reverse in [false, true] {
            let txn = pair.begin(CLIENT);
            let op = pair.scans(txn, everything(reverse, usize::MAX));
            let rows = rows_of(pair.answer(CLIENT, op));
            let mut wanted: Vec<_> = (0..ROWS).map(key).collect();
            if reverse {
                wanted.reverse();
            }
            assert!(rows == wanted, "{} rows", rows.len());
            assert_eq!(pair.most_under_way, 1, "requests at once to a repository");
            let pages = lots * ROWS / Limits::default().page_rows;
            assert!((pages..=pages + lots * repositories).contains(&pair.pages), "{}", pair.pages);
            assert_eq!(pair.commit(CLIENT, txn), Ok(()));
        }
        // Few rows are wanted: few are looked at.
        let txn = pair.begin(CLIENT);
        let op = pair.scans(txn, everything(false, 10));
        assert_eq!(rows_of(pair.answer(CLIENT, op)), (0..10).map(key).collect::<Vec<_>>());
        assert_eq!(pair.pages, lots * repositories);
        assert_eq!(pair.commit(CLIENT, txn), Ok(()));
    }
}

#[test]
fn the_pages_of_a_scan_are_of_one_moment_or_its_transaction_does_not_commit() {
    for row in [7, ROWS - 7] {
        let mut pair = Pair::new(64, 1);
        let txn = pair.begin(CLIENT);
        let op = pair.scans(txn, everything(false, usize::MAX));
        pair.run(40);
        assert!(pair.pages > 3 && !pair.answers.contains_key(&(CLIENT, op)), "in the middle of it");
        // One row that was seen already, or is to be seen still, and one the other way round.
        pair.write(SERVER, row..row + 1);
        pair.write(SERVER, ROWS - row..ROWS - row + 1);
        assert_eq!(rows_of(pair.answer(CLIENT, op)).len(), ROWS);
        let ended = pair.commit(CLIENT, txn);
        assert!(
            matches!(ended, Err(Failure::Aborted(Abort::StaleRead | Abort::Phantom))),
            "{ended:?}"
        );
    }
}

#[test]
fn a_read_of_very_many_keys_is_one_request_at_a_time_to_each_repository() {
    for (partitions_per_repository, repositories) in [(1, 1), (64, 1), (64, 2)] {
        let mut pair = Pair::new(partitions_per_repository, repositories);
        let txn = pair.begin(CLIENT);
        // All are absent, and each is asked for twice.
        let absent: Vec<_> = (ROWS..2 * ROWS).chain(ROWS..2 * ROWS).map(key).collect();
        let op = pair.begins(|node, effects| waits(node.get_many(txn, SPACE, absent, effects)));
        let Ok(Answer::Values(values)) = pair.answer(CLIENT, op) else { panic!("values") };
        assert!(values.len() == 2 * ROWS && values.iter().all(Option::is_none));
        assert_eq!(pair.most_under_way, 1, "requests at once to a repository");
        let pages = ROWS / Limits::default().page_rows;
        assert!((pages..=pages + repositories).contains(&pair.pages), "{} pages", pair.pages);
        assert_eq!(pair.commit(CLIENT, txn), Ok(()));
    }
}

#[test]
fn a_page_counts_what_lies_between_the_keys_that_are_wanted() {
    let mut pair = Pair::new(64, 1);
    pair.run(usize::MAX);
    let catalog = Arc::clone(pair.nodes[0].catalog());
    let keys: Vec<_> = (0..ROWS).map(key).collect();
    // Whoever wants the keys of one partition of sixty-four looks at those of the others.
    let (mut lo, mut found, mut requests) = (SmallBytes::EMPTY, 0, 0);
    loop {
        requests += 1;
        let range = KeyRange { space: SPACE, lo: lo.clone(), hi: None };
        let task = Task::Scan { range, reverse: false, limit: u64::MAX };
        let request = Request {
            settled_below: requests,
            read_only: true,
            ..Request::new(
                TxnId { node: CLIENT, incarnation: 1, sequence: requests },
                [RepositoryId(0)].into_iter().collect(),
                [Part { partition: 5, owners: None, task }].into_iter().collect(),
            )
        };
        let from = muesli_core::Address::coordinator(CLIENT);
        let to = muesli_core::Address::repository(SERVER, RepositoryId(0));
        let envelope = Envelope { from, to, message: Message::Request(Arc::new(request)) };
        pair.on(SERVER, |node, effects| node.receive(Sender::Member, envelope, effects)).unwrap();
        let Some(Message::Reply { end: ReplyOutcome::Done { answers, .. }, .. }) =
            pair.sent.pop_front().map(|it| it.message)
        else {
            panic!("it is answered at once")
        };
        let [(0, PartAnswer::Rows(rows, seen_to))] = &answers[..] else { panic!("{answers:?}") };
        found += rows.len();
        let Some(last) = seen_to else { break };
        let before = keys.partition_point(|key| *key < lo);
        let upto = keys.partition_point(|key| key <= last);
        assert_eq!(upto - before, Limits::default().page_rows, "keys looked at");
        lo = last.successor();
    }
    let mine = keys.iter().filter(|key| catalog.partition(SPACE, key) == 5).count();
    assert!(mine > 0 && mine < ROWS / 32, "{mine}");
    assert_eq!((found, requests as usize), (mine, ROWS / Limits::default().page_rows));
}
