//! What a transaction has asked and was answered, so that it can go on from a checkpoint.
//!
//! # The problem
//! Where a read finds that something has changed which was read after a checkpoint, all up to the
//! checkpoint still holds. But a body is a future that has gone past it, and cannot be set back.
//!
//! # The idea
//! The body is run anew, from its beginning. What it asks up to the checkpoint is answered from the
//! recording, at once and without asking anybody; from there on it is asked as always. A body that
//! asks something else than it did before has gone another way, so that its recording is of no use:
//! then the whole transaction is run again.
//!
//! Each checkpoint begins a level of the transaction, as a child would (`Operation::Nest`), so that
//! the protocol finds out which levels still hold as it does for children.
//!
//! Source: A. Turcu's dissertation (2015), section 6.5.7, where the stack of a thread is kept;
//! E. Koskinen and M. Herlihy, "Checkpoints and continuations instead of nested transactions"
//! (2008).

use std::any::Any;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use crate::error::Error;

/// What was asked or answered, of whichever type.
type Anything = Box<dyn Any + Send>;

/// Something that was asked.
struct Exchange {
    asked: Anything,
    /// `None`: it is under way, or was given up.
    answer: Option<Result<Anything, Error>>,
}

/// What a transaction has asked, in order, and how much of that was asked again since.
///
/// Invariants: no more was asked again than was asked; levels begin in the order of their numbers,
/// where something was asked.
#[derive(Default)]
struct Exchanges {
    all: Vec<Exchange>,
    /// So many of them were asked again; the next is answered from here.
    repeated: usize,
    /// Where each level begins: the place of its checkpoint, which is not of the level.
    levels: Vec<usize>,
}

/// What a transaction has asked, and was answered.
#[derive(Default)]
pub(crate) struct Recording(Mutex<Exchanges>);

/// The place of something that was asked for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordedAt(usize);

/// What becomes of something that is asked.
pub(crate) enum Repetition<T> {
    /// It was answered so.
    Answered(Result<T, Error>),
    /// It is asked for the first time, and its answer belongs here.
    New(RecordedAt),
    /// Something else was asked here before, or this was not answered.
    Differs,
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (asked, repeated) = self.with(|entries| (entries.all.len(), entries.repeated));
        f.debug_struct("Recording").field("asked", &asked).field("repeated", &repeated).finish()
    }
}

impl Recording {
    fn with<T>(&self, f: impl FnOnce(&mut Exchanges) -> T) -> T {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let done = f(&mut entries);
        assert!(entries.repeated <= entries.all.len(), "more was asked again than was asked");
        assert!(entries.levels.is_sorted(), "levels begin in the order of their numbers");
        done
    }

    /// Something is asked.
    pub fn ask<A, T>(&self, asked: &A) -> Repetition<T>
    where
        A: Clone + PartialEq + Send + 'static,
        T: Clone + 'static,
    {
        self.with(|entries| {
            let Some(entry) = entries.all.get(entries.repeated) else {
                let place = RecordedAt(entries.all.len());
                entries.all.push(Exchange { asked: Box::new(asked.clone()), answer: None });
                entries.repeated = entries.all.len();
                return Repetition::New(place);
            };
            let is_same = entry.asked.downcast_ref::<A>() == Some(asked);
            let answer = entry.answer.as_ref().filter(|_| is_same).and_then(|it| match it {
                Ok(answer) => answer.downcast_ref::<T>().map(|answer| Ok(answer.clone())),
                Err(error) => Some(Err(error.clone())),
            });
            match answer {
                Some(answer) => {
                    entries.repeated += 1;
                    Repetition::Answered(answer)
                }
                None => Repetition::Differs,
            }
        })
    }

    /// It was answered.
    pub fn answer<T: Clone + Send + 'static>(&self, place: RecordedAt, answer: &Result<T, Error>) {
        self.with(|entries| {
            // It may have been forgotten meanwhile, with its child.
            if let Some(entry) = entries.all.get_mut(place.0) {
                let answer = answer.as_ref().map(|it| Box::new(it.clone()) as Anything);
                entry.answer = Some(answer.map_err(Clone::clone));
            }
        });
    }

    /// Where the next thing that is asked will have its place.
    pub fn next_place(&self) -> RecordedAt {
        self.with(|entries| RecordedAt(entries.repeated))
    }

    /// What was asked from there on is undone.
    pub fn forget_from(&self, place: RecordedAt) {
        self.with(|entries| {
            entries.all.truncate(place.0);
            entries.repeated = entries.repeated.min(place.0);
        });
    }

    /// How many levels checkpoints have begun before what is asked next.
    pub fn levels(&self) -> u32 {
        self.with(|entries| {
            let begun = |place: &&usize| **place < entries.repeated;
            entries.levels.iter().take_while(begun).count() as u32
        })
    }

    /// Whether all was asked again that was asked before.
    pub fn is_repeated(&self) -> bool {
        self.with(|entries| entries.repeated == entries.all.len())
    }

    /// Whether all that was asked before this was answered.
    pub fn is_settled_before(&self, place: RecordedAt) -> bool {
        self.with(|entries| entries.all[..place.0].iter().all(|entry| entry.answer.is_some()))
    }

    /// The checkpoint that was asked for there has begun a level.
    pub fn begin_level(&self, place: RecordedAt) {
        self.with(|entries| entries.levels.push(place.0));
    }

    /// A level was undone: the transaction is to go on from its checkpoint, by asking everything
    /// before it again.
    pub fn go_back(&self, level: u32) {
        self.with(|entries| {
            let kept = (level as usize).saturating_sub(1);
            let place = entries.levels.get(kept).copied().expect("a level that has begun");
            entries.all.truncate(place);
            entries.levels.truncate(kept);
            entries.repeated = 0;
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(recording: &Recording, asked: &str) -> Repetition<u64> {
        recording.ask::<String, u64>(&asked.to_owned())
    }

    /// Asks for the first time.
    fn answer(recording: &Recording, asked: &str, with: Result<u64, Error>) {
        let Repetition::New(place) = ask(recording, asked) else {
            panic!("{asked} was asked before")
        };
        recording.answer(place, &with);
    }

    fn again(recording: &Recording, asked: &str) -> Option<Result<u64, Error>> {
        match ask(recording, asked) {
            Repetition::Answered(answer) => Some(answer),
            Repetition::New(_) | Repetition::Differs => None,
        }
    }

    #[test]
    fn what_was_asked_up_to_a_checkpoint_is_answered_again() {
        let recording = Recording::default();
        answer(&recording, "a", Ok(1));
        answer(&recording, "b", Err(Error::ReadOnly));
        for (checkpoint, read) in [("first", "c"), ("second", "d")] {
            recording.begin_level(recording.next_place());
            answer(&recording, checkpoint, Ok(0));
            answer(&recording, read, Ok(3));
        }
        assert_eq!(recording.levels(), 2);
        recording.go_back(2);
        assert_eq!((recording.levels(), recording.is_repeated()), (0, false));
        assert_eq!(again(&recording, "a"), Some(Ok(1)));
        assert_eq!(again(&recording, "b"), Some(Err(Error::ReadOnly)));
        assert_eq!(again(&recording, "first"), Some(Ok(0)));
        assert_eq!(again(&recording, "c"), Some(Ok(3)));
        assert_eq!((recording.levels(), recording.is_repeated()), (1, true));
        recording.go_back(1);
        assert_eq!(again(&recording, "a"), Some(Ok(1)));
        assert_eq!(again(&recording, "b"), Some(Err(Error::ReadOnly)));
        // From here on it may go another way.
        assert!(matches!(ask(&recording, "d"), Repetition::New(RecordedAt(2))));
    }

    #[test]
    fn who_asks_something_else_is_noticed() {
        let recording = Recording::default();
        answer(&recording, "a", Ok(1));
        assert!(matches!(ask(&recording, "never answered"), Repetition::New(_)));
        recording.begin_level(recording.next_place());
        recording.go_back(1);
        assert!(matches!(ask(&recording, "b"), Repetition::Differs));
        assert!(matches!(recording.ask::<u64, u64>(&1), Repetition::Differs));
        assert_eq!(again(&recording, "a"), Some(Ok(1)));
        assert!(matches!(ask(&recording, "never answered"), Repetition::Differs));
        assert!(!recording.is_settled_before(RecordedAt(2)));
    }

    #[test]
    fn a_child_that_was_undone_is_forgotten() {
        let recording = Recording::default();
        answer(&recording, "a", Ok(1));
        let child = recording.next_place();
        answer(&recording, "b", Ok(2));
        recording.forget_from(child);
        answer(&recording, "c", Ok(3));
        recording.begin_level(recording.next_place());
        recording.go_back(1);
        assert_eq!(again(&recording, "a"), Some(Ok(1)));
        assert_eq!(again(&recording, "c"), Some(Ok(3)));
    }
}
