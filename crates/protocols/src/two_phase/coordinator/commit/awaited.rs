//! The answers of delayed actions that a commit waits for.

use muesli_core::{Answer, Committed, Failure, Gave, RepositoryId, SmallBytes};
use smallvec::SmallVec;

use crate::two_phase::Variant;
use crate::two_phase::message::{Answers, Prepare};

/// The answers that a commit waits for.
///
/// Invariants: whoever can give answers gives some that are waited for, and those that nobody has
/// given are somebody's to give.
#[derive(Clone, Debug, Default)]
pub(in crate::two_phase) struct Awaited {
    /// By number; `None` is not there yet.
    answers: Vec<Option<Gave>>,
    /// How many bytes those have that are there.
    bytes: usize,
    /// Who can give which.
    from: SmallVec<[(RepositoryId, SmallVec<[u32; 2]>); 2]>,
    /// Why something cannot be left to its turn.
    pub violation: Option<SmallBytes>,
}

impl Awaited {
    /// Those of a transaction that asked for so many.
    pub fn new<'a, V: Variant>(
        count: u32,
        parts: impl Iterator<Item = (RepositoryId, &'a Prepare<V>)>,
    ) -> Awaited {
        let asked = |part: &Prepare<V>| part.asked().iter().map(|(_, number)| *number).collect();
        let from = parts.map(|(repository, part)| (repository, asked(part)));
        let from = from.filter(|(_, all): &(_, SmallVec<_>)| !all.is_empty()).collect();
        Awaited { answers: vec![None; count as usize], bytes: 0, from, violation: None }
    }

    /// Checks the invariants.
    ///
    /// # Panics
    /// One of them does not hold.
    pub fn assert_invariants(&self) {
        let count = self.answers.len();
        for (repository, numbers) in &self.from {
            assert!(!numbers.is_empty(), "{repository:?} gives nothing");
            let last = numbers.iter().max().map_or(0, |last| *last as usize);
            assert!(last < count, "answer {last} of {repository:?}, of {count}");
        }
        let given = |at: usize| self.from.iter().any(|(_, all)| all.contains(&(at as u32)));
        assert!((0..count).all(given), "an answer that nobody gives, of {count}");
    }

    pub fn are_all_there(&self) -> bool {
        self.answers.iter().all(Option::is_some)
    }

    /// Who can give what is not there.
    pub fn missing_from(&self) -> impl Iterator<Item = RepositoryId> + '_ {
        let missing = |number: &u32| self.answers[*number as usize].is_none();
        let some = self.from.iter().filter(move |(_, all)| all.iter().any(missing));
        some.map(|(repository, _)| *repository)
    }

    pub fn take(&mut self, answers: Answers, limit: usize) {
        for (number, mut gave) in answers {
            if let Some(place @ None) = self.answers.get_mut(number as usize) {
                gave.limit(&mut self.bytes, limit);
                *place = Some(gave);
            }
        }
    }

    /// Nobody waits any more.
    pub fn abandon(&mut self) {
        *self = Awaited::default();
    }

    /// What the client is told; nobody waits any more.
    pub fn result(&mut self, committed: Committed) -> Result<Answer, Failure> {
        let answers = std::mem::take(&mut self.answers);
        self.from.clear();
        match answers.is_empty() {
            true => Ok(Answer::Committed(committed)),
            false => {
                let all = answers.into_iter().map(|it| it.unwrap_or(Gave::Unknown));
                Ok(Answer::Answered(committed, all.collect()))
            }
        }
    }
}

/// Why a transaction could not leave something to its turn, as its client is told.
pub(in crate::two_phase) fn violation(reason: &SmallBytes) -> Result<Answer, Failure> {
    let text = String::from_utf8_lossy(reason.as_slice()).into_owned();
    Err(Failure::FootprintViolation(text))
}

#[cfg(test)]
mod tests {
    use muesli_core::Timestamp;

    use super::*;

    #[test]
    fn answers_of_all_repositories_together_have_a_limit() {
        let gave = |size: usize| Gave::Value(Some(vec![7; size].into()));
        let answers = vec![None; 4];
        let mut awaited = Awaited { answers, ..Awaited::default() };
        awaited.take(vec![(0, gave(100)), (1, gave(100))], 300);
        // Said again it is counted once, and what is small has room still.
        awaited.take(vec![(0, gave(100)), (2, gave(100)), (3, gave(10))], 300);
        assert!(awaited.are_all_there());
        let Ok(Answer::Answered(_, given)) = awaited.result(Committed { at: Timestamp(1) }) else {
            panic!("it asked")
        };
        let limit = 300;
        assert_eq!(given, [gave(100), gave(100), Gave::TooMuch { size: 372, limit }, gave(10)]);
    }
}
