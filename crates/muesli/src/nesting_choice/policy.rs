//! Which nesting model is the best, from how long transactions take.
//!
//! # The idea
//! What a model costs and what it saves (children that are begun and merged, partial aborts, locks
//! and compensations, attempts that others are in the way of) is all in one number: the time that a
//! transaction takes from its first attempt to its end. So nothing is modelled. The models are
//! tried in turn, each in slots of time, and the one with which transactions take the least time is
//! kept for many times as long. Another comparison comes when that time has changed, and after a
//! while in any case, which grows with each comparison that says the same.
//!
//! Slots, and not single transactions, are compared: all attempts that begin in a slot have the
//! same model, and slots are counted from the clock's zero and have one of few lengths, so those
//! of several tasks and of several nodes with one clock are the same. Transactions of two models
//! beside each other would say which one wins against the other, which is something else: closed
//! children get through between flat transactions, and are in each other's way when there is
//! nothing else.
//!
//! The time of a slot is the time that transactions ran in it, all together, over how many ended
//! well (Little's law). So those count too that get nowhere, and it does not matter whether clients
//! wait for each other's ends or come at their own times.
//!
//! Open children must gain a tenth. Their locks are in the way of other places, and other nodes,
//! that have chosen otherwise and must look at them; what these lose is in nobody's slots.
//!
//! What is observed besides, where attempts end and what children cost, says with which models it
//! is worth the while: one that could save nothing is not tried, or goes after its first slots
//! where it is not faster (see [`tried`](super::tried)); and where attempts end otherwise than
//! before, models are compared anew although the time is the same.
//!
//! What is chosen depends on when transactions begin and end, and where: nothing is drawn.

use muesli_core::Nanos;

use super::NestingModel;
use super::observation::NestingObservation;
use super::took::{TimeSlot, Took};
use super::tried::{self, LeftOut, Tried, WORTH_LOCKS};
use super::watch::{ChangeWatch, SlotChange};

/// So many transactions are not compared: what they find is not warm yet.
const WARM_UP: u64 = 8;
/// A slot is as long as so many attempts take one after the other, or up to four times as long.
const ATTEMPTS: u64 = 16;
/// Slots are 2 to this power of nanoseconds long at least (a millisecond), and at most (a minute).
const SLOT_POWERS: std::ops::RangeInclusive<u32> = 20..=36;
/// Of a slot the first part of so many is not counted: transactions of the one before still run.
const SETTLING: u64 = 4;
/// A comparison has at least so many slots of each model, and it is enough if so many transactions
/// have committed with each.
const ROUNDS: u64 = 2;
const ENOUGH: u64 = 200;
/// A model goes that is slower than the fastest one by more than this, and no chance; open children
/// must gain more.
const CLOSE: f64 = 0.03;
/// A choice is kept for so many times the length of its comparison, at first and at most.
const KEEP: std::ops::RangeInclusive<u64> = 32..=512;
/// It ends at a multiple of so many slots, on all nodes alike.
const KEEP_SLOTS: u64 = 128;
/// After a comparison so many times its length passes before a change is looked for, at first and
/// at most: twice as many each time that a change led to the same choice.
const REST: std::ops::RangeInclusive<u64> = 1..=16;
/// After so many slots in which none begins or ends, the time until one does is part of no slot.
const IDLE: u64 = 64;

/// Why a comparison was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComparisonCause {
    /// It was the first one.
    First,
    /// Transactions took another time than before.
    Change,
    /// Attempts of them end elsewhere, or more or fewer of them, than before.
    Observed,
    /// It was due.
    Due,
}

#[derive(Debug)]
enum ChoicePhase {
    /// Nothing is compared yet.
    WarmUp,
    /// The models have their slots in turn.
    Comparing { cause: ComparisonCause, slots: u64 },
    /// A model is kept until then; a change is looked for from this moment on.
    Kept { until: u64, looks_from: u64, watch: Box<ChangeWatch>, all: Took },
}

/// A decision, with what it was made from.
#[derive(Clone, Debug)]
pub(super) struct Decided {
    pub cause: ComparisonCause,
    pub model: NestingModel,
    pub tried: Vec<Tried>,
    /// How many transactions had begun.
    pub begun: u64,
}

/// The choice among some models.
///
/// Invariants: one model at least is not out, and `model` is one of those that may be chosen;
/// before anything is compared a slot has no length, and then it is a power of two.
#[derive(Debug)]
pub(super) struct ChoicePolicy {
    /// The simplest first. What they took in the present comparison, or in the last one.
    tried: Vec<Tried>,
    phase: ChoicePhase,
    model: NestingModel,
    /// As many times its comparison the next choice is kept.
    keep: u64,
    /// As many times its comparison no change is looked for after it.
    rest: u64,
    /// The length of a slot.
    length: u64,
    slot: TimeSlot,
    /// Up to when all is counted, and how many run since.
    at: u64,
    running: u64,
    begun: u64,
    decided: Option<Decided>,
}

impl ChoicePolicy {
    /// A choice among these, the simplest first.
    ///
    /// # Panics
    /// If there are none.
    pub fn new(models: &[NestingModel], now: Nanos) -> ChoicePolicy {
        ChoicePolicy {
            tried: models.iter().map(|model| Tried::new(*model)).collect(),
            phase: ChoicePhase::WarmUp,
            model: models[0],
            keep: *KEEP.start(),
            rest: *REST.start(),
            length: 0,
            slot: TimeSlot::default(),
            at: now.0,
            running: 0,
            begun: 0,
            decided: None,
        }
    }

    /// A choice among the others, if there are any; as many transactions run.
    pub fn without_flat(self) -> ChoicePolicy {
        let models = self.tried.iter().map(|it| it.model);
        let models: Vec<_> = models.filter(|model| *model != NestingModel::Flat).collect();
        if models.is_empty() {
            return self;
        }
        let (running, begun) = (self.running, self.begun);
        ChoicePolicy { running, begun, ..ChoicePolicy::new(&models, Nanos(self.at)) }
    }

    /// What is chosen at present; `None`: that is being tried.
    pub fn chosen(&self) -> Option<NestingModel> {
        let is_chosen = matches!(self.phase, ChoicePhase::Kept { .. }) || self.tried.len() == 1;
        is_chosen.then_some(self.model)
    }

    /// The decision that was made since the last call.
    pub fn take_decided(&mut self) -> Option<Decided> {
        self.decided.take()
    }

    /// Up to when all is counted.
    pub fn counted(&self) -> Nanos {
        Nanos(self.at)
    }

    /// A transaction begins: the model of its first attempt.
    pub fn begin(&mut self, now: Nanos) -> NestingModel {
        self.pass(now.0);
        (self.running, self.begun) = (self.running + 1, self.begun + 1);
        self.attempt(now)
    }

    /// Another attempt of one that runs begins: its model. (A transaction that kept the model it
    /// began with would be tried with it in slots of others, for as long as it gets nowhere.)
    pub fn attempt(&mut self, now: Nanos) -> NestingModel {
        self.pass(now.0);
        self.slot.attempts += 1;
        self.current()
    }

    /// As what attempts are run that begin now.
    fn current(&self) -> NestingModel {
        match self.phase {
            ChoicePhase::Comparing { .. } => self.model_of_slot(),
            ChoicePhase::WarmUp | ChoicePhase::Kept { .. } => self.model,
        }
    }

    /// A transaction has ended.
    pub fn ended(&mut self, now: Nanos, is_committed: bool) {
        self.pass(now.0);
        self.running = self.running.saturating_sub(1);
        self.slot.committed += u64::from(is_committed);
        if matches!(self.phase, ChoicePhase::WarmUp)
            && self.tried.len() > 1
            && self.slot.committed >= WARM_UP
        {
            self.length = slot_length(self.slot.busy / self.slot.attempts.max(1));
            self.try_all(ComparisonCause::First, None);
        }
    }

    /// What was observed of an attempt that was run as this model and has just ended.
    pub fn observe(&mut self, now: Nanos, model: NestingModel, seen: &NestingObservation) {
        self.pass(now.0);
        if self.tried.len() > 1 && model == self.current() {
            self.slot.seen.add(seen);
        } // Else it began in a slot of another one.
    }

    /// Whose slot it is.
    fn model_of_slot(&self) -> NestingModel {
        let place = (self.at / self.length) as usize % self.tried.len();
        let staying = self.tried.iter().filter(|it| it.left_out.is_none());
        let best = staying.min_by(|a, b| a.took.mean().total_cmp(&b.took.mean()));
        match &self.tried[place] {
            tried if tried.left_out.is_some() => best.map_or(self.model, |it| it.model),
            tried => tried.model,
        }
    }

    /// Time passes.
    fn pass(&mut self, now: u64) {
        if self.tried.len() == 1 {
            self.at = self.at.max(now); // There is nothing to compare.
            return;
        }
        if self.length == 0 {
            self.slot.busy += self.running * now.saturating_sub(self.at);
            self.at = self.at.max(now);
            return;
        }
        // However long nothing begins or ends, no more slots than so many are looked at.
        let looked_at = self.at.saturating_add(IDLE * self.length);
        if now > looked_at {
            self.pass(looked_at);
            (self.slot, self.at) = (TimeSlot::default(), now);
        }
        while self.at < now {
            let begun = self.at - self.at % self.length;
            let settled = begun + self.length / SETTLING;
            let end = begun + self.length;
            let next = if self.at < settled { settled } else { end };
            let to = now.min(next);
            self.slot.busy += self.running * (to - self.at);
            self.at = to;
            if to == settled {
                self.slot = TimeSlot::default();
            } else if to == end {
                self.end_slot(begun);
            }
        }
    }

    fn end_slot(&mut self, begun: u64) {
        let slot = std::mem::take(&mut self.slot);
        let place = (begun / self.length) as usize % self.tried.len();
        match &mut self.phase {
            ChoicePhase::WarmUp => {}
            ChoicePhase::Comparing { slots, .. } => {
                *slots += 1;
                let tried = &mut self.tried[place];
                if tried.left_out.is_none() {
                    tried.took.add(&slot);
                    if tried.watch.add(&slot) == Some(SlotChange::Time) {
                        return self.try_all(ComparisonCause::Change, None);
                    }
                }
                if slots.is_multiple_of(self.tried.len() as u64) {
                    self.judge();
                }
            }
            ChoicePhase::Kept { until, looks_from, watch, all } => {
                all.add(&slot);
                let (all, looks) = (*all, self.at >= *looks_from);
                if self.at >= *until {
                    return self.try_all(ComparisonCause::Due, Some(all));
                }
                match watch.add(&slot).filter(|_| looks) {
                    Some(SlotChange::Time) => self.try_all(ComparisonCause::Change, None),
                    Some(SlotChange::Observed) => self.try_all(ComparisonCause::Observed, None),
                    None => {}
                }
            }
        }
    }

    fn assert_invariants(&self) {
        assert!(self.tried.iter().any(|it| it.left_out.is_none()), "one is the best: {self:?}");
        assert!(self.tried.iter().any(|it| it.model == self.model), "what is chosen: {self:?}");
        let is_warm = !matches!(self.phase, ChoicePhase::WarmUp);
        assert_eq!(is_warm, self.length.is_power_of_two(), "slots have a length: {self:?}");
    }

    /// All are compared, but for closed children where flat transactions were `kept` of which
    /// none would be saved by them. (Open ones also end waits for locks, which is not observed.)
    fn try_all(&mut self, cause: ComparisonCause, kept: Option<Took>) {
        let flat = kept.filter(|_| self.model == NestingModel::Flat);
        for tried in &mut self.tried {
            *tried = Tried::new(tried.model);
            let is_closed = tried.model == NestingModel::Closed;
            if is_closed && flat.is_some_and(|flat| tried.cannot_gain_over(&flat)) {
                tried.left_out = Some(LeftOut::SavesNothing);
            }
        }
        (self.phase, self.slot) = (ChoicePhase::Comparing { cause, slots: 0 }, TimeSlot::default());
        self.assert_invariants();
    }

    /// Models that could gain too little over the simplest one go where they do not gain more.
    fn leave_out_what_saves_nothing(&mut self) {
        let simplest = self.tried[0];
        if simplest.left_out.is_some() {
            return;
        }
        for tried in self.tried.iter_mut().skip(1).filter(|it| it.left_out.is_none()) {
            let gains = tried.gains_over(&simplest.took);
            if tried.took.slots() > 0 && !gains && tried.cannot_gain_over(&simplest.took) {
                tried.left_out = Some(LeftOut::SavesNothing);
            }
        }
        self.assert_invariants();
    }

    /// All had their turns in a comparison.
    fn judge(&mut self) {
        let ChoicePhase::Comparing { cause, slots, .. } = self.phase else { return };
        self.leave_out_what_saves_nothing();
        let staying = || self.tried.iter().filter(|it| it.left_out.is_none());
        let least = staying().map(|it| it.took.slots()).min().unwrap_or(0);
        if least == 0 || (least < ROUNDS && staying().count() > 1) {
            return;
        }
        let fastest = tried::fastest(staying());
        for tried in self.tried.iter_mut().filter(|it| it.left_out.is_none()) {
            let share = if tried.is_less_in_the_way_than(&fastest) { WORTH_LOCKS } else { CLOSE };
            let is_slower = tried.took.is_slower_than(&fastest.took, share);
            tried.left_out = is_slower.then_some(LeftOut::Slower);
        }
        let left: Vec<&Tried> = self.tried.iter().filter(|it| it.left_out.is_none()).collect();
        let is_enough = left.iter().all(|it| it.took.committed >= ENOUGH);
        if left.len() > 1 && !is_enough {
            // Attempts may take another time than those by which the slots got their length.
            let attempt = left.iter().map(|it| it.took.attempt()).min();
            self.length = slot_length(attempt.expect("one stays"));
            return;
        }
        let lockless: Vec<&Tried> =
            left.iter().copied().filter(|it| it.may_replace(&fastest)).collect();
        let (best, left) = match lockless.is_empty() {
            true => (fastest, left),
            false => (tried::fastest(lockless.iter().copied()), lockless),
        };
        let close: Vec<NestingModel> =
            left.iter().filter(|it| it.took.is_close_to(&best.took)).map(|it| it.model).collect();
        let stays = cause != ComparisonCause::First && close.contains(&self.model);
        let model = if stays { self.model } else { close[0] };
        let (is_same, first) = (model == self.model, (*KEEP.start(), *REST.start()));
        (self.keep, self.rest) = match cause {
            ComparisonCause::Due if is_same => ((2 * self.keep).min(*KEEP.end()), self.rest),
            ComparisonCause::Change | ComparisonCause::Observed if is_same => {
                (first.0, (2 * self.rest).min(*REST.end()))
            }
            _ => first,
        };
        self.model = model;
        let is_simplest = model == self.tried[0].model;
        let unit = KEEP_SLOTS * self.length;
        let kept = self.at + slots * self.length * self.keep;
        self.phase = ChoicePhase::Kept {
            until: kept.div_ceil(unit) * unit,
            looks_from: self.at + slots * self.length * self.rest,
            watch: Box::new(ChangeWatch::of(is_simplest)),
            all: Took::default(),
        };
        let (tried, begun) = (self.tried.clone(), self.begun);
        self.decided = Some(Decided { cause, model, tried, begun });
        self.assert_invariants();
    }
}

/// How long a slot is where an attempt takes so long: a power of four, so that nodes and places
/// with much the same transactions have the same slots.
fn slot_length(attempt: u64) -> u64 {
    let power = u64::BITS - ATTEMPTS.saturating_mul(attempt).max(1).leading_zeros();
    1 << power.next_multiple_of(2).clamp(*SLOT_POWERS.start(), *SLOT_POWERS.end())
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
