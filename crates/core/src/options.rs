//! Options of transactions, limits, and the settings of a node.

use crate::actions::Actions;
use crate::ids::Timestamp;
use crate::procedure::Procedures;
use crate::secret::Secret;
use crate::together::Together;

/// Virtual or real time, in nanoseconds from a start of the driver's choosing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

impl Nanos {
    /// So many milliseconds.
    pub const fn from_millis(millis: u64) -> Nanos {
        Nanos(millis * 1_000_000)
    }

    /// So many microseconds.
    pub const fn from_micros(micros: u64) -> Nanos {
        Nanos(micros * 1_000)
    }

    /// This time, rounded down to milliseconds.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }
}

impl std::ops::Add for Nanos {
    type Output = Nanos;
    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(other.0))
    }
}

impl std::ops::Sub for Nanos {
    type Output = Nanos;
    fn sub(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(other.0))
    }
}

/// How a transaction is to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TxnOptions {
    /// Writes are refused; the transaction never validates and never aborts.
    pub read_only: bool,
    /// Strict serializability: a read-only transaction is validated as an update is.
    pub strict: bool,
    /// Delayed actions are done at once, as reads and writes.
    pub eager: bool,
    /// What only reads at one repository may be answered by whoever keeps a copy of that, though
    /// it be a little behind: as the database once was, and no older than the session has seen.
    pub nearby: bool,
    /// The session's highest timestamp seen: the snapshot is not below it.
    pub floor: Timestamp,
    /// The session, for histories.
    pub session: u64,
}

/// Sizes above which an operation is refused before anything is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest key, in bytes. Default 64 KiB.
    pub key_bytes: usize,
    /// Longest value, in bytes. Default 16 MiB.
    pub value_bytes: usize,
    /// Largest sum of keys and values written by one transaction, in bytes. Default 64 MiB.
    pub transaction_bytes: usize,
    /// Most steps of a procedure: keys looked at, keys written, rows of scans. Default 1,000,000.
    pub procedure_steps: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            key_bytes: 64 << 10,
            value_bytes: 16 << 20,
            transaction_bytes: 64 << 20,
            procedure_steps: 1_000_000,
        }
    }
}

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
    pub together: Together,
    /// Seed of the index hashes: random in production, fixed in the simulator.
    pub hash_seed: u64,
    /// Whether records must be logged; where nothing survives a crash anyway, they are not made.
    pub logging: bool,
    /// Whether coordinators keep copies of repositories that live elsewhere, and answer from them
    /// [readers that any copy may answer](TxnOptions::nearby): all of the repository's keys are
    /// held in memory once more. Protocols without copies do as always.
    pub caches: bool,
    /// Keep tombstones for ever: histories need their versions.
    pub keep_tombstones: bool,
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
    /// The secret that members of the cluster share, where there is one; clients need not have it.
    pub secret: Option<Secret>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            limits: Limits::default(),
            actions: Actions::default(),
            procedures: Procedures::default(),
            together: Together::default(),
            hash_seed: 0,
            logging: false,
            caches: false,
            keep_tombstones: false,
            retry_after: Nanos::from_millis(20),
            lock_wait: Nanos::from_millis(2),
            lock_waiters_max: 10_000,
            in_doubt_after: Nanos::from_millis(100),
            give_up_after: Nanos::from_millis(10_000),
            gossip_every: Nanos::from_millis(5),
            snapshot_lease: Nanos::from_millis(10_000),
            secret: None,
        }
    }
}
