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
//! Servers tell each other up to which record their logs are stable ([`Height`]): in the handshake,
//! with signs of life while there is news, and as they stop. Each remembers the highest that it
//! heard of every *life* of a server's data, and in which order the lives came, and tells what it
//! remembers along in its handshakes. Where two servers meet, each compares what the other one
//! remembers of it with what it has, and what it remembers of the other with what that has. Data
//! that lie below what was heard of them, or are of a life that another one has followed, are an
//! older copy: the server is refused, and ends.
//!
//! What is stable stays when a process or its power ends, so a server that merely restarts is never
//! below what it said.
//!
//! # What it does not notice
//! A copy that has all that the others heard of: made after the last sign of life before the end.
//! And an older copy of all servers' folders at once. Memories are kept in a file beside the log,
//! once in a while.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

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

/// How far a log has come; later is larger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Height {
    /// How often somebody has accepted that the end of the data is lost.
    pub accepted: u32,
    /// The last record that is stable; 0 where nothing is kept.
    pub record: u64,
}

wire_struct!(Height { accepted: u32, record: u64 });

/// What was heard of a life of a server's data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    /// The server.
    pub node: NodeId,
    /// The life.
    pub life: Life,
    /// How far its log had come.
    pub height: Height,
}

wire_struct!(Reached { node: NodeId, life: Life, height: Height });

/// A sign of life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Alive {
    /// So many bytes of messages were taken over this connection.
    pub taken: u64,
    /// How far the sender's log has come.
    pub height: Height,
}

wire_struct!(Alive { taken: u64, height: Height });

/// Why data are an older copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Older {
    /// They had come further.
    Below(Height),
    /// Other data have followed them.
    Followed,
}

/// What was heard of all servers: of each, its lives in the order in which they came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heights {
    lives: BTreeMap<NodeId, Vec<(Life, Height)>>,
    /// There is something that was not kept yet.
    pub is_new: bool,
}

impl Heights {
    /// What was kept.
    pub fn recall(kept: &[Reached]) -> Heights {
        let mut heights = Heights::default();
        heights.merge(kept);
        heights.is_new = false;
        heights
    }

    /// All that is known, lives of one server in their order.
    pub fn all(&self) -> Vec<Reached> {
        let each = |(&node, lives): (&NodeId, &Vec<(Life, Height)>)| {
            let reached = lives.iter().map(move |&(life, height)| Reached { node, life, height });
            reached.collect::<Vec<_>>()
        };
        self.lives.iter().flat_map(each).collect()
    }

    /// Whether data at this height are an older copy, by what is known.
    pub fn judge(&self, now: Reached) -> Result<(), Older> {
        let Some(lives) = self.lives.get(&now.node) else { return Ok(()) };
        match lives.iter().position(|(life, _)| *life == now.life) {
            None => Ok(()),
            Some(at) if at + 1 < lives.len() => Err(Older::Followed),
            Some(at) if lives[at].1 > now.height => Err(Older::Below(lives[at].1)),
            Some(_) => Ok(()),
        }
    }

    /// A server is at this height, and not an older copy.
    pub fn note(&mut self, now: Reached) {
        let lives = self.lives.entry(now.node).or_default();
        match lives.iter_mut().find(|(life, _)| *life == now.life) {
            Some((_, height)) if *height >= now.height => return,
            Some((_, height)) => *height = now.height,
            None => lives.push((now.life, now.height)),
        }
        let excess = lives.len().saturating_sub(LIVES_MAX);
        lives.drain(..excess);
        self.is_new = true;
    }

    /// Takes over what somebody else remembers. A life of which nothing was heard here came before
    /// those that follow it there.
    pub fn merge(&mut self, others: &[Reached]) {
        for (at, &heard) in others.iter().enumerate() {
            let lives = self.lives.entry(heard.node).or_default();
            if !lives.iter().any(|(life, _)| *life == heard.life) {
                let later = |life: &Life| {
                    others[at + 1..].iter().any(|it| it.node == heard.node && it.life == *life)
                };
                let before = lives.iter().position(|(life, _)| later(life));
                lives.insert(before.unwrap_or(lives.len()), (heard.life, heard.height));
                self.is_new = true;
            }
            self.note(heard);
        }
    }
}

impl<P: Protocol> Loop<P> {
    /// How far this server's log has come.
    fn reached(&self) -> Reached {
        let me = &self.peers.me;
        let (accepted, record) = (me.accepted, self.station.machine.borrow().kept());
        Reached { node: me.node, life: me.life, height: Height { accepted, record } }
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
        let theirs = heights.iter().find(is_its_own).copied();
        let theirs = theirs.unwrap_or(Reached { node, life, height: Height::default() });
        self.peers.heights.judge(theirs).map_err(|why| (Reason::Older, older(theirs, why)))?;
        let others: Vec<_> = heights.iter().filter(|it| it.node != mine.node).copied().collect();
        self.peers.heights.merge(&others);
        self.peers.heights.note(theirs);
        Ok(())
    }

    /// A sign of life has come.
    pub(crate) fn on_alive(&mut self, place: usize, node: NodeId, alive: Alive) {
        self.station.machine.borrow_mut().note_taken(place, node, alive.taken);
        let stage = self.peers.at(place).map(|connection| connection.stage);
        if let Some(Stage::Up { station: Station::Server, life, .. }) = stage
            && self.peers.me.station == Station::Server
        {
            self.peers.heights.note(Reached { node, life, height: alive.height });
        }
    }

    /// Gives a sign of life.
    pub(crate) fn tell_alive(&mut self, place: usize, now: Nanos) {
        let Reached { height, .. } = self.reached();
        let Some(connection) = self.peers.at_mut(place) else { return };
        if !matches!(connection.stage, Stage::Up { .. }) {
            return;
        }
        (connection.spoke, connection.told_kept) = (now, height.record);
        (connection.told, connection.told_at) = (connection.taken, now);
        let alive = Alive { taken: connection.taken, height };
        self.station.machine.borrow_mut().outbox.at(place).alive(alive);
    }

    /// Keeps what was heard, once in a while, on a thread of its own: the disk may hang.
    pub(crate) fn keep_heights(&mut self, now: Nanos) {
        let (before, under_way) = &mut self.peers.heights_kept;
        let due = self.peers.heights.is_new && *before + KEPT_EVERY <= now;
        let Some(folder) = self.peers.folder.clone().filter(|_| due) else { return };
        *before = now;
        if under_way.swap(true, Ordering::AcqRel) {
            return;
        }
        self.peers.heights.is_new = false;
        let (heard, over) = (self.peers.heights.all(), under_way.clone());
        let keep = move || {
            let _ = folder.keep_heard(&heard); // Without it a server knows less after a restart.
            over.store(false, Ordering::Release);
        };
        if std::thread::Builder::new().name("heard".to_owned()).spawn(keep).is_err() {
            self.peers.heights_kept.1.store(false, Ordering::Release);
        }
    }

    /// Keeps what was heard, as the process stops.
    pub(crate) fn keep_heights_at_last(&mut self) {
        if let Some(folder) = &self.peers.folder {
            let _ = folder.keep_heard(&self.peers.heights.all()); // As above.
        }
    }
}

/// What the server is told whose data are an older copy.
pub(crate) fn older(now: Reached, why: Older) -> String {
    let Reached { node, height, .. } = now;
    let what = match why {
        Older::Below(before) if before.accepted > height.accepted => {
            "somebody has accepted the loss of their end since".to_owned()
        }
        Older::Below(before) => format!(
            "their log ends at record {}, and it had said that record {} was kept",
            height.record, before.record
        ),
        Older::Followed => "it has begun anew since, with an empty folder".to_owned(),
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

    fn reached(life: u64, record: u64) -> Reached {
        let height = Height { accepted: 0, record };
        Reached { node: NodeId(1), life: Life(life), height }
    }

    #[test]
    fn data_below_what_was_heard_of_them_are_an_older_copy() {
        let mut heights = Heights::default();
        assert_eq!(heights.judge(reached(7, 3)), Ok(()));
        heights.note(reached(7, 5));
        heights.note(reached(7, 4));
        let before = reached(7, 5).height;
        assert_eq!(heights.judge(reached(7, 4)), Err(Older::Below(before)));
        assert_eq!(heights.judge(reached(7, 5)), Ok(()));
        assert_eq!(heights.judge(reached(7, 9)), Ok(()));
        // Somebody has accepted the loss; and the copy that has everything is older from then on.
        let accepted = Height { accepted: 1, record: 4 };
        heights.note(Reached { height: accepted, ..reached(7, 0) });
        assert_eq!(heights.judge(reached(7, 5)), Err(Older::Below(accepted)));
    }

    #[test]
    fn data_that_others_have_followed_are_an_older_copy_however_that_is_heard() {
        let mut here = Heights::default();
        here.note(reached(1, 50));
        here.note(reached(2, 3));
        assert_eq!(here.judge(reached(1, 60)), Err(Older::Followed));
        // One that knows only the later life learns of the earlier one, in its order.
        let mut there = Heights::default();
        there.note(reached(2, 4));
        there.merge(&here.all());
        assert_eq!(there.all(), [reached(1, 50), reached(2, 4)]);
        // One that knows only the earlier life learns of the later one.
        let mut there = Heights::default();
        there.note(reached(1, 49));
        there.merge(&here.all());
        assert_eq!(there.judge(reached(1, 60)), Err(Older::Followed));
        assert_eq!(Heights::recall(&there.all()).all(), there.all());
    }

    #[test]
    fn the_oldest_lives_are_forgotten_first() {
        let mut heights = Heights::default();
        (1..=200).for_each(|life| heights.note(reached(life, 1)));
        assert_eq!(heights.all().len(), LIVES_MAX);
        assert_eq!(heights.judge(reached(200, 1)), Ok(()));
        assert_eq!(heights.judge(reached(199, 1)), Err(Older::Followed));
    }
}
