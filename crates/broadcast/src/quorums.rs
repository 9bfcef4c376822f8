//! How many members must answer.

/// How many members must answer, of all that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Quorums {
    /// All members, 2 f + 1 or one more.
    pub members: usize,
    /// More than half of them: f + 1. Any two meet.
    pub majority: usize,
    /// So many that agree decide at once.
    pub fast: usize,
    /// So many are asked by who takes a command over.
    pub recovery: usize,
}

impl Quorums {
    /// The smallest ones with which any minority may crash. A fast one and one for a recovery have
    /// so many members together that those in both, without the command's leader, are more than
    /// half of a recovery's that could have seen otherwise: fast + recovery ≥ members + f.
    pub fn of(members: usize) -> Quorums {
        assert!(members > 0, "nobody is there to answer");
        let f = (members - 1) / 2;
        let majority = members / 2 + 1;
        let fast = (members + f).saturating_sub(majority).max(majority);
        Quorums { members, majority, fast, recovery: majority }
    }

    /// The sizes that Alvin's paper prints for fast decisions: 2, 3 and 5 of 3, 5 and 7. They are
    /// too small (see [`pob`](crate::pob)).
    pub fn printed(members: usize) -> Quorums {
        let quorums = Quorums::of(members);
        let f = (members - 1) / 2;
        Quorums { fast: f + f.div_ceil(2), ..quorums }
    }

    /// Those where a majority decides at once, and who takes a command over asks the more: 3 and 4
    /// of 5, 4 and 6 of 7. So only one member may crash; of an even number, from six on, two.
    pub fn of_fast_majorities(members: usize) -> Quorums {
        let quorums = Quorums::of(members);
        let f = (members - 1) / 2;
        let recovery = (members + f).saturating_sub(quorums.majority).max(quorums.majority);
        Quorums { fast: quorums.majority, recovery, ..quorums }
    }

    /// The smallest ones where members vote on what comes before a command without regard to what
    /// its proposer knows: two that decide at once and one that is asked have a member in common,
    /// as twice the fast and the recovery are more than twice the members (Lamport 2006, Fast
    /// Paxos, 2.3.3). They are 3, 4 and 6 of 3, 5 and 7.
    pub fn of_free_votes(members: usize) -> Quorums {
        let quorums = Quorums::of(members);
        let fast = (2 * members - quorums.recovery) / 2 + 1;
        Quorums { fast: fast.max(quorums.majority), ..quorums }
    }

    /// How many members may crash.
    pub fn failures(&self) -> usize {
        self.members - self.majority
    }

    /// Of the answers to who takes a command over, so many agree if it may have been decided at
    /// once.
    pub fn agreeing(&self) -> usize {
        (self.fast + self.recovery).saturating_sub(self.members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fast_and_recovery_quorums_meet_in_enough_members() {
        let sizes = [1, 3, 5, 7, 9].map(|members| {
            let Quorums { majority, fast, recovery, .. } = Quorums::of(members);
            (majority, fast, recovery)
        });
        assert_eq!(sizes, [(1, 1, 1), (2, 2, 2), (3, 4, 3), (4, 6, 4), (5, 8, 5)]);
        for members in 1..50 {
            let quorums = Quorums::of(members);
            assert!(2 * quorums.majority > members, "{quorums:?}");
            assert!(quorums.fast <= members, "{quorums:?}");
            assert!(quorums.fast + quorums.recovery >= members + (members - 1) / 2, "{quorums:?}");
            assert!(quorums.failures() < quorums.majority, "{quorums:?}");
        }
        assert_eq!([3, 5, 7].map(|members| Quorums::printed(members).fast), [2, 3, 5]);
    }

    #[test]
    fn fast_majorities_leave_one_member_that_may_crash() {
        let sizes = [1, 2, 3, 4, 5, 7, 9].map(|members| {
            let Quorums { fast, recovery, .. } = Quorums::of_fast_majorities(members);
            (fast, recovery)
        });
        assert_eq!(sizes, [(1, 1), (2, 2), (2, 2), (3, 3), (3, 4), (4, 6), (5, 8)]);
        for members in 3..50 {
            let quorums = Quorums::of_fast_majorities(members);
            let Quorums { majority, fast, recovery, .. } = quorums;
            assert!((majority..members).contains(&recovery), "{quorums:?}");
            assert!(fast + recovery >= members + (members - 1) / 2, "{quorums:?}");
            assert!(quorums.agreeing() + 1 + majority > members, "{quorums:?}");
        }
    }

    #[test]
    fn two_fast_quorums_of_free_votes_meet_in_each_that_is_asked() {
        let sizes = [1, 2, 3, 5, 7].map(|members| Quorums::of_free_votes(members).fast);
        assert_eq!(sizes, [1, 2, 3, 4, 6]);
        for members in 1..50 {
            let Quorums { fast, recovery, majority, .. } = Quorums::of_free_votes(members);
            assert!((majority..=members).contains(&fast), "{members}: {fast}");
            assert!(2 * fast + recovery > 2 * members, "{members}: {fast}");
            let fewer = fast - 1;
            let is_enough = fewer >= majority && 2 * fewer + recovery > 2 * members;
            assert!(!is_enough, "{members}: {fewer} are enough");
        }
    }
}
