//! How a transaction leaves an action or a procedure to its turn.

use muesli_core::actions::run_action;
use muesli_core::exceeded::Limit;
use muesli_core::procedure::ProcedureFn;
use muesli_core::{Action, Answer, Deferral, Delay, Gave, Operation, Place, SmallBytes};

use crate::data::space::Space;
use crate::deferred::rerun;
use crate::error::Error;
use crate::procedures::encoding;
use crate::procedures::stored::StoredProcedure;
use crate::transaction::detour::Access;
use crate::transaction::results::{DeferredAnswer, Where};
use crate::transaction::tx::Tx;

fn value(gave: &Gave) -> Result<Option<SmallBytes>, Error> {
    match gave {
        Gave::Value(value) => Ok(value.clone()),
        Gave::Nothing(reason) => {
            Err(Error::Procedure(String::from_utf8_lossy(reason.as_slice()).into_owned()))
        }
        Gave::Unknown => Err(Error::AnswerLost),
        Gave::TooMuch { size, limit } => {
            let bytes = |number: &u64| usize::try_from(*number).unwrap_or(usize::MAX);
            Err(Error::TooLarge { what: Limit::Results, size: bytes(size), limit: bytes(limit) })
        }
    }
}

fn answer<P: StoredProcedure>(gave: &Gave) -> Result<P::Answer, Error> {
    encoding::answer::<P>(&value(gave)?.unwrap_or(SmallBytes::EMPTY))
}

impl Tx {
    /// Changes a key by an [`Action`], without looking at it. Where the protocol can, nothing is
    /// read: the action is done as the transaction commits, on whatever is there then, and actions
    /// on one key do not conflict with each other. Elsewhere it is a read and a write, done at
    /// once.
    ///
    /// The transaction should not use the key afterwards: it is then run again, with its actions
    /// done at once ([`Db::transact`](crate::Db::transact) does so by itself).
    ///
    /// # Errors
    /// As [`get`](Self::get) and [`put`](Self::put); [`Error::Space`] where there is no such
    /// action; [`Error::Procedure`] where it cannot be done on what is there: a number is added to
    /// what is none, or it panicked. Where it was left to its turn, and found then what it cannot
    /// be done on, only its answer says so; the key is left as it is.
    pub async fn defer(
        &self,
        space: Space,
        key: impl Into<SmallBytes>,
        action: Action,
    ) -> Result<(), Error> {
        self.delay_action(space, key.into(), action, false).await.map(drop)
    }

    /// As [`defer`](Self::defer), and asks for the value that the action leaves. A commit that is
    /// asked takes until the transaction's turn, and not only until the votes are in.
    ///
    /// # Errors
    /// As [`defer`](Self::defer).
    pub async fn defer_returning(
        &self,
        space: Space,
        key: impl Into<SmallBytes>,
        action: Action,
    ) -> Result<DeferredAnswer<Option<SmallBytes>>, Error> {
        let place = self.delay_action(space, key.into(), action, true).await?;
        Ok(DeferredAnswer::new(place, value))
    }

    /// Leaves a procedure to the transaction's turn: code over all keys and ranges that it
    /// [declares](StoredProcedure::TOUCHES), as far as the repositories of `place` hold them, in
    /// whichever partitions. What is declared may be more than what it touches in the end. If it
    /// reaches for anything else, fails, or takes too many steps, the transaction aborts with a
    /// reason that says so ([`Error::FootprintViolation`]) and
    /// [`Db::transact`](crate::Db::transact) runs it again with the procedure done at once, as
    /// reads and writes of the transaction, where it may reach for any key.
    ///
    /// One that is not [steady](StoredProcedure::STEADY) keeps others from its keys from the vote
    /// to the turn; steady ones run beside each other and beside delayed actions. It is done at
    /// once where the protocol does not delay, the transaction has used its keys, nothing is
    /// declared of it, or it may write whole ranges.
    ///
    /// # Errors
    /// As [`defer`](Self::defer); [`Error::Procedure`] where it is unknown; done at once, also
    /// [`Error::Refused`].
    pub async fn defer_run<P: StoredProcedure>(
        &self,
        place: Place,
        arguments: &P::Arguments,
    ) -> Result<(), Error> {
        self.delay_call::<P>(place, arguments, false).await.map(drop)
    }

    /// As [`defer_run`](Self::defer_run), and asks what it answers.
    ///
    /// # Errors
    /// As [`defer_run`](Self::defer_run).
    pub async fn defer_run_returning<P: StoredProcedure>(
        &self,
        place: Place,
        arguments: &P::Arguments,
    ) -> Result<DeferredAnswer<P::Answer>, Error> {
        let place = self.delay_call::<P>(place, arguments, true).await?;
        Ok(DeferredAnswer::new(place, answer::<P>))
    }

    async fn delay_action(
        &self,
        space: Space,
        key: SmallBytes,
        action: Action,
        answered: bool,
    ) -> Result<Where, Error> {
        self.note_write();
        self.check(space)?;
        let delay = Delay::Action(space.id, key, action);
        let run = match self.delay(&delay, answered).await? {
            Deferral::Now(run) => run,
            other => return Ok(deferred(&other)),
        };
        let Delay::Action(_, key, action) = delay else { unreachable!("made above") };
        if let Some(watcher) = self.watcher() {
            watcher.acts_at_once(space.id, &key);
        }
        let old = self.get(space, key.clone()).await?;
        let new = run_action(run, old.as_ref(), &action).map_err(Error::Procedure)?;
        match &new {
            Some(new) => self.put(space, key, new.clone()).await?,
            None => self.delete(space, key).await?,
        }
        Ok(Where::Here(Gave::Value(new)))
    }

    async fn delay_call<P: StoredProcedure>(
        &self,
        place: Place,
        arguments: &P::Arguments,
        answered: bool,
    ) -> Result<Where, Error> {
        self.note_write();
        let fragment = encoding::fragment::<P>(place, arguments)?;
        let arguments = fragment.arguments.clone();
        let delay = Delay::Call(fragment.procedure, fragment.place, fragment.arguments);
        let run: ProcedureFn = match self.delay(&delay, answered).await? {
            Deferral::Run(run) => run,
            other => return Ok(deferred(&other)),
        };
        let gave = match self.other_loop() {
            None => rerun::run(self, run, &arguments).await?,
            Some((db, home)) => {
                let tx = self.at_home();
                let there = async move || rerun::run(&tx, run, &arguments).await;
                db.run_on(home, there).await?.map_err(|error| self.failed(error))?
            }
        };
        Ok(Where::Here(Gave::Value(Some(gave))))
    }

    async fn delay(&self, delay: &Delay, answered: bool) -> Result<Deferral, Error> {
        self.takes_operations()?;
        if let Some(watcher) = self.watcher() {
            match delay {
                Delay::Action(space, key, _) => watcher.note(Access::Act(*space, key))?,
                Delay::Call(..) => {
                    let text = "a delayed procedure is no part of a transaction with open \
                                children, which must know its accesses; use reads and writes";
                    return Err(Error::Nesting(text.to_owned()));
                }
            }
        }
        let operation = Operation::Delay(self.txn, delay.clone(), answered);
        let asked = match self.other_loop() {
            None => self.operate_recorded(operation).await,
            Some((db, home)) => {
                let tx = self.at_home();
                let ask = async move || tx.here(|engine| engine.operate(operation));
                db.run_on(home, ask).await??.at_once().map_err(Error::from)
            }
        };
        asked.map(Answer::delayed).map_err(|error| self.failed(error))
    }
}

fn deferred(deferral: &Deferral) -> Where {
    match deferral {
        Deferral::Deferred(number) => Where::Number(*number),
        Deferral::Now(_) | Deferral::Run(_) => unreachable!("what is done at once was asked for"),
    }
}
