//! What the delayed actions of a transaction gave, once it has committed.

use std::marker::PhantomData;

use muesli_core::Gave;

use crate::error::Error;

/// Reads what was given as what was deferred.
pub(crate) type Read<T> = fn(&Gave) -> Result<T, Error>;

/// What a delayed action will give; the [`Results`] of its transaction's commit tell it.
#[derive(Clone, Debug)]
pub struct DeferredAnswer<T> {
    place: Where,
    read: Read<T>,
    type_: PhantomData<fn() -> T>,
}

#[derive(Clone, Debug)]
pub(crate) enum Where {
    /// The answer of this number.
    Number(u32),
    /// It was done at once, and gave this.
    Here(Gave),
}

impl<T> DeferredAnswer<T> {
    pub(crate) fn new(place: Where, read: Read<T>) -> DeferredAnswer<T> {
        DeferredAnswer { place, read, type_: PhantomData }
    }
}

/// What the delayed actions of a transaction that committed gave.
#[derive(Clone, Debug, Default)]
pub struct Results(pub(crate) Vec<Gave>);

impl Results {
    /// What one of them gave.
    ///
    /// # Errors
    /// [`Error::Procedure`] where it failed in its turn, and changed nothing there.
    /// [`Error::AnswerLost`] where it was done, and nobody told in time what it gave.
    /// [`Error::TooLarge`] where it was done, and what it gave, with what else the transaction is
    /// told, is over the limit of a transaction.
    /// [`Error::Codec`] where the answer is of another type or another transaction.
    pub fn of<T>(&self, deferred: &DeferredAnswer<T>) -> Result<T, Error> {
        match &deferred.place {
            Where::Here(gave) => (deferred.read)(gave),
            Where::Number(number) => {
                let missing = || Error::Codec(format!("there is no delayed action {number} here"));
                (deferred.read)(self.0.get(*number as usize).ok_or_else(missing)?)
            }
        }
    }

    /// What several of them gave, put together: the paper's reduction at the coordinator.
    ///
    /// # Errors
    /// As [`of`](Self::of), of the first that has one.
    pub fn reduce<'p, T: 'p, A>(
        &self,
        deferred: impl IntoIterator<Item = &'p DeferredAnswer<T>>,
        start: A,
        mut with: impl FnMut(A, T) -> A,
    ) -> Result<A, Error> {
        deferred.into_iter().try_fold(start, |all, one| Ok(with(all, self.of(one)?)))
    }
}
