//! What one protocol of the family does its own way.

pub mod state;
pub mod time;

use std::fmt::Debug;

use muesli_core::wire::Wire;
use muesli_core::{
    Catalog, Isolation, Nanos, NodeId, Service, SmallBytes, SpaceId, Timestamp, Txn,
};

use self::state::VariantState;
use self::time::{CommitPlace, Snapshot, StatedBounds, Time};
use super::TwoPhase;
use super::policy::{Policies, Switches, TreeChoice, TreeSwitch};

/// Who reads, as far as a protocol tells readers apart.
pub trait ReaderBounds: Wire + Copy + Debug + Default + Ord + Send + Sync + 'static {
    /// The reader of a transaction that has no id yet; with since when it has been tried, where it
    /// has lost so often that it is to be let through.
    fn new(node: NodeId, incarnation: u32, txn: Txn, tried_since: Nanos) -> Self;
    /// Whether this is a reader of that node.
    fn is_of(self, node: NodeId) -> bool;
}

/// All readers are the same.
impl ReaderBounds for () {
    #[inline]
    fn new(_: NodeId, _: u32, _: Txn, _: Nanos) {}

    fn is_of(self, _: NodeId) -> bool {
        true
    }
}

/// A transaction before it has an id: node and incarnation, slot and generation.
pub type Reader = (u64, u64);

impl ReaderBounds for Reader {
    #[inline]
    fn new(node: NodeId, incarnation: u32, txn: Txn, _: Nanos) -> Reader {
        let pair = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        (pair(node.0, incarnation), pair(txn.slot, txn.generation))
    }

    fn is_of(self, node: NodeId) -> bool {
        self.0 >> 32 == u64::from(node.0)
    }
}

/// A protocol of the family, by where it departs from SCORe. What is not overridden is SCORe's.
///
/// The associated functions are called where the family's machines have come to a point at which
/// protocols differ; each is a rule and sees nothing but what it judges.
pub trait Variant: Copy + Debug + Eq + Send + Sync + 'static {
    /// As `--protocol` names it.
    const NAME: &'static str;
    /// What it does at the points at which the family differs.
    const POLICIES: Policies;
    /// What it promises.
    const ISOLATION: Isolation;
    /// What its users choose, with the family's choices among it.
    type Switches: AsRef<Switches> + Clone + Debug + Default + Send + Sync + 'static;
    /// What a repository keeps beside versions, locks and queue.
    type ProtocolState: VariantState<Self>;
    /// Who reads, where a protocol must tell readers apart.
    type Reader: ReaderBounds;
    /// What a transaction reads at.
    type Snapshot: Snapshot;
    /// What a vote of yes says.
    type Yes: StatedBounds;
    /// Where a committed transaction lies: at least its turn in the commit queues.
    type Place: CommitPlace;
    /// How a repository tells time.
    type Time: Time<Self>;
    /// What a node has beside coordinators and participants.
    type Service: Service<TwoPhase<Self>>;

    /// How many read timestamps are looked up where so many keys are read or about to be written:
    /// work that simulated nodes are charged for as for validating as many keys.
    #[inline]
    fn read_timestamps(keys: usize) -> u64 {
        if Self::POLICIES.installing.may_time_warp() { keys as u64 } else { 0 }
    }

    /// The family's rules among the protocol's.
    #[inline]
    fn switches(switches: &Self::Switches) -> Switches {
        *switches.as_ref()
    }

    /// Whether an update may commit although a version that it read is not the newest, as long as
    /// it does not write that key.
    #[inline]
    fn tolerates_stale_reads(_switches: &Self::Switches) -> bool {
        false
    }

    /// Whether a prepare waits for locks, where its policy leaves that to the user.
    #[inline]
    fn waits_for_locks(_switches: &Self::Switches) -> bool {
        true
    }

    /// Whether keys are locked as they are written.
    #[inline]
    fn locks_at_writes(_switches: &Self::Switches) -> bool {
        false
    }

    /// Whether actions that need not be done before the commit are delayed until then.
    #[inline]
    fn delays_actions(_switches: &Self::Switches) -> bool {
        false
    }

    /// How delayed actions keep their transaction out of the past.
    #[inline]
    fn delayed_time_warp(_switches: &Self::Switches) -> DelayedTimeWarp {
        DelayedTimeWarp::Never
    }

    /// Who decides, and the rules of leaves and validators, where the user chooses that.
    #[inline]
    fn tree(_switches: &Self::Switches) -> TreeChoice {
        TreeChoice::default()
    }

    /// Whether votes tell intervals, and nothing is locked, where its policy leaves that to the
    /// user.
    #[inline]
    fn has_intervals(switches: &Self::Switches) -> bool {
        Self::POLICIES.locking.may_have_intervals() && Self::tree(switches).has_intervals()
    }

    /// Whether a rule of validation by a tree holds: it does where there can be no tree.
    #[inline]
    fn keeps(switches: &Self::Switches, switch: TreeSwitch) -> bool {
        !Self::POLICIES.deciding.may_have_validators() || Self::tree(switches).keeps(switch)
    }

    /// Whether keys can be elsewhere than static placement puts them. Where they have copies they
    /// stay.
    #[inline]
    fn keys_move(catalog: &Catalog) -> bool {
        Self::POLICIES.moving.may_move() && catalog.replicas == 1
    }

    /// Whether keys that a member's transaction has written move to its node, where keys can.
    #[inline]
    fn moves(_switches: &Self::Switches) -> bool {
        false
    }

    /// Whether a vote waits for older transactions only, where its policy leaves that to the user.
    #[inline]
    fn orders_waits(_switches: &Self::Switches) -> bool {
        false
    }
}

/// Whether a transaction with delayed actions may lie in the past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelayedTimeWarp {
    /// Never.
    Never,
    /// Where nobody else had delayed actions on their keys when it voted, and below what it
    /// proposed there.
    Safely,
    /// Whoever else had: to see that this is noticed.
    BesideOthers,
    /// Above what it proposed there too: to see that this is noticed.
    AboveProposals,
}

/// A key, with its space.
pub type Key<'a> = (SpaceId, &'a SmallBytes);

/// How an update that asks to commit stands at a repository, as far as no lock is in its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValidationResult<S = Timestamp> {
    /// What it read at.
    pub snapshot: S,
    /// Whether it must take effect while it is under way, and not in the past.
    pub strict: bool,
    /// The oldest version that it should have seen and did not.
    pub missed: Option<Timestamp>,
    /// It must not lie at or below this: there are versions that it replaces, or whoever read them.
    pub lower_bound: Timestamp,
    /// In the past it must lie below what it proposes here.
    pub below_proposal: bool,
    /// Whether it has read anything here that is to stay the newest.
    pub has_read: bool,
    /// How many steps above what was proposed here others have lately come to lie, if votes tell
    /// intervals.
    pub reach: Option<u64>,
}

impl<S> ValidationResult<S> {
    /// Nothing is known yet of an update that read at `snapshot`.
    #[inline]
    pub fn new(snapshot: S, strict: bool) -> ValidationResult<S> {
        ValidationResult {
            snapshot,
            strict,
            missed: None,
            lower_bound: Timestamp::ZERO,
            below_proposal: false,
            has_read: false,
            reach: None,
        }
    }
}
