//! Reads at a snapshot: a value of the site's clock. [`cuts`] says which one those get that may be
//! stale.

pub(in crate::certified::participant) mod cuts;

use muesli_core::limits::write_bytes;
use muesli_core::parts::versions::{Handle, Version, Versions};
use muesli_core::{NodeId, SmallBytes, SpaceId, Timestamp};

use super::CertifiedSite;
use crate::certified::Context;
use crate::certified::message::moment::ReadMoment;
use crate::certified::message::objects::{key_object, range_objects};
use crate::certified::message::{
    FoundKey, KeysReply, KeysRequest, PageReply, PageRequest, ReaderNumber, SiteSnapshot,
};
use crate::certified::state::pages::{absent, page};
use crate::certified::switches::CertifiedSwitch;

impl CertifiedSite {
    /// Reads keys: as many as one answer has room for, and one at least.
    pub(in crate::certified) fn read_keys(
        &mut self,
        node: NodeId,
        request: KeysRequest,
        cx: &mut Context<'_>,
    ) -> KeysReply {
        let KeysRequest { request, reader, moment, keys } = request;
        let Some((snapshot, cut)) = self.snapshot_of((node, reader), moment, cx) else {
            let (cut, found) = (Timestamp::ZERO, Vec::new());
            return KeysReply { request, snapshot: None, cut, found };
        };
        let limits = &cx.settings.limits;
        let (mut found, mut bytes) = (Vec::with_capacity(keys.len().min(limits.page_rows)), 0);
        for (space, key) in &keys {
            if found.len() >= limits.page_rows || bytes >= limits.page_bytes {
                break;
            }
            let one = self.find(*space, key, snapshot.clock);
            bytes += write_bytes(key, one.value.as_ref());
            found.push(one);
        }
        KeysReply { request, snapshot: Some(snapshot), cut, found }
    }

    /// The snapshot of a reader: its own, or the one that it asks for where it has none, and where
    /// that lies in the order of commits, or a later place. `None`: it is too old.
    fn snapshot_of(
        &mut self,
        (node, reader): (NodeId, ReaderNumber),
        asked: ReadMoment,
        cx: &mut Context<'_>,
    ) -> Option<(SiteSnapshot, Timestamp)> {
        assert!(self.is_member(), "a site without its data is read");
        let incarnation = self.incarnation(cx);
        let keeps = self.switches.keeps(CertifiedSwitch::KeepsReaders);
        let known = self.readers.snapshot(node, reader, cx.now());
        let mut cut = Timestamp::ZERO;
        let clock = match (asked, known) {
            (ReadMoment::Known(asked), Some(known)) => {
                (asked == SiteSnapshot { incarnation, clock: known }).then_some(known)?
            }
            (ReadMoment::Known(asked), None) => {
                let is_kept = asked.clock >= self.forgotten || !keeps;
                let is_kept = asked.incarnation == incarnation && is_kept;
                (is_kept && asked.clock <= self.clock).then_some(asked.clock)?
            }
            (ReadMoment::Cut(_), known) => {
                // A newer cut than it has read at: its session is taken to have seen more.
                let (clock, newest) = self.cut_to_read()?;
                cut = newest;
                known.unwrap_or(clock)
            }
            (ReadMoment::Present, known) => {
                cut = self.present();
                known.unwrap_or(self.clock)
            }
        };
        assert!(clock <= self.clock, "clock {clock} of {}", self.clock);
        if known.is_none() && keeps && !self.readers.insert(node, reader, clock, cx.now()) {
            return None;
        }
        Some((SiteSnapshot { incarnation, clock }, cut))
    }

    fn find(&self, space: SpaceId, key: &SmallBytes, snapshot: u64) -> FoundKey {
        let store = self.spaces.get(space);
        let found = store.and_then(|store| Some((store, store.find(key)?)));
        let mut one = match (found, store) {
            (Some((store, handle)), _) => self.version((store, space), (key, handle), snapshot),
            (None, Some(store)) => absent(store, key, Timestamp::MAX),
            (None, None) => FoundKey::ABSENT,
        };
        if one.value.is_none() {
            one.deletions = self.deletions_at(key_object(space, key), snapshot);
        }
        one
    }

    /// What a snapshot sees of a key that has an entry.
    fn version(
        &self,
        (store, space): (&Versions, SpaceId),
        (key, handle): (&SmallBytes, Handle),
        snapshot: u64,
    ) -> FoundKey {
        let reads_newest = !self.switches.keeps(CertifiedSwitch::ReadsAtSnapshot);
        let unseen = self.recent.unseen_version((space, key), snapshot);
        let (seen, upto) = match unseen.filter(|_| !reads_newest) {
            Some(unseen) => {
                let upto = Timestamp(unseen.0 - 1);
                (store.at(handle, upto), upto)
            }
            None => (store.newest(handle), Timestamp::MAX),
        };
        let Version { at, value, .. } = seen;
        match at {
            Timestamp::ZERO => absent(store, key, upto),
            version => FoundKey { version, value: value.cloned(), ..FoundKey::ABSENT },
        }
    }

    fn deletions_at(&self, object: u64, snapshot: u64) -> u64 {
        let (all, unseen) =
            (self.objects.of(object).deletions, self.recent.unseen_deletions(object, snapshot));
        assert!(unseen <= all, "{unseen} of {all} deletions of object {object}");
        all - unseen
    }

    /// Reads a page of a range.
    pub(in crate::certified) fn read_page(
        &mut self,
        node: NodeId,
        asked: PageRequest,
        cx: &mut Context<'_>,
    ) -> PageReply {
        let PageRequest { request, reader, moment, within, range, reverse, limit } = asked;
        let (snapshot, cut, rows, seen_to, deletions) = Default::default();
        let mut reply = PageReply { request, snapshot, cut, rows, seen_to, deletions };
        let snapshot = self.snapshot_of((node, reader), moment, cx);
        let Some((snapshot, cut)) = snapshot else { return reply };
        (reply.snapshot, reply.cut) = (Some(snapshot), cut);
        let deletions = range_objects(&within).map(|it| self.deletions_at(it, snapshot.clock));
        reply.deletions = deletions.sum();
        let Some(store) = self.spaces.get(range.space) else { return reply };
        let version = |key: &SmallBytes, handle| {
            self.version((store, range.space), (key, handle), snapshot.clock)
        };
        let of = (&range, reverse, limit);
        (reply.rows, reply.seen_to) = page(store, of, &cx.settings.limits, version);
        reply
    }
}
