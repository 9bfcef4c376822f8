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
//! that it heard of every *life* of a server's data, and tells what it remembers along in its
//! handshakes. Where two servers meet, each compares what the other one remembers of it with what
//! it has, and what it remembers of the other with what that has. Data that lie below what an
//! earlier process said of them, or are of a life that a later one has followed, are an older copy:
//! the server is refused, and ends. A life begins with an empty folder, or when somebody accepts
//! that the end of the data is lost; the later one is that which began later, by the clock of the
//! server.
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
use std::sync::atomic;

use muesli_core::{Nanos, NodeId, Protocol, wire_struct};

use crate::connection::Stage;
use crate::hello::{Life, Reason, Station};
use crate::turn::{Failed, Loop};

/// So many lives of a server's data are remembered.
const LIVES_MAX: usize = 4;
/// So much is told in a handshake, whose frames are short.
const TOLD_MAX: usize = 400;
/// What was heard is kept so often.
const KEPT_EVERY: Nanos = Nanos::from_millis(5_000);

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
pub(crate) enum Older {
    /// They had come up to this record.
    Below(u64),
    /// Other data have followed them.
    Followed,
}

/// What was heard of all servers: of each, its lives in the order in which they came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heights {
    lives: BTreeMap<NodeId, Vec<Reached>>,
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

    /// All that is known, lives of one server in their order.
    pub fn all(&self) -> Vec<Reached> {
        self.lives.values().flatten().copied().collect()
    }

    /// Whether data that have come so far are an older copy, by what is known.
    pub fn judge(&self, now: Reached) -> Result<(), Older> {
        let Some(newest) = self.lives.get(&now.node).and_then(|lives| lives.last()) else {
            return Ok(());
        };
        let is_below = newest.process != now.process && newest.record > now.record;
        match newest.order().cmp(&now.order()) {
            Ordering::Greater => Err(Older::Followed),
            Ordering::Equal if is_below => Err(Older::Below(newest.record)),
            Ordering::Equal | Ordering::Less => Ok(()),
        }
    }

    /// A server has come so far.
    pub fn note(&mut self, now: Reached) {
        let lives = self.lives.entry(now.node).or_default();
        match lives.binary_search_by_key(&now.order(), Reached::order) {
            Ok(at) if lives[at].record > now.record || lives[at] == now => return,
            Ok(at) => lives[at] = now,
            Err(at) => lives.insert(at, now),
        }
        let excess = lives.len().saturating_sub(LIVES_MAX);
        lives.drain(..excess);
        self.is_new = true;
    }

    /// A process of a server, whose handshake told in which life it is, has come so far. What is
    /// remembered of that life may be what others have told of an earlier process.
    pub fn note_alive(&mut self, node: NodeId, life: Life, process: u64, record: u64) {
        let lives = self.lives.get(&node).into_iter().flatten();
        if let Some(&known) = lives.rev().find(|it| it.life == life) {
            self.note(Reached { process, record, ..known });
        }
    }
}

impl<P: Protocol> Loop<P> {
    /// How far this server's log has come.
    fn reached(&self) -> Reached {
        let me = &self.peers.me;
        let record = self.station.machine.borrow().kept();
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
            self.failed.get_or_insert(Failed::Refused(text.clone()));
            // The other one may try again, when this one is what it was.
            return Err((Reason::NotReady, text));
        }
        let is_its_own = |it: &&Reached| it.node == node && it.life == life;
        // It tells its own first; without that it is no server of this version.
        let theirs = heights.first().filter(is_its_own).copied();
        let theirs = theirs.unwrap_or(Reached { node, life, ..Reached::default() });
        self.peers.heights.judge(theirs).map_err(|why| (Reason::Older, older(theirs, why)))?;
        let others = heights.iter().filter(|it| it.node != mine.node);
        others.for_each(|&it| self.peers.heights.note(it));
        Ok(())
    }

    /// A sign of life has come.
    pub(crate) fn on_alive(&mut self, place: usize, node: NodeId, alive: Alive) {
        self.station.machine.borrow_mut().note_taken(place, node, alive.taken);
        let stage = self.peers.at(place).map(|connection| connection.stage);
        if let Some(Stage::Up { station: Station::Server, life, process, .. }) = stage
            && self.peers.me.station == Station::Server
        {
            self.peers.heights.note_alive(node, life, process, alive.record);
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
        self.station.machine.borrow_mut().outbox.at(place).alive(alive);
    }

    /// Keeps what was heard, once in a while, on a thread of its own: the disk may hang.
    pub(crate) fn keep_heights(&mut self, now: Nanos) {
        let (before, under_way) = &mut self.peers.heights_kept;
        let due = self.peers.heights.is_new && *before + KEPT_EVERY <= now;
        let Some(folder) = self.peers.folder.clone().filter(|_| due) else { return };
        *before = now;
        if under_way.swap(true, atomic::Ordering::AcqRel) {
            return;
        }
        self.peers.heights.is_new = false;
        let (heard, over) = (self.peers.heights.all(), under_way.clone());
        let keep = move || {
            let _ = folder.keep_heard(&heard); // Without it a server knows less after a restart.
            over.store(false, atomic::Ordering::Release);
        };
        if std::thread::Builder::new().name("heard".to_owned()).spawn(keep).is_err() {
            self.peers.heights_kept.1.store(false, atomic::Ordering::Release);
        }
    }

    /// Keeps what was heard, as the process stops.
    pub(crate) fn keep_heights_at_last(&mut self) {
        if let Some(folder) = &self.peers.folder {
            let _ = folder.keep_heard(&self.peers.heights.all()); // As above.
        }
    }
}

/// The process that tells these, its own first.
pub(crate) fn process_of(heights: &[Reached]) -> u64 {
    heights.first().map_or(0, |own| own.process)
}

/// What the server is told whose data are an older copy.
pub(crate) fn older(now: Reached, why: Older) -> String {
    let Reached { node, record, .. } = now;
    let what = match why {
        Older::Below(before) => format!(
            "their log ends at record {record}, and it had said that record {before} was kept"
        ),
        Older::Followed => "it has begun anew since, with an empty folder or with the loss of the \
                            end of its data accepted"
            .to_owned(),
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
        assert_eq!(heights.judge(reached(7, 2, 4)), Err(Older::Below(5)));
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
        heights.note_alive(NodeId(1), Life(2), 2, 9);
        assert_eq!(heights.judge(reached(7, 2, 8)), Ok(()), "said before, and arriving after");
        assert_eq!(heights.judge(reached(7, 3, 8)), Err(Older::Below(9)));
        heights.note_alive(NodeId(1), Life(1), 2, 20);
        assert_eq!(heights.judge(reached(7, 3, 9)), Ok(()), "of a life that is not known");
    }

    #[test]
    fn data_that_others_have_followed_are_an_older_copy_in_whichever_order_that_is_heard() {
        for lives in [[1, 2], [2, 1]] {
            let mut here = Heights::default();
            lives.iter().for_each(|&life| here.note(reached(life, life, 10 * (3 - life))));
            assert_eq!(here.judge(reached(1, 3, 60)), Err(Older::Followed));
            assert_eq!(here.judge(reached(2, 3, 10)), Ok(()));
            assert_eq!(here.judge(reached(3, 3, 0)), Ok(()));
            assert_eq!(Heights::recall(&here.all()).all(), here.all());
        }
    }

    #[test]
    fn the_oldest_lives_are_forgotten_first() {
        let of = |life| Reached { begun: life, life: Life(life), ..reached(1, 1, 1) };
        let mut heights = Heights::default();
        (1..=200).rev().for_each(|life| heights.note(of(life)));
        assert_eq!(heights.all().len(), LIVES_MAX);
        assert_eq!(heights.judge(of(200)), Ok(()));
        assert_eq!(heights.judge(of(199)), Err(Older::Followed));
    }
}
