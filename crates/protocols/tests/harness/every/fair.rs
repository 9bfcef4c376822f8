//! A long read is answered a page at a time, and others are served in between: where the
//! coordinator and the repository share a node, and where they do not.

use std::sync::Arc;

use muesli_core::{
    Answer, Catalog, Effect, Effects, Failure, Limits, Nanos, Node, NodeId, OpId, Protocol, Role,
    Scan, Settings, SmallBytes, SpaceId, SpaceOptions, Step, Txn, TxnOptions,
};

pub const SPACE: SpaceId = SpaceId(0);
pub const HERE: NodeId = NodeId(0);
pub const ELSEWHERE: NodeId = NodeId(1);
pub const ROWS: usize = 100_000;

pub fn key(number: usize) -> SmallBytes {
    SmallBytes::from(format!("{number:08}").as_str())
}

/// A node with all rows, and what it has still to do.
pub struct Alone<P: Protocol> {
    pub node: Node<P>,
    pub effects: Effects<P>,
    /// Timers without delay: what was left over for after others have been served.
    pub left_over: Vec<(Role, u32)>,
    pub answers: Vec<(OpId, Result<Answer, Failure>)>,
}

impl<P: Protocol> Alone<P> {
    pub fn new() -> Alone<P> {
        let catalog = Catalog::new(&[HERE], 1, &[HERE, ELSEWHERE]).unwrap();
        let catalog = Arc::new(catalog.with_space("s", SpaceOptions::default()).unwrap());
        let settings = Arc::new(Settings::default());
        let mut node = Node::new(HERE, 1, catalog, settings, &P::Switches::default());
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

    pub fn begin(&mut self) -> Txn {
        self.node.begin(TxnOptions::default(), &mut self.effects).unwrap()
    }

    pub fn load(&mut self, rows: std::ops::Range<usize>) {
        let txn = self.begin();
        for row in rows {
            self.node.put(txn, SPACE, key(row), Some("row".into()), &mut self.effects).unwrap();
        }
        assert!(matches!(self.node.commit(txn, &mut self.effects), Step::Done(Ok(_))));
        self.effects.list.clear();
    }

    pub fn take_effects(&mut self) {
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
    pub fn reads(&mut self, run: impl FnOnce(&mut Node<P>, &mut Effects<P>)) -> usize {
        let before = self.effects.work.reads;
        run(&mut self.node, &mut self.effects);
        self.take_effects();
        (self.effects.work.reads - before) as usize
    }

    /// Begins a long read with `long`, of which so many pages may be read at once, and reads a key
    /// for another transaction before anything else is done; then goes on, a page at a time, until
    /// the long one is answered.
    pub fn serves_others_between_pages(
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
        let mut ticks = pages_at_once;
        while self.answers.is_empty() {
            assert!(!self.left_over.is_empty(), "{}: nothing goes on", P::NAME);
            let (role, timer) = self.left_over.remove(0);
            let read = self.reads(|node, effects| node.timer(role, timer, effects));
            assert!(read <= page, "{}: {read} keys at once", P::NAME);
            ticks += 1;
        }
        assert!(ticks >= ROWS / page, "{}: {ticks} turns", P::NAME);
        let (answered, result) = self.answers.remove(0);
        assert_eq!(Some(answered), op, "{}", P::NAME);
        result
    }
}

/// The operation that is waited for.
pub fn waits<T: std::fmt::Debug>(step: Step<T>) -> OpId {
    match step {
        Step::Wait(op) => op,
        Step::Done(done) => panic!("all of it at once: {done:?}"),
    }
}

pub fn long_reads_let_others_in<P: Protocol>() {
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
