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

use std::sync::atomic;
use std::time::{Duration, Instant};

use muesli_core::{Nanos, NodeId};

use crate::connections::connection::ConnectionState;
use crate::connections::heights::{Heights, OlderCopy};
use crate::dispatch::event_loop::Loop;
use crate::dispatch::failure::LoopFailure;
use crate::wire::hello::ProcessKind;
use crate::wire::ids::DataId;
use crate::wire::progress::{Alive, PROGRESS_REPORTS_MAX, Reached, own_of};
use crate::wire::refusal::Reason;

/// What was heard is kept so often.
const KEPT_EVERY: Nanos = Nanos::from_millis(5_000);
/// As a process stops, a write that is under way is waited for so long.
const LAST_WITHIN: Duration = Duration::from_secs(1);

impl Loop {
    /// How far this server's log has come.
    fn reached(&self) -> Reached {
        let me = &self.peers.me;
        let record = self.loop_engine.inner.borrow().kept();
        Reached { node: me.node, data_id: me.data_id, begun: me.begun, process: me.process, record }
    }

    /// What is told in a handshake between this process and one of that kind: only servers hear it
    /// of servers.
    pub(crate) fn heights_to(&self, process_kind: ProcessKind) -> Vec<Reached> {
        if process_kind != ProcessKind::Server || self.peers.me.process_kind != ProcessKind::Server
        {
            return Vec::new();
        }
        let others = self.peers.heights.all();
        std::iter::once(self.reached()).chain(others).take(PROGRESS_REPORTS_MAX).collect()
    }

    /// Compares what another server has and remembers with what this one has and remembers.
    pub(crate) fn learn_heights(
        &mut self,
        node: NodeId,
        data_id: DataId,
        heights: &[Reached],
    ) -> Result<(), (Reason, String)> {
        if self.peers.me.process_kind != ProcessKind::Server {
            return Ok(());
        }
        let mine = self.reached();
        if let Err(why) = Heights::recall(heights).judge(mine) {
            let text = older(mine, why);
            if self.begins_behind(why.begun()) {
                return Err((Reason::NotReady, text));
            }
            self.failed.get_or_insert(LoopFailure::Refused(text.clone()));
            // The other one may try again, when this one is what it was.
            return Err((Reason::NotReady, text));
        }
        // It tells its own first; without that it is no server of this version.
        let theirs = Some(own_of(heights)).filter(|it| it.node == node && it.data_id == data_id);
        let theirs = theirs.unwrap_or(Reached { node, data_id, ..Reached::default() });
        let judged = self.peers.heights.judge(theirs);
        judged.map_err(|why| (Reason::Older(why.begun()), older(theirs, why)))?;
        let others = heights.iter().filter(|it| it.node != mine.node);
        others.for_each(|&it| self.peers.heights.note(it));
        Ok(())
    }

    /// A sign of life has come.
    pub(crate) fn on_alive(&mut self, place: usize, node: NodeId, alive: Alive) {
        let state = self.peers.at(place).map(|connection| connection.state);
        let Some(ConnectionState::Up { process_kind, own, .. }) = state else { return };
        if process_kind.is_node() {
            self.loop_engine.inner.borrow_mut().note_taken(place, node, alive.taken);
        }
        if process_kind == ProcessKind::Server && self.peers.me.process_kind == ProcessKind::Server
        {
            self.peers.heights.note_alive(Reached { record: alive.record, ..own });
        }
    }

    /// Gives a sign of life.
    pub(crate) fn tell_alive(&mut self, place: usize, now: Nanos) {
        let Reached { record, .. } = self.reached();
        let Some(connection) = self.peers.at_mut(place) else { return };
        if !matches!(connection.state, ConnectionState::Up { .. }) {
            return;
        }
        (connection.spoke, connection.reported_record) = (now, record);
        (connection.reported, connection.reported_at) = (connection.taken, now);
        let alive = Alive { taken: connection.taken, record };
        self.loop_engine.inner.borrow_mut().outside.outbox.at(place).alive(alive);
    }

    /// Other data of this server, which began then, are taken for later ones. Whether its own have
    /// begun with this process, and nobody has let it in yet: then they count as later from now on.
    pub(crate) fn begins_behind(&mut self, begun: Option<u64>) -> bool {
        let Some(begun) = begun.filter(|_| self.peers.begins && self.peers.met.is_empty()) else {
            return false;
        };
        let newer = begun.saturating_add(1).max(self.peers.me.begun);
        let kept = self.peers.folder.as_ref().map_or(Ok(()), |folder| folder.begin_at(newer));
        if kept.is_ok() {
            self.peers.me.begun = newer;
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
        let all_heights = self.peers.heights.all();
        let over = keeping.clone();
        let keep = move || {
            let failed = folder.keep_progress(&all_heights).is_err();
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
        let _ = folder.keep_progress(&self.peers.heights.all());
    }
}

/// What the server is told whose data are an older copy.
fn older(now: Reached, why: OlderCopy) -> String {
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
