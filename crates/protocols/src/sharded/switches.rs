//! Which broadcast orders the commands of a shard, and what tests can break.

use muesli_broadcast::multipaxos::PlacedLeader;
use muesli_broadcast::{BroadcastChoice, MemberId, epaxos, generalized, m2paxos, pob};
use muesli_core::sabotage::{Broken, Sabotage, breakable};

breakable! {
    /// What keeps transactions over several shards in one order.
    enum ShardedSwitch {
        /// A transaction has one timestamp at all of its shards. Broken: each orders it by its own.
        OneTimestamp = "sharded_one_timestamp",
        /// A transaction waits for those in its way whose timestamp may still be below its own.
        WaitsForProposals = "sharded_waits_for_proposals",
        /// A transaction commits if all of its shards say yes. Broken: each goes by itself.
        CountsVotes = "sharded_counts_votes",
        /// A read waits until its shard has come to its snapshot. Broken: it takes what is there.
        ReadsWait = "sharded_reads_wait",
        /// A commit whose reads are not the newest is refused.
        Validates = "sharded_validates",
        /// A range that has changed is noticed.
        ValidatesRanges = "sharded_validates_ranges",
        /// An absence that was read is noticed to be another one, though the key be absent again.
        CountsDeletions = "sharded_counts_deletions",
        /// What was read is compared with what is there before a change is waited for.
        ComparesWatches = "sharded_compares_watches",
        /// Versions are kept for as long as somebody may read them.
        KeepsReaders = "sharded_keeps_readers",
        /// Who may be stale is told of a clock that is fresh enough. Broken: of the oldest one that
        /// versions are kept of.
        BoundsStaleness = "sharded_bounds_staleness",
        /// A transaction is prepared once, however often it was asked for.
        PreparesOnce = "sharded_prepares_once",
        /// Of a client that was forgotten it is known for a while up to where it had come.
        RemembersForgotten = "sharded_remembers_forgotten",
    }
}

/// What its users choose.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    /// What orders the commands of each shard.
    pub broadcast: BroadcastChoice,
    broken: Broken<ShardedSwitch>,
}

impl Switches {
    /// Ordered by this broadcast.
    pub fn ordered_by(broadcast: BroadcastChoice) -> Switches {
        Switches { broadcast, ..Switches::default() }
    }

    /// Ordered by Partial Order Broadcast.
    pub fn pob() -> Switches {
        Switches::ordered_by(BroadcastChoice::Pob(pob::Switches::default()))
    }

    /// Ordered by EPaxos.
    pub fn epaxos() -> Switches {
        Switches::ordered_by(BroadcastChoice::Epaxos(epaxos::Switches::default()))
    }

    /// Ordered by Generalized Paxos, whose leader is placed at the first member.
    pub fn generalized() -> Switches {
        let leader = generalized::Switches::led_by(MemberId(0));
        Switches::ordered_by(BroadcastChoice::Generalized(leader))
    }

    /// Ordered by M²Paxos.
    pub fn m2paxos() -> Switches {
        Switches::ordered_by(BroadcastChoice::M2Paxos(m2paxos::Switches::default()))
    }

    /// Ordered by Multi-Paxos, whose leader is placed at the first member.
    pub fn multipaxos() -> Switches {
        Switches::ordered_by(BroadcastChoice::MultiPaxos(PlacedLeader(MemberId(0))))
    }

    pub(super) fn keeps(&self, switch: ShardedSwitch) -> bool {
        self.broken.keeps(switch)
    }
}

impl Sabotage<ShardedSwitch> for Switches {
    fn set(&mut self, switch: ShardedSwitch, holds: bool) {
        self.broken.set(switch, holds);
    }
}
