//! Readers of one repository, answered where a copy of it is kept that is behind (section 7.2).
//!
//! # The problem
//! Most of what is asked for only reads, and all of it would go to the one node that votes and
//! writes the log, while others keep the same keys for the case that this node is lost.
//!
//! # The idea
//! A copy that has replayed a beginning of the repository's log is what the repository once was. A
//! reader fits into the serial order there, right behind `done`, the highest timestamp at which
//! anything in that beginning was done: it writes nothing, so nobody has to know of it.
//!
//! # Why that is right
//! It must have before it exactly what lies at `done` or below. A record says what was done as it
//! is done, and a vote is logged as it is cast, in one order. What is not in this beginning of the
//! log was proposed later, so above all that had been done, and lies above `done`. What was voted
//! on in it and is not over may come to lie anywhere from its proposal on; where a proposal is not
//! above `done` (locking mode does things out of order), the copy does not answer. And the
//! session must have seen nothing that lies above `done`. The text compares with "at most", which
//! is right here because no two transactions have the same timestamp; and its backups may not
//! execute a transaction of one repository as soon as its record comes, which is right here because
//! it is logged as it is done.
//!
//! Where some [pass](crate::granola::participant::modes::out_of_order) others none of that is known
//! here: a transaction of one repository is logged as it is done, and may lie below one that has
//! passed it. There only copies at coordinators answer, which are told up to where all is done.
//!
//! # Copies of what is quiet
//! A session that has seen something later elsewhere would find a copy of a repository behind for
//! as long as nothing is written there. So when such a reader comes to be answered by the
//! repository itself, that notes in its log how far it has come ([`Record::Reached`]), lazily and
//! not often. Departure: not in the text.

use muesli_core::Timestamp;

use crate::granola::message::{Message, Noted, Record, ReplyOutcome, Request};
use crate::granola::participant::execution::Notes;
use crate::granola::participant::execution::history::record;
use crate::granola::participant::{Context, Participant};
use crate::granola::switches::GranolaSwitch;

impl Participant {
    /// As a copy that has replayed a beginning of the log: answers a reader, or leaves it.
    pub(in super::super) fn answer_as_copy(
        &mut self,
        message: &Message,
        cx: &mut Context<'_>,
    ) -> bool {
        let Message::Request(request) = message else { return false };
        if self.switches.is_out_of_order() {
            return false;
        }
        let Some((end, noted)) = self.read_as_copy(request, cx) else { return false };
        self.tell_end(request, end, noted, cx);
        true
    }

    /// What a reader finds in a copy, right behind what was done last; nothing, if it is not to lie
    /// there.
    pub(in crate::granola) fn read_as_copy(
        &mut self,
        request: &Request,
        cx: &mut Context<'_>,
    ) -> Option<(ReplyOutcome, Noted)> {
        let at = self.clock.done;
        let is_there =
            self.is_elsewhere(request, cx).is_none() && self.lacks(request, cx).is_none();
        if !self.may_read_at(request, at) || !is_there {
            return None;
        }
        let mut sets = std::mem::take(&mut self.sets);
        assert!(sets.reads.is_empty() && sets.writes.is_empty(), "sets of an earlier execution");
        let (mut notes, mut noted) = (Notes::new(), Noted::default());
        let end = match self.run_parts(request, &mut sets, &mut notes, cx) {
            Ok(answers) => {
                noted = record(request, at, &sets, &notes, cx);
                ReplyOutcome::Done { at, answers }
            }
            Err(refusal) => ReplyOutcome::Refused { at, refusal },
        };
        sets.clear();
        self.sets = sets;
        Some((end, noted))
    }

    fn may_read_at(&self, request: &Request, at: Timestamp) -> bool {
        let mine = request.reads_alone() && request.participants[..] == [self.id];
        let is_over = self.queue.first().is_none_or(|first| first.0 > at);
        let has_seen = request.lower_bound <= at;
        mine && at > Timestamp::ZERO
            && (is_over || !self.switches.keeps(GranolaSwitch::CopiesWait))
            && (has_seen || !self.switches.keeps(GranolaSwitch::CopiesCheck))
    }

    /// A reader that any copy might have answered was done here at `at`: copies are to know that
    /// nothing of which they do not know lies below.
    pub(in super::super) fn note_reached(&mut self, at: Timestamp, cx: &mut Context<'_>) {
        if self.reached.is_none_or(|last| last + cx.settings.gossip_every <= cx.now()) {
            self.reached = Some(cx.now());
            cx.log_lazily(|| Record::Reached { at });
        }
    }
}
