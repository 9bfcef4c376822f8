//! What a run notes as read.

use muesli_core::parts::transaction::{ReadEntry, TransactionSets};
use muesli_core::parts::versions::Handle;
use muesli_core::{RepositoryId, SmallBytes, SpaceId, Timestamp};

use crate::granola::message::Refusal;
use crate::granola::participant::Context;

/// A key was read, in this version.
pub(in super::super) fn note_read(
    sets: &mut TransactionSets,
    space: SpaceId,
    key: SmallBytes,
    handle: Handle,
    version: Timestamp,
) {
    let repository = RepositoryId(0); // Nobody asks: all of it is here.
    sets.reads.push(ReadEntry { space, repository, handle, key, version });
}

/// For cost models: what a run that came to its end has read.
pub(in super::super) fn count_reads<A>(
    ran: &Result<A, Refusal>,
    sets: &TransactionSets,
    cx: &mut Context<'_>,
) {
    if ran.is_ok() {
        cx.effects.work.reads += sets.reads.len() as u64;
    }
}
