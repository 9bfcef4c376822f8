//! What one protocol of the family does its own way.

pub mod time;

use std::fmt::Debug;
use std::hash::Hash;

use muesli_core::ranges::KeyRange;
use muesli_core::wire::Wire;
use muesli_core::{Abort, Isolation, NodeId, SmallBytes, SpaceId, Timestamp, Txn};

use self::time::{Snapshot, StatedBounds, Time};
use super::policy::Rules;
use super::policy::installing::InstallPolicy;
use super::policy::locking::LockPolicy;
use super::policy::order::ApplyOrder;
use super::policy::participation::ParticipationPolicy;
use super::policy::reading::ReadPolicy;
use super::policy::validation::Validation;

/// What tells readers apart.
pub trait ReaderBounds: Wire + Copy + Debug + Eq + Ord + Hash + Send + Sync + 'static {}
impl<T: Wire + Copy + Debug + Eq + Ord + Hash + Send + Sync + 'static> ReaderBounds for T {}

/// A protocol of the family, by where it departs from SCORe. What is not overridden is SCORe's.
///
/// The associated functions are called where the family's machines have come to a point at which
/// protocols differ; each is a rule and sees nothing but what it judges.
pub trait Variant: Copy + Debug + Eq + Send + Sync + 'static {
    /// As `--protocol` names it.
    const NAME: &'static str;
    /// What it promises.
    const ISOLATION: Isolation;
    /// What its users choose.
    type Rules: Clone + Debug + Default + Send + Sync + 'static;
    /// What a repository keeps beside versions, locks and queue.
    type ProtocolState: Clone + Debug;
    /// Who reads, where a protocol must tell readers apart.
    type Reader: ReaderBounds + Default;
    /// What a transaction reads at.
    type Snapshot: Snapshot;
    /// What a vote of yes says.
    type Yes: StatedBounds;
    /// Where a committed transaction lies: at least its turn in the commit queues.
    type Place: StatedBounds;
    /// How a repository tells time.
    type Time: Time<Self>;
    /// What reads see.
    type Reading: ReadPolicy;
    /// Which repositories take part in an update.
    type Participation: ParticipationPolicy;
    /// When keys that are written may be locked.
    type Locking: LockPolicy;
    /// What of a transaction is validated when it commits.
    type Validation: Validation;
    /// In which order decided transactions are applied.
    type Order: ApplyOrder;
    /// Where their versions are installed.
    type Installing: InstallPolicy;

    /// How many stamps are looked up where so many keys are read or about to be written: work that
    /// simulated nodes are charged for as for validating as many keys.
    #[inline]
    fn stamps(keys: usize) -> u64 {
        if Self::Installing::MAY_TIME_WARP { keys as u64 } else { 0 }
    }

    /// The family's rules among the protocol's.
    fn rules(rules: &Self::Rules) -> Rules;
    /// What an empty repository keeps; `hash_seed` is that of its hashes.
    fn protocol_state(rules: &Self::Rules, hash_seed: u64) -> Self::ProtocolState;

    /// Checks what is kept beside versions, locks and queue.
    ///
    /// # Panics
    /// It is not what the protocol says of it.
    fn assert_protocol_state(protocol_state: &Self::ProtocolState);

    /// Whether an update may commit although a version that it read is not the newest, as long as
    /// it does not write that key.
    #[inline]
    fn tolerates_stale_reads(_rules: &Self::Rules) -> bool {
        false
    }

    /// Whether a prepare may wait for locks.
    #[inline]
    fn waits_for_locks(_rules: &Self::Rules) -> bool {
        true
    }

    /// Where reads go out side by side: whether what was read at `at` would have been the same had
    /// it been asked for when `known` was.
    fn fits(_rules: &Self::Rules, _known: &Self::Snapshot, _at: &Self::Snapshot) -> bool {
        true
    }

    /// Whether keys are locked as they are written.
    #[inline]
    fn locks_at_writes(_rules: &Self::Rules) -> bool {
        false
    }

    /// Whether actions that need not be done before the commit are delayed until then.
    #[inline]
    fn delays_actions(_rules: &Self::Rules) -> bool {
        false
    }

    /// How delayed actions keep their transaction out of the past.
    #[inline]
    fn delayed_time_warp(_rules: &Self::Rules) -> DelayedTimeWarp {
        DelayedTimeWarp::Never
    }

    /// Whether a committed transaction lies before its turn.
    #[inline]
    fn is_time_warped(_place: &Self::Place) -> bool {
        false
    }

    /// Whether a vote waits in one direction of an order only, so that no circle of waits can form.
    #[inline]
    fn orders_waits(_rules: &Self::Rules) -> bool {
        false
    }

    /// Who is reading.
    #[inline]
    fn reader(_node: NodeId, _incarnation: u32, _txn: Txn) -> Self::Reader {
        Self::Reader::default()
    }

    /// Whether this is a reader of that node.
    fn is_reader_of(_reader: Self::Reader, _node: NodeId) -> bool {
        true
    }

    /// A key is about to be read at `snapshot`, in one step with looking at its lock.
    #[inline]
    fn note_read(
        _state: &mut Self::ProtocolState,
        _key: Key<'_>,
        _snapshot: &Self::Snapshot,
        _committed: &Self::Snapshot,
        _reader: Self::Reader,
    ) {
    }

    /// A range is about to be read at `snapshot`.
    #[inline]
    fn note_scan(
        _state: &mut Self::ProtocolState,
        _range: &KeyRange,
        _snapshot: &Self::Snapshot,
        _committed: &Self::Snapshot,
        _reader: Self::Reader,
    ) {
    }

    /// Whether stale reads of keys that are not written go into the standing of an update, instead
    /// of having it refused.
    #[inline]
    fn suffers_stale_reads(_state: &Self::ProtocolState) -> bool {
        false
    }

    /// An update that asks to commit did not see the version at `at` of a key that it read.
    ///
    /// # Errors
    /// It cannot commit because of this.
    #[inline]
    fn note_missed(
        _state: &Self::ProtocolState,
        _key: Key<'_>,
        at: Timestamp,
        validation: &mut ValidationResult<Self::Snapshot>,
    ) -> Result<(), Abort> {
        validation.missed = Some(validation.missed.map_or(at, |missed| missed.min(at)));
        Ok(())
    }

    /// An update that asks to commit would replace the version at `head` of a key.
    #[inline]
    fn note_write(
        _state: &Self::ProtocolState,
        _key: Key<'_>,
        _head: Timestamp,
        _reader: Self::Reader,
        _validation: &mut ValidationResult<Self::Snapshot>,
    ) {
    }

    /// A transaction that wrote a key was applied.
    #[inline]
    fn note_written(_state: &mut Self::ProtocolState, _key: Key<'_>, _place: &Self::Place) {}

    /// An update that read a key was applied.
    #[inline]
    fn note_read_by(_state: &mut Self::ProtocolState, _key: Key<'_>, _place: &Self::Place) {}

    /// An update that read a range was applied.
    #[inline]
    fn note_scanned_by(_state: &mut Self::ProtocolState, _range: &KeyRange, _place: &Self::Place) {}

    /// The repository begins, perhaps from its log: nothing above `ceiling` was served before.
    #[inline]
    fn restarted(_state: &mut Self::ProtocolState, _ceiling: &Self::Snapshot) {}

    /// Nobody reads below `low` any more.
    #[inline]
    fn collect(_state: &mut Self::ProtocolState, _low: &Self::Snapshot) {}
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
    pub floor: Timestamp,
    /// In the past it must lie below what it proposes here.
    pub below_proposal: bool,
}

impl<S> ValidationResult<S> {
    /// Nothing is known yet of an update that read at `snapshot`.
    #[inline]
    pub fn new(snapshot: S, strict: bool) -> ValidationResult<S> {
        ValidationResult {
            snapshot,
            strict,
            missed: None,
            floor: Timestamp::ZERO,
            below_proposal: false,
        }
    }
}

/// Inside an `impl Variant`: a repository keeps nothing beside versions, locks and queue.
macro_rules! keeps_nothing {
    () => {
        type ProtocolState = ();

        fn protocol_state(_: &Self::Rules, _: u64) {}

        fn assert_protocol_state((): &()) {}
    };
}

pub(crate) use keeps_nothing;
