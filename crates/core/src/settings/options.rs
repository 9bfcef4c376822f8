//! Options of transactions, and the settings of a node.

use crate::actions::Actions;
use crate::batching::Batching;
use crate::ids::Timestamp;
use crate::issuance::Issuer;
use crate::limits::Limits;
use crate::memory::Memory;
use crate::parallel::Parallel;
use crate::procedure::Procedures;
use crate::secret::Secret;
use crate::time::Nanos;

/// How a transaction is to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TxnOptions {
    /// Writes are refused; unless it is strict, the transaction never validates and never aborts.
    pub read_only: bool,
    /// Strict serializability: a read-only transaction is validated as an update is.
    pub strict: bool,
    /// Delayed actions are done at once, as reads and writes.
    pub eager: bool,
    /// Where keys move to who writes them: those that it writes stay where they are.
    pub stays: bool,
    /// Before a child of it is merged, what the transaction has read is looked at once more.
    pub validated_merges: bool,
    /// What only reads at one repository may be answered by whoever keeps a copy of that, though
    /// it be a little behind: as the database once was, and no older than the session has seen.
    pub follower_reads: bool,
    /// How stale what it sees may be, where it only reads: it may be run on an older snapshot then,
    /// and so be answered nearer. `None`: no staler than under its protocol always.
    pub staleness: Option<Staleness>,
    /// The session's highest timestamp seen: the snapshot is not below it.
    pub lower_bound: Timestamp,
    /// It may read ranges of spaces that are found by hash, too: each repository puts the keys of
    /// such a space in order the first time, and keeps them so from then on.
    pub lists: bool,
    /// Since when it has been tried, where it has lost to others so often that it is to be let
    /// through; zero: it has not.
    pub tried_since: Nanos,
    /// The session, for histories.
    pub session: u64,
    /// What it is part of, for histories.
    pub level: TxnLevel,
}

/// How stale what a read-only transaction sees may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Staleness {
    /// It sees everything whose commit had been told to its client this long before the transaction
    /// began, as the clock of the node that answers counts.
    pub most: Nanos,
    /// Whether it waits where there is no such snapshot yet; else it is refused.
    pub waits: bool,
}

impl Staleness {
    /// Nothing that was committed before it began may be missing.
    pub const NONE: Staleness = Staleness { most: Nanos(0), waits: true };
}

/// What a transaction is within the one that its client asked for, as histories tell it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TxnLevel {
    /// The number of the root: what a client asked for, with all attempts, open children and
    /// handlers. Zero: nobody records roots.
    pub root: u32,
    /// Which part of the root it is.
    pub role: LevelRole,
}

/// Which part of a root a transaction is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LevelRole {
    /// The root's own accesses, with whose commit the root commits.
    #[default]
    Own,
    /// An open child, at any depth.
    Child,
    /// It undoes what an open child did whose parent was aborted.
    Compensation,
    /// It does what an open child left for after the commit.
    CommitHandler,
}

/// After how much work a node does what need not be done at once. Searches for faults make it
/// happen in short runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// A repository collects garbage after so many commits, beside each time that the watermark
    /// rises. Default 64.
    pub collect_after: u32,
    /// The watermark is logged once in so many commits at most. Default 1024.
    pub log_low_after: u32,
    /// A coordinator tells its oldest snapshot after so many transactions, without waiting for
    /// [`gossip_every`](Settings::gossip_every). Default 256.
    pub tell_bound_after: u64,
    /// A bound of timestamps, up to which a start assumes that they were used, is logged so many
    /// steps ahead; under Granola half as many. Default 2^20.
    pub upper_bound_steps: u64,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace {
            collect_after: 64,
            log_low_after: 1024,
            tell_bound_after: 256,
            upper_bound_steps: 1 << 20,
        }
    }
}

/// The longest that an application's process may wait for an answer. Servers remember silent
/// clients for longer ([`Settings::client_lease`]): of one that is forgotten, a request that comes
/// again would be taken up anew.
pub const GIVE_UP_MOST: Nanos = Nanos::from_millis(120_000);

/// For at least so long repositories remember a client: it may wait for so long, and what it asks
/// again after it was forgotten would be done again.
pub const CLIENT_LEASE_LEAST: Nanos = Nanos(2 * GIVE_UP_MOST.0);

/// What a node's protocols are told when it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Size limits.
    pub limits: Limits,
    /// The delayed actions that the node knows; the same on every node.
    pub actions: Actions,
    /// The procedures that the node knows; the same on every node.
    pub procedures: Procedures,
    /// Who runs procedures that have nothing to do with each other at the same time, and how many
    /// of them; a protocol that has no use for it runs them one after the other.
    pub parallel: Parallel,
    /// Seed of the index hashes: random in production, fixed in the simulator.
    pub hash_seed: u64,
    /// Whether records must be logged; where nothing survives a crash anyway, they are not made.
    pub logging: bool,
    /// The node's disk is empty, and was not: what it had is gone. The number is of this memory of
    /// it alone; under a protocol whose nodes exchange members it comes back as another member.
    pub lost_disk: Option<u64>,
    /// Whether coordinators keep copies of repositories that live elsewhere, and answer from them
    /// [readers that any copy may answer](TxnOptions::follower_reads): all of the repository's keys
    /// are held in memory once more. Protocols without copies do as always.
    pub caches: bool,
    /// Whether replicas remember the versions of the deletions that they have collected, in a table
    /// that protocols never look at: histories name the deletion that a read of an absent key saw.
    pub record_collected: bool,
    /// A request unanswered for this long is sent again, to another replica where there is one.
    pub retry_after: Nanos,
    /// How long a prepare may wait for a lock before it is refused.
    pub lock_wait: Nanos,
    /// How many prepares may wait for locks at one repository before further ones are refused.
    pub lock_waiters_max: usize,
    /// A transaction undecided for this long is finished without its coordinator.
    pub in_doubt_after: Nanos,
    /// An operation unanswered for this long fails, as a timeout or an unknown outcome.
    pub give_up_after: Nanos,
    /// How often nodes tell their oldest snapshot, which bounds the garbage collection.
    pub gossip_every: Nanos,
    /// A node silent for this long no longer holds old versions back.
    pub snapshot_lease: Nanos,
    /// A transaction open for this long does not either: its snapshot is too old then.
    pub snapshot_age_max: Nanos,
    /// The memory of the process.
    pub memory: Memory,
    /// The secret that members of the cluster share, where there is one; clients need not have it.
    pub secret: Option<Secret>,
    /// What a member vouches with for what it says to clients; clients have none.
    pub issuer: Option<Issuer>,
    /// Of a client silent for this long a server forgets what nobody can ask for any more.
    pub client_lease: Nanos,
    /// Of so many transactions of one client a repository keeps the end, until the client says that
    /// it is known everywhere; further ones wait.
    pub unsettled_max: usize,
    /// Of so many transactions of all clients together a repository keeps the end, each client that
    /// it knows counting as one more; further ones wait. Coordinators of members are not refused.
    pub unsettled_total_max: usize,
    /// After how much work what need not be done at once is done.
    pub pace: Pace,
    /// How many messages leave together over a link, and how long they wait for each other; how
    /// many commits of a site are ordered as one.
    pub batching: Batching,
    /// The site that orders commits at the start, by its repository, under protocols that have one
    /// leader for all sites. One that there is not stands for the last.
    pub leader_site: u16,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            limits: Limits::default(),
            actions: Actions::default(),
            procedures: Procedures::default(),
            parallel: Parallel::default(),
            hash_seed: 0,
            logging: false,
            lost_disk: None,
            caches: false,
            record_collected: false,
            retry_after: Nanos::from_millis(20),
            lock_wait: Nanos::from_millis(2),
            lock_waiters_max: 10_000,
            in_doubt_after: Nanos::from_millis(100),
            give_up_after: Nanos::from_millis(10_000),
            gossip_every: Nanos::from_millis(5),
            snapshot_lease: Nanos::from_millis(10_000),
            snapshot_age_max: Nanos::from_millis(60_000),
            memory: Memory::default(),
            secret: None,
            issuer: None,
            client_lease: Nanos::from_millis(600_000),
            unsettled_max: 100_000,
            unsettled_total_max: 1_000_000,
            pace: Pace::default(),
            batching: Batching::default(),
            leader_site: 0,
        }
    }
}

impl Settings {
    /// Sets the site of the leader, and makes the times of nodes long enough for sites between
    /// which a message and its answer take so long at most: nothing is asked again, and nobody is
    /// taken for dead, before an answer can be there.
    pub fn suit_sites(&mut self, leader_site: u16, longest_round_trip: Nanos) {
        self.leader_site = leader_site;
        self.retry_after = self.retry_after.max(Nanos(2 * longest_round_trip.0));
        self.in_doubt_after = self.in_doubt_after.max(Nanos(6 * longest_round_trip.0));
    }
}
