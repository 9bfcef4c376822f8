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
/// An exchange that has not ended after so many slots never will: its task is gone.
const SLOTS_LOST: u64 = 4;

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
    refused: Option<u64>,
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

    /// What is to be told now, if anything.
    pub fn report(&mut self, now: u64, models: &[NestingModel]) -> Option<PoolReport> {
        let length = self.pool.as_ref().map_or(ASK_AGAIN, |it| it.comparison.length);
        if self.is_asking {
            let asked = self.asked.unwrap_or(0);
            if now < asked.saturating_add(SLOTS_LOST * length) {
                return None;
            }
            self.missed();
        }
        if !self.is_due(now, length) {
            return None;
        }
        (self.asked, self.is_asking) = (Some(now), true);
        Some(PoolReport {
            now,
            number: self.pool.as_ref().map_or(0, |it| it.number),
            attempt: self.attempt,
            models: models.to_vec(),
            slots: std::mem::take(&mut self.slots),
            refused: self.refused,
        })
    }

    fn is_due(&self, now: u64, length: u64) -> bool {
        let Some(asked) = self.asked else { return true };
        if self.pool.is_none() {
            return now >= asked.saturating_add(ASK_AGAIN);
        }
        let begun = now - now % length;
        // After what is not counted of a slot, and so early that there is time to tell of it.
        let share = (u128::from(length / 2) * u128::from(self.share)) >> u32::BITS;
        asked < begun && now >= begun + length / SETTLING / 2 + share as u64
    }

    /// What there is now. Whether what is followed is another one, or has changed so that what was
    /// observed before says nothing any more.
    pub fn exchanged(
        &mut self,
        found: Result<Option<PooledComparison>, PoolRefusal>,
        models: &[NestingModel],
    ) -> bool {
        self.is_asking = false;
        let found = match found {
            Ok(found) => found,
            Err(PoolRefusal::OtherClock(reported_at)) => {
                self.refused = Some(reported_at);
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
