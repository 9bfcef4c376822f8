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
//! A comparison is given slots, which are one node's ([`ObservedBy::Node`]) or, added up, those of
//! all nodes ([`ObservedBy::AllNodes`], see [`pooled`](super::pooled)): it is a value, and knows no
//! clock.
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
//! Open children must gain a tenth where a node chooses alone. Their locks are in the way of other
//! places, and other nodes, that have chosen otherwise and must look at them; what these lose is in
//! nobody's slots. Where slots are those of all nodes they must gain half as much, as only other
//! places are left of that.
//!
//! What is observed besides, where attempts end and what children cost, says with which models it
//! is worth the while: one that could save nothing is not tried, or goes after its first slots
//! where it is not faster (see [`tried`](super::tried)); and where attempts end otherwise than
//! before, models are compared anew although the time is the same.
//!
//! What is chosen depends on when transactions begin and end, and where: nothing is drawn.

use serde::{Deserialize, Serialize};

use super::NestingModel;
use super::took::{TimeSlot, Took};
use super::tried::{self, LeftOut, Tried};
use super::watch::{ChangeWatch, SlotChange};

/// A comparison has at least so many slots of each model.
const ROUNDS: u64 = 2;
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

/// No model is kept for longer without a comparison, in nanoseconds: 26 days.
const KEPT_MOST: u64 = 1 << 51;
/// No slot is longer: a minute.
const LONGEST: u64 = 1 << 36;

/// Why a comparison was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

/// Whose slots are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum ObservedBy {
    /// Those of one node, which does not see what others lose by it.
    Node,
    /// Those of all nodes that exchange what they observe, added up.
    AllNodes,
}

impl ObservedBy {
    /// It is enough if so many transactions have committed with each model that is left.
    fn enough(self) -> u64 {
        match self {
            ObservedBy::Node => 200,
            ObservedBy::AllNodes => 800,
        }
    }

    /// What open children must gain, whose locks are in the way of others.
    fn worth_locks(self) -> f64 {
        match self {
            ObservedBy::Node => 0.1,
            ObservedBy::AllNodes => 0.05,
        }
    }

    /// Whether slots of one length are to have another one. (All nodes have to learn of it, and
    /// slots are lost by that.)
    fn is_worth_changing(self, from: u64, to: u64) -> bool {
        self == ObservedBy::Node || from.max(to) / from.min(to) >= 4
    }

    /// How long a slot is where an attempt takes so long: as many attempts, one after the other, or
    /// more. A power of four where nodes choose by themselves, so that nodes and places with much
    /// the same transactions have the same slots; a second at least where nodes exchange what they
    /// observe, which they do once in each. No more than a minute.
    pub fn slot_length(self, attempt: u64) -> u64 {
        let (attempts, step) = match self {
            ObservedBy::Node => (16, 2),
            ObservedBy::AllNodes => (8, 1),
        };
        let power = u64::BITS - attempt.saturating_mul(attempts).max(1).leading_zeros();
        1 << power.next_multiple_of(step).clamp(self.shortest().ilog2(), LONGEST.ilog2())
    }

    /// The shortest slot, in nanoseconds.
    fn shortest(self) -> u64 {
        match self {
            ObservedBy::Node => 1 << 20,
            ObservedBy::AllNodes => 1 << 30,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum ChoicePhase {
    /// The models have their slots in turn.
    Comparing { cause: ComparisonCause, slots: u64 },
    /// A model is kept until then; a change is looked for from this moment on.
    Kept { until: u64, looks_from: u64, watch: Box<ChangeWatch>, all: Box<Took> },
}

/// The last decision of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LastDecision {
    pub cause: ComparisonCause,
    /// How many there were by then.
    pub made: u64,
}

/// The comparison of some models, and what was chosen by it.
///
/// Invariants: one model at least is not out, and `model` is one of those that may be chosen; the
/// length of a slot is a power of two.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct ModelComparison {
    by: ObservedBy,
    /// The simplest first. What they took in the present comparison, or in the last one.
    pub tried: Vec<Tried>,
    phase: ChoicePhase,
    pub model: NestingModel,
    /// As many times its comparison the next choice is kept.
    pub keep: u64,
    /// As many times its comparison no change is looked for after it.
    rest: u64,
    /// The length of a slot.
    pub length: u64,
    pub decided: Option<LastDecision>,
}

impl ModelComparison {
    /// The first one of these models, of which the simplest is the first, in slots of this length.
    ///
    /// # Panics
    /// If there are no models.
    pub fn new(by: ObservedBy, models: &[NestingModel], length: u64) -> ModelComparison {
        let comparison = ModelComparison {
            by,
            tried: models.iter().map(|model| Tried::new(*model)).collect(),
            phase: ChoicePhase::Comparing { cause: ComparisonCause::First, slots: 0 },
            model: models[0],
            keep: *KEEP.start(),
            rest: *REST.start(),
            length,
            decided: None,
        };
        comparison.assert_invariants();
        comparison
    }

    /// What there is to choose from, the simplest first.
    pub fn models(&self) -> impl Iterator<Item = NestingModel> {
        self.tried.iter().map(|it| it.model)
    }

    /// What is chosen at present; `None`: that is being tried.
    pub fn chosen(&self) -> Option<NestingModel> {
        matches!(self.phase, ChoicePhase::Kept { .. }).then_some(self.model)
    }

    /// As what attempts are run that begin then.
    pub fn model_at(&self, at: u64) -> NestingModel {
        match self.phase {
            ChoicePhase::Comparing { .. } => self.model_of_slot(at),
            ChoicePhase::Kept { .. } => self.model,
        }
    }

    /// Whose slot it is then, in a comparison.
    pub fn model_of_slot(&self, at: u64) -> NestingModel {
        let place = (at / self.length) as usize % self.tried.len();
        let staying = self.tried.iter().filter(|it| it.left_out.is_none());
        let best = staying.min_by(|a, b| a.took.mean().total_cmp(&b.took.mean()));
        match &self.tried[place] {
            tried if tried.left_out.is_some() => best.map_or(self.model, |it| it.model),
            tried => tried.model,
        }
    }

    /// The slot that began then is over. Whether what is compared begins anew, or slots have
    /// another length.
    pub fn add(&mut self, begun: u64, slot: &TimeSlot) -> bool {
        let before = (self.length, self.chosen(), self.decided);
        let is_anew = self.count(begun, slot);
        is_anew || before != (self.length, self.chosen(), self.decided)
    }

    /// Whether all are tried anew.
    fn count(&mut self, begun: u64, slot: &TimeSlot) -> bool {
        let (place, at) =
            ((begun / self.length) as usize % self.tried.len(), begun.saturating_add(self.length));
        match &mut self.phase {
            ChoicePhase::Comparing { slots, .. } => {
                *slots += 1;
                let tried = &mut self.tried[place];
                if tried.left_out.is_none() {
                    tried.took.add(slot);
                    if tried.watch.add(slot) == Some(SlotChange::Time) {
                        return self.try_all(ComparisonCause::Change, None);
                    }
                }
                if slots.is_multiple_of(self.tried.len() as u64) {
                    self.judge(at);
                }
            }
            ChoicePhase::Kept { until, looks_from, watch, all } => {
                all.add(slot);
                let (all, looks) = (**all, at >= *looks_from);
                if at >= *until {
                    return self.try_all(ComparisonCause::Due, Some(all));
                }
                match watch.add(slot).filter(|_| looks) {
                    Some(SlotChange::Time) => {
                        return self.try_all(ComparisonCause::Change, None);
                    }
                    Some(SlotChange::Observed) => {
                        return self.try_all(ComparisonCause::Observed, None);
                    }
                    None => {}
                }
            }
        }
        false
    }

    /// Whether it can be gone on with then, by all nodes: what is read from a row may be anything.
    pub fn is_plausible_at(&self, now: u64) -> bool {
        let ModelComparison { by, tried, length, keep, rest, .. } = self;
        let in_time = |at: u64| at <= now.saturating_add(2 * KEPT_MOST);
        let phase = match &self.phase {
            ChoicePhase::Comparing { slots, .. } => *slots < u64::from(u32::MAX),
            ChoicePhase::Kept { watch, all, until, looks_from } => {
                let is_plausible = watch.is_plausible() && all.is_plausible();
                is_plausible && in_time(*until) && in_time(*looks_from)
            }
        };
        let each = |it: &Tried| it.took.is_plausible() && it.watch.is_plausible();
        phase
            && *by == ObservedBy::AllNodes
            && tried.is_sorted_by(|a, b| a.model < b.model)
            && tried.iter().any(|it| it.model == self.model)
            && tried.iter().any(|it| it.left_out.is_none())
            && tried.iter().all(each)
            && length.is_power_of_two()
            && (by.shortest()..=LONGEST).contains(length)
            && KEEP.contains(keep)
            && REST.contains(rest)
    }

    fn assert_invariants(&self) {
        assert!(self.tried.iter().any(|it| it.left_out.is_none()), "one is the best: {self:?}");
        assert!(self.tried.iter().any(|it| it.model == self.model), "what is chosen: {self:?}");
        assert!(self.length.is_power_of_two(), "slots have a length: {self:?}");
    }

    /// All are compared, but for closed children where flat transactions were `kept` of which
    /// none would be saved by them. (Open ones also end waits for locks, which is not observed.)
    fn try_all(&mut self, cause: ComparisonCause, kept: Option<Took>) -> bool {
        let flat = kept.filter(|_| self.model == NestingModel::Flat);
        let worth = self.by.worth_locks();
        for tried in &mut self.tried {
            *tried = Tried::new(tried.model);
            let is_closed = tried.model == NestingModel::Closed;
            if is_closed && flat.is_some_and(|flat| tried.cannot_gain_over(&flat, worth)) {
                tried.left_out = Some(LeftOut::SavesNothing);
            }
        }
        self.phase = ChoicePhase::Comparing { cause, slots: 0 };
        self.assert_invariants();
        true
    }

    /// Models that could gain too little over the simplest one go where they do not gain more.
    fn leave_out_what_saves_nothing(&mut self) {
        let (simplest, worth) = (self.tried[0], self.by.worth_locks());
        if simplest.left_out.is_some() {
            return;
        }
        for tried in self.tried.iter_mut().skip(1).filter(|it| it.left_out.is_none()) {
            let gains = tried.gains_over(&simplest.took, worth);
            if tried.took.slots() > 0 && !gains && tried.cannot_gain_over(&simplest.took, worth) {
                tried.left_out = Some(LeftOut::SavesNothing);
            }
        }
        self.assert_invariants();
    }

    /// All had their turns in a comparison.
    fn judge(&mut self, at: u64) {
        let ChoicePhase::Comparing { cause, slots } = self.phase else { return };
        self.leave_out_what_saves_nothing();
        let staying = || self.tried.iter().filter(|it| it.left_out.is_none());
        let least = staying().map(|it| it.took.slots()).min().unwrap_or(0);
        if least == 0 || (least < ROUNDS && staying().count() > 1) {
            return;
        }
        let (fastest, worth) = (tried::fastest(staying()), self.by.worth_locks());
        for tried in self.tried.iter_mut().filter(|it| it.left_out.is_none()) {
            let share = if tried.is_less_in_the_way_than(&fastest) { worth } else { CLOSE };
            let is_slower = tried.took.is_slower_than(&fastest.took, share);
            tried.left_out = is_slower.then_some(LeftOut::Slower);
        }
        let left: Vec<&Tried> = self.tried.iter().filter(|it| it.left_out.is_none()).collect();
        let is_enough = left.iter().all(|it| it.took.committed >= self.by.enough());
        if left.len() > 1 && !is_enough {
            // Attempts may take another time than those by which the slots got their length.
            let attempt = left.iter().map(|it| it.took.attempt()).min();
            let length = self.by.slot_length(attempt.expect("one stays"));
            if self.by.is_worth_changing(self.length, length) {
                self.length = length;
            }
            return;
        }
        let model = self.best_of(&left, cause);
        self.decide(at, (cause, slots), model);
    }

    /// The best of these: of those that are close to it the earlier choice, or else the simplest.
    fn best_of(&self, left: &[&Tried], cause: ComparisonCause) -> NestingModel {
        let (fastest, worth) = (tried::fastest(left.iter().copied()), self.by.worth_locks());
        let may_replace = |it: &&&Tried| it.may_replace(&fastest, worth);
        let lockless: Vec<&Tried> = left.iter().filter(may_replace).copied().collect();
        let (best, left) = match lockless.is_empty() {
            true => (fastest, left),
            false => (tried::fastest(lockless.iter().copied()), lockless.as_slice()),
        };
        let close: Vec<NestingModel> =
            left.iter().filter(|it| it.took.is_close_to(&best.took)).map(|it| it.model).collect();
        let stays = cause != ComparisonCause::First && close.contains(&self.model);
        if stays { self.model } else { close[0] }
    }

    /// This one is kept from now on.
    fn decide(&mut self, at: u64, (cause, slots): (ComparisonCause, u64), model: NestingModel) {
        let (is_same, first) = (model == self.model, (*KEEP.start(), *REST.start()));
        (self.keep, self.rest) = match cause {
            ComparisonCause::Due if is_same => {
                (self.keep.saturating_mul(2).min(*KEEP.end()), self.rest)
            }
            ComparisonCause::Change | ComparisonCause::Observed if is_same => {
                (first.0, self.rest.saturating_mul(2).min(*REST.end()))
            }
            _ => first,
        };
        self.model = model;
        let is_simplest = model == self.tried[0].model;
        let (unit, took) = (KEEP_SLOTS * self.length, slots.saturating_mul(self.length));
        let kept = at.saturating_add(took.saturating_mul(self.keep).min(KEPT_MOST));
        self.phase = ChoicePhase::Kept {
            until: kept.div_ceil(unit).saturating_mul(unit),
            looks_from: at.saturating_add(took.saturating_mul(self.rest).min(KEPT_MOST)),
            watch: Box::new(ChangeWatch::of(is_simplest)),
            all: Box::default(),
        };
        let made = self.decided.map_or(0, |it| it.made).saturating_add(1);
        self.decided = Some(LastDecision { cause, made });
        self.assert_invariants();
    }
}
