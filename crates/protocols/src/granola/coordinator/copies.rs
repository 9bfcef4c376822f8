//! Copies of whole repositories at a coordinator, which answer its readers (section 7.3).
//!
//! # The idea
//! Where a process is [told to](muesli_core::Settings::caches), the first reader of a repository
//! that any copy may answer has its coordinator [follow](crate::granola::participant::copies::feed)
//! the repository. As soon as the copy is whole, such readers are answered from it in the same
//! call: they are procedures, or reads of interactive transactions, and run on the copy as they
//! would on the repository. A copy that nobody asks for a while is dropped.
//!
//! # Why that is right
//! A copy is what the repository was at one timestamp, `done`: everything at or below, and nothing
//! above. A session that has seen something later is sent to the repository, or, in a group, to any
//! member; else its reader lies at `done`, and that is what the session is told. The text has
//! caches tell the timestamp with which the session came; then it does not know what it has seen,
//! and another repository may show it what is older. Departure: caches are not nodes that serve
//! others, but live in the processes that read.

use std::collections::BTreeMap;

use muesli_core::wire::WireError;
use muesli_core::{Nanos, Participant as _, RepositoryId, Timestamp};

use super::{Context, Coordinator, GranolaCoordinatorTimer};
use crate::granola::message::{Followed, Message, News, Noted, ReplyOutcome, Request};
use crate::granola::participant::Participant;
use crate::granola::switches::GranolaSwitch;

/// Who follows and was told nothing for so many times
/// [`retry_after`](muesli_core::Settings::retry_after) asks again.
const PATIENCE: u64 = 2;

/// The copies.
///
/// Invariants: no attempt bears a number that was not given out, changes come after the keys, and a
/// timer is set while there is a copy.
#[derive(Clone, Debug, Default)]
pub(super) struct Copies {
    all: BTreeMap<RepositoryId, Copy>,
    /// How many attempts to follow were begun.
    streams: u64,
    timer_set: bool,
}

/// The copy of a repository.
#[derive(Clone, Debug)]
struct Copy {
    /// The repository's own code runs on it; it takes no part in anything.
    participant: Participant,
    has: Followed,
    /// When the repository was last asked for more, or told something.
    seen_at: Nanos,
    /// When a reader last asked.
    used: Nanos,
}

impl Coordinator {
    /// Answers a reader from the copy of its repository, if there is one and it will do.
    pub(super) fn answer_from_copy(
        &mut self,
        request: &Request,
        cx: &mut Context<'_>,
    ) -> Option<(RepositoryId, ReplyOutcome, Noted)> {
        let &[repository] = &request.participants[..] else { return None };
        let elsewhere = cx.catalog.home(repository) != cx.me.node;
        if !(cx.settings.caches && elsewhere) {
            return None;
        }
        let now = cx.now();
        let Some(copy) = self.copies.all.get_mut(&repository) else {
            let has = self.begin_copy(repository, cx);
            cx.send_to_repository(repository, Message::Follow { has });
            return None;
        };
        copy.used = now;
        let (mut end, noted) = copy.participant.read_as_copy(request, cx)?;
        if let ReplyOutcome::Done { at, .. } = &mut end
            && !self.switches.keeps(GranolaSwitch::CopiesTell)
        {
            *at = request.lower_bound;
        }
        Some((repository, end, noted))
    }

    /// Begins a copy, or begins it anew, with what it has: nothing.
    fn begin_copy(&mut self, repository: RepositoryId, cx: &mut Context<'_>) -> Followed {
        let now = cx.now();
        self.copies.streams += 1;
        // Above those of this coordinator's earlier lives.
        let stream = u64::from(self.incarnation) << 32 | self.copies.streams;
        let has = Followed { stream, pieces: 0, upto: Timestamp::ZERO };
        let participant = Participant::new(repository, cx.settings, &self.switches);
        let used = self.copies.all.get(&repository).map_or(now, |copy| copy.used);
        self.copies.all.insert(repository, Copy { participant, has, seen_at: now, used });
        self.set_copies_timer(cx);
        has
    }

    fn set_copies_timer(&mut self, cx: &mut Context<'_>) {
        if !self.copies.timer_set {
            self.copies.timer_set = true;
            cx.set_timer(GranolaCoordinatorTimer::Copies, cx.settings.retry_after);
        }
    }

    /// Asks again where nothing was heard, and drops what nobody uses.
    pub(super) fn on_copies_timeout(&mut self, cx: &mut Context<'_>) {
        self.copies.timer_set = false;
        let (now, lease) = (cx.now(), cx.settings.snapshot_lease);
        let patience = Nanos(cx.settings.retry_after.0 * PATIENCE);
        let before = self.copies.all.len();
        self.copies.all.retain(|_, copy| copy.used + lease > now);
        cx.effects.maintenance.leases_ended += (before - self.copies.all.len()) as u64;
        for (repository, copy) in &mut self.copies.all {
            if copy.seen_at + patience <= now {
                copy.seen_at = now;
                cx.send_to_repository(*repository, Message::Follow { has: copy.has });
            }
        }
        if !self.copies.all.is_empty() {
            self.set_copies_timer(cx);
        }
    }

    /// A repository that is followed has told something.
    pub(super) fn on_news(
        &mut self,
        repository: RepositoryId,
        stream: u64,
        news: News,
        cx: &mut Context<'_>,
    ) {
        let copy = self.copies.all.get_mut(&repository);
        let Some(copy) = copy.filter(|copy| copy.has.stream == stream) else { return };
        match copy.take(news, cx) {
            Ok(false) => {} // Repeated.
            Ok(true) => {
                copy.seen_at = cx.now();
                cx.send_to_repository(repository, Message::Follow { has: copy.has });
            }
            // Its spaces may not be known here yet; so it is asked for again after a while.
            Err(_) => _ = self.begin_copy(repository, cx),
        }
    }
}

impl Copies {
    /// Checks the invariants.
    ///
    /// # Panics
    /// One of them does not hold.
    pub fn assert_invariants(&self) {
        assert!(self.all.is_empty() || self.timer_set, "nobody looks after copies");
        for (repository, copy) in &self.all {
            copy.participant.check_invariants();
            assert_eq!(copy.participant.waiting(), 0, "a copy of {repository:?} takes part");
            let attempt = copy.has.stream & u64::from(u32::MAX);
            assert!(attempt <= self.streams, "attempt {attempt}, of {}", self.streams);
        }
    }
}

impl Copy {
    /// Takes what was told; false: it is known.
    ///
    /// # Errors
    /// It does not fit, so that the copy is of no more use.
    fn take(&mut self, news: News, cx: &mut Context<'_>) -> Result<bool, WireError> {
        match news {
            News::Unknown => Err(WireError::Variant { what: "follower", at: 0, found: 0 }),
            News::Piece { number, bytes } if number == self.has.pieces + 1 => {
                self.has.pieces = number;
                self.participant.take_piece(bytes.as_slice(), cx).map(|()| true)
            }
            News::Changes { upto, changes, held } if upto > self.has.upto => {
                self.participant.take_changes((self.has.upto, upto), changes, held, cx);
                self.has.upto = upto;
                Ok(true)
            }
            News::Piece { .. } | News::Changes { .. } => Ok(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use muesli_core::Settings;

    use super::*;
    use crate::granola::Switches;

    fn copies(streams: u64) -> Copies {
        let participant =
            Participant::new(RepositoryId(2), &Settings::default(), &Switches::default());
        let has = Followed { stream: 1 << 32 | 5, pieces: 0, upto: Timestamp::ZERO };
        let copy = Copy { participant, has, seen_at: Nanos(0), used: Nanos(0) };
        Copies { all: BTreeMap::from([(RepositoryId(2), copy)]), streams, timer_set: true }
    }

    #[test]
    #[should_panic(expected = "attempt 5, of 4")]
    fn an_attempt_that_was_not_begun_is_noticed() {
        copies(5).assert_invariants();
        copies(4).assert_invariants();
    }

    #[test]
    #[should_panic(expected = "nobody looks after copies")]
    fn a_timer_that_is_not_set_is_noticed() {
        Copies { timer_set: false, ..copies(5) }.assert_invariants();
    }
}
