//! How long transactions run in slots of time, all together, and how many commit in each.

use super::took::TimeSlot;

/// Of a slot the first part of so many is not counted: transactions of the one before still run.
pub(super) const SETTLING: u64 = 4;
/// After so many slots in which none begins or ends, the time until one does is part of no slot.
pub(super) const IDLE: u64 = 64;

/// The slots of those who share a choice. They are counted from the zero of the clock.
#[derive(Debug)]
pub(super) struct SlotMeter {
    /// Of a slot; zero: there are none yet, and all counts.
    length: u64,
    /// What happened in the one that is under way.
    pub slot: TimeSlot,
    /// Slots got their length in the middle of that.
    is_partial: bool,
    /// Up to when all is counted, and how many run since.
    pub at: u64,
    pub running: u64,
}

impl SlotMeter {
    pub fn new(at: u64, running: u64) -> SlotMeter {
        SlotMeter { length: 0, slot: TimeSlot::default(), is_partial: false, at, running }
    }

    /// From now on slots are so long; of the one that is under way nothing is counted.
    pub fn set_length(&mut self, length: u64) {
        (self.length, self.slot) = (length, TimeSlot::default());
        self.is_partial = length > 0 && !self.at.is_multiple_of(length);
    }

    /// How long a slot is.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// When the slot began that is under way.
    pub fn begun(&self) -> u64 {
        self.at - self.at % self.length.max(1)
    }

    /// However long nothing begins or ends, no more slots than so many are looked at: up to then.
    pub fn looks_until(&self, now: u64) -> u64 {
        match self.length {
            0 => now,
            length => now.min(self.at.saturating_add(IDLE.saturating_mul(length))),
        }
    }

    /// The time up to then is part of no slot.
    pub fn skip_to(&mut self, now: u64) {
        if now > self.at {
            (self.slot, self.at) = (TimeSlot::default(), now);
        }
    }

    /// Time passes, up to then or to the end of a slot: when that began, and what was in it.
    pub fn advance(&mut self, now: u64) -> Option<(u64, TimeSlot)> {
        while self.at < now {
            if self.length == 0 {
                self.slot.busy += self.running * (now - self.at);
                self.at = now;
                return None;
            }
            let begun = self.begun();
            let (settled, end) = (begun + self.length / SETTLING, begun + self.length);
            let to = now.min(if self.at < settled { settled } else { end });
            self.slot.busy += self.running * (to - self.at);
            self.at = to;
            if to == settled {
                self.slot = TimeSlot::default();
            } else if to == end {
                let slot = std::mem::take(&mut self.slot);
                if !std::mem::take(&mut self.is_partial) {
                    return Some((begun, slot));
                }
            }
        }
        None
    }
}
