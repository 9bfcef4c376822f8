//! Ballots: which leader, and which time it leads.

use omnipaxos::ballot_leader_election::Ballot as LibraryBallot;

/// A ballot of the consensus: which leader, and which time it leads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ballot {
    /// The number of the configuration: any ballot of a later one wins.
    pub configuration: u32,
    /// Larger ones win.
    pub number: u32,
    /// The member that leads, from 1; 0 is nobody.
    pub member: u64,
}

impl From<LibraryBallot> for Ballot {
    fn from(ballot: LibraryBallot) -> Ballot {
        let LibraryBallot { config_id: configuration, n: number, pid: member, .. } = ballot;
        Ballot { configuration, number, member }
    }
}

impl From<Ballot> for LibraryBallot {
    fn from(ballot: Ballot) -> LibraryBallot {
        if ballot == Ballot::default() {
            return LibraryBallot::default();
        }
        LibraryBallot::with(ballot.configuration, ballot.number, 0, ballot.member)
    }
}
