//! Operations of a transaction, as futures: most are ready when first polled.
//!
//! They are written by hand, because an `async fn` moves its answer through a state machine at
//! every step, and on data of the same loop that costs more than the operation.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use muesli_core::client::{self, Engine};
use muesli_core::{Failure, OpId, OpResult, Row, Scan, SmallBytes, SpaceId, Step, Txn};

use crate::db::Db;
use crate::error::Error;
use crate::transaction::{Tx, unexpected};

/// What an operation asks of the engine.
pub trait Ask: Send + Unpin + 'static {
    /// What it is answered with.
    type Answer: Send + 'static;
    #[doc(hidden)]
    fn start(&mut self, engine: &dyn Engine, txn: Txn) -> Step<Self::Answer>;
    #[doc(hidden)]
    fn answer(result: OpResult) -> Result<Self::Answer, Error>;
}

/// Reads a key.
#[derive(Debug)]
pub struct Get {
    pub(crate) space: SpaceId,
    pub(crate) key: SmallBytes,
}

/// Reads several keys.
#[derive(Debug)]
pub struct GetMany {
    pub(crate) space: SpaceId,
    pub(crate) keys: Vec<SmallBytes>,
}

/// Writes or deletes a key.
#[derive(Debug)]
pub struct Put {
    pub(crate) space: SpaceId,
    pub(crate) key: SmallBytes,
    pub(crate) value: Option<SmallBytes>,
}

/// Reads a range.
#[derive(Debug)]
pub struct RangeScan {
    pub(crate) scan: Scan,
}

impl Ask for Get {
    type Answer = Option<SmallBytes>;

    #[inline]
    fn start(&mut self, engine: &dyn Engine, txn: Txn) -> Step<Option<SmallBytes>> {
        let mut found = [None];
        if engine.peek(txn, self.space, std::array::from_ref(&self.key), &mut found) {
            let [found] = found;
            return Step::Done(Ok(found));
        }
        engine.get(txn, self.space, &self.key)
    }

    fn answer(result: OpResult) -> Result<Option<SmallBytes>, Error> {
        match result {
            OpResult::Value(value) => Ok(value),
            other => Err(unexpected(other)),
        }
    }
}

impl Ask for GetMany {
    type Answer = Vec<Option<SmallBytes>>;

    fn start(&mut self, engine: &dyn Engine, txn: Txn) -> Step<Self::Answer> {
        engine.get_many(txn, self.space, std::mem::take(&mut self.keys))
    }

    fn answer(result: OpResult) -> Result<Self::Answer, Error> {
        match result {
            OpResult::Values(values) => Ok(values),
            other => Err(unexpected(other)),
        }
    }
}

impl Ask for Put {
    type Answer = ();

    #[inline]
    fn start(&mut self, engine: &dyn Engine, txn: Txn) -> Step<()> {
        let key = std::mem::replace(&mut self.key, SmallBytes::EMPTY);
        engine.write(txn, self.space, key, self.value.take())
    }

    fn answer(result: OpResult) -> Result<(), Error> {
        match result {
            OpResult::Value(None) => Ok(()),
            other => Err(unexpected(other)),
        }
    }
}

impl Ask for RangeScan {
    type Answer = Vec<Row>;

    fn start(&mut self, engine: &dyn Engine, txn: Txn) -> Step<Vec<Row>> {
        engine.scan(txn, self.scan.clone())
    }

    fn answer(result: OpResult) -> Result<Vec<Row>, Error> {
        match result {
            OpResult::Rows(rows) => Ok(rows),
            other => Err(unexpected(other)),
        }
    }
}

type Shipped<T> = Pin<Box<dyn Future<Output = Result<Result<T, Error>, Error>> + Send>>;

enum Stage<T> {
    New,
    Waiting(Waiting),
    /// The transaction lives on a loop that is not here; the operation was shipped to it.
    Away(Shipped<T>),
}

/// An operation of a transaction; nothing happens before it is awaited.
#[must_use = "an operation does nothing unless it is awaited"]
pub struct Operation<'a, A: Ask> {
    database: u64,
    txn: Txn,
    away: Option<&'a (Db, usize)>,
    ask: Option<A>,
    stage: Stage<A::Answer>,
}

impl<'a, A: Ask> Operation<'a, A> {
    #[inline]
    pub(crate) fn new(tx: &'a Tx, ask: A) -> Operation<'a, A> {
        let away = tx.away.as_deref();
        Operation { database: tx.database, txn: tx.txn, away, ask: Some(ask), stage: Stage::New }
    }

    fn ship(&mut self, db: &Db, home: usize) -> Shipped<A::Answer> {
        let (database, txn, ask) = (self.database, self.txn, self.ask.take());
        let db = db.clone();
        Box::pin(async move {
            let there = async move || {
                let (away, stage) = (None, Stage::New);
                Operation { database, txn, away, ask, stage }.await
            };
            db.run_on(home, there).await
        })
    }
}

impl<A: Ask> Future for Operation<'_, A> {
    type Output = Result<A::Answer, Error>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if let (Stage::New, None) = (&this.stage, this.away) {
            let ask = this.ask.as_mut().expect("polled after it was ready");
            let txn = this.txn;
            match client::with(this.database, |engine| ask.start(engine, txn)) {
                Some(Step::Done(Ok(answer))) => return Poll::Ready(Ok(answer)),
                Some(Step::Done(Err(failure))) => return Poll::Ready(Err(failure.into())),
                None => return Poll::Ready(Err(Error::Closed)),
                Some(Step::Wait(op)) => this.stage = Stage::Waiting(wait(this.database, op)),
            }
        }
        this.poll_later(cx)
    }
}

impl<A: Ask> Operation<'_, A> {
    #[cold]
    fn poll_later(&mut self, cx: &mut Context<'_>) -> Poll<Result<A::Answer, Error>> {
        if let (Stage::New, Some((db, home))) = (&self.stage, self.away) {
            self.stage = Stage::Away(self.ship(db, *home));
        }
        match &mut self.stage {
            Stage::Waiting(waiting) => match Pin::new(waiting).poll(cx) {
                Poll::Ready(result) => Poll::Ready(result.and_then(A::answer)),
                Poll::Pending => Poll::Pending,
            },
            Stage::Away(shipped) => match shipped.as_mut().poll(cx) {
                Poll::Ready(answer) => Poll::Ready(answer.and_then(|answer| answer)),
                Poll::Pending => Poll::Pending,
            },
            Stage::New => unreachable!("begun above"),
        }
    }
}

/// Waits for the answer to an operation; dropping it tells the driver that nobody waits.
pub(crate) fn wait(database: u64, op: OpId) -> Waiting {
    Waiting { database, op: Some(op) }
}

pub(crate) struct Waiting {
    database: u64,
    op: Option<OpId>,
}

impl Future for Waiting {
    type Output = Result<OpResult, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let op = self.op.expect("polled after it was ready");
        let polled = client::with(self.database, |engine| engine.poll(op, cx.waker()));
        match polled {
            Some(Poll::Pending) => Poll::Pending,
            Some(Poll::Ready(result)) => {
                self.op = None;
                Poll::Ready(Ok(result))
            }
            None => {
                self.op = None;
                Poll::Ready(Err(Failure::Closed.into()))
            }
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(op) = self.op {
            client::with(self.database, |engine| engine.forget(op));
        }
    }
}
