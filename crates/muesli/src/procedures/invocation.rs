//! Calling procedures: one-round transactions, from a task on a loop or from any other thread.

use std::future::IntoFuture;
use std::pin::Pin;
use std::sync::Arc;

use muesli_core::client;
use muesli_core::parts::locator::Static;
use muesli_core::procedure::AnswerType;
use muesli_core::{
    Call, Class, Fragment, Invoked, Operation, Place, ProcedureId, SmallBytes, Step, Timestamp,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::encoding;
use super::stored::StoredProcedure;
use crate::database::handle::Db;
use crate::dispatch::block_on::block_on;
use crate::dispatch::yield_now::yield_now;
use crate::error::Error;
use crate::transaction::commit::{Caller, CommitFuture, Fate};

/// A one-round transaction that is being put together; awaited (or [`wait`](Self::wait)ed for),
/// it runs.
#[must_use = "a call does nothing unless it is awaited, or `wait` is called"]
#[derive(Debug)]
pub struct CallBuilder {
    db: Db,
    class: Class,
    /// What the next fragments run.
    procedure: ProcedureId,
    /// What that answers, where that is known.
    answer: Option<AnswerType>,
    fragments: Vec<Fragment>,
    /// What each of them answers.
    answers: Vec<Option<AnswerType>>,
    /// The first thing that was wrong with it.
    broken: Option<Error>,
}

/// What a one-round transaction that committed gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answers {
    invoked: Invoked,
    types: Vec<Option<AnswerType>>,
}

impl Answers {
    /// Its place in the serial order.
    pub fn at(&self) -> Timestamp {
        self.invoked.at
    }

    /// What a fragment answered, by its place in the call, from 0.
    ///
    /// # Errors
    /// [`Error::Codec`] where there is no such fragment, or its answer is of another type. That is
    /// known of procedures that are called by their type ([`CallBuilder::with`]), and of those that
    /// are called by a name that this database or connection was told of; of others it is an error
    /// where the bytes are no such value. [`raw`](Self::raw) has the bytes of all.
    pub fn of<T: DeserializeOwned + 'static>(&self, fragment: usize) -> Result<T, Error> {
        let (asked, known) = (AnswerType::of::<T>(), self.types.get(fragment).copied().flatten());
        if let Some(known) = known.filter(|known| known.id != asked.id) {
            let (known, asked) = (known.name, asked.name);
            let text = format!("fragment {fragment} answers with `{known}`, and not `{asked}`");
            return Err(Error::Codec(text));
        }
        let count = self.invoked.results.len();
        let missing = || Error::Codec(format!("there is no fragment {fragment} of {count}"));
        let result = self.invoked.results.get(fragment).ok_or_else(missing)?;
        encoding::decode_answer(result)
    }

    /// What all fragments answered, as it came.
    pub fn raw(&self) -> &[SmallBytes] {
        &self.invoked.results
    }
}

impl CallBuilder {
    /// How the repositories agree; without it, the best class that is safe by what is declared.
    pub fn class(self, class: Class) -> CallBuilder {
        CallBuilder { class, ..self }
    }

    /// A further fragment of the procedure that was named last. Fragments at one repository run
    /// there one after the other, and each sees what those before it wrote.
    pub fn at<A: Serialize + ?Sized>(mut self, place: Place, arguments: &A) -> CallBuilder {
        match encoding::encode(arguments) {
            Ok(arguments) => self.at_raw(place, arguments),
            Err(error) => {
                self.broken.get_or_insert(error);
                self
            }
        }
    }

    /// As [`at`](Self::at), with arguments that are encoded already.
    pub fn at_raw(mut self, place: Place, arguments: impl Into<SmallBytes>) -> CallBuilder {
        let (procedure, arguments) = (self.procedure.clone(), arguments.into());
        self.fragments.push(Fragment { procedure, place, arguments });
        self.answers.push(self.answer);
        self
    }

    /// Another procedure, which the fragments that follow run.
    pub fn then(self, name: &str, version: u32) -> CallBuilder {
        let procedure = ProcedureId { name: name.into(), version };
        CallBuilder { answer: self.db.answer_of(&procedure), procedure, ..self }
    }

    /// A further fragment, of a procedure that is known by its type.
    pub fn with<P: StoredProcedure>(self, place: Place, arguments: &P::Arguments) -> CallBuilder {
        let named = self.then(P::NAME, P::VERSION);
        let answer = Some(AnswerType::of::<P::Answer>());
        CallBuilder { answer, ..named }.at(place, arguments)
    }

    /// Runs it; [`Db::invoke`] says how.
    ///
    /// # Errors
    /// As [`Db::invoke`], and [`Error::Codec`] where arguments cannot be serialized.
    pub async fn run(self) -> Result<Answers, Error> {
        match self.broken {
            Some(error) => Err(error),
            None => {
                let invoked = self.db.invoke(self.class, self.fragments).await?;
                Ok(Answers { invoked, types: self.answers })
            }
        }
    }

    /// As [`run`](Self::run), for threads that are no executor: blocks until the answer is there.
    /// Not for tasks on the database's own loops.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn wait(self) -> Result<Answers, Error> {
        block_on(self.run())
    }
}

impl IntoFuture for CallBuilder {
    type Output = Result<Answers, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

impl Db {
    /// A one-round transaction; its first fragments run the procedure of this name and version.
    ///
    /// ```
    /// use muesli::procedures::builtin::{Amount, number};
    /// use muesli::{Db, Error, Options, SpaceOptions};
    ///
    /// # fn main() -> Result<(), Error> {
    /// let options = Options { protocol: "granola".to_owned(), ..Options::default() };
    /// # if !muesli_protocols::NAMES.contains(&"granola") { return Ok(()); }
    /// let db = Db::open(options.space("accounts", SpaceOptions::default()))?;
    /// let accounts = db.space("accounts")?;
    /// db.call("add", 1).at(accounts.place("ann"), &Amount::of(accounts, "ann", 100)).wait()?;
    /// let transfer = db
    ///     .call("withdraw", 1)
    ///     .at(accounts.place("ann"), &Amount::of(accounts, "ann", 30))
    ///     .then("deposit", 1)
    ///     .at(accounts.place("bob"), &Amount::of(accounts, "bob", 30));
    /// let answers = transfer.wait()?;
    /// assert_eq!((answers.of::<i64>(0)?, answers.of::<i64>(1)?), (70, 30));
    /// # Ok(())
    /// # }
    /// ```
    pub fn call(&self, name: &str, version: u32) -> CallBuilder {
        let procedure = ProcedureId { name: name.into(), version };
        let (db, class, answer) = (self.clone(), Class::Auto, self.answer_of(&procedure));
        let (fragments, answers) = (Vec::new(), Vec::new());
        CallBuilder { db, class, procedure, answer, fragments, answers, broken: None }
    }

    /// What a procedure answers, if that is known here.
    fn answer_of(&self, procedure: &ProcedureId) -> Option<AnswerType> {
        self.inner.procedures.get(procedure).and_then(|known| known.answer)
    }

    /// Runs one procedure at one place, as a transaction of its own.
    ///
    /// # Errors
    /// As [`invoke`](Self::invoke), and [`Error::Codec`].
    pub async fn execute<P: StoredProcedure>(
        &self,
        place: Place,
        arguments: &P::Arguments,
    ) -> Result<P::Answer, Error> {
        let fragments = vec![encoding::fragment::<P>(place, arguments)?];
        let done = self.invoke(Class::Auto, fragments).await?;
        encoding::first_answer::<P>(&done)
    }

    /// Runs a one-round transaction: all of its fragments, at one point of the serial order, or
    /// none. Conflicts are retried as [`transact`](Self::transact) does.
    ///
    /// From a task on one of the database's loops it is begun there; from elsewhere, on the loop
    /// that the first fragment's repository lives on, where that is one of the database's.
    ///
    /// # Errors
    /// [`Error::Refused`] by a procedure; [`Error::Procedure`] where one is unknown at a node,
    /// misbehaved, or the call cannot be of its class; [`Error::Conflict`] after the last
    /// attempt; [`Error::ReadOnly`] where a [read-only](Self::read_only) handle calls one that
    /// writes; [`Error::Unknown`]: it may have taken effect. After every other one nothing was
    /// changed.
    pub async fn invoke(&self, class: Class, fragments: Vec<Fragment>) -> Result<Invoked, Error> {
        let call = Call { class, fragments };
        if self.is_here() {
            return self.invoke_here(call).await.0;
        }
        let home = self.loop_of(&call);
        let (db, (_caller, fate)) = (self.clone(), Caller::new(self));
        let there = async move || db.invoke_until(call, Some(&fate)).await.0;
        self.run_on(home, there).await?
    }

    /// As [`invoke`](Self::invoke), for tasks on one of the database's loops; also answers how many
    /// attempts it took.
    pub async fn invoke_here(&self, call: Call) -> (Result<Invoked, Error>, u32) {
        self.invoke_until(call, None).await
    }

    async fn invoke_until(
        &self,
        call: Call,
        fate: Option<&Arc<Fate>>,
    ) -> (Result<Invoked, Error>, u32) {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let reason = match self.invoke_once(call.clone(), fate).await {
                Err(Error::Conflict { reason, .. }) => reason,
                done => return (done, attempts),
            };
            if let Err(error) = self.after_conflict(reason, attempts).await {
                return (Err(error), attempts);
            }
        }
    }

    async fn invoke_once(&self, call: Call, fate: Option<&Arc<Fate>>) -> Result<Invoked, Error> {
        let database = self.inner.database;
        if client::with(database, |engine| engine.should_yield()).ok_or(Error::Closed)? {
            yield_now().await;
        }
        if let Some(fate) = fate {
            fate.ask()?;
        }
        let invoke = Operation::Invoke(self.txn_options(), call);
        let done = match client::with(database, |engine| engine.operate(invoke)) {
            None => Err(Error::Closed),
            Some(Step::Done(done)) => done.map_err(Error::from),
            Some(Step::Wait(op)) => CommitFuture::new(self, fate, op).await,
        };
        if let Some(fate) = fate {
            fate.decided(self);
        }
        let done = done?.invoked();
        self.see(done.at);
        Ok(done)
    }

    /// The loop on which a call costs the fewest messages.
    pub(crate) fn loop_of(&self, call: &Call) -> usize {
        let catalog = match self.loops() {
            1 => return 0,
            _ => self.catalog(),
        };
        let repository = match call.fragments.first().map(|fragment| &fragment.place) {
            None => return self.next_loop(),
            Some(Place::Repository(repository)) => *repository,
            Some(Place::Key(space, key)) => {
                // A guess: its partition may have moved, and then the call costs more messages.
                let partition = catalog.partition(*space, key);
                Static.replicas_of(partition, &catalog).next().expect("a key lives somewhere")
            }
        };
        match catalog.homes.get(usize::from(repository.0)) {
            Some(home) => home.0 as usize % self.loops(),
            None => self.next_loop(),
        }
    }
}
