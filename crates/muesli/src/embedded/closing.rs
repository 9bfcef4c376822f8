//! Closing the loops of a database: nothing begins any more, what is open ends or is aborted,
//! decisions reach whoever must apply them, and only then the loops end.
//!
//! Each loop goes through these stages by itself; what it waits for of the others is in here.
//!
//! | stage | the loop goes on when |
//! | --- | --- |
//! | ending | none of its transactions is open or committing, or their time is over: aborted |
//! | deciding | its own commits are decided, and everybody has heard of that |
//! | applying | all loops are here, none has messages to take, and no participant is in doubt |
//!
//! Messages between loops are not lost, so a decision that was sent before the second stage ended
//! is in its ring by then, and is taken in the third one. All stages together are bounded: what is
//! not decided then stays undecided, as after a crash.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use muesli_core::Nanos;

/// Commits that are under way when the time of open transactions is over may take so much longer.
pub(super) const DECIDED_WITHIN: Duration = Duration::from_secs(10);
/// A loop that found nothing to do in so many turns one after the other has settled.
const QUIET_TICKS: usize = 2;

/// How far the loops are with closing; shared by them.
#[derive(Debug)]
pub(super) struct Closing {
    /// Off, to see it noticed: the loops end at once.
    applies: bool,
    asked: AtomicBool,
    /// A loop has died of a fault of its own: nobody waits for it.
    broken: AtomicBool,
    /// Why one could not go on, if its log failed.
    failure: OnceLock<String>,
    /// So many loops have decided their own commits.
    decided: AtomicUsize,
    /// For each loop, so many turns one after the other found nothing to do.
    quiet: Vec<AtomicUsize>,
}

impl Closing {
    pub fn of(loops: usize, applies: bool) -> Closing {
        Closing {
            applies,
            asked: AtomicBool::new(false),
            broken: AtomicBool::new(false),
            failure: OnceLock::new(),
            decided: AtomicUsize::new(0),
            quiet: (0..loops).map(|_| AtomicUsize::new(0)).collect(),
        }
    }

    /// The loops are to close.
    pub fn ask(&self) {
        self.asked.store(true, Ordering::Release);
    }

    /// The loops are to end without waiting for each other.
    pub fn break_off(&self) {
        self.broken.store(true, Ordering::Release);
        self.ask();
    }

    /// A loop's files have failed: what waits for them is told to nobody.
    pub fn fail(&self, why: String) {
        let _ = self.failure.set(why); // The first one stays.
        self.break_off();
    }

    /// Why the loops have broken off, if files have failed.
    pub fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    #[inline]
    pub fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Acquire)
    }

    fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Acquire)
    }

    fn all_decided(&self) -> bool {
        self.decided.load(Ordering::Acquire) == self.quiet.len()
    }

    fn all_quiet(&self) -> bool {
        self.quiet.iter().all(|ticks| ticks.load(Ordering::Acquire) >= QUIET_TICKS)
    }
}

/// Where one loop is with closing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClosingState {
    Serving,
    /// Open transactions may end until then.
    Ending {
        until: Nanos,
    },
    /// Commits may be decided until then.
    Deciding {
        until: Nanos,
    },
    /// Its own commits are decided.
    Applying {
        until: Nanos,
    },
    Closed,
}

/// What a loop has to do yet, as it found at the end of a turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Undone {
    /// Transactions open or committing, of this loop.
    pub unfinished: usize,
    /// Transactions whose decision a participant here waits for.
    pub in_doubt: usize,
    /// Tasks are to be polled, or messages to be taken or handed over.
    pub busy: bool,
}

impl ClosingState {
    /// The stage after a turn at `now` of the loop number `at` that left `undone`.
    pub fn after(
        self,
        closing: &Closing,
        at: usize,
        now: Nanos,
        close_within: Nanos,
        undone: Undone,
    ) -> ClosingState {
        if closing.is_broken() {
            return ClosingState::Closed;
        }
        match self {
            ClosingState::Serving if !closing.applies => ClosingState::Closed,
            ClosingState::Serving => ClosingState::Ending { until: now + close_within },
            ClosingState::Ending { until } => {
                if (undone.unfinished > 0 || undone.busy) && now < until {
                    return self;
                }
                ClosingState::Deciding { until: now + Nanos(DECIDED_WITHIN.as_nanos() as u64) }
            }
            ClosingState::Deciding { until } => {
                if undone.unfinished > 0 && now < until {
                    return self;
                }
                closing.decided.fetch_add(1, Ordering::AcqRel);
                ClosingState::Applying { until }
            }
            ClosingState::Applying { until } => {
                let quiet = &closing.quiet[at];
                if !closing.all_decided() || undone.busy || undone.in_doubt > 0 {
                    quiet.store(0, Ordering::Release);
                } else {
                    quiet.fetch_add(1, Ordering::AcqRel);
                }
                if closing.all_quiet() || now >= until { ClosingState::Closed } else { self }
            }
            ClosingState::Closed => ClosingState::Closed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Undone = Undone { unfinished: 0, in_doubt: 0, busy: false };
    const WITHIN: Nanos = Nanos(100);

    fn tick(
        closing_state: &mut ClosingState,
        closing: &Closing,
        at: usize,
        now: u64,
        undone: Undone,
    ) {
        *closing_state = closing_state.after(closing, at, Nanos(now), WITHIN, undone);
    }

    #[test]
    fn a_loop_waits_for_its_own_commits_and_then_for_those_of_others() {
        let closing = Closing::of(2, true);
        let [mut one, mut other] = [ClosingState::Serving; 2];
        for _ in 0..6 {
            tick(&mut one, &closing, 0, 1, NOTHING);
            tick(&mut other, &closing, 1, 1, Undone { unfinished: 1, ..NOTHING });
        }
        assert!(matches!(one, ClosingState::Applying { .. }), "{one:?}: the other commits still");
        assert!(matches!(other, ClosingState::Ending { .. }), "{other:?}");
        // The other one's transaction is decided, and this one's participant learns of it last.
        for _ in 0..3 {
            tick(&mut other, &closing, 1, 2, NOTHING);
            tick(&mut one, &closing, 0, 2, Undone { in_doubt: 1, ..NOTHING });
        }
        for _ in 0..3 {
            tick(&mut other, &closing, 1, 2, NOTHING);
        }
        assert!(
            matches!(other, ClosingState::Applying { .. }),
            "{other:?}: a participant is in doubt"
        );
        for _ in 0..3 {
            tick(&mut one, &closing, 0, 3, NOTHING);
            tick(&mut other, &closing, 1, 3, NOTHING);
        }
        assert_eq!((one, other), (ClosingState::Closed, ClosingState::Closed));
    }

    #[test]
    fn every_step_is_bounded() {
        let (closing, mut closing_state) = (Closing::of(1, true), ClosingState::Serving);
        let stuck = Undone { unfinished: 1, in_doubt: 1, busy: true };
        tick(&mut closing_state, &closing, 0, 0, stuck);
        tick(&mut closing_state, &closing, 0, 99, stuck);
        assert_eq!(closing_state, ClosingState::Ending { until: Nanos(100) });
        tick(&mut closing_state, &closing, 0, 100, stuck);
        let until = 100 + DECIDED_WITHIN.as_nanos() as u64;
        tick(&mut closing_state, &closing, 0, until - 1, stuck);
        assert_eq!(closing_state, ClosingState::Deciding { until: Nanos(until) });
        for _ in 0..2 {
            tick(&mut closing_state, &closing, 0, until, stuck);
        }
        assert_eq!(closing_state, ClosingState::Closed);
    }

    #[test]
    fn nobody_waits_for_a_loop_that_died() {
        let (closing, mut closing_state) = (Closing::of(2, true), ClosingState::Serving);
        closing.break_off();
        tick(&mut closing_state, &closing, 0, 0, Undone { unfinished: 1, in_doubt: 1, busy: true });
        assert_eq!(closing_state, ClosingState::Closed);
    }
}
