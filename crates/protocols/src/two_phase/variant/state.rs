//! What a repository keeps for one protocol of the family, beside versions, locks and queue.

use std::fmt::Debug;

use muesli_core::ranges::KeyRange;
use muesli_core::{Abort, Nanos, SmallBytes, SpaceId, Timestamp, TxnId};

use super::{Key, ValidationResult, Variant};

/// What an update has read and writes at a repository.
#[derive(Clone, Copy, Debug)]
pub struct PreparedKeys<'a> {
    /// The update.
    pub txn: TxnId,
    /// Keys that it has read, with the versions.
    pub reads: &'a [(SpaceId, SmallBytes, Timestamp)],
    /// Ranges that it has scanned.
    pub scans: &'a [KeyRange],
    /// Keys that it writes, and what with.
    pub writes: &'a [(SpaceId, SmallBytes, Option<SmallBytes>)],
}

/// What a repository keeps beside versions, locks and queue, and what it is told for that.
/// Nothing has a default: what a protocol forgot to note would be silent.
pub trait VariantState<V: Variant<ProtocolState = Self>>: Clone + Debug + Send {
    /// What an empty repository keeps; `hash_seed` is that of its hashes.
    fn new(switches: &V::Switches, hash_seed: u64) -> Self;

    /// Checks what is kept.
    ///
    /// # Panics
    /// It is not what the protocol says of it.
    fn assert_invariants(&self);

    /// A key is about to be read at `snapshot`, in one step with looking at its lock.
    fn note_read(
        &mut self,
        key: Key<'_>,
        snapshot: &V::Snapshot,
        committed: &V::Snapshot,
        reader: V::Reader,
        now: Nanos,
    );

    /// Whether a key is kept for another reader for now, so that this one is not to write it.
    fn is_kept_from(&self, key: Key<'_>, reader: V::Reader, now: Nanos) -> bool;

    /// A reader's transaction was voted for or applied: nothing need be kept for it any more.
    fn note_passed(&mut self, reader: V::Reader);

    /// A range is about to be read at `snapshot`.
    fn note_scan(
        &mut self,
        range: &KeyRange,
        snapshot: &V::Snapshot,
        committed: &V::Snapshot,
        reader: V::Reader,
    );

    /// Whether stale reads of keys that are not written go into the validation result of an update,
    /// instead of having it refused.
    fn suffers_stale_reads(&self) -> bool;

    /// The newest version of a key, as what was read of it is judged by: the one that was
    /// `installed` last, for all that are right.
    fn newest(&self, key: Key<'_>, installed: Timestamp) -> Timestamp;

    /// An update that asks to commit did not see the version at `at` of a key that it read.
    ///
    /// # Errors
    /// It cannot commit because of this.
    fn note_missed(
        &self,
        key: Key<'_>,
        at: Timestamp,
        validation: &mut ValidationResult<V::Snapshot>,
    ) -> Result<(), Abort>;

    /// An update that asks to commit would replace the version at `head` of a key.
    fn note_write(
        &self,
        key: Key<'_>,
        head: Timestamp,
        reader: V::Reader,
        validation: &mut ValidationResult<V::Snapshot>,
    );

    /// A transaction has prepared, and voted so; or comes back so from the log or a checkpoint.
    fn note_prepared(&mut self, keys: PreparedKeys<'_>, yes: &V::Yes);

    /// The end of a transaction that had prepared is known, and its versions are there.
    fn note_finished(&mut self, keys: PreparedKeys<'_>);

    /// A transaction that wrote a key was applied.
    fn note_written(&mut self, key: Key<'_>, place: &V::Place);

    /// An update that read a key was applied.
    fn note_read_by(&mut self, key: Key<'_>, place: &V::Place);

    /// An update that read a range was applied.
    fn note_scanned_by(&mut self, range: &KeyRange, place: &V::Place);

    /// The repository begins, perhaps from its log: nothing above `upper_bound` was served before.
    fn restarted(&mut self, upper_bound: &V::Snapshot);

    /// Nobody reads below `low` any more.
    fn collect(&mut self, low: &V::Snapshot);
}

/// Nothing is kept, as by SCORe.
impl<V: Variant<ProtocolState = ()>> VariantState<V> for () {
    #[inline]
    fn new(_: &V::Switches, _: u64) {}

    fn assert_invariants(&self) {}

    #[inline]
    fn suffers_stale_reads(&self) -> bool {
        false
    }

    #[inline]
    fn newest(&self, _key: Key<'_>, installed: Timestamp) -> Timestamp {
        installed
    }

    #[inline]
    fn note_missed(
        &self,
        _key: Key<'_>,
        at: Timestamp,
        validation: &mut ValidationResult<V::Snapshot>,
    ) -> Result<(), Abort> {
        validation.missed = Some(validation.missed.map_or(at, |missed| missed.min(at)));
        Ok(())
    }

    #[inline]
    fn note_prepared(&mut self, _keys: PreparedKeys<'_>, _yes: &V::Yes) {}

    #[inline]
    fn note_finished(&mut self, _keys: PreparedKeys<'_>) {}

    #[inline]
    fn note_written(&mut self, _key: Key<'_>, _place: &V::Place) {}

    #[inline]
    fn note_read_by(&mut self, _key: Key<'_>, _place: &V::Place) {}

    #[inline]
    fn note_scanned_by(&mut self, _range: &KeyRange, _place: &V::Place) {}

    #[inline]
    fn restarted(&mut self, _upper_bound: &V::Snapshot) {}

    #[inline]
    fn collect(&mut self, _low: &V::Snapshot) {}

    #[inline]
    fn note_read(
        &mut self,
        _key: Key<'_>,
        _snapshot: &V::Snapshot,
        _committed: &V::Snapshot,
        _reader: V::Reader,
        _now: Nanos,
    ) {
    }

    #[inline]
    fn is_kept_from(&self, _key: Key<'_>, _reader: V::Reader, _now: Nanos) -> bool {
        false
    }

    #[inline]
    fn note_passed(&mut self, _reader: V::Reader) {}

    #[inline]
    fn note_scan(
        &mut self,
        _range: &KeyRange,
        _snapshot: &V::Snapshot,
        _committed: &V::Snapshot,
        _reader: V::Reader,
    ) {
    }

    #[inline]
    fn note_write(
        &self,
        _key: Key<'_>,
        _head: Timestamp,
        _reader: V::Reader,
        _validation: &mut ValidationResult<V::Snapshot>,
    ) {
    }
}
