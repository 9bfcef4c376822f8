//! The switches of GMU.

use crate::two_phase;

/// Switches. The default is the protocol as it should be; what the paper prints is
/// [`Rules::printed`]. Each breaks the protocol alone when it is turned off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The family's switches.
    pub family: two_phase::Rules,
    /// A read waits until the repository has applied everything that its reader depends on.
    pub reads_wait: bool,
    /// So does a read on the coordinator's own node; as printed, only remote ones do.
    pub local_reads_wait: bool,
    /// A version is visible if its writer's whole vector is, as far as the reader has read; as
    /// printed, by its number at this repository alone.
    pub filter_by_vectors: bool,
    /// What is visible, and what was committed last, are pointwise maxima; else the vector of the
    /// last commit in the log's order.
    pub pointwise: bool,
    /// A read is current if its version is the newest one; as printed, if the newest one's number
    /// is not above the reader's entry.
    pub exact_validation: bool,
    /// A final number is above every owner's and nobody else's; as printed, it is the largest
    /// proposed, and ties go by transaction.
    pub unique_numbers: bool,
    /// A vote has all that was committed at the repository, so that the commit vector does.
    pub merge_votes: bool,
    /// A read waits for a number while a commit is queued below it. Otherwise it waits until that
    /// number was applied, which never is one that a client has made up.
    pub waits_for_queued: bool,
    /// Of first reads made side by side, those count alone that would have been the same one after
    /// the other.
    pub fits_side_by_side: bool,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules {
            family: two_phase::Rules::default(),
            reads_wait: true,
            local_reads_wait: true,
            filter_by_vectors: true,
            pointwise: true,
            exact_validation: true,
            unique_numbers: true,
            merge_votes: true,
            waits_for_queued: true,
            fits_side_by_side: true,
        }
    }
}

impl Rules {
    /// The algorithm as the paper prints it.
    pub fn printed() -> Rules {
        Rules {
            local_reads_wait: false,
            filter_by_vectors: false,
            pointwise: false,
            exact_validation: false,
            unique_numbers: false,
            ..Rules::default()
        }
    }
}
