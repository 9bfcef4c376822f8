//! What a member writes down, and what it says that must not be known before that is stable.

use muesli_core::Protocol;

use super::{Replica, Settled};
use crate::agreement::consensus::Waits;
use crate::agreement::ledger::{Change, ReplicaState};
use crate::inside::{Context, send_now};
use crate::protocol::{Message, Record};

/// A disk that takes more ticks is what a request to others waits for.
const SLOW_TICKS: u64 = 3;
/// How long a disk took lately is for so many ticks at least, and for twice as many at most.
const LATELY_TICKS: u64 = 500;
/// A disk that has been slow lately is given at most this part more than another one. With servers'
/// settings (20 ticks of 20 ms) it hangs after 600 ms, and until another member leads it takes some
/// 270 ms more: clients are to wait for less than a second in all.
const MORE: u64 = 2;

/// How long a disk has taken lately to make stable what it was given, in ticks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DiskPace {
    /// Since when `now` is counted.
    since: u64,
    /// At most, since then and in the time before.
    now: u64,
    before: u64,
}

impl DiskPace {
    /// It took so long, and was done at `tick`.
    fn took(&mut self, ticks: u64, tick: u64) {
        if tick >= self.since + LATELY_TICKS {
            let is_recent = tick < self.since + 2 * LATELY_TICKS;
            let before = if is_recent { self.now } else { 0 };
            *self = DiskPace { since: tick, now: 0, before };
        }
        self.now = self.now.max(ticks);
    }

    /// After how many ticks it hangs, where one that is never slow does after `most`: a disk that
    /// often takes long does not hang yet, and others on the same machine are as slow.
    fn hangs_after(&self, most: u64) -> u64 {
        let lately = self.now.max(self.before);
        lately.saturating_mul(2).clamp(most, most.saturating_add(most / MORE))
    }
}

impl<P: Protocol> Replica<P> {
    /// Logs what the member knows since it last did.
    pub(super) fn write_down(&mut self, cx: &mut Context<'_, P>) {
        for changes in self.ledger.take_changes() {
            for change in &changes {
                match change {
                    Change::Entries(from, _) | Change::Fetched(from, _) => self.written.cut(*from),
                    Change::Configured(upto, _) => self.written.cut(*upto),
                    Change::Adopted(_) | Change::Rebased { .. } => self.written.begin(),
                    Change::Install(_) | Change::Piece(..) | Change::Installed(_) => {}
                    Change::Restored { .. } => unreachable!("only in checkpoints"),
                    Change::Promise(_) | Change::Accepted(_) | Change::Decided(_) => {}
                }
            }
            let only_decided = changes.iter().all(|change| matches!(change, Change::Decided(_)));
            if only_decided {
                cx.log_lazily(|| Record::Changes(changes)); // Others tell it again.
            } else {
                cx.log(|| Record::Changes(changes));
            }
        }
        self.count_stable();
    }

    /// Lets the consensus know how many entries are stable here.
    pub(super) fn count_stable(&mut self) {
        let Some(consensus) = &mut self.consensus else { return };
        let counts = self.group_settings.counts_itself_when_stable;
        consensus.stable_upto(if counts { self.written.stable() } else { u64::MAX });
    }

    /// Sends what the consensus has to say, and itself a note where it must know of its disk.
    pub(super) fn send_of_consensus(&mut self, cx: &mut Context<'_, P>) {
        let mut outgoing = std::mem::take(&mut self.parting);
        let (mut entries, mut follows_itself) = (0, false);
        if let Some(consensus) = &mut self.consensus {
            let number = consensus.configuration().number;
            outgoing.extend(consensus.outgoing().into_iter().map(|message| (number, message)));
            entries = consensus.accepted();
            follows_itself = consensus.ballot().member == u64::from(self.place) + 1;
        }
        let mut in_order = self.written.has_arrived(self.spoke);
        let mut held_back = false;
        for (number, message) in outgoing {
            let Some(to) = self.address_of(message.to, cx) else { continue };
            let Some(bytes) = message.bytes else {
                let decided = self.ledger.look(|it| it.decided);
                send_now(to, Message::Behind(decided), cx);
                continue;
            };
            in_order &= message.waits != Waits::ForTheDisk;
            let at_once = message.waits == Waits::ForNothing || in_order;
            if at_once || !self.group_settings.syncs_first {
                send_now(to, Message::Consensus(number, bytes), cx);
            } else {
                cx.send(to, Message::Consensus(number, bytes));
                held_back = true;
            }
        }
        let must_know = held_back || self.written.is_news(entries);
        if self.settled == Settled::Soon || follows_itself && must_know {
            let note = self.written.note(entries);
            cx.send(cx.me, Message::Stable(note));
            if self.settled == Settled::Soon {
                self.settled = Settled::Logged(note);
            }
            if held_back {
                self.spoke = note;
            }
        }
    }

    pub(super) fn on_note(&mut self, note: u64) {
        self.written.arrived(note);
        self.count_stable();
        if let Some((_, sent)) = self.probe.take_if(|(probe, _)| *probe <= note) {
            self.pace.took(self.ticks - sent, self.ticks);
        }
        if self.settled == Settled::Logged(note) {
            self.settled = Settled::Yes;
        }
    }

    /// Sends itself a note behind its log, one at a time, to learn whether its disk goes on.
    pub(super) fn probe_disk(&mut self, cx: &mut Context<'_, P>) {
        if self.probe.is_none() {
            let note = self.written.note(self.ledger.look(ReplicaState::length));
            self.probe = Some((note, self.ticks));
            cx.send(cx.me, Message::Stable(note));
        }
    }

    /// Whether what it asks others for is still behind its own disk.
    pub(super) fn waits_for_its_disk(&self) -> bool {
        self.probe.is_some_and(|(_, sent)| sent + SLOW_TICKS < self.ticks)
    }

    /// Whether its disk has not made stable for long what it was given.
    pub(super) fn is_hung(&self) -> bool {
        let most = self.pace.hangs_after(self.group_settings.limits.disk_ticks_max);
        self.probe.is_some_and(|(_, sent)| sent + most < self.ticks)
    }

    /// A member whose disk hangs keeps silent, so that another one leads whose disk does not. One
    /// without its participant's state votes only.
    pub(super) fn restrain(&mut self) {
        let (is_hung, is_unfit) = (self.is_hung(), !self.has_state());
        if let Some(consensus) = &mut self.consensus {
            consensus.restrain(is_hung, is_unfit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_is_often_slow_is_waited_for_longer_and_not_for_ever() {
        let mut pace = DiskPace::default();
        pace.took(1, 10);
        assert_eq!(pace.hangs_after(20), 20);
        pace.took(13, 30);
        assert_eq!(pace.hangs_after(20), 26);
        pace.took(2, 40);
        assert_eq!(pace.hangs_after(20), 26, "it was slow a moment ago");
        pace.took(900, 400);
        assert_eq!(pace.hangs_after(20), 30);
        assert_eq!(pace.hangs_after(u64::MAX), u64::MAX);
        pace.took(1, 400 + LATELY_TICKS);
        assert_eq!(pace.hangs_after(20), 30);
        pace.took(1, 401 + 2 * LATELY_TICKS);
        assert_eq!(pace.hangs_after(20), 20, "that was long ago");
    }

    #[test]
    fn what_was_long_ago_does_not_count_after_a_time_without_notes() {
        let mut pace = DiskPace::default();
        pace.took(50, 10);
        pace.took(1, 10 + 2 * LATELY_TICKS);
        assert_eq!(pace.hangs_after(20), 20);
    }
}
