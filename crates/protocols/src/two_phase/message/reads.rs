//! What is asked of keys and ranges while a transaction runs, and what is answered.

use muesli_core::ranges::KeyRange;
use muesli_core::wire::{Reader, Wire, WireError};
use muesli_core::{SmallBytes, SpaceId, Timestamp, wire_struct};

use super::Mostly;
use super::moves::{KnownCopy, MovedRow, Redirect, WhereKeysMove};
use crate::two_phase::Variant;

/// A request to read keys of one replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadRequest<V: Variant> {
    /// The coordinator's number for the answer.
    pub request: u64,
    /// The snapshot, or for a first read the least it may be.
    pub snapshot: V::Snapshot,
    /// Whether this read fixes the snapshot.
    pub first: bool,
    /// What is wanted of the keys.
    pub wanted: ReadWants,
    /// Who reads.
    pub reader: V::Reader,
    /// The keys.
    pub keys: Mostly<(SpaceId, SmallBytes)>,
    /// Those of which who asks has a copy, in the order of their places, where keys move.
    pub known: WhereKeysMove<V, KnownCopy>,
}

/// What a [`ReadRequest`] wants of its keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadWants {
    /// Versions and values at the snapshot.
    #[default]
    Values,
    /// The same, but if one of them is not the newest, those at a snapshot of the present, at which
    /// they are: the answer says which.
    NewestValues,
    /// Versions at the snapshot, without values: what was read is looked at once more.
    Versions,
}

/// What a transaction has read at a repository, whose client waits for a change of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchRequest<V: Variant> {
    /// The coordinator's number for the answer.
    pub request: u64,
    /// What the ranges were read at.
    pub snapshot: V::Snapshot,
    /// Keys, with the versions read.
    pub reads: Vec<(SpaceId, SmallBytes, Timestamp)>,
    /// Ranges.
    pub scans: Vec<KeyRange>,
}

/// A request for the lock of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockRequest<V: Variant> {
    /// The coordinator's number for the answer.
    pub request: u64,
    /// Who writes.
    pub reader: V::Reader,
    /// The space of the key.
    pub space: SpaceId,
    /// The key.
    pub key: SmallBytes,
}

/// A version of a key as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The version.
    pub version: Timestamp,
    /// Its value.
    pub value: Option<SmallBytes>,
    /// Whether it is the newest one.
    pub newest: bool,
    /// For histories: where no version was found, the collected deletion that was read. Protocols
    /// never look at it.
    pub collected: Timestamp,
}

impl Found {
    /// What was read, for histories.
    pub fn recorded(&self) -> Timestamp {
        self.version.max(self.collected)
    }
}

/// The answer to a [`ReadRequest`]: of all keys that were asked for, or of the first ones, where
/// more would be too much for one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadReply<V: Variant> {
    /// The number of the request.
    pub request: u64,
    /// The snapshot read at; `None`: it is older than the versions still kept.
    pub snapshot: Option<V::Snapshot>,
    /// The last transaction applied there.
    pub committed: V::Snapshot,
    /// What was found, in the order asked; at least of the first key.
    pub found: Mostly<Found>,
    /// Those of the keys that are elsewhere, where keys move; nothing was found of them.
    pub moved: WhereKeysMove<V, Redirect>,
    /// The places of those whose version is the one that who asked has a copy of: their values are
    /// not sent.
    pub known: WhereKeysMove<V, u32>,
}

/// A request for a page of a scan: the part of a range that some partitions of one replica hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanRequest<V: Variant> {
    /// The coordinator's number for the answer.
    pub request: u64,
    /// As in [`ReadRequest`].
    pub snapshot: V::Snapshot,
    /// As in [`ReadRequest`].
    pub first: bool,
    /// As in [`ReadRequest`].
    pub reader: V::Reader,
    /// The range.
    pub range: KeyRange,
    /// The partitions whose keys are wanted.
    pub partitions: Vec<u16>,
    /// From the end backwards.
    pub reverse: bool,
    /// Most rows wanted; deleted keys do not count.
    pub limit: usize,
}

/// The answer to a [`ScanRequest`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanReply<V: Variant> {
    /// The number of the request.
    pub request: u64,
    /// As in [`ReadReply`].
    pub snapshot: Option<V::Snapshot>,
    /// As in [`ReadReply`].
    pub committed: V::Snapshot,
    /// Keys in the order of the scan, with their versions; deleted ones too, without a value.
    pub rows: Vec<(SmallBytes, Found)>,
    /// The last key that was looked at, if the range was not seen to its end: what lies beyond is
    /// not in `rows`.
    pub seen_to: Option<SmallBytes>,
    /// Keys of what was seen that are elsewhere, where keys move.
    pub moved: WhereKeysMove<V, MovedRow>,
}

/// By hand for what is wanted, which shares a byte with whether it is the first read.
impl<V: Variant> Wire for ReadRequest<V> {
    const LEAST_BYTES: usize = u64::LEAST_BYTES
        + V::Snapshot::LEAST_BYTES
        + 1
        + V::Reader::LEAST_BYTES
        + Mostly::<(SpaceId, SmallBytes)>::LEAST_BYTES
        + WhereKeysMove::<V, KnownCopy>::LEAST_BYTES;

    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        self.request.encode(out);
        self.snapshot.encode(out);
        let wanted = match self.wanted {
            ReadWants::Values => 0,
            ReadWants::NewestValues => 2,
            ReadWants::Versions => 4,
        };
        out.push(u8::from(self.first) | wanted);
        self.reader.encode(out);
        self.keys.encode(out);
        self.known.encode(out);
    }

    #[inline]
    fn decode(input: &mut Reader<'_>) -> Result<Self, WireError> {
        let (request, snapshot) = (u64::decode(input)?, V::Snapshot::decode(input)?);
        let at = input.position();
        let flags = u8::decode(input)?;
        let wanted = match flags & !1 {
            0 => ReadWants::Values,
            2 => ReadWants::NewestValues,
            4 => ReadWants::Versions,
            other => return Err(WireError::no_variant("kind of a read", at, other)),
        };
        let (first, reader) = (flags & 1 == 1, V::Reader::decode(input)?);
        let (keys, known) = (Mostly::decode(input)?, Wire::decode(input)?);
        Ok(ReadRequest { request, snapshot, first, wanted, reader, keys, known })
    }
}

wire_struct!(WatchRequest<V: Variant> {
    request: u64,
    snapshot: V::Snapshot,
    reads: Vec<(SpaceId, SmallBytes, Timestamp)>,
    scans: Vec<KeyRange>,
});

wire_struct!(LockRequest<V: Variant> {
    request: u64,
    reader: V::Reader,
    space: SpaceId,
    key: SmallBytes,
});

/// By hand for what only histories need, which costs nothing elsewhere.
impl Wire for Found {
    const LEAST_BYTES: usize = 10;

    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        self.version.encode(out);
        self.value.encode(out);
        let collected = self.collected != Timestamp::ZERO;
        out.push(u8::from(self.newest) | u8::from(collected) << 1);
        if collected {
            self.collected.encode(out);
        }
    }

    #[inline]
    fn decode(input: &mut Reader<'_>) -> Result<Found, WireError> {
        let (version, value) = (Timestamp::decode(input)?, Wire::decode(input)?);
        let flags = input.variant("flags of what was found", 4)?;
        let collected = if flags & 2 == 0 { Timestamp::ZERO } else { Timestamp::decode(input)? };
        Ok(Found { version, value, newest: flags & 1 == 1, collected })
    }
}

wire_struct!(ReadReply<V: Variant> {
    request: u64,
    snapshot: Option<V::Snapshot>,
    committed: V::Snapshot,
    found: Mostly<Found>,
    moved: WhereKeysMove<V, Redirect>,
    known: WhereKeysMove<V, u32>,
});

wire_struct!(ScanReply<V: Variant> {
    request: u64,
    snapshot: Option<V::Snapshot>,
    committed: V::Snapshot,
    rows: Vec<(SmallBytes, Found)>,
    seen_to: Option<SmallBytes>,
    moved: WhereKeysMove<V, MovedRow>,
});

/// By hand for the limit, which is as wide as the machine's words.
impl<V: Variant> Wire for ScanRequest<V> {
    const LEAST_BYTES: usize = 40;

    fn encode(&self, out: &mut Vec<u8>) {
        self.request.encode(out);
        self.snapshot.encode(out);
        self.first.encode(out);
        self.reader.encode(out);
        self.range.encode(out);
        self.partitions.encode(out);
        self.reverse.encode(out);
        (self.limit as u64).encode(out);
    }

    fn decode(input: &mut Reader<'_>) -> Result<ScanRequest<V>, WireError> {
        Ok(ScanRequest {
            request: u64::decode(input)?,
            snapshot: Wire::decode(input)?,
            first: bool::decode(input)?,
            reader: Wire::decode(input)?,
            range: KeyRange::decode(input)?,
            partitions: Vec::decode(input)?,
            reverse: bool::decode(input)?,
            limit: usize::try_from(u64::decode(input)?).unwrap_or(usize::MAX),
        })
    }
}
