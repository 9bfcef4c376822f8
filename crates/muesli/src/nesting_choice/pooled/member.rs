//! A node among those that choose together: what it knows of the others, and when it is to exchange
//! that.

use super::{PoolRefusal, PoolReport, PooledComparison, PooledSlot};
use crate::nesting_choice::NestingModel;
use crate::nesting_choice::meter::SETTLING;
use crate::nesting_choice::took::TimeSlot;

/// So many times in a row a node may miss the others before it chooses by itself.
const MISSED_MOST: u32 = 3;
/// What a node observed in more slots than so many is not told.
const SLOTS_REPORTED_MOST: usize = 2;
/// Before there is a comparison it is asked for again after so long, in nanoseconds.
const ASK_AGAIN: u64 = 1 << 30;
/// So often is looked whether there is something to tell, and whether transactions run at all:
/// where the node knows how long its attempts take, and before that.
const LOOK_AGAIN: u64 = 1 << 30;
const LOOK_AGAIN_COLD: u64 = 1 << 26;
/// Who has heard nothing of an exchange for so many slots chooses by itself meanwhile.
const SLOTS_OVERDUE: u64 = 4;
/// Who does not take part, as the row was written by another clock, may say that this clock is gone
/// after so long, in nanoseconds, or so many slots of the row, if nobody has written to it.
const GONE_AFTER: (u64, u64) = (1 << 36, 4);

/// A node that takes part.
#[derive(Debug)]
pub(in crate::nesting_choice) struct PoolMember {
    /// As it was last seen.
    pool: Option<PooledComparison>,
    /// Where in a slot this node exchanges what it knows: among so many parts of 2 to the power of
    /// 32, so that not all do it at once.
    share: u32,
    attempt: Option<u64>,
    /// What is to be told next.
    slots: Vec<PooledSlot>,
    /// When it was asked last, and whether there is no answer yet.
    asked: Option<u64>,
    is_asking: bool,
    missed: u32,
    /// When the row was last written, which another clock did, and from when on it may be said that
    /// this clock is gone, if the row is the same then.
    refused: Option<(u64, u64)>,
}

/// When a node is to tell the others something.
#[derive(Debug)]
pub(in crate::nesting_choice) enum ReportTime {
    /// This, now.
    Now(PoolReport),
    /// In so many nanoseconds.
    After(u64),
    /// Not before more happens.
    Never,
}

impl PoolMember {
    /// One that knows of nothing yet; nodes are to have different shares.
    pub fn new(share: u32) -> PoolMember {
        PoolMember {
            pool: None,
            share,
            attempt: None,
            slots: Vec::new(),
            asked: None,
            is_asking: false,
            missed: 0,
            refused: None,
        }
    }

    /// What all nodes compare together, where this one can go by it.
    pub fn followed(&self) -> Option<&PooledComparison> {
        self.pool.as_ref().filter(|_| self.missed < MISSED_MOST)
    }

    /// Whether it may still learn what there is.
    pub fn waits(&self) -> bool {
        self.pool.is_none() && self.missed < MISSED_MOST
    }

    /// Attempts take so long here.
    pub fn suggest(&mut self, attempt: u64) {
        if self.attempt.is_none() {
            // It has something new to say.
            (self.attempt, self.asked) = (Some(attempt), None);
        }
    }

    /// A slot of the comparison that is followed is over.
    pub fn note(&mut self, begun: u64, slot: TimeSlot) {
        if slot.busy == 0 {
            return;
        }
        if self.slots.len() == SLOTS_REPORTED_MOST {
            self.slots.remove(0);
        }
        self.slots.push(PooledSlot { begun, nodes: 1, slot });
    }

    /// It can run its transactions as fewer models than before.
    pub fn narrow(&mut self) {
        (self.pool, self.asked) = (None, None);
        self.slots.clear();
    }

    /// When something is to be told; `is_idle`: no transaction runs, and none
    /// has begun since it was last asked.
    pub fn report(&mut self, now: u64, models: &[NestingModel], is_idle: bool) -> ReportTime {
        let due = self.due(now);
        if is_idle && (now < due || self.slots.is_empty()) {
            return ReportTime::Never;
        }
        if now < due {
            let most = if self.attempt.is_none() { LOOK_AGAIN_COLD } else { LOOK_AGAIN };
            return ReportTime::After((due - now).min(most));
        }
        (self.asked, self.is_asking) = (Some(now), true);
        let gone = self.refused.filter(|(_, until)| *until <= now);
        ReportTime::Now(PoolReport {
            now,
            number: self.pool.as_ref().map_or(0, |it| it.number),
            attempt: self.attempt,
            models: models.to_vec(),
            slots: std::mem::take(&mut self.slots),
            refused: gone.map(|(written, _)| written),
        })
    }

    fn due(&self, now: u64) -> u64 {
        let Some(asked) = self.asked else { return now };
        let Some(pool) = &self.pool else { return asked.saturating_add(ASK_AGAIN) };
        let length = pool.comparison.length;
        let begun = now - now % length;
        let begun = if asked < begun { begun } else { begun.saturating_add(length) };
        // After what is not counted of a slot, and so early that there is time to tell of it.
        let share = (u128::from(length / 2) * u128::from(self.share)) >> u32::BITS;
        begun.saturating_add(length / SETTLING / 2 + share as u64)
    }

    /// Whether an exchange takes so long that the node is to go on by itself, and has not so far.
    pub fn is_overdue(&mut self, now: u64) -> bool {
        let (Some(pool), Some(asked), true) = (&self.pool, self.asked, self.is_asking) else {
            return false;
        };
        let is_late = now >= asked.saturating_add(SLOTS_OVERDUE * pool.comparison.length);
        is_late && std::mem::replace(&mut self.missed, MISSED_MOST) < MISSED_MOST
    }

    /// What there is now. Whether what is followed is another one, or has changed so that what was
    /// observed before says nothing any more.
    pub fn exchanged(
        &mut self,
        now: u64,
        found: Result<Option<PooledComparison>, PoolRefusal>,
        models: &[NestingModel],
    ) -> bool {
        self.is_asking = false;
        let found = match found {
            Ok(found) => found,
            Err(PoolRefusal::OtherClock { written, length }) => {
                if self.refused.is_none_or(|it| it.0 != written) {
                    let long = GONE_AFTER.0.max(length.saturating_mul(GONE_AFTER.1));
                    self.refused = Some((written, now.saturating_add(long)));
                }
                return self.missed();
            }
            Err(PoolRefusal::OtherFormat) => return self.missed(),
        };
        let Some(found) = found else { return false };
        if found.comparison.models().any(|model| !models.contains(&model)) {
            return self.missed(); // This node has fewer since it asked.
        }
        let before = self.followed().map(|it| it.number);
        let is_other = before != Some(found.number);
        if is_other {
            self.slots.clear();
        }
        (self.pool, self.missed, self.refused) = (Some(found), 0, None);
        is_other
    }

    /// An exchange came to nothing. Whether nothing is followed any more.
    pub fn missed(&mut self) -> bool {
        self.is_asking = false;
        self.missed = self.missed.saturating_add(1);
        self.missed == MISSED_MOST
    }
}
