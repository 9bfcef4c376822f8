//! Checkpoints: places in a transaction from which it goes on where what was read before still
//! holds, and what was read after does not.
//!
//! How a body comes back there, [`recording`](crate::recording) says.

use muesli_core::client::AnswerFuture;
use muesli_core::parts::levels::LEVELS_MAX;
use muesli_core::{Abort, Answer, Nesting, Operation, Step};

use crate::error::Error;
use crate::recording::{RecordedAt, Repetition};
use crate::transaction::tx::Tx;

/// A checkpoint, as it is recorded.
#[derive(Clone, PartialEq)]
struct CheckpointMark;

impl Tx {
    /// Sets a checkpoint: where a later read finds that something has changed which was read after
    /// it, the transaction goes on from here, if all that was read before still holds. Checkpoints
    /// need no closures, as [children](Self::nested) do, and end where the next one begins.
    ///
    /// The body runs anew from its beginning, but what it asks up to the checkpoint is answered as
    /// it was before, without asking anybody; what it does besides, as to compute or to sleep, it
    /// does again. So it should ask the same again, given the same answers. One that asks something
    /// else is run again as a whole.
    ///
    /// Only transactions of a handle [with checkpoints](crate::Db::with_checkpoints) have some:
    /// what they ask and are answered is kept until they end. In others, in a child, and under
    /// protocols without levels (`granola`), this does nothing; nor while operations are under way
    /// beside it, or where a transaction has as many levels as there can be.
    ///
    /// ```
    /// use muesli::{Db, Error, Options, SpaceOptions};
    ///
    /// # fn main() -> Result<(), Error> {
    /// let db = Db::open(Options::default().space("stock", SpaceOptions::default()))?;
    /// let stock = db.space("stock")?.typed::<u64, u64>();
    /// db.with_checkpoints().blocking().transact(async move |tx| {
    ///     let mut sum = 0;
    ///     for shelf in 0..10 {
    ///         tx.checkpoint().await?;
    ///         sum += stock.get(tx, &shelf).await?.unwrap_or(0);
    ///     }
    ///     stock.put(tx, &10, &sum).await
    /// })?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Conflict`] and [`Error::PartialAbort`] where the body is to run again;
    /// [`Error::ChildOpen`], [`Error::Closed`].
    ///
    /// Source: A. Turcu's dissertation (2015), section 6.5.7.
    pub async fn checkpoint(&self) -> Result<(), Error> {
        let Some(recording) = self.recording().filter(|_| self.level == 0) else { return Ok(()) };
        self.takes_operations()?;
        let place = match recording.ask(&CheckpointMark) {
            Repetition::Answered(answer) => return answer,
            Repetition::Differs => return Err(self.went_another_way()),
            Repetition::New(place) => place,
        };
        let level = recording.levels() + 1;
        if level <= LEVELS_MAX && recording.is_settled_before(place) {
            let nested = self.operate(Operation::Nest(self.txn, level)).await;
            match nested.map_err(|error| self.failed(error))?.nested() {
                Nesting::Closed => recording.begin_level(place),
                Nesting::Flat => {}
            }
        }
        recording.answer(place, &Ok(()));
        Ok(())
    }

    /// The innermost level that it has begun, itself or by a checkpoint.
    pub(crate) fn innermost(&self) -> u32 {
        match self.recording() {
            Some(recording) if self.level == 0 => recording.levels(),
            _ => self.level,
        }
    }

    /// The level to whose checkpoint it is to go back, if it is to: one that a checkpoint began.
    pub(crate) fn goes_back_to(&self) -> Option<u32> {
        let recording = self.recording()?;
        match self.conflict() {
            Some(Error::PartialAbort { level }) if (1..=recording.levels()).contains(&level) => {
                Some(level)
            }
            _ => None,
        }
    }

    /// What its levels did that checkpoints have begun is its own.
    ///
    /// # Errors
    /// One of them is to be run again, or all are.
    pub(crate) async fn merge_levels(&self) -> Result<(), Error> {
        let Some(recording) = self.recording() else { return Ok(()) };
        if !recording.is_repeated() {
            return Err(self.went_another_way());
        }
        for level in (1..=recording.levels()).rev() {
            let merged = self.operate(Operation::Merge(self.txn, level)).await;
            merged.map_err(|error| self.failed(error))?;
        }
        Ok(())
    }

    /// A body that was run again does something else than before: nothing of it can be kept.
    #[cold]
    pub(crate) fn went_another_way(&self) -> Error {
        self.failed(Error::Conflict { reason: Abort::StaleRead, attempts: 1 })
    }

    /// Where the next thing that it asks is recorded, if it is.
    pub(crate) fn next_place(&self) -> Option<RecordedAt> {
        self.recording().map(|recording| recording.next_place())
    }

    /// What was asked from there on is undone.
    pub(crate) fn forget_from(&self, place: Option<RecordedAt>) {
        if let (Some(recording), Some(place)) = (self.recording(), place) {
            recording.forget_from(place);
        }
    }

    /// Asks the engine that is here, or the recording if that was asked before.
    ///
    /// # Errors
    /// What it was answered.
    pub(crate) async fn operate_recorded(&self, operation: Operation) -> Result<Answer, Error> {
        let Some(recording) = self.recording() else { return self.operate(operation).await };
        match recording.ask(&operation) {
            Repetition::Answered(answer) => answer,
            Repetition::Differs => Err(self.went_another_way()),
            Repetition::New(place) => {
                let answer = self.operate(operation).await;
                recording.answer(place, &answer);
                answer
            }
        }
    }

    async fn operate(&self, operation: Operation) -> Result<Answer, Error> {
        match self.here(|engine| engine.operate(operation))? {
            Step::Done(answer) => Ok(answer?),
            Step::Wait(op) => Ok(AnswerFuture::new(self.database, op).await?),
        }
    }
}
