//! Who followed a user after each change, as far as clients know: changes are numbered where they
//! happen, and replayed in their order.

use std::collections::{BTreeMap, BTreeSet};

use super::ledger::FollowerChange;
use crate::ledgers::NumberedUpdates;

/// The followers of one user from change to change.
#[derive(Debug)]
pub(super) struct FollowerHistory {
    first: BTreeSet<u64>,
    changes: Vec<Option<FollowerChange>>,
    perhaps: Vec<FollowerChange>,
}

impl FollowerHistory {
    /// That of a user with these followers at first, who have changed so often.
    ///
    /// # Errors
    /// The changes that clients know cannot be so many, or have numbers that cannot be.
    pub fn new(
        first: BTreeSet<u64>,
        known: &NumberedUpdates<FollowerChange>,
        count: u64,
    ) -> Result<FollowerHistory, String> {
        let (changes, perhaps) = (known.in_order(count)?, known.perhaps().to_vec());
        Ok(FollowerHistory { first, changes, perhaps })
    }

    /// Whether these can be the followers after so many changes. Of a change that nobody was
    /// answered it is not known which one it was.
    ///
    /// # Errors
    /// They cannot.
    pub fn judge(&self, count: u64, followers: &BTreeSet<u64>) -> Result<(), String> {
        let so_far = usize::try_from(count).ok().and_then(|count| self.changes.get(..count));
        let Some(so_far) = so_far else {
            let all = self.changes.len();
            return Err(format!("after {count} changes, of which there were {all}"));
        };
        // Whether each follows; `None`: either.
        let mut state: BTreeMap<u64, Option<bool>> =
            self.first.iter().map(|follower| (*follower, Some(true))).collect();
        for change in so_far {
            match change {
                Some(change) => _ = state.insert(change.follower, Some(change.follows)),
                None => state.extend(self.perhaps.iter().map(|it| (it.follower, None))),
            }
        }
        let is_known = |follower: &u64| state.get(follower).copied().unwrap_or(Some(false));
        let all: BTreeSet<u64> = state.keys().copied().chain(followers.iter().copied()).collect();
        let is_wrong = |follower: &&u64| {
            is_known(follower).is_some_and(|follows| follows != followers.contains(follower))
        };
        match all.iter().find(is_wrong) {
            Some(wrong) if followers.contains(wrong) => Err(format!("{wrong} did not follow")),
            Some(wrong) => Err(format!("{wrong} followed and is missing")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tally::Ended;

    #[test]
    fn followers_are_known_after_each_change() {
        let mut known = NumberedUpdates::default();
        let change = |follower, follows| FollowerChange { follower, follows };
        known.note(change(3, true), &Ended::Committed, Some(1));
        known.note(change(1, false), &Ended::Committed, Some(3));
        known.note(change(4, true), &Ended::Unknown, None);
        let history = FollowerHistory::new(BTreeSet::from([1, 2]), &known, 3).unwrap();
        let of = |count, all: &[u64]| history.judge(count, &all.iter().copied().collect());
        assert_eq!(of(0, &[1, 2]), Ok(()));
        assert_eq!(of(1, &[1, 2, 3]), Ok(()));
        assert!(of(1, &[1, 2]).is_err() && of(0, &[1, 2, 3]).is_err());
        // The second one was a follow that was not answered, or something else of the same user.
        assert_eq!((of(2, &[1, 2, 3]), of(3, &[2, 3, 4])), (Ok(()), Ok(())));
        assert!(of(3, &[1, 2, 3]).is_err() && of(4, &[2, 3]).is_err());
    }
}
