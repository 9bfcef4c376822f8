//! How far the log of each server has come, as the others have heard: so that an older copy of a
//! server's folder is noticed.
//!
//! # The problem
//! A folder that was copied while a server ran, and is put back later, is in order by itself: its
//! log breaks off where it did when it was copied. What the server acknowledged since is not in it.
//! A lone repository would answer as if that had never been; a member of a group would vote as if
//! it had not promised what it did.
//!
//! # The rule
//! Servers tell each other up to which record their logs are stable ([`Reached`]): in the
//! handshake, with signs of life while there is news, and as they stop. Each remembers the highest
//! that it heard of the newest *life* of each server's data, and tells what it remembers along in
//! its handshakes. Where two servers meet, each compares what the other one remembers of it with
//! what it has, and what it remembers of the other with what that has. Data that lie below what an
//! earlier process said of them, or are of a life that a later one has followed, are an older copy:
//! the server is refused, and ends. A life begins with an empty folder, or when somebody accepts
//! that the end of the data is lost; the later one is that which began later, by the clock of the
//! server. That clock may have been wrong: a life that begins with this start, and that nobody has
//! let in yet, is put behind the one that it is refused for, and tries again.
//!
//! What is stable stays when a process or its power ends, so a server that merely restarts is never
//! below what it said. What one process says may arrive in any order.
//!
//! # What it does not notice
//! A copy that has all that the others heard of: made after the last sign of life before the end.
//! And an older copy of all servers' folders at once. Memories are kept in a file beside the log,
//! once in a while.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::atomic::{self, AtomicBool};
use std::time::{Duration, Instant};

use muesli_core::{Nanos, NodeId, wire_struct};

use crate::connections::connection::Stage;
use crate::dispatch::turn::{Failed, Loop};
use crate::wire::hello::{Life, Reason, Station};

/// So many servers are told of in a handshake, whose frames are short.
pub(crate) const TOLD_MAX: usize = 256;
/// What was heard is kept so often.
const KEPT_EVERY: Nanos = Nanos::from_millis(5_000);
/// As a process stops, a write that is under way is waited for so long.
const LAST_WITHIN: Duration = Duration::from_secs(1);

/// How far the log of a server has come, in a life of its data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    /// The server.
    pub node: NodeId,
    /// The life.
    pub life: Life,
    /// When that began: milliseconds since 1970, by the server's clock.
    pub begun: u64,
    /// The process that said so, by a number that it drew.
    pub process: u64,
    /// The last record that is stable; 0 where nothing is kept.
    pub record: u64,
}

wire_struct!(Reached { node: NodeId, life: Life, begun: u64, process: u64, record: u64 });

impl Reached {
    /// Lives of a server's data come in this order.
    fn order(&self) -> (u64, u64) {
        (self.begun, self.life.0)
    }
}

/// A sign of life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Alive {
    /// So many bytes of messages were taken over this connection.
    pub taken: u64,
    /// The last record of the sender's log that is stable.
    pub record: u64,
}

wire_struct!(Alive { taken: u64, record: u64 });

/// Why data are an older copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OlderCopy {
    /// They had come up to this record.
    Below(u64),
    /// Other data have followed them, which began then.
    Followed(u64),
}

/// What was heard of all servers: of each, its newest life.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heights {
    newest: BTreeMap<NodeId, Reached>,
    /// There is something that was not kept yet.
    pub is_new: bool,
}

impl Heights {
    /// What was kept, or said by somebody else.
    pub fn recall(kept: &[Reached]) -> Heights {
        let mut heights = Heights::default();
        kept.iter().for_each(|&reached| heights.note(reached));
        heights.is_new = false;
        heights
    }

    /// All that is known.
    pub fn all(&self) -> Vec<Reached> {
        self.newest.values().copied().collect()
    }

    /// Whether data that have come so far are an older copy, by what is known.
    pub fn judge(&self, now: Reached) -> Result<(), OlderCopy> {
        let Some(newest) = self.newest.get(&now.node) else { return Ok(()) };
        let is_below = newest.process != now.process && newest.record > now.record;
        match newest.order().cmp(&now.order()) {
            Ordering::Greater => Err(OlderCopy::Followed(newest.begun)),
            Ordering::Equal if is_below => Err(OlderCopy::Below(newest.record)),
            Ordering::Equal | Ordering::Less => Ok(()),
        }
    }

    /// A server has come so far.
    pub fn note(&mut self, now: Reached) {
        if let Some(known) = self.newest.get(&now.node) {
            let is_older = match known.order().cmp(&now.order()) {
                Ordering::Greater => true,
                Ordering::Equal => known.record > now.record || *known == now,
                Ordering::Less => false,
            };
            if is_older {
                return;
            }
        }
        self.newest.insert(now.node, now);
        self.is_new = true;
    }

    /// A process of a server has come so far, which told in its handshake which life it is of.
    pub fn note_alive(&mut self, now: Reached) {
        if self.newest.get(&now.node).is_some_and(|known| known.order() == now.order()) {
            self.note(now);
        }
    }
}

impl Loop {
    /// How far this server's log has come.
    fn reached(&self) -> Reached {
        let me = &self.peers.me;
        let record = self.station.inner.borrow().kept();
        Reached { node: me.node, life: me.life, begun: me.begun, process: me.process, record }
    }

    /// What is told in a handshake between this process and one of that kind: only servers hear it
    /// of servers.
    pub(crate) fn heights_to(&self, station: Station) -> Vec<Reached> {
        if station != Station::Server || self.peers.me.station != Station::Server {
            return Vec::new();
        }
        let others = self.peers.heights.all();
        std::iter::once(self.reached()).chain(others).take(TOLD_MAX).collect()
    }

    /// Compares what another server has and remembers with what this one has and remembers.
    pub(crate) fn learn_heights(
        &mut self,
        node: NodeId,
        life: Life,
        heights: &[Reached],
    ) -> Result<(), (Reason, String)> {
        if self.peers.me.station != Station::Server {
            return Ok(());
        }
        let mine = self.reached();
        if let Err(why) = Heights::recall(heights).judge(mine) {
            let text = older(mine, why);
            if self.begins_behind(why.begun()) {
                return Err((Reason::NotReady, text));
            }
            self.failed.get_or_insert(Failed::Refused(text.clone()));
            // The other one may try again, when this one is what it was.
            return Err((Reason::NotReady, text));
        }
        // It tells its own first; without that it is no server of this version.
        let theirs = Some(own_of(heights)).filter(|it| it.node == node && it.life == life);
        let theirs = theirs.unwrap_or(Reached { node, life, ..Reached::default() });
        let judged = self.peers.heights.judge(theirs);
        judged.map_err(|why| (Reason::Older(why.begun()), older(theirs, why)))?;
        let others = heights.iter().filter(|it| it.node != mine.node);
        others.for_each(|&it| self.peers.heights.note(it));
        Ok(())
    }

    /// A sign of life has come.
    pub(crate) fn on_alive(&mut self, place: usize, node: NodeId, alive: Alive) {
        let stage = self.peers.at(place).map(|connection| connection.stage);
        let Some(Stage::Up { station, own, .. }) = stage else { return };
        if station.is_node() {
            self.station.inner.borrow_mut().note_taken(place, node, alive.taken);
        }
        if station == Station::Server && self.peers.me.station == Station::Server {
            self.peers.heights.note_alive(Reached { record: alive.record, ..own });
        }
    }

    /// Gives a sign of life.
    pub(crate) fn tell_alive(&mut self, place: usize, now: Nanos) {
        let Reached { record, .. } = self.reached();
        let Some(connection) = self.peers.at_mut(place) else { return };
        if !matches!(connection.stage, Stage::Up { .. }) {
            return;
        }
        (connection.spoke, connection.told_kept) = (now, record);
        (connection.told, connection.told_at) = (connection.taken, now);
        let alive = Alive { taken: connection.taken, record };
        self.station.inner.borrow_mut().outside.outbox.at(place).alive(alive);
    }

    /// Other data of this server, which began then, are taken for later ones. Whether its own have
    /// begun with this process, and nobody has let it in yet: then they count as later from now on.
    pub(crate) fn begins_behind(&mut self, begun: Option<u64>) -> bool {
        let Some(begun) = begun.filter(|_| self.peers.begins && self.peers.met.is_empty()) else {
            return false;
        };
        let later = begun.saturating_add(1).max(self.peers.me.begun);
        let kept = self.peers.folder.as_ref().map_or(Ok(()), |folder| folder.begin_at(later));
        if kept.is_ok() {
            self.peers.me.begun = later;
        }
        kept.is_ok()
    }

    /// Keeps what was heard, once in a while, on a thread of its own: the disk may hang.
    pub(crate) fn keep_heights(&mut self, now: Nanos) {
        let keeping = self.peers.keeping.clone();
        if keeping.has_failed.swap(false, atomic::Ordering::AcqRel) {
            self.peers.heights.is_new = true;
        }
        let due = self.peers.heights.is_new && self.peers.heights_kept + KEPT_EVERY <= now;
        let Some(folder) = self.peers.folder.clone().filter(|_| due) else { return };
        if keeping.is_under_way.swap(true, atomic::Ordering::AcqRel) {
            return;
        }
        self.peers.heights_kept = now;
        self.peers.heights.is_new = false;
        let heard = self.peers.heights.all();
        let over = keeping.clone();
        let keep = move || {
            let failed = folder.keep_heard(&heard).is_err();
            over.has_failed.store(failed, atomic::Ordering::Release);
            drop(folder);
            over.is_under_way.store(false, atomic::Ordering::Release);
        };
        if std::thread::Builder::new().name("heard".to_owned()).spawn(keep).is_err() {
            self.peers.heights.is_new = true;
            keeping.is_under_way.store(false, atomic::Ordering::Release);
        }
    }

    /// Keeps what was heard, as the process stops. A disk that hangs is not waited for long:
    /// without it a server knows less after a restart.
    pub(crate) fn keep_heights_at_last(&mut self) {
        let Some(folder) = &self.peers.folder else { return };
        let deadline = Instant::now() + LAST_WITHIN;
        while self.peers.keeping.is_under_way.load(atomic::Ordering::Acquire) {
            if Instant::now() > deadline {
                return;
            }
            std::thread::sleep(LAST_WITHIN / 100);
        }
        let _ = folder.keep_heard(&self.peers.heights.all());
    }
}

/// What was heard is being kept, on a thread of its own.
#[derive(Debug, Default)]
pub(crate) struct Keeping {
    is_under_way: AtomicBool,
    /// The last time it could not be written.
    has_failed: AtomicBool,
}

impl OlderCopy {
    /// When the data began that have followed.
    pub(crate) fn begun(self) -> Option<u64> {
        match self {
            OlderCopy::Followed(begun) => Some(begun),
            OlderCopy::Below(_) => None,
        }
    }
}

/// What a server tells of itself, in front of the others; nothing, if it is none.
pub(crate) fn own_of(heights: &[Reached]) -> Reached {
    heights.first().copied().unwrap_or_default()
}

/// What the server is told whose data are an older copy.
pub(crate) fn older(now: Reached, why: OlderCopy) -> String {
    let Reached { node, record, .. } = now;
    let what = match why {
        OlderCopy::Below(before) => format!(
            "their log ends at record {record}, and it had said that record {before} was kept"
        ),
        OlderCopy::Followed(_) => {
            "it has begun anew since, with an empty folder or with the loss of the \
                            end of its data accepted"
                .to_owned()
        }
    };
    format!(
        "the data of node {} are an older copy: {what}. Put back the folder that it had last; in a \
         group, an empty one will do, which learns from the others; or accept that what came after \
         the copy is lost: start it with `accept_loss = true`",
        node.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reached(life: u64, process: u64, record: u64) -> Reached {
        Reached { node: NodeId(1), life: Life(9 - life), begun: life, process, record }
    }

    #[test]
    fn data_below_what_an_earlier_process_said_of_them_are_an_older_copy() {
        let mut heights = Heights::default();
        assert_eq!(heights.judge(reached(7, 1, 3)), Ok(()));
        heights.note(reached(7, 1, 5));
        heights.note(reached(7, 1, 4));
        assert_eq!(heights.judge(reached(7, 2, 4)), Err(OlderCopy::Below(5)));
        assert_eq!(heights.judge(reached(7, 2, 5)), Ok(()));
        assert_eq!(heights.judge(reached(7, 2, 9)), Ok(()));
        // Said before that, and arriving after it.
        assert_eq!(heights.judge(reached(7, 1, 4)), Ok(()));
    }

    /// A server has restarted, and another one still tells what its earlier process said.
    #[test]
    fn signs_of_life_count_for_the_process_that_gives_them() {
        let mut heights = Heights::default();
        heights.note(reached(7, 2, 5));
        heights.note(reached(7, 1, 5));
        heights.note_alive(reached(7, 2, 9));
        assert_eq!(heights.judge(reached(7, 2, 8)), Ok(()), "said before, and arriving after");
        assert_eq!(heights.judge(reached(7, 3, 8)), Err(OlderCopy::Below(9)));
        // Of data that began anew since, and of such that others were told of first.
        heights.note_alive(Reached { begun: 6, ..reached(7, 2, 20) });
        heights.note_alive(Reached { begun: 8, ..reached(7, 2, 30) });
        assert_eq!(heights.judge(reached(7, 3, 9)), Ok(()));
    }

    #[test]
    fn data_that_others_have_followed_are_an_older_copy_in_whichever_order_that_is_heard() {
        for lives in [[1, 2], [2, 1]] {
            let mut here = Heights::default();
            lives.iter().for_each(|&life| here.note(reached(life, life, 10 * (3 - life))));
            assert_eq!(here.judge(reached(1, 3, 60)), Err(OlderCopy::Followed(2)));
            assert_eq!(here.judge(reached(2, 3, 10)), Ok(()));
            assert_eq!(here.judge(reached(3, 3, 0)), Ok(()));
            assert_eq!(Heights::recall(&here.all()).all(), here.all());
        }
    }
}
