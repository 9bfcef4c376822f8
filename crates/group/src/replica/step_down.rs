//! A leader that is deposed takes back what may never be decided.
//!
//! Its participant has run entries that nobody may ever decide, and has in memory what only a
//! leader has. The rest of its state, perhaps gigabytes, is right. So a leader now and then *marks*
//! a moment: it keeps all of the participant's state but the keys, as a checkpoint would begin, and
//! the participant notes what becomes of these. Deposed, it returns to the newest mark before which
//! everything is decided, as if it had been restored from a checkpoint of that moment, and replays
//! what is decided since.
//!
//! A state that it sends to another member goes on from that mark
//! ([`Sending`](crate::replica::transfer)): otherwise a receiver of gigabytes would begin anew
//! whenever leadership changes, and on a busy machine it changes more often than gigabytes are
//! sent.
//!
//! The entries after that mark are kept, whoever else has them. A mark is forgotten once a later
//! one is decided, so no more is noted than was written since.

use std::collections::VecDeque;

use muesli_core::{Participant, Protocol};

use super::Replica;
use crate::inside::Context;

/// A moment to which a leader may have to return.
#[derive(Clone, Debug)]
pub(super) struct Mark {
    /// After so many entries.
    upto: u64,
    /// All of the participant's state then but the keys.
    head: VecDeque<Vec<u8>>,
    /// The number of bytes of that.
    bytes: u64,
    /// How many bytes of entries it had run as a leader.
    ran: u64,
}

/// What is marked has at most this part of what was written since the mark before.
const HEAD_PART: u64 = 8;

impl<P: Protocol> Replica<P> {
    /// A leader begins: it has run what is decided, and nothing else.
    pub(super) fn mark_beginning(&mut self) {
        self.marks.clear();
        (self.ran, self.sure) = (0, self.applied);
        self.mark();
    }

    /// Marks the present moment.
    pub(super) fn mark(&mut self) {
        let Some(head) = self.inner.mark() else { return };
        let bytes = head.iter().map(|piece| piece.len() as u64).sum();
        self.marks.push_back(Mark { upto: self.applied, head, bytes, ran: self.ran });
    }

    /// Marks the present moment where much was written since the last, and forgets marks that
    /// nobody returns to.
    pub(super) fn mark_now_and_then(&mut self) {
        let (Some(consensus), Some(leading)) = (&self.consensus, &self.leading) else { return };
        if consensus.leading() != Some(leading.ballot) {
            return; // It is between two configurations.
        }
        self.sure = consensus.decided();
        let least = self.group_settings.limits.undecided_bytes_max;
        let due = |last: &Mark| self.ran >= last.ran + least.max(HEAD_PART * last.bytes);
        if self.marks.back().is_none_or(due) {
            self.mark();
        }
        self.forget_marks_before(self.sure);
    }

    /// Where everything is decided up to the second mark, the first is not needed.
    fn forget_marks_before(&mut self, decided: u64) {
        while self.marks.get(1).is_some_and(|next| next.upto <= decided) {
            self.marks.pop_front();
            self.inner.forget_mark();
        }
    }

    /// From where on a leader may have to replay.
    pub(super) fn marked(&self) -> u64 {
        self.marks.front().map_or(u64::MAX, |mark| mark.upto)
    }

    /// It leads no more: the participant returns to what is decided, or, where that cannot be, is
    /// forgotten.
    pub(super) fn step_down(&mut self, cx: &mut Context<'_, P>) {
        self.leading = None;
        // What it finds decided now may be what others have put in the place of what it ran.
        let sure = if self.group_settings.returns_to_decided { self.sure } else { u64::MAX };
        self.forget_marks_before(sure);
        let Some(mark) = self.marks.pop_front().filter(|it| it.upto <= sure) else {
            return self.start_over();
        };
        assert!(mark.upto >= self.ledger.look(|it| it.log.base()), "entries after it are kept");
        let new = self.new_participant();
        let mut old = std::mem::replace(&mut self.inner, new);
        let (role, inner, head) = (self.role(), &mut self.inner, mark.head);
        let (is_back, _) = self.inside.run(role, cx, |cx| inner.go_back(&mut old, head, cx));
        old.end(&self.settings);
        if !is_back {
            return self.start_over();
        }
        self.returned += 1;
        let was = self.generation;
        self.begin_anew(mark.upto);
        self.go_on_deposed(was, mark.upto, sure);
    }
}
