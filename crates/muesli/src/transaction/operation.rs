//! Operations of a transaction, as futures: most are ready when first polled.
//!
//! They are written by hand, because an `async fn` moves its answer through a state machine at
//! every step, and on data of the same loop that costs more than the operation.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use muesli_core::client::{self, AnswerFuture, Engine};
use muesli_core::{Answer, Operation, Row, Scan, SmallBytes, SpaceId, Step, Txn};

use crate::data::byte_range::Range;
use crate::data::space::Space;
use crate::database::handle::Db;
use crate::error::Error;
use crate::recording::{RecordedAt, Repetition};
use crate::transaction::detour::{Access, AccessWatcher, Detour};
use crate::transaction::tx::Tx;

impl Tx {
    /// Reads a key; `None` where it is absent.
    ///
    /// # Errors
    /// [`Error::Conflict`] where the transaction cannot commit any more, [`Error::Timeout`],
    /// [`Error::TooLarge`], [`Error::Ended`], [`Error::Closed`], [`Error::OtherDatabase`].
    #[inline]
    pub fn get(&self, space: Space, key: impl Into<SmallBytes>) -> Reply<'_, GetOperation> {
        Reply::new(self, space, GetOperation { space: space.id, key: key.into() })
    }

    /// Reads several keys at once: those that live elsewhere in parallel.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn get_many(
        &self,
        space: Space,
        keys: impl IntoIterator<Item = impl Into<SmallBytes>>,
    ) -> Reply<'_, GetManyOperation> {
        let keys = keys.into_iter().map(Into::into).collect();
        Reply::new(self, space, GetManyOperation { space: space.id, keys })
    }

    /// Writes a key. Nothing is sent before the commit.
    ///
    /// # Errors
    /// [`Error::TooLarge`], [`Error::ReadOnly`], [`Error::Ended`], [`Error::Closed`],
    /// [`Error::OtherDatabase`].
    #[inline]
    pub fn put(
        &self,
        space: Space,
        key: impl Into<SmallBytes>,
        value: impl Into<SmallBytes>,
    ) -> Reply<'_, PutOperation> {
        let value = Some(value.into());
        self.note_write();
        Reply::new(self, space, PutOperation { space: space.id, key: key.into(), value })
    }

    /// Deletes a key; nothing happens where it is absent.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    #[inline]
    pub fn delete(&self, space: Space, key: impl Into<SmallBytes>) -> Reply<'_, PutOperation> {
        self.note_write();
        Reply::new(self, space, PutOperation { space: space.id, key: key.into(), value: None })
    }

    /// Reads a range of keys in order. In an update transaction the range is protected: nobody
    /// can add or change a key in what was seen of it before the commit.
    ///
    /// # Errors
    /// As [`get`](Self::get), and [`Error::Space`] where the space has a hash index, but for
    /// a handle that [lists](Db::listing).
    pub fn scan(&self, space: Space, range: Range) -> Reply<'_, ScanOperation> {
        let Range { lo, hi, reverse, limit } = range;
        let scan = Scan { space: space.id, lo, hi, reverse, limit };
        Reply::new(self, space, ScanOperation { scan })
    }
}

/// An operation whose answer has a type of its own.
pub trait Ask: Clone + PartialEq + Send + Unpin + 'static {
    /// What it is answered with.
    type Answer: Clone + Send + 'static;
    #[doc(hidden)]
    fn start(&mut self, engine: &dyn Engine, txn: Txn) -> Step<Self::Answer>;
    #[doc(hidden)]
    fn answer(answer: Answer) -> Self::Answer;
    #[doc(hidden)]
    fn tell(&self, watcher: &dyn AccessWatcher) -> Result<(), Error>;
    /// What is asked for, where who watches is told of the answer.
    #[doc(hidden)]
    fn asked(&self) -> Option<Box<Self>>;
    #[doc(hidden)]
    fn tell_found(&self, watcher: &dyn AccessWatcher, answer: &Self::Answer);
    /// What is to be read before it, as who watches asks for.
    #[doc(hidden)]
    fn read_before(&self, _watcher: &dyn AccessWatcher) -> Option<GetOperation> {
        None
    }
}

/// Reads a key.
#[derive(Clone, Debug, PartialEq)]
pub struct GetOperation {
    pub(crate) space: SpaceId,
    pub(crate) key: SmallBytes,
}

/// Reads several keys.
#[derive(Clone, Debug, PartialEq)]
pub struct GetManyOperation {
    pub(crate) space: SpaceId,
    pub(crate) keys: Vec<SmallBytes>,
}

/// Writes or deletes a key.
#[derive(Clone, Debug, PartialEq)]
pub struct PutOperation {
    pub(crate) space: SpaceId,
    pub(crate) key: SmallBytes,
    pub(crate) value: Option<SmallBytes>,
}

/// Reads a range.
#[derive(Clone, Debug, PartialEq)]
pub struct ScanOperation {
    pub(crate) scan: Scan,
}

impl Ask for GetOperation {
    type Answer = Option<SmallBytes>;

    #[inline]
    fn start(&mut self, engine: &dyn Engine, txn: Txn) -> Step<Option<SmallBytes>> {
        let mut found = [None];
        if engine.peek(txn, self.space, std::array::from_ref(&self.key), &mut found) {
            let [found] = found;
            return Step::Done(Ok(found));
        }
        let key = std::mem::replace(&mut self.key, SmallBytes::EMPTY);
        engine.operate(Operation::Get(txn, self.space, key)).map(Answer::value)
    }

    fn answer(answer: Answer) -> Option<SmallBytes> {
        answer.value()
    }

    fn tell(&self, watcher: &dyn AccessWatcher) -> Result<(), Error> {
        watcher.note(Access::Read(self.space, &self.key))
    }

    fn asked(&self) -> Option<Box<Self>> {
        Some(Box::new(self.clone()))
    }

    fn tell_found(&self, watcher: &dyn AccessWatcher, answer: &Self::Answer) {
        watcher.found(self.space, &self.key, answer.as_ref());
    }
}

impl Ask for GetManyOperation {
    type Answer = Vec<Option<SmallBytes>>;

    fn start(&mut self, engine: &dyn Engine, txn: Txn) -> Step<Self::Answer> {
        let keys = std::mem::take(&mut self.keys);
        engine.operate(Operation::GetMany(txn, self.space, keys)).map(Answer::values)
    }

    fn answer(answer: Answer) -> Self::Answer {
        answer.values()
    }

    fn tell(&self, watcher: &dyn AccessWatcher) -> Result<(), Error> {
        self.keys.iter().try_for_each(|key| watcher.note(Access::Read(self.space, key)))
    }

    fn asked(&self) -> Option<Box<Self>> {
        Some(Box::new(self.clone()))
    }

    fn tell_found(&self, watcher: &dyn AccessWatcher, answer: &Self::Answer) {
        for (key, value) in self.keys.iter().zip(answer) {
            watcher.found(self.space, key, value.as_ref());
        }
    }
}

impl Ask for PutOperation {
    type Answer = ();

    #[inline]
    fn start(&mut self, engine: &dyn Engine, txn: Txn) -> Step<()> {
        let key = std::mem::replace(&mut self.key, SmallBytes::EMPTY);
        let (space, value) = (self.space, self.value.take());
        let put = muesli_core::Put { space, key, value, may_wait: true };
        engine.put(txn, put)
    }

    fn answer(answer: Answer) {
        answer.written();
    }

    fn tell(&self, watcher: &dyn AccessWatcher) -> Result<(), Error> {
        watcher.note(Access::Write(self.space, &self.key, self.value.as_ref()))
    }

    fn asked(&self) -> Option<Box<Self>> {
        None
    }

    fn tell_found(&self, _: &dyn AccessWatcher, (): &()) {}

    fn read_before(&self, watcher: &dyn AccessWatcher) -> Option<GetOperation> {
        let asked = watcher.reads_before_write(self.space, &self.key);
        asked.then(|| GetOperation { space: self.space, key: self.key.clone() })
    }
}

impl Ask for ScanOperation {
    type Answer = Vec<Row>;

    fn start(&mut self, engine: &dyn Engine, txn: Txn) -> Step<Vec<Row>> {
        engine.operate(Operation::Scan(txn, self.scan.clone())).map(Answer::rows)
    }

    fn answer(answer: Answer) -> Vec<Row> {
        answer.rows()
    }

    fn tell(&self, watcher: &dyn AccessWatcher) -> Result<(), Error> {
        watcher.note(Access::Scan(&self.scan))
    }

    fn asked(&self) -> Option<Box<Self>> {
        Some(Box::new(self.clone()))
    }

    fn tell_found(&self, watcher: &dyn AccessWatcher, answer: &Self::Answer) {
        watcher.found_range(&self.scan, answer);
    }
}

type Shipped<T> = Pin<Box<dyn Future<Output = Result<Result<T, Error>, Error>> + Send>>;

enum ReplyState<'a, T> {
    New,
    /// What it is about to write is read first.
    Before(Box<Reply<'a, GetOperation>>),
    /// Its space is of another database.
    Refused(SpaceId),
    Waiting(AnswerFuture),
    /// The transaction lives on a loop that is not here; the operation was shipped to it.
    Remote(Shipped<T>),
}

/// The reply to an operation of a transaction; nothing happens before it is awaited.
#[must_use = "an operation does nothing unless it is awaited"]
pub struct Reply<'a, A: Ask> {
    tx: &'a Tx,
    ask: Option<A>,
    state: ReplyState<'a, A::Answer>,
    note: AnswerNote<A>,
}

/// Who is told of an answer.
enum AnswerNote<A> {
    Nobody,
    /// The recording, which keeps it there.
    Recorded(RecordedAt),
    /// Who watches the transaction, by what was asked.
    Watched(Box<A>),
}

impl<'a, A: Ask> Reply<'a, A> {
    #[inline]
    pub(crate) fn new(tx: &'a Tx, space: Space, ask: A) -> Reply<'a, A> {
        let state = match tx.origin.admits(space.origin) {
            true => ReplyState::New,
            false => ReplyState::Refused(space.id),
        };
        Reply { tx, ask: Some(ask), state, note: AnswerNote::Nobody }
    }

    fn ship(&mut self, db: &Db, home: usize) -> Shipped<A::Answer> {
        let (tx, ask, db) = (self.tx.at_home(), self.ask.take(), db.clone());
        Box::pin(async move {
            let (state, note) = (ReplyState::New, AnswerNote::Nobody);
            let there = async move || Reply { tx: &tx, ask, state, note }.await;
            db.run_on(home, there).await
        })
    }
}

impl<A: Ask> Future for Reply<'_, A> {
    type Output = Result<A::Answer, Error>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if let (ReplyState::New, true) = (&this.state, this.tx.is_plain())
            && let Poll::Ready(answer) = this.start()
        {
            return Poll::Ready(answer);
        }
        this.poll_deferred(cx)
    }
}

impl<A: Ask> Reply<'_, A> {
    /// Asks the engine that is here; ready, or waiting from then on.
    #[inline]
    fn start(&mut self) -> Poll<Result<A::Answer, Error>> {
        let tx = self.tx;
        let ask = self.ask.as_mut().expect("polled after it was ready");
        match client::with(tx.database, |engine| ask.start(engine, tx.txn)) {
            Some(Step::Done(Ok(answer))) => Poll::Ready(Ok(answer)),
            Some(Step::Done(Err(failure))) => Poll::Ready(Err(tx.failed(failure))),
            None => Poll::Ready(Err(Error::Closed)),
            Some(Step::Wait(op)) => {
                self.state = ReplyState::Waiting(AnswerFuture::new(tx.database, op));
                Poll::Pending
            }
        }
    }

    #[cold]
    fn poll_deferred(&mut self, cx: &mut Context<'_>) -> Poll<Result<A::Answer, Error>> {
        let polled = self.poll_once(cx);
        if let Poll::Ready(answer) = &polled {
            match std::mem::replace(&mut self.note, AnswerNote::Nobody) {
                AnswerNote::Nobody => {}
                AnswerNote::Recorded(place) => {
                    let recording = self.tx.recording();
                    recording.inspect(|it| it.answer(place, answer));
                }
                AnswerNote::Watched(asked) => {
                    if let (Some(watcher), Ok(answer)) = (self.tx.watcher(), answer) {
                        asked.tell_found(watcher, answer);
                    }
                }
            }
        }
        polled
    }

    fn poll_once(&mut self, cx: &mut Context<'_>) -> Poll<Result<A::Answer, Error>> {
        let tx = self.tx;
        if let ReplyState::New = self.state {
            tx.takes_operations()?;
            self.begin_before();
        }
        if let ReplyState::Before(before) = &mut self.state {
            match Pin::new(&mut **before).poll(cx) {
                Poll::Ready(read) => drop(read?),
                Poll::Pending => return Poll::Pending,
            }
            tx.takes_operations()?; // A child may have begun meanwhile.
            self.state = ReplyState::New;
        }
        if let ReplyState::New = self.state {
            match tx.detour.as_deref() {
                Some(Detour::Remote(db, home)) => {
                    self.state = ReplyState::Remote(self.ship(db, *home));
                }
                detour => {
                    let ask = self.ask.as_ref().expect("polled after it was ready");
                    match detour {
                        Some(Detour::Watched(watcher)) => {
                            ask.tell(&**watcher)?;
                            let asked = ask.asked();
                            self.note = asked.map_or(AnswerNote::Nobody, AnswerNote::Watched);
                        }
                        Some(Detour::Recorded(recording)) => match recording.ask(ask) {
                            Repetition::Answered(answer) => return Poll::Ready(answer),
                            Repetition::New(place) => self.note = AnswerNote::Recorded(place),
                            Repetition::Differs => return Poll::Ready(Err(tx.went_another_way())),
                        },
                        Some(Detour::Remote(..)) | None => {}
                    }
                    if let Poll::Ready(answer) = self.start() {
                        return Poll::Ready(answer);
                    }
                }
            }
        }
        let polled = match &mut self.state {
            ReplyState::Waiting(waiting) => match Pin::new(waiting).poll(cx) {
                Poll::Ready(answer) => answer.map(A::answer).map_err(Error::from),
                Poll::Pending => return Poll::Pending,
            },
            ReplyState::Remote(shipped) => match shipped.as_mut().poll(cx) {
                Poll::Ready(answer) => answer.and_then(|answer| answer),
                Poll::Pending => return Poll::Pending,
            },
            ReplyState::Refused(space) => Err(Error::OtherDatabase { space: space.0 }),
            ReplyState::New | ReplyState::Before(_) => unreachable!("begun above"),
        };
        Poll::Ready(polled.map_err(|error| self.tx.failed(error)))
    }

    /// Reads first what it is about to write, where who watches asks for that.
    fn begin_before(&mut self) {
        let (tx, ask) = (self.tx, self.ask.as_ref().expect("polled after it was ready"));
        if let Some(get) = tx.watcher().and_then(|watcher| ask.read_before(watcher)) {
            let (state, note) = (ReplyState::New, AnswerNote::Nobody);
            self.state = ReplyState::Before(Box::new(Reply { tx, ask: Some(get), state, note }));
        }
    }
}
