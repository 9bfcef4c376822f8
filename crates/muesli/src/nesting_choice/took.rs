//! How long transactions take with a model, from the slots that it had.
//!
//! Slots are compared by factors (the mean is the geometric one): where many are in each other's
//! way one slot may be ten times as slow as the next.

/// A model goes that is slower by more than so many standard errors.
const ERRORS: f64 = 3.0;
/// An earlier choice, or else the simpler model, stays where it is slower by no more than this, or
/// by a standard error.
const CLOSE: f64 = 0.03;

/// How long transactions took in some slots.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Took {
    slots: u64,
    sum: f64,
    squares: f64,
    pub committed: u64,
    pub attempts: u64,
}

impl Took {
    pub fn add(&mut self, slot: &TimeSlot) {
        if slot.busy > 0 {
            let took = (slot.busy as f64 / slot.committed.max(1) as f64).ln();
            self.slots += 1;
            self.sum += took;
            self.squares += took * took;
            self.committed += slot.committed;
            self.attempts += slot.attempts;
        }
    }

    /// In nanoseconds.
    pub fn mean(&self) -> f64 {
        self.log().exp()
    }

    fn log(&self) -> f64 {
        self.sum / self.slots.max(1) as f64
    }

    /// The square of the standard error of that.
    fn error(&self) -> f64 {
        let deviation = self.squares - self.sum * self.log();
        let slots = self.slots as f64;
        (deviation.max(0.0) / (slots - 1.0).max(1.0)) / slots.max(1.0)
    }

    fn errors(&self, other: &Took) -> f64 {
        (self.error() + other.error()).sqrt()
    }

    /// Whether it differs by this share, and that is no chance.
    pub fn differs_from(&self, other: &Took, share: f64) -> bool {
        let by = (self.log() - other.log()).abs();
        by > (1.0 + share).ln() && by > ERRORS * self.errors(other)
    }

    /// Of how many slots.
    pub fn slots(&self) -> u64 {
        self.slots
    }

    /// Whether it is slower, and that is no chance.
    pub fn is_slower_than(&self, best: &Took) -> bool {
        self.log() > best.log() && self.differs_from(best, CLOSE)
    }

    /// Whether it is not slower by much, or that may well be chance.
    pub fn is_close_to(&self, best: &Took) -> bool {
        let by = self.log() - best.log();
        by <= (1.0 + CLOSE).ln() || by <= self.errors(best)
    }
}

/// What happened in the slot that is under way, after its first part.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TimeSlot {
    /// Nanoseconds that transactions ran.
    pub busy: u64,
    pub committed: u64,
    pub attempts: u64,
}
