//! A long read is answered a page at a time, and others are served in between: where the
//! coordinator and the repository share a node, and where they do not.

use std::sync::Arc;

use muesli_core::ranges::KeyRange;
use muesli_core::{
    Address, Answer, Catalog, Effect, Effects, Envelope, Failure, Limits, Nanos, Node, NodeId,
    OpId, Protocol, RepositoryId, Role, Scan, Sender, Settings, SmallBytes, SpaceId, SpaceOptions,
    Step, Txn, TxnOptions,
};
use muesli_protocols::bumper::Bumper;
use muesli_protocols::gmu::Gmu;
use muesli_protocols::repeatable_read::RepeatableRead;
use muesli_protocols::score::{Score, Snapshots};
use muesli_protocols::two_phase::message::{Message, ScanReply, ScanRequest};
use muesli_protocols::two_phase_commit::TwoPhaseCommit;

const SPACE: SpaceId = SpaceId(0);
const HERE: NodeId = NodeId(0);
const ELSEWHERE: NodeId = NodeId(1);
const ROWS: usize = 100_000;

fn key(number: usize) -> SmallBytes {
    SmallBytes::from(format!("{number:08}").as_str())
}

/// A node with all rows, and what it has still to do.
struct Alone<P: Protocol> {
    node: Node<P>,
    effects: Effects<P>,
    /// Timers without delay: what was left over for after others have been served.
    left_over: Vec<(Role, u32)>,
    answers: Vec<(OpId, Result<Answer, Failure>)>,
}

impl<P: Protocol> Alone<P> {
    fn new() -> Alone<P> {
        let catalog = Catalog::new(&[HERE], 1, &[HERE, ELSEWHERE]).unwrap();
        let catalog = Arc::new(catalog.with_space("s", SpaceOptions::default()).unwrap());
        let settings = Arc::new(Settings::default());
        let mut node = Node::new(HERE, 1, catalog, settings, &P::Rules::default());
        let mut effects = Effects::default();
        node.start(&mut effects);
        let mut alone = Alone { node, effects, left_over: Vec::new(), answers: Vec::new() };
        for first in (0..ROWS).step_by(1_000) {
            alone.load(first..first + 1_000);
        }
        alone.take_effects();
        alone.left_over.clear();
        alone
    }

    fn begin(&mut self) -> Txn {
        self.node.begin(TxnOptions::default(), &mut self.effects).unwrap()
    }

    fn load(&mut self, rows: std::ops::Range<usize>) {
        let txn = self.begin();
        for row in rows {
            self.node.put(txn, SPACE, key(row), Some("row".into()), &mut self.effects).unwrap();
        }
        assert!(matches!(self.node.commit(txn, &mut self.effects), Step::Done(Ok(_))));
        self.effects.list.clear();
    }

    fn take_effects(&mut self) {
        for effect in std::mem::take(&mut self.effects.list) {
            match effect {
                Effect::SetTimer { role, timer, after: Nanos(0) } => {
                    self.left_over.push((role, timer));
                }
                Effect::Complete { op, result, .. } => self.answers.push((op, result)),
                Effect::Send { .. } | Effect::Log { .. } | Effect::SetTimer { .. } => {}
            }
        }
    }

    /// Does something; how many keys were read for that.
    fn reads(&mut self, run: impl FnOnce(&mut Node<P>, &mut Effects<P>)) -> usize {
        let before = self.effects.work.reads;
        run(&mut self.node, &mut self.effects);
        self.take_effects();
        (self.effects.work.reads - before) as usize
    }

    /// Begins a long read with `long`, of which so many pages may be read at once, and reads a key
    /// for another transaction before anything else is done; then goes on, a page at a time, until
    /// the long one is answered.
    fn serves_others_between_pages(
        &mut self,
        pages_at_once: usize,
        long: impl FnOnce(&mut Node<P>, Txn, &mut Effects<P>) -> OpId,
    ) -> Result<Answer, Failure> {
        let page = Limits::default().page_rows;
        let (reader, other) = (self.begin(), self.begin());
        let mut op = None;
        let first = self.reads(|node, effects| op = Some(long(node, reader, effects)));
        assert!(
            first <= pages_at_once * page,
            "{}: {first} keys before the other is served",
            P::NAME
        );
        let mut step = None;
        self.reads(|node, effects| step = Some(node.get(other, SPACE, &key(7), effects)));
        assert!(matches!(step, Some(Step::Done(Ok(Some(_))))), "{}: it is answered", P::NAME);
        assert_eq!(self.answers.len(), 0, "{}: the long read is not", P::NAME);
        let mut turns = pages_at_once;
        while self.answers.is_empty() {
            assert!(!self.left_over.is_empty(), "{}: nothing goes on", P::NAME);
            let (role, timer) = self.left_over.remove(0);
            let read = self.reads(|node, effects| node.timer(role, timer, effects));
            assert!(read <= page, "{}: {read} keys at once", P::NAME);
            turns += 1;
        }
        assert!(turns >= ROWS / page, "{}: {turns} turns", P::NAME);
        let (answered, result) = self.answers.remove(0);
        assert_eq!(Some(answered), op, "{}", P::NAME);
        result
    }
}

/// The operation that is waited for.
fn waits<T: std::fmt::Debug>(step: Step<T>) -> OpId {
    match step {
        Step::Wait(op) => op,
        Step::Done(done) => panic!("all of it at once: {done:?}"),
    }
}

fn long_reads_let_others_in<P: Protocol>() {
    let mut alone = Alone::<P>::new();
    let all = || Scan {
        space: SPACE,
        lo: SmallBytes::EMPTY,
        hi: None,
        reverse: false,
        limit: usize::MAX,
    };
    let rows = alone
        .serves_others_between_pages(1, |node, txn, effects| waits(node.scan(txn, all(), effects)));
    assert!(matches!(&rows, Ok(Answer::Rows(rows)) if rows.len() == ROWS), "{}", P::NAME);
    let absent: Vec<_> = (ROWS..2 * ROWS).map(key).collect();
    // The first keys are read by calls, and the first page of the others is asked for at once.
    let values = alone.serves_others_between_pages(2, |node, txn, effects| {
        waits(node.get_many(txn, SPACE, absent, effects))
    });
    let Ok(Answer::Values(values)) = values else { panic!("{}: {values:?}", P::NAME) };
    assert!(values.len() == ROWS && values.iter().all(Option::is_none), "{}", P::NAME);
}

#[test]
fn others_are_served_between_the_pages_of_a_long_read_on_the_same_node() {
    long_reads_let_others_in::<Score>();
    long_reads_let_others_in::<Gmu>();
    long_reads_let_others_in::<Bumper>();
    long_reads_let_others_in::<TwoPhaseCommit>();
    long_reads_let_others_in::<RepeatableRead>();
}

/// The pages that were sent.
fn pages(alone: &mut Alone<Score>) -> Vec<ScanReply<Snapshots>> {
    let all = std::mem::take(&mut alone.effects.list).into_iter();
    let page = |effect| match effect {
        Effect::Send { envelope: Envelope { message: Message::ScanReply(page), .. }, .. } => {
            Some(*page)
        }
        Effect::SetTimer { after: Nanos(0), .. } => panic!("it goes on without being asked"),
        _ => None,
    };
    all.filter_map(page).collect()
}

#[test]
fn a_client_elsewhere_gets_one_page_for_each_request() {
    let mut alone = Alone::<Score>::new();
    let (from, to) = (Address::coordinator(ELSEWHERE), Address::repository(HERE, RepositoryId(0)));
    let (mut lo, mut seen, mut requests) = (SmallBytes::EMPTY, 0, 0);
    let snapshot = alone.node.participants()[0].1.committed();
    loop {
        requests += 1;
        let message = Message::Scan(Box::new(ScanRequest {
            request: requests,
            snapshot,
            first: false,
            reader: (),
            range: KeyRange { space: SPACE, lo: lo.clone(), hi: None },
            partitions: (0..alone.node.catalog().partitions() as u16).collect(),
            reverse: false,
            limit: usize::MAX,
        }));
        let envelope = Envelope { from, to, message };
        alone.node.receive(Sender::Member, envelope, &mut alone.effects).unwrap();
        let mut pages = pages(&mut alone);
        assert_eq!(pages.len(), 1, "request {requests}");
        let page = pages.remove(0);
        assert!(page.rows.len() <= Limits::default().page_rows, "{}", page.rows.len());
        seen += page.rows.len();
        match page.seen_to {
            Some(last) => lo = last.successor(),
            None => break,
        }
    }
    assert_eq!((seen, requests as usize), (ROWS, ROWS / Limits::default().page_rows));
}
