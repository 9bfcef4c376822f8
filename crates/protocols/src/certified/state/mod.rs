//! What is kept of keys where commits are certified, and what is asked of it: the same wherever the
//! same commits that conflict were applied.

pub mod claimed;
pub mod cuts;
pub mod execute;
pub mod objects;
pub mod pages;
pub mod readers;
pub mod watches;

use muesli_core::parts::spaces::Spaces;
use muesli_core::parts::versions::Version;
use muesli_core::{Abort, KeyRange, Settings, SmallBytes, SpaceId};

use super::message::command::{CertifiedCommand, ReadKey, ReadRange, RowsDigest, SeenVersion};
use super::message::objects::{key_object, range_objects};
use objects::CertifiedObjects;

/// Which rules of certification hold: all, unless a test breaks one.
#[derive(Clone, Copy, Debug)]
pub struct CertificationSwitches {
    /// A commit whose reads are not the newest is refused.
    pub validates: bool,
    /// A range that has changed is noticed.
    pub validates_ranges: bool,
    /// An absence that was read is noticed to be another one, though the key be absent again.
    pub counts_deletions: bool,
}

/// Keys with their versions, and what is remembered of objects.
#[derive(Clone, Copy, Debug)]
pub struct CertifiedData<'a> {
    /// The keys.
    pub spaces: &'a Spaces,
    /// The objects.
    pub objects: &'a CertifiedObjects,
}

impl<'a> CertifiedData<'a> {
    /// Why a commit takes no effect where it comes next, if it does not.
    pub fn objection(
        &self,
        command: &CertifiedCommand,
        switches: CertificationSwitches,
    ) -> Option<Abort> {
        let counts = switches.counts_deletions;
        if switches.validates && !command.reads.iter().all(|read| self.is_newest(read, counts)) {
            return Some(Abort::StaleRead);
        }
        let changed = switches.validates_ranges
            && !command.ranges.iter().all(|range| self.is_unchanged(range, counts));
        changed.then_some(Abort::Phantom)
    }

    /// The newest version of a key.
    pub fn newest(&self, space: SpaceId, key: &SmallBytes) -> Version<'a> {
        let store = self.spaces.get(space);
        let found = store.and_then(|store| store.find(key).map(|handle| store.newest(handle)));
        found.unwrap_or(Version::ABSENT)
    }

    /// Whether what was read of a key is what is there.
    pub fn is_newest(&self, read: &ReadKey, counts_deletions: bool) -> bool {
        let newest = self.newest(read.space, &read.key);
        match read.seen {
            SeenVersion::Present { version } => newest.value.is_some() && newest.at == version,
            SeenVersion::Absent { deletions } => {
                let object = self.objects.of(key_object(read.space, &read.key));
                newest.value.is_none() && (object.deletions == deletions || !counts_deletions)
            }
        }
    }

    /// Whether a range is as it was read.
    pub fn is_unchanged(&self, range: &ReadRange, counts_deletions: bool) -> bool {
        let deletions = self.deletions_within(&range.within);
        self.digest(&range.seen, range.digest.rows) == range.digest
            && (deletions == range.deletions || !counts_deletions)
    }

    /// How many deletions there were of keys of the objects of a range.
    pub fn deletions_within(&self, range: &KeyRange) -> u64 {
        range_objects(range).map(|object| self.objects.of(object).deletions).sum()
    }

    /// Of a range, or of its first rows, one more than so many.
    fn digest(&self, range: &KeyRange, rows_wanted: u64) -> RowsDigest {
        let store = self.spaces.get(range.space).into_iter();
        let rows = store.flat_map(|store| {
            let rows = store.range(&range.lo, range.hi.as_ref());
            rows.map(|(key, handle)| (key, store.newest(handle)))
        });
        let present = rows.filter(|(_, version)| version.value.is_some());
        let looked_at = present.take(usize::try_from(rows_wanted).map_or(usize::MAX, |it| it + 1));
        RowsDigest::of(looked_at.map(|(key, version)| (key, version.at)))
    }
}

/// Why a commit is not even proposed, if it is not: it is over a limit, or there is no memory.
pub fn refusal(command: &CertifiedCommand, settings: &Settings) -> Option<Abort> {
    let limits = &settings.limits;
    let mut arguments = command.calls.iter().map(|call| call.arguments.len());
    if arguments.any(|length| length > limits.value_bytes) {
        return Some(Abort::ValueTooLarge);
    }
    let mut writes = command.writes.iter();
    let too_large = writes.find_map(|(_, key, value)| limits.judge_write(key, value.as_ref()));
    let adds = || {
        let mut values = command.writes.iter().map(|(_, _, value)| value);
        !command.calls.is_empty() || values.any(Option::is_some)
    };
    let lacks = (settings.memory.is_full() && adds()).then_some(Abort::OutOfMemory);
    let is_much = command.rows() > limits.procedure_steps;
    let too_much = is_much.then_some(Abort::TransactionTooLarge);
    let too_large = too_large.or_else(|| limits.judge_transaction(command.bytes()));
    too_large.or(too_much).or(lacks)
}
