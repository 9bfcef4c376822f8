//! How a repository tells time: what a read sees, what a vote proposes, whose turn it is.
//!
//! The machines of the family lock, vote, decide and finish in the same way whether a snapshot is
//! a timestamp or a vector of them. What they must know of time they ask a [`Time`]: it serves
//! reads at a [`Snapshot`], makes proposals, keeps the commit queue, and says from the votes where
//! a transaction lies.

use std::fmt::{Debug, Display};

use muesli_core::judgement::in_range;
use muesli_core::parts::locks::{LockWord, Owner};
use muesli_core::parts::versions::{Handle, Version, Versions};
use muesli_core::parts::votes::Votes;
use muesli_core::parts::watermark::Bound;
use muesli_core::wire::{Reader, Wire, WireError};
use muesli_core::{Decision, Rejection, RepositoryId, SmallBytes, SpaceId, Timestamp, TxnId};

use super::{Key, ValidationResult, Variant};
use crate::two_phase::Context;

/// What every value must be that messages state of time: votes, commit places, snapshots.
pub trait StatedBounds: Wire + Clone + Debug + Display + Eq + Send + Sync + 'static {}
impl<T: Wire + Clone + Debug + Display + Eq + Send + Sync + 'static> StatedBounds for T {}

/// Where a committed transaction lies.
pub trait CommitPlace: StatedBounds {
    /// Whether it lies before its turn.
    fn is_time_warped(&self) -> bool;
}

/// It lies at its turn.
impl CommitPlace for Timestamp {
    #[inline]
    fn is_time_warped(&self) -> bool {
        false
    }
}

/// What a transaction reads at, and what bounds it.
pub trait Snapshot: Bound + StatedBounds {
    /// The least one of a session that was told of a commit at `lower_bound`.
    fn from_lower_bound(lower_bound: Timestamp) -> Self;
    /// A repository has answered at `at`.
    fn learn(&mut self, at: &Self);
    /// The least snapshot of which it is one: what was read depends on as much.
    fn as_lower_bound(&self) -> Self;
    /// Whether what is read at it sees all that `other` depends on.
    fn reaches(&self, other: &Self) -> bool;
    /// Whether a repository that was asked at `known`, or before, has answered at a later present.
    fn is_ahead_of(&self, known: &Self) -> bool;
    /// Whether a read at `repository` leaves it as it is, so that others need not wait for it.
    fn is_fixed_at(&self, repository: RepositoryId) -> bool;
    /// Its place among the timestamps of commits, as clients are told.
    fn at(&self) -> Timestamp;
    /// The largest timestamp in it, as far as one can be told; [`Timestamp::MAX`] if none can.
    fn reach(&self) -> Timestamp;
    /// Whether it can be one of a database with so many repositories; its [reach](Self::reach).
    ///
    /// # Errors
    /// It cannot.
    fn judge(&self, repositories: usize) -> Result<Timestamp, Rejection>;
}

impl Snapshot for Timestamp {
    #[inline]
    fn from_lower_bound(lower_bound: Timestamp) -> Timestamp {
        lower_bound
    }

    #[inline]
    fn learn(&mut self, _at: &Timestamp) {}

    #[inline]
    fn as_lower_bound(&self) -> Timestamp {
        *self
    }

    #[inline]
    fn reaches(&self, other: &Timestamp) -> bool {
        self >= other
    }

    #[inline]
    fn is_ahead_of(&self, known: &Timestamp) -> bool {
        self > known
    }

    #[inline]
    fn is_fixed_at(&self, _repository: RepositoryId) -> bool {
        true
    }

    #[inline]
    fn at(&self) -> Timestamp {
        *self
    }

    fn reach(&self) -> Timestamp {
        *self
    }

    fn judge(&self, _repositories: usize) -> Result<Timestamp, Rejection> {
        in_range(*self).map(|()| *self)
    }
}

/// How a transaction reads.
#[derive(Clone, Debug)]
pub struct Reading<V: Variant> {
    /// The snapshot, or for a first read the least it may be.
    pub snapshot: V::Snapshot,
    /// Whether this read fixes the snapshot.
    pub first: bool,
    /// Whether the coordinator is on the same node, and asks by a call.
    pub here: bool,
    /// Who reads.
    pub reader: V::Reader,
}

/// Why a read was not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotServed {
    /// What the snapshot needs is not decided, or not applied: wait.
    Blocked,
    /// The versions that the snapshot needs may be gone.
    TooOld,
    /// A key is over the limit.
    TooLarge,
    /// A key has moved, and is not here.
    Elsewhere,
}

/// The clock of a repository, with its commit queue.
pub trait Time<V: Variant>: Clone + Debug + Send {
    /// That of an empty repository.
    fn new(id: RepositoryId, switches: &V::Switches) -> Self;

    /// Up to where transactions were applied here.
    fn committed(&self) -> V::Snapshot;
    /// The largest that was served, proposed or decided here.
    fn newest(&self) -> V::Snapshot;
    /// Somebody knows of this.
    fn observe(&mut self, newest: &V::Snapshot, cx: &mut Context<'_, V>);

    /// The snapshot of a read that is served now. This comes before any lock is looked at, and in
    /// one step with it.
    ///
    /// # Errors
    /// It cannot be served, or not yet.
    fn serve(
        &mut self,
        reading: &Reading<V>,
        cx: &mut Context<'_, V>,
    ) -> Result<V::Snapshot, NotServed>;
    /// Of what nobody reads below `low`, up to where versions may go: a transaction in doubt may
    /// come to lie below newer versions, and then what is deleted must be known.
    fn collectable(&self, low: Timestamp) -> Timestamp;
    /// Whether a read at `snapshot` must wait for the end of a transaction that holds a lock, by
    /// what that one read at and voted.
    fn blocks(
        &self,
        protocol_state: &V::ProtocolState,
        holder: (&V::Snapshot, &V::Yes),
        snapshot: &V::Snapshot,
    ) -> bool;
    /// A key as a read at `snapshot` sees it.
    fn read<'v>(
        &self,
        versions: &'v Versions,
        space: SpaceId,
        key: &SmallBytes,
        snapshot: &V::Snapshot,
    ) -> Option<(Handle, LockWord, Version<'v>)>;
    /// Up to where a read at `snapshot` sees versions here.
    fn seen_until(&self, snapshot: &V::Snapshot) -> Timestamp;
    /// A key of a range as a read at `snapshot` sees it.
    fn version<'v>(
        &self,
        versions: &'v Versions,
        space: SpaceId,
        handle: Handle,
        snapshot: &V::Snapshot,
    ) -> Version<'v>;

    /// What a validator needs of a vote: its proposal, and up to where what was read stays the
    /// newest. `None`: votes of this time are not merged.
    fn bounds_of(yes: &V::Yes) -> Option<(Timestamp, Timestamp)>;

    /// Where reads go out side by side: whether what was read at `at` would have been the same had
    /// it been asked for when `known` was.
    fn fits(switches: &V::Switches, known: &V::Snapshot, at: &V::Snapshot) -> bool;

    /// How far a snapshot reaches of what was committed here. A transaction that commits here
    /// comes to lie further than its own snapshot reached, and so does then what was
    /// [committed](Self::committed).
    fn reached(&self, snapshot: &V::Snapshot) -> u64;

    /// Whether what proves a read at `snapshot` stale may be gone.
    fn is_too_old(&self, snapshot: &V::Snapshot) -> bool;
    /// Whether a read of `key` at `snapshot`, which saw the version `read`, has missed nothing up
    /// to `newest`, the newest version here; zero where there is none.
    fn is_current(
        &self,
        key: Key<'_>,
        newest: Timestamp,
        read: Timestamp,
        snapshot: &V::Snapshot,
    ) -> bool;
    /// Whether a scan at `snapshot` that saw `seen` of a key has missed its newest version.
    fn is_phantom(
        &self,
        key: Key<'_>,
        newest: Timestamp,
        snapshot: &V::Snapshot,
        seen: impl FnOnce() -> Option<Timestamp>,
    ) -> bool;

    /// The vote of a transaction that nothing stands against; `writes`: it has writes here.
    fn yes(
        &mut self,
        txn: TxnId,
        writes: bool,
        validation: ValidationResult<V::Snapshot>,
    ) -> V::Yes;
    /// A transaction that voted enters the queue.
    fn enter(&mut self, txn: TxnId, yes: &V::Yes, owner: Owner);
    /// A transaction enters that is decided already, and waits for its turn.
    fn enter_decided(&mut self, txn: TxnId, place: &V::Place, owner: Owner);
    /// It aborted.
    fn withdraw(&mut self, txn: TxnId, yes: &V::Yes, owner: Owner);
    /// It will commit: its place in the queue is final.
    fn decided(&mut self, txn: TxnId, yes: &V::Yes, place: &V::Place, owner: Owner);
    /// The transaction whose turn it is, taken out of the queue.
    fn next_ready(&mut self) -> Option<Owner>;
    /// A transaction that wrote these keys was applied.
    fn applied<'k>(
        &mut self,
        place: &V::Place,
        keys: impl Iterator<Item = (SpaceId, &'k SmallBytes)>,
    );
    /// A key came here that was deleted elsewhere at this time: nothing is proposed, or served
    /// first, below that any more.
    fn pass(&mut self, at: Timestamp);
    /// What could be applied was.
    fn rest(&mut self);

    /// The vote of a transaction that takes part here alone, and commits in this step; `None` if
    /// it must take its turn.
    fn yes_alone(
        &mut self,
        validation: &ValidationResult<V::Snapshot>,
        logging: bool,
    ) -> Option<V::Yes>;
    /// It was applied, and no other transaction was under way: nobody reads what it replaced.
    fn applied_alone(&mut self, place: &V::Place);

    /// What the votes of all decide.
    fn decide(switches: &V::Switches, votes: &Votes<RepositoryId, V::Yes>) -> Decision<V::Place>;
    /// What the vote of a repository decides that nobody else takes part with.
    fn decide_alone(&self, switches: &V::Switches, yes: V::Yes) -> Decision<V::Place>;
    /// The version that the writes of a transaction install.
    fn version_of(place: &V::Place) -> Timestamp;
    /// Everything up to this was committed as somebody knows of a transaction at `place`.
    fn known_by(place: &V::Place) -> V::Snapshot;

    /// Whether a vote can be one on this transaction in a database with so many repositories.
    ///
    /// # Errors
    /// It cannot.
    fn judge_yes(txn: TxnId, yes: &V::Yes, repositories: usize) -> Result<(), Rejection>;
    /// Whether a place can be one in a database with so many repositories; the largest timestamp
    /// in it.
    ///
    /// # Errors
    /// It cannot.
    fn judge_place(place: &V::Place, repositories: usize) -> Result<Timestamp, Rejection>;
    /// Whether a transaction that voted this here and is not decided may come to lie at `place`.
    fn can_decide(&self, txn: TxnId, yes: &V::Yes, place: &V::Place) -> bool;
    /// Whether a repository of so many can have logged this vote of a transaction that has writes
    /// here, or has not.
    ///
    /// # Errors
    /// It cannot.
    fn judge_logged_yes(
        txn: TxnId,
        writes: bool,
        yes: &V::Yes,
        repositories: usize,
    ) -> Result<(), Rejection>;
    /// Whether this repository, one of so many, can have logged this place: of a transaction that
    /// it took part in, and perhaps alone.
    ///
    /// # Errors
    /// It cannot.
    fn judge_logged_place(
        &self,
        place: &V::Place,
        alone: bool,
        repositories: usize,
    ) -> Result<(), Rejection>;
    /// Whether all that this clock knows leaves room.
    ///
    /// # Errors
    /// It does not.
    fn judge_restored(&self, repositories: usize) -> Result<(), Rejection>;
    /// The largest timestamp that was issued here, or that members have told of.
    fn issued(&self) -> Timestamp;

    /// No snapshot below this is served.
    fn low(&self) -> V::Snapshot;
    /// Nobody reads below `low` any more; the version below which none is needed.
    fn collect(&mut self, low: &V::Snapshot) -> Timestamp;
    /// The log says that nothing above `at` was served before the next such record.
    fn replay_upper_bound(&mut self, at: Timestamp);

    /// What a checkpoint must have of this moment, beside the queue; in pieces of about `bytes`
    /// bytes, one at least.
    fn encode(&self, bytes: usize) -> Vec<Vec<u8>>;
    /// Takes over a piece of what another one of this repository [gave](Self::encode).
    ///
    /// # Errors
    /// The bytes are no such thing.
    fn restore(&mut self, input: &mut Reader<'_>) -> Result<(), WireError>;
    /// Whose turn is to come, in order, and whether each is decided.
    fn queued(&self) -> impl Iterator<Item = (Owner, bool)>;
    /// Checks what clock and queue promise of themselves.
    ///
    /// # Panics
    /// Something of that does not hold.
    fn assert_invariants(&self);

    /// Whether a transaction may stand in the queue with this vote, and at this place if it is
    /// decided: bytes from outside may say anything.
    fn can_enter(&self, txn: TxnId, yes: &V::Yes, decided: Option<&V::Place>) -> bool;
}
