//! `LATEST_OBJECT_VERSIONS` of a validator, as the thesis prints it (appendix B,
//! `non_leaf_validate_and_commit`).
//!
//! It has what passed this validator alone: nothing of what a leaf has decided by itself, and
//! nothing of later timestamps from above. So it proves nothing, and refuses whoever writes, or has
//! read, what another one wrote after its snapshot, though its leaf knows better. It is here for
//! [`ParentsKeepNoVersions`](crate::two_phase::policy::TreeSwitch::ParentsKeepNoVersions), to show
//! that.

use std::collections::BTreeMap;

use muesli_core::{Abort, SmallBytes, SpaceId, Timestamp};

use crate::two_phase::message::merged_vote::MergedVote;

/// The most keys that are known; then all are forgotten. As printed none ever is.
const KEYS_MAX: usize = 1 << 16;

/// The newest versions that a validator has let pass.
///
/// Invariants: there are at most [`KEYS_MAX`], and none is at zero.
#[derive(Clone, Debug, Default)]
pub(super) struct LatestVersions(BTreeMap<(SpaceId, SmallBytes), Timestamp>);

impl LatestVersions {
    /// Refuses what passes here, if a later version than its snapshot is known of any of its keys;
    /// else what it writes is known from now on.
    pub fn check(&mut self, vote: &mut MergedVote) {
        let Some(carried) = vote.carried.as_ref().filter(|_| vote.refused.is_none()) else {
            return;
        };
        let writes = carried.writes.iter().map(|(space, key, _)| (*space, key.clone()));
        let all = carried.reads.iter().cloned().chain(writes.clone());
        let has_newer = |key| self.0.get(&key).is_some_and(|at| *at > carried.snapshot);
        if all.into_iter().any(has_newer) {
            vote.refused = Some(Abort::StaleRead);
            return;
        }
        assert!(vote.proposal > Timestamp::ZERO, "{} is voted for at no time", vote.txn);
        for key in writes {
            if self.0.len() >= KEYS_MAX {
                self.0.clear();
            }
            self.0.insert(key, vote.proposal);
        }
    }

    /// Checks the invariants.
    ///
    /// # Panics
    /// One of them does not hold.
    pub fn assert_invariants(&self) {
        assert!(self.0.len() <= KEYS_MAX, "{} keys are known to a validator", self.0.len());
        assert!(self.0.values().all(|at| *at > Timestamp::ZERO), "a version at zero");
    }
}

#[cfg(test)]
mod tests {
    use muesli_core::{NodeId, RepositoryId, TxnId};

    use super::*;
    use crate::two_phase::message::Repositories;
    use crate::two_phase::message::voted_footprint::VotedFootprint;

    fn at(counter: u64) -> Timestamp {
        Timestamp::new(counter, RepositoryId(0))
    }

    fn vote(snapshot: u64, proposal: u64, writes: &[u64]) -> MergedVote {
        let txn = TxnId { node: NodeId(1), incarnation: 1, sequence: proposal };
        let all = Repositories::from_slice(&[RepositoryId(0), RepositoryId(1)]);
        let key = |it: &u64| (SpaceId(0), SmallBytes::from(it.to_string().as_str()), None);
        let writes = writes.iter().map(key).collect();
        let carried = VotedFootprint { snapshot: at(snapshot), reads: Vec::new(), writes };
        let carried = Some(Box::new(carried));
        let vote = MergedVote::of(txn, all, RepositoryId(0));
        MergedVote { proposal: at(proposal), carried, ..vote }
    }

    #[test]
    fn who_has_not_seen_what_passed_is_refused() {
        let mut latest = LatestVersions::default();
        let mut refused = |mut vote: MergedVote| {
            latest.check(&mut vote);
            latest.assert_invariants();
            vote.refused
        };
        assert_eq!(refused(vote(1, 5, &[1])), None);
        assert_eq!(refused(vote(4, 6, &[1])), Some(Abort::StaleRead), "a blind writer, too");
        assert_eq!(refused(vote(5, 7, &[1])), None);
        assert_eq!(refused(vote(6, 8, &[2])), None, "another key");
    }

    #[test]
    fn what_is_known_has_a_limit() {
        let mut latest = LatestVersions::default();
        let all: Vec<u64> = (0..KEYS_MAX as u64 + 10).collect();
        latest.check(&mut vote(1, 5, &all));
        latest.assert_invariants();
        assert_eq!(latest.0.len(), 10);
    }
}
