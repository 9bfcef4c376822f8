//! Reads at a timestamp: once all that can ever be at or below it is known here, as far as it is in
//! the way of what is read.

mod watches;

use muesli_core::limits::write_bytes;
use muesli_core::parts::versions::{Handle, Version, Versions};
use muesli_core::{Address, Nanos, NodeId, SmallBytes, SpaceId, Timestamp, TxnId};

use super::ShardMember;
use crate::certified::message::command::{
    CertifiedCommand, ReadKey, ReadRange, RowsDigest, SeenVersion,
};
use crate::certified::message::objects::{WholeObject, key_object, objects_of, range_objects};
use crate::certified::message::{FoundKey, ReaderNumber};
use crate::certified::state::pages::{absent, page};
use crate::sharded::Context;
use crate::sharded::message::command::end_of;
use crate::sharded::message::{
    Message, ShardKeysReply, ShardKeysRequest, ShardPageReply, ShardPageRequest,
};
use crate::sharded::switches::ShardedSwitch;

/// So many reads wait at a member at most; what is left out is asked for again.
const WAITING_MOST: usize = 1 << 14;

/// What a read asks.
#[derive(Clone, Debug)]
pub enum ShardRead {
    /// Keys.
    Keys(ShardKeysRequest),
    /// A page of a range.
    Page(ShardPageRequest),
}

/// A read that waits.
#[derive(Clone, Debug)]
pub struct WaitingShardRead {
    /// Since when.
    pub since: Nanos,
    /// What it asks, with its snapshot.
    read: ShardRead,
}

/// What can be said of a read now.
#[derive(Clone, Debug)]
pub enum ReadStep<T> {
    /// The answer.
    Answered(T),
    /// It has to wait, at this timestamp.
    Waits(Timestamp),
}

impl ShardMember {
    /// A coordinator reads keys.
    pub(super) fn on_keys(
        &mut self,
        from: Address,
        mut request: ShardKeysRequest,
        cx: &mut Context<'_>,
    ) {
        match self.read_keys(from.node, &request, cx) {
            ReadStep::Answered(reply) => cx.send(from, Message::KeysReply(reply)),
            ReadStep::Waits(at) => {
                request.snapshot = Some(at);
                self.keep_waiting(from, request.request, ShardRead::Keys(request), cx);
            }
        }
    }

    /// A coordinator reads a page of a range.
    pub(super) fn on_page(
        &mut self,
        from: Address,
        mut request: ShardPageRequest,
        cx: &mut Context<'_>,
    ) {
        match self.read_page(from.node, &request, cx) {
            ReadStep::Answered(reply) => cx.send(from, Message::PageReply(reply)),
            ReadStep::Waits(at) => {
                request.snapshot = Some(at);
                self.keep_waiting(from, request.request, ShardRead::Page(request), cx);
            }
        }
    }

    fn keep_waiting(&mut self, from: Address, request: u64, read: ShardRead, cx: &Context<'_>) {
        let key = (from, request);
        if self.waiting_reads.len() < WAITING_MOST {
            let since = cx.now();
            self.waiting_reads.entry(key).or_insert(WaitingShardRead { since, read });
        }
        assert!(self.waiting_reads.len() <= WAITING_MOST, "reads that wait have a bound");
    }

    /// Answers the reads that wait and need not any more.
    pub(super) fn answer_reads(&mut self, cx: &mut Context<'_>) {
        if self.waiting_reads.is_empty() {
            return;
        }
        for ((from, number), waiting) in std::mem::take(&mut self.waiting_reads) {
            let message = match &waiting.read {
                ShardRead::Keys(request) => match self.read_keys(from.node, request, cx) {
                    ReadStep::Answered(reply) => Some(Message::KeysReply(reply)),
                    ReadStep::Waits(_) => None,
                },
                ShardRead::Page(request) => match self.read_page(from.node, request, cx) {
                    ReadStep::Answered(reply) => Some(Message::PageReply(reply)),
                    ReadStep::Waits(_) => None,
                },
            };
            match message {
                Some(message) => cx.send(from, message),
                None => {
                    self.waiting_reads.insert((from, number), waiting);
                }
            }
        }
    }

    /// Reads keys: as many as one answer has room for, and one at least.
    pub(in crate::sharded) fn read_keys(
        &mut self,
        node: NodeId,
        asked: &ShardKeysRequest,
        cx: &mut Context<'_>,
    ) -> ReadStep<ShardKeysReply> {
        let ShardKeysRequest { request, reader, snapshot, at_least, keys } = asked;
        let request = *request;
        let Some(at) = self.snapshot_of((node, *reader), (*snapshot, *at_least), cx) else {
            let (clock, found) = (self.clock, Vec::new());
            let reply = ShardKeysReply { request, snapshot: None, clock, found };
            return ReadStep::Answered(reply);
        };
        let seen = SeenVersion::Absent { deletions: 0 };
        let reads =
            keys.iter().map(|(space, key)| ReadKey { space: *space, key: key.clone(), seen });
        if !self.has_come_to(at, || (reads.collect(), Vec::new()), cx) {
            return ReadStep::Waits(at);
        }
        let limits = &cx.settings.limits;
        let (mut found, mut bytes) = (Vec::with_capacity(keys.len().min(limits.page_rows)), 0);
        for (space, key) in keys {
            if found.len() >= limits.page_rows || bytes >= limits.page_bytes {
                break;
            }
            let one = self.find(*space, key, at);
            bytes += write_bytes(key, one.value.as_ref());
            found.push(one);
        }
        assert!(found.len() <= keys.len(), "{} keys of {} found", found.len(), keys.len());
        self.assert_has_come_to(at);
        let (snapshot, clock) = (Some(at), self.clock);
        ReadStep::Answered(ShardKeysReply { request, snapshot, clock, found })
    }

    /// Reads a page of a range.
    pub(in crate::sharded) fn read_page(
        &mut self,
        node: NodeId,
        asked: &ShardPageRequest,
        cx: &mut Context<'_>,
    ) -> ReadStep<ShardPageReply> {
        let ShardPageRequest { request, reader, snapshot, at_least, within, range, .. } = asked;
        let (request, snapshot) = (*request, *snapshot);
        let (clock, rows, seen_to, deletions) = (self.clock, Vec::new(), None, 0);
        let mut reply = ShardPageReply { request, snapshot: None, clock, rows, seen_to, deletions };
        let Some(at) = self.snapshot_of((node, *reader), (snapshot, *at_least), cx) else {
            return ReadStep::Answered(reply);
        };
        let digest = RowsDigest::of(std::iter::empty());
        let (seen, deletions) = (within.clone(), 0);
        let whole = ReadRange { within: within.clone(), seen, digest, deletions };
        if !self.has_come_to(at, || (Vec::new(), vec![whole]), cx) {
            return ReadStep::Waits(at);
        }
        self.assert_has_come_to(at);
        reply.snapshot = Some(at);
        reply.deletions = range_objects(within).map(|it| self.deletions_at(it, at)).sum();
        if let Some(store) = self.spaces.get(range.space) {
            let of = (range, asked.reverse, asked.limit);
            let version = |key: &SmallBytes, handle| self.version(store, (key, handle), at);
            (reply.rows, reply.seen_to) = page(store, of, &cx.settings.limits, version);
        }
        ReadStep::Answered(reply)
    }

    /// The timestamp of a reader: its own, or the shard's clock where it has none. `None`: it is
    /// too old, or too many read here.
    fn snapshot_of(
        &mut self,
        (node, reader): (NodeId, ReaderNumber),
        (asked, at_least): (Option<Timestamp>, Timestamp),
        cx: &mut Context<'_>,
    ) -> Option<Timestamp> {
        let keeps = self.switches.keeps(ShardedSwitch::KeepsReaders);
        let known = self.readers.snapshot(node, reader, cx.now());
        let newest = || end_of(self.clock.max(at_least.counter()));
        let at = asked.unwrap_or_else(newest);
        let counter = at.counter();
        if known == Some(counter) {
            return Some(at);
        }
        if counter < self.forgotten && keeps {
            return None;
        }
        self.readers.remove(node, reader);
        assert!(counter >= self.forgotten || !keeps, "{counter} is read, and forgotten");
        let may_read = !keeps || self.readers.insert(node, reader, counter, cx.now());
        may_read.then_some(at)
    }

    /// Whether all is known that can be in the way of a read at this timestamp: the clock has come
    /// there, and nothing that has not ended is at or below it. Where the clock has not, it is made
    /// to.
    fn has_come_to(
        &mut self,
        at: Timestamp,
        reading: impl FnOnce() -> (Vec<ReadKey>, Vec<ReadRange>),
        cx: &Context<'_>,
    ) -> bool {
        if !self.switches.keeps(ShardedSwitch::ReadsWait) {
            return true;
        }
        if self.clock < at.counter() {
            self.advance_to(at.counter());
            return false;
        }
        let mut before = self.transactions.queue().take_while(|(other, ..)| *other <= at);
        let Some(first) = before.next() else { return true };
        let (reads, ranges) = reading();
        let (txn, after, spaces) = (TxnId::default(), 0, 0);
        let (writes, calls) = Default::default();
        let read = CertifiedCommand { txn, after, spaces, reads, ranges, writes, calls };
        let whole = WholeObject::IsAnObject;
        let Ok(objects) = objects_of(&read, whole, (cx.catalog, cx.settings)) else { return false };
        !std::iter::once(first).chain(before).any(|(_, _, it)| it.objects.conflicts_with(&objects))
    }

    /// What is read now is read at a timestamp to which the clock has come.
    fn assert_has_come_to(&self, at: Timestamp) {
        let waits = self.switches.keeps(ShardedSwitch::ReadsWait);
        assert!(self.clock >= at.counter() || !waits, "{at} is read too early");
    }

    fn find(&self, space: SpaceId, key: &SmallBytes, at: Timestamp) -> FoundKey {
        let store = self.spaces.get(space);
        let found = store.and_then(|store| Some((store, store.find(key)?)));
        let mut one = match (found, store) {
            (Some((store, handle)), _) => self.version(store, (key, handle), at),
            (None, Some(store)) => absent(store, key, at),
            (None, None) => FoundKey::ABSENT,
        };
        if one.value.is_none() {
            one.deletions = self.deletions_at(key_object(space, key), at);
        }
        one
    }

    /// What a snapshot sees of a key that has an entry.
    fn version(
        &self,
        store: &Versions,
        (key, handle): (&SmallBytes, Handle),
        at: Timestamp,
    ) -> FoundKey {
        let Version { at: version, value, .. } = store.at(handle, at);
        match version {
            Timestamp::ZERO => absent(store, key, at),
            version => FoundKey { version, value: value.cloned(), ..FoundKey::ABSENT },
        }
    }

    fn deletions_at(&self, object: u64, at: Timestamp) -> u64 {
        let (all, unseen) = (self.objects.of(object).deletions, self.deletions.unseen(object, at));
        assert!(unseen <= all, "{unseen} of {all} deletions of object {object}");
        all - unseen
    }
}

#[cfg(test)]
mod tests {
    use muesli_core::{Participant as _, RepositoryId, Settings};

    use super::*;
    use crate::sharded::Switches;

    #[test]
    #[should_panic(expected = "is read too early")]
    fn nothing_is_read_at_a_time_that_the_clock_has_not_come_to() {
        let id = RepositoryId(0);
        let member = ShardMember::new(id, &Settings::default(), &Switches::default());
        member.assert_has_come_to(Timestamp::ZERO);
        member.assert_has_come_to(Timestamp::new(1, id));
    }
}
