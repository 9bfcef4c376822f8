//! What a repository tells those who keep a copy of it (section 7.3).
//!
//! # The idea
//! A coordinator that wants a copy *follows* the repository: it asks for all keys, piece by
//! piece, and from then on for what has changed. A repository answers pieces at once, and changes
//! from time to time ([`gossip_every`](muesli_core::Settings::gossip_every)), all together, with
//! the timestamp up to which they are whole. Nothing about it is logged: a repository that starts
//! again knows of no followers, and they begin anew.
//!
//! # Up to where changes are whole
//! Up to `done`, unless something that was voted on and is not over may come to lie there; then up
//! to the last change below that. So what a copy is told is always a beginning of the serial order,
//! also where things are done in another one (locking mode). Pieces are taken while the repository
//! serves and may have seen more: a copy counts once it is told a timestamp that is not below any
//! that was done when the last piece was taken.
//!
//! Whatever is told is stable first: a copy never knows what the repository may forget.

use std::collections::BTreeMap;

use muesli_core::{Address, Cursor, Nanos, NodeId, SmallBytes, Timestamp};

use super::PIECES;
use crate::granola::message::sizes::writes_bytes;
use crate::granola::message::{Followed, Message, News, Write};
use crate::granola::participant::{Context, GranolaParticipantTimer, Participant};
use crate::granola::switches::GranolaSwitch;

/// Bytes of a piece.
const PIECE_BYTES: usize = 64 << 10;
/// With more than this kept for followers that are behind, the last ones begin anew, in bytes.
const CHANGES_MAX: usize = 64 << 20;

/// Those who follow, and what they have to be told.
///
/// Invariants: without followers nothing is kept, with some a timer is set; `bytes` are those of
/// all changes; who is sent pieces has no changes.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Feeds {
    followers: BTreeMap<NodeId, Follower>,
    /// What was done since the first of them began, by its place.
    changes: BTreeMap<Timestamp, Vec<Write>>,
    /// How much that is, in bytes.
    bytes: usize,
    timer_set: bool,
}

#[derive(Clone, Debug)]
struct Follower {
    /// Which of its attempts.
    stream: u64,
    copying: Option<Copying>,
    /// Changes count only up to this or later.
    needs: Timestamp,
    /// What it has.
    have: Timestamp,
    /// It has asked, and was not answered.
    waits: bool,
    seen_at: Nanos,
}

/// The way through all keys.
#[derive(Clone, Debug)]
struct Copying {
    cursor: Cursor,
    /// How many pieces were sent, and the last of them, which may be lost.
    sent: u32,
    last: Vec<u8>,
}

impl Feeds {
    /// Whether changes are to be noted.
    pub fn is_wanted(&self) -> bool {
        !self.followers.is_empty()
    }

    /// Checks the invariants.
    ///
    /// # Panics
    /// One of them does not hold.
    pub fn assert_invariants(&self) {
        let bytes: usize = self.changes.values().map(|writes| writes_bytes(writes)).sum();
        assert_eq!(self.bytes, bytes, "bytes of changes");
        assert!(!self.followers.is_empty() || self.changes.is_empty(), "changes for nobody");
        assert!(self.followers.is_empty() || self.timer_set, "nobody tells what has changed");
        for (node, follower) in &self.followers {
            let has_begun = follower.copying.is_none() || follower.have == Timestamp::ZERO;
            assert!(has_begun, "{node:?} has changes, and no keys");
        }
    }

    /// Forgets all followers, who begin anew.
    pub fn forget_all(&mut self) {
        self.followers.clear();
        self.drop_sent_changes();
    }

    /// Where too much is kept, those who are furthest behind begin anew, and only those: one that
    /// never says that it has anything is no reason for others to.
    fn leave_behind(&mut self) {
        while self.bytes > CHANGES_MAX {
            let Some(least) = self.followers.values().map(|it| it.have).min() else { return };
            self.followers.retain(|_, it| it.have > least);
            self.drop_sent_changes();
        }
    }

    /// Forgets what all followers have.
    fn drop_sent_changes(&mut self) {
        let least = self.followers.values().map(|it| it.have).min();
        let kept = least.map(|least| self.changes.split_off(&least)).unwrap_or_default();
        let sent_changes = std::mem::replace(&mut self.changes, kept);
        let freed = sent_changes.values().map(|writes| writes_bytes(writes)).sum::<usize>();
        assert!(freed <= self.bytes, "changes of {freed} bytes were not counted");
        self.bytes -= freed;
    }
}

impl Participant {
    /// Something was done at `at`.
    pub(in super::super) fn note_change(&mut self, at: Timestamp, writes: &[Write]) {
        if self.feeds.is_wanted() && !writes.is_empty() {
            let replaced = self.feeds.changes.insert(at, writes.to_vec());
            self.feeds.bytes += writes_bytes(writes);
            self.feeds.bytes -= replaced.map_or(0, |old| writes_bytes(&old));
        }
    }

    /// A coordinator follows this repository, and says what it has.
    pub(in super::super) fn on_follow(
        &mut self,
        node: NodeId,
        has: Followed,
        cx: &mut Context<'_>,
    ) {
        let known = self.feeds.followers.get(&node).map(|it| it.stream);
        let begins = has.pieces == 0 && has.upto == Timestamp::ZERO;
        match known {
            Some(stream) if stream == has.stream => {}
            Some(stream) if stream > has.stream => return, // Long under way.
            _ if begins => {
                let cursor = Cursor::default();
                let copying = Some(Copying { cursor, sent: 0, last: Vec::new() });
                let (stream, seen_at) = (has.stream, cx.now());
                let (needs, have, waits) = (Timestamp::ZERO, Timestamp::ZERO, false);
                let new = Follower { stream, copying, needs, have, waits, seen_at };
                self.feeds.followers.insert(node, new);
            }
            _ => return self.tell_follower(node, has.stream, News::Unknown, cx),
        }
        let follower = self.feeds.followers.get_mut(&node).expect("just seen");
        follower.seen_at = cx.now();
        if follower.copying.is_some() {
            self.send_piece(node, has, cx);
        } else {
            follower.have = follower.have.max(has.upto);
            follower.waits = true;
        }
        self.set_feed_timer(cx);
    }

    /// Sends the piece after those that a follower has, or begins with changes where there is none.
    fn send_piece(&mut self, node: NodeId, has: Followed, cx: &mut Context<'_>) {
        let follower = self.feeds.followers.get_mut(&node).expect("it follows");
        let copying = follower.copying.as_mut().expect("it is copying");
        if has.pieces == copying.sent {
            copying.last.clear();
            let (cursor, last) = (&mut copying.cursor, &mut copying.last);
            if !self.spaces.next_chains(PIECES, cursor, PIECE_BYTES, last) {
                (follower.copying, follower.needs) = (None, self.clock.done);
                follower.waits = true;
                return;
            }
            copying.sent += 1;
        } else if has.pieces.checked_add(1) != Some(copying.sent) {
            return; // Long under way.
        }
        assert!(copying.sent > 0, "no piece was sent to {node:?}");
        let (number, bytes) = (copying.sent, SmallBytes::new(&copying.last));
        self.tell_follower(node, has.stream, News::Piece { number, bytes }, cx);
    }

    fn tell_follower(&self, node: NodeId, stream: u64, news: News, cx: &mut Context<'_>) {
        let message = Message::News { repository: self.id, stream, news };
        cx.send_when_logged(Address::coordinator(node), message);
    }

    fn set_feed_timer(&mut self, cx: &mut Context<'_>) {
        if !self.feeds.timer_set {
            self.feeds.timer_set = true;
            cx.set_timer(GranolaParticipantTimer::Feed, cx.settings.gossip_every);
        }
    }

    /// Tells followers that wait what has changed.
    pub(in super::super) fn on_feed_timeout(&mut self, cx: &mut Context<'_>) {
        self.feeds.timer_set = false;
        let (now, lease) = (cx.now(), cx.settings.snapshot_lease);
        let upto = self.whole_upto();
        let before = self.feeds.followers.len();
        self.feeds.followers.retain(|_, follower| follower.seen_at + lease > now);
        cx.effects.maintenance.leases_ended += (before - self.feeds.followers.len()) as u64;
        self.feeds.leave_behind();
        let waits =
            |follower: &Follower| follower.waits && upto > follower.have && upto >= follower.needs;
        let followers = self.feeds.followers.iter_mut().filter(|(_, it)| waits(it));
        let mut sent_changes = Vec::new();
        for (node, follower) in followers {
            follower.waits = false;
            assert!(follower.copying.is_none(), "{node:?} is told changes, and has no keys");
            let above = (std::ops::Bound::Excluded(follower.have), std::ops::Bound::Included(upto));
            let changes = self.feeds.changes.range(above);
            let changes = changes.map(|(at, writes)| (*at, writes.clone())).collect();
            sent_changes.push((*node, follower.stream, upto, changes));
        }
        for (node, stream, upto, changes) in sent_changes {
            let news = News::Changes { upto, changes, held: self.held_at(upto) };
            self.tell_follower(node, stream, news, cx);
        }
        self.feeds.drop_sent_changes();
        if self.feeds.is_wanted() {
            self.set_feed_timer(cx);
        }
    }

    /// Up to where nothing will be done any more that is not done.
    fn whole_upto(&self) -> Timestamp {
        let done = self.clock.done;
        let pending = self.active.values().map(|active| active.bound).min();
        match pending
            .filter(|first| *first <= done && self.switches.keeps(GranolaSwitch::CopiesWait))
        {
            Some(first) => {
                let below = self.feeds.changes.range(..first).next_back();
                below.map_or(Timestamp::ZERO, |(at, _)| *at)
            }
            None => done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feeds(have: Timestamp) -> Feeds {
        let copying = Some(Copying { cursor: Cursor::default(), sent: 0, last: Vec::new() });
        let (needs, seen_at) = (Timestamp::ZERO, Nanos(1));
        let follower = Follower { stream: 1, copying, needs, have, waits: false, seen_at };
        let followers = BTreeMap::from([(NodeId(1), follower)]);
        Feeds { followers, timer_set: true, ..Feeds::default() }
    }

    #[test]
    #[should_panic(expected = "NodeId(1) has changes, and no keys")]
    fn who_has_changes_before_the_keys_is_noticed() {
        feeds(Timestamp::ZERO).assert_invariants();
        feeds(Timestamp(7)).assert_invariants();
    }

    #[test]
    #[should_panic(expected = "bytes of changes")]
    fn bytes_of_changes_that_are_not_there_are_noticed() {
        Feeds { bytes: 5, ..feeds(Timestamp::ZERO) }.assert_invariants();
    }

    #[test]
    #[should_panic(expected = "changes for nobody")]
    fn changes_for_nobody_are_noticed() {
        let changes = BTreeMap::from([(Timestamp(1), Vec::new())]);
        Feeds { changes, ..Feeds::default() }.assert_invariants();
    }

    #[test]
    #[should_panic(expected = "nobody tells what has changed")]
    fn a_timer_that_is_not_set_is_noticed() {
        Feeds { timer_set: false, ..feeds(Timestamp::ZERO) }.assert_invariants();
    }
}
