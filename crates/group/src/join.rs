//! A member without memory: it is new, or its disk was lost.
//!
//! # The problem
//! A member that forgot what it promised and accepted must not vote: it could help a leader of the
//! past to decide, or a new one to overlook what it had accepted.
//!
//! # The rule
//! It asks all other members what they know, and takes no part before each has answered. Then it
//! adopts the largest promise of all, and the entries of whoever has the newest.
//!
//! # Why that is safe
//! Whatever it had promised, it had promised to one of the others, who had promised the same to
//! itself, stably, before asking; so the largest promise of all is no smaller than its own was.
//! Whatever it had accepted under a ballot it had from that ballot's leader, who has it still, or
//! has joined a later ballot, whose leader took the entries of a majority over: with those of this
//! member if it was of that majority. What it says now, it says over links made since it came
//! back, and answers to its questions come over such links too: none is of an earlier life.
//!
//! Where one of the others follows a leader and another knows of none, two members have forgotten,
//! or the group is so new that one has not heard of its first leader yet. In the first case what
//! the two had decided without the others would be lost. So a member waits until all others
//! remember, or none does.
//!
//! All members must answer, so this takes a group of which no other member is lost for good; then
//! it is a case for a change of membership.

use std::collections::BTreeMap;

use crate::ledger::Standing;
use crate::protocol::Ballot;

/// The answers so far, by member.
#[derive(Clone, Debug, Default)]
pub(crate) struct Joining {
    answers: BTreeMap<u16, Standing>,
}

impl Joining {
    /// A member has answered. Returns what to adopt once all `others` have.
    pub(crate) fn answer(
        &mut self,
        member: u16,
        standing: Standing,
        others: usize,
    ) -> Option<Standing> {
        self.answers.insert(member, standing);
        if self.answers.len() < others || self.another_forgot() {
            return None;
        }
        let promise = self.answers.values().map(|it| it.promise).max()?;
        let newest = self.answers.values().max_by_key(|it| (it.accepted, it.length()))?;
        Some(Standing { promise, ..newest.clone() })
    }

    /// Whether some of the others have followed a leader and some know of none.
    fn another_forgot(&self) -> bool {
        let remember = |it: &Standing| it.promise != Ballot::default();
        let remembering = self.answers.values().filter(|it| remember(it)).count();
        remembering > 0 && remembering < self.answers.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::Entry;
    use muesli_core::SmallBytes;

    fn standing(promise: u32, accepted: u32, entries: usize) -> Standing {
        let ballot = |number| Ballot { number, member: 1 };
        Standing {
            promise: ballot(promise),
            accepted: ballot(accepted),
            entries: vec![Entry(SmallBytes::new(b"x")); entries],
            ..Standing::default()
        }
    }

    #[test]
    fn the_newest_entries_and_the_largest_promise_are_adopted() {
        let mut joining = Joining::default();
        assert_eq!(joining.answer(0, standing(9, 1, 7), 2), None);
        assert_eq!(joining.answer(2, Standing::default(), 2), None);
        assert_eq!(joining.answer(0, standing(9, 1, 8), 2), None);
        let adopted = joining.answer(2, standing(3, 2, 4), 2).unwrap();
        assert_eq!(adopted, Standing { promise: standing(9, 0, 0).promise, ..standing(3, 2, 4) });
    }

    #[test]
    fn where_nobody_remembers_the_group_is_new() {
        let mut joining = Joining::default();
        assert_eq!(joining.answer(0, Standing::default(), 2), None);
        assert_eq!(joining.answer(1, Standing::default(), 2), Some(Standing::default()));
    }
}
