//! Which transactions are recorded whole.
//!
//! # The problem
//! A history of everything costs a quarter of the throughput of small transactions, and memory as
//! long as the run.
//!
//! # The idea
//! A share of the transactions is kept whole, chosen by their ids, so that all nodes choose alike.
//! Of the others that changed something their *footprint* is kept: who they are, when they ran, and
//! what they wrote, but nothing of what they read. Of those that changed nothing, nothing is.
//!
//! A history is made of the transactions that are kept whole, and of those that wrote what they
//! have read, one step back, by their writes.
//!
//! # What it proves
//! *No violation that it shows is false.* What the history says of each transaction in it is true;
//! only operations and transactions are left out. An edge between two transactions in it is an edge
//! of the whole history or stands for a path there: who read a version comes before the writer of
//! the next version that is known, by way of the writers of those in between, and sessions and real
//! time are orders. So a cycle of a sampled history is one of the whole history, at each level. A
//! version that was read has its writer, so no read is of an unknown version.
//!
//! *It may miss violations*: of a cycle all those transactions must be there that the edges in it
//! need. One of two transactions, such as a write skew or a lost update, shows with a share of one
//! in n in about one of n² cases; one that passes by a write that is read, in one of n.

use crate::ids::TxnId;

/// A share of the transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    one_in: u32,
}

impl Default for Sampling {
    fn default() -> Sampling {
        Sampling::ALL
    }
}

impl Sampling {
    /// Every transaction.
    pub const ALL: Sampling = Sampling { one_in: 1 };

    /// One transaction of so many; 0 is taken for 1.
    pub const fn one_in(count: u32) -> Sampling {
        Sampling { one_in: if count == 0 { 1 } else { count } }
    }

    /// Of how many transactions one is kept whole.
    pub fn share(self) -> u32 {
        self.one_in
    }

    /// Whether a transaction is kept whole.
    #[inline]
    pub fn keeps(self, id: TxnId) -> bool {
        self.one_in == 1 || mixed(id).is_multiple_of(u64::from(self.one_in))
    }
}

/// A number that ids share evenly, the same on every node.
#[inline]
fn mixed(id: TxnId) -> u64 {
    let origin = u64::from(id.node.0) << 32 | u64::from(id.incarnation);
    let mut mixed = id.sequence ^ origin.rotate_left(17);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::NodeId;

    #[test]
    fn a_share_is_a_share() {
        for (one_in, node) in [(2, 0), (7, 1), (16, 900)] {
            let id = |sequence| TxnId { node: NodeId(node), incarnation: 3, sequence };
            let kept = (0..10_000).filter(|at| Sampling::one_in(one_in).keeps(id(*at))).count();
            let wanted = 10_000 / one_in as usize;
            assert!((wanted * 8 / 10..wanted * 12 / 10).contains(&kept), "{one_in}: {kept}");
        }
        let id = TxnId { node: NodeId(1), incarnation: 1, sequence: 5 };
        assert!(Sampling::ALL.keeps(id) && Sampling::one_in(0).keeps(id));
    }
}
