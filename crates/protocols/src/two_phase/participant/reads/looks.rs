//! What was read is looked at once more, for a transaction whose snapshot moves.
//!
//! Such a look is a read at the new snapshot: it leaves the clock there, so that nothing is
//! installed below it any more, and waits for locks of those that may come to lie below it. Its
//! answer has no values.

use muesli_core::parts::versions::Version;
use muesli_core::{SmallBytes, SpaceId, Timestamp};

use crate::two_phase::message::moves::WhereKeysMove;
use crate::two_phase::message::{Found, Mostly, ReadReply, ReadRequest};
use crate::two_phase::participant::Participant;
use crate::two_phase::policy::FamilySwitch;
use crate::two_phase::time::{NotServed, Reading, Time};
use crate::two_phase::{Context, Variant};

impl<V: Variant> Participant<V> {
    /// Whether a snapshot does not show the newest version of one of these keys.
    pub(super) fn is_behind(&self, keys: &[(SpaceId, SmallBytes)], snapshot: &V::Snapshot) -> bool {
        keys.iter().any(|(space, key)| {
            let read = |versions| self.time.read(versions, *space, key, snapshot);
            self.versions(*space).and_then(read).is_some_and(|(.., version)| !version.newest)
        })
    }

    /// The versions of keys at a snapshot, a page of them.
    pub(super) fn look_again(
        &mut self,
        request: &ReadRequest<V>,
        mut asked: Reading<V>,
        cx: &mut Context<'_, V>,
    ) -> Result<ReadReply<V>, NotServed> {
        assert!(V::POLICIES.reading.can_move(), "a look of a transaction whose snapshot stays");
        let raises = self.switches.keeps(FamilySwitch::LooksRaise);
        let waits = self.switches.keeps(FamilySwitch::LooksWait);
        let most = request.keys.len().min(cx.settings.limits.page_rows);
        let mut found = Mostly::with_capacity(most);
        if raises || asked.first {
            asked.snapshot = self.time.serve(&asked, cx)?;
            asked.first = false;
        }
        for (space, key) in request.keys.iter().take(most) {
            let version = match raises && waits {
                true if V::keys_move(cx.catalog) => {
                    self.newest_version((*space, key), &asked, cx)?
                }
                true => self.read_here(*space, key, asked.clone(), cx)?.version.at,
                false => self.version_unguarded(*space, key, &asked.snapshot, waits)?,
            };
            found.push(Found::from(Version { at: version, ..Version::ABSENT }));
        }
        let (request, committed) = (request.request, self.time.committed());
        let (snapshot, moved) = (Some(asked.snapshot), WhereKeysMove::default());
        let known = WhereKeysMove::default();
        Ok(ReadReply { request, snapshot, committed, found, moved, known })
    }

    /// The newest version of a key that may have moved since it was read here: then who moved it
    /// has written it, at the time of its pointer. Where there is no pointer any more the key was
    /// written here before, and zero is no version of it.
    fn newest_version(
        &self,
        (space, key): (SpaceId, &SmallBytes),
        asked: &Reading<V>,
        cx: &Context<'_, V>,
    ) -> Result<Timestamp, NotServed> {
        if self.is_unknown(space, key, cx.catalog) {
            return Err(NotServed::Blocked);
        }
        if !self.has_key(space, key, cx.catalog) {
            return Ok(self.direct(space, key, cx.catalog).1);
        }
        let versions = self.versions(space);
        let Some((versions, handle)) = versions.and_then(|it| Some((it, it.find(key)?))) else {
            return Ok(Timestamp::ZERO);
        };
        match self.must_wait(space, handle, &asked.snapshot) {
            true => Err(NotServed::Blocked),
            false => Ok(versions.newest(handle).at),
        }
    }

    /// The version of a key, where a test has broken what looks keep to.
    fn version_unguarded(
        &self,
        space: SpaceId,
        key: &SmallBytes,
        snapshot: &V::Snapshot,
        waits: bool,
    ) -> Result<Timestamp, NotServed> {
        let Some(versions) = self.versions(space) else { return Ok(Timestamp::ZERO) };
        let Some((handle, lock, version)) = self.time.read(versions, space, key, snapshot) else {
            return Ok(Timestamp::ZERO);
        };
        match waits && self.is_closed(lock) && self.must_wait(space, handle, snapshot) {
            true => Err(NotServed::Blocked),
            false => Ok(version.at),
        }
    }
}
