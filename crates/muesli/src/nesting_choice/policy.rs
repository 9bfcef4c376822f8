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
//! Slots, and not single transactions, are compared: all that run in a slot have the same model,
//! and slots are counted from the clock's zero, so those of several tasks and of several nodes with
//! one clock are the same. Transactions of two models beside each other would say which one wins
//! against the other, which is something else: closed children get through between flat
//! transactions, and are in each other's way when there is nothing else.
//!
//! The time of a slot is the time that transactions ran in it, all together, over how many ended
//! well (Little's law). So those count too that get nowhere, and it does not matter whether clients
//! wait for each other's ends or come at their own times.
//!
//! What is chosen depends on when transactions begin and end: nothing is drawn.

use muesli_core::Nanos;

use super::NestingModel;
use super::took::{TimeSlot, Took};

/// So many transactions are not compared: what they find is not warm yet. A slot is about as long
/// as they take, and as so many take one after the other.
const WARM_UP: u64 = 32;
const ONE_BY_ONE: u64 = 8;
/// Slots are 2 to this power of nanoseconds long at least (a millisecond), and at most (a minute).
const SLOT_POWERS: std::ops::RangeInclusive<u32> = 20..=36;
/// Of a slot the first part of so many is not counted: transactions of the one before still run.
const SETTLING: u64 = 4;
/// A comparison has at least so many slots of each model, and at most so many.
const ROUNDS: std::ops::RangeInclusive<u64> = 3..=8;
/// A choice is kept for so many times the length of its comparison, at first and at most.
const KEEP: std::ops::RangeInclusive<u64> = 32..=512;
/// It ends at a multiple of so many slots, on all nodes alike.
const KEEP_SLOTS: u64 = 128;
/// So many slots are compared with the first ones while a choice is kept.
const LOOK: u64 = 8;
/// The time has changed where it differs by this share, so many times in a row.
const CHANGE: f64 = 0.3;
const CHANGES: u32 = 2;
/// After a comparison at least so many times its length passes before a change is looked for.
const REST: u64 = 4;
/// After so many slots in which none begins or ends, the time until one does is part of no slot.
const IDLE: u64 = 64;

/// Why a comparison was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComparisonCause {
    /// It was the first one.
    First,
    /// Transactions took another time than before.
    Change,
    /// It was due.
    Due,
}

/// A model in a comparison.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tried {
    pub model: NestingModel,
    pub took: Took,
    /// It is slower than another one.
    is_out: bool,
}

#[derive(Debug)]
enum ChoicePhase {
    /// Nothing is compared yet.
    WarmUp,
    /// The models have their slots in turn.
    Comparing { cause: ComparisonCause, slots: u64 },
    /// A model is kept until then; a change is looked for from this moment on.
    Kept { until: u64, looks_from: u64, first: Took, latest: Took, changes: u32 },
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
        let tried =
            models.iter().map(|&model| Tried { model, took: Took::default(), is_out: false });
        ChoicePolicy {
            tried: tried.collect(),
            phase: ChoicePhase::WarmUp,
            model: models[0],
            keep: *KEEP.start(),
            length: 0,
            slot: TimeSlot::default(),
            at: now.0,
            running: 0,
            begun: 0,
            decided: None,
        }
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

    /// The model of a transaction that begins.
    pub fn begin(&mut self, now: Nanos) -> NestingModel {
        self.pass(now.0);
        (self.running, self.begun) = (self.running + 1, self.begun + 1);
        match self.phase {
            ChoicePhase::Comparing { .. } => self.model_of_slot(),
            ChoicePhase::WarmUp | ChoicePhase::Kept { .. } => self.model,
        }
    }

    /// A transaction has ended: committed after so many attempts, or not.
    pub fn ended(&mut self, now: Nanos, attempts: Option<u32>) {
        self.pass(now.0);
        self.running = self.running.saturating_sub(1);
        if let Some(attempts) = attempts {
            self.slot.committed += 1;
            self.slot.attempts += u64::from(attempts);
        }
        if matches!(self.phase, ChoicePhase::WarmUp)
            && self.tried.len() > 1
            && self.slot.committed >= WARM_UP
        {
            let took = self.slot.busy / self.slot.committed;
            let concurrent = self.slot.busy / self.running.max(1);
            let least = concurrent.max(ONE_BY_ONE * took).max(1);
            let power =
                (u64::BITS - least.leading_zeros()).clamp(*SLOT_POWERS.start(), *SLOT_POWERS.end());
            self.length = 1 << power;
            self.try_all(ComparisonCause::First);
        }
    }

    /// Whose slot it is.
    fn model_of_slot(&self) -> NestingModel {
        let place = (self.at / self.length) as usize % self.tried.len();
        let staying = self.tried.iter().filter(|it| !it.is_out);
        let best = staying.min_by(|a, b| a.took.mean().total_cmp(&b.took.mean()));
        match &self.tried[place] {
            tried if tried.is_out => best.map_or(self.model, |it| it.model),
            tried => tried.model,
        }
    }

    /// Time passes.
    fn pass(&mut self, now: u64) {
        if self.length == 0 {
            self.slot.busy += self.running * now.saturating_sub(self.at);
            self.at = self.at.max(now);
            return;
        }
        // However long nothing begins or ends, no more slots than so many are looked at.
        let looked_at = self.at.saturating_add(IDLE * self.length);
        if now > looked_at {
            if self.running > 0 {
                self.pass(looked_at);
            }
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
                if !self.tried[place].is_out {
                    self.tried[place].took.add(&slot);
                }
                if place + 1 == self.tried.len() {
                    self.judge();
                }
            }
            ChoicePhase::Kept { until, looks_from, first, latest, changes } => {
                if self.at >= *until {
                    return self.try_all(ComparisonCause::Due);
                }
                if first.slots() < LOOK {
                    return first.add(&slot);
                }
                latest.add(&slot);
                if latest.slots() == LOOK {
                    let latest = std::mem::take(latest);
                    let is_changed = latest.differs_from(first, CHANGE);
                    *changes = if is_changed { *changes + 1 } else { 0 };
                    if *changes >= CHANGES && self.at >= *looks_from {
                        self.try_all(ComparisonCause::Change);
                    }
                }
            }
        }
    }

    fn assert_invariants(&self) {
        assert!(self.tried.iter().any(|it| !it.is_out), "one is the best: {self:?}");
        assert!(self.tried.iter().any(|it| it.model == self.model), "what is chosen: {self:?}");
        let is_warm = !matches!(self.phase, ChoicePhase::WarmUp);
        assert_eq!(is_warm, self.length.is_power_of_two(), "slots have a length: {self:?}");
    }

    fn try_all(&mut self, cause: ComparisonCause) {
        for tried in &mut self.tried {
            (tried.took, tried.is_out) = (Took::default(), false);
        }
        (self.phase, self.slot) = (ChoicePhase::Comparing { cause, slots: 0 }, TimeSlot::default());
        self.assert_invariants();
    }

    /// All had their turns in a comparison.
    fn judge(&mut self) {
        let ChoicePhase::Comparing { cause, slots } = self.phase else { return };
        let staying = || self.tried.iter().filter(|it| !it.is_out);
        let least = staying().map(|it| it.took.slots()).min().unwrap_or(0);
        if least < *ROUNDS.start() {
            return;
        }
        let means = staying().map(|it| it.took);
        let best = means.min_by(|a, b| a.mean().total_cmp(&b.mean())).expect("one stays");
        for tried in &mut self.tried {
            tried.is_out |= tried.took.is_slower_than(&best);
        }
        let left: Vec<&Tried> = self.tried.iter().filter(|it| !it.is_out).collect();
        if left.len() > 1 && least < *ROUNDS.end() {
            return;
        }
        let close: Vec<NestingModel> =
            left.iter().filter(|it| it.took.is_close_to(&best)).map(|it| it.model).collect();
        let stays = cause != ComparisonCause::First && close.contains(&self.model);
        let model = if stays { self.model } else { close[0] };
        let is_same = cause == ComparisonCause::Due && model == self.model;
        self.keep = if is_same { (2 * self.keep).min(*KEEP.end()) } else { *KEEP.start() };
        self.model = model;
        let unit = KEEP_SLOTS * self.length;
        let kept = self.at + slots * self.length * self.keep;
        self.phase = ChoicePhase::Kept {
            until: kept.div_ceil(unit) * unit,
            looks_from: self.at + REST * slots * self.length,
            first: Took::default(),
            latest: Took::default(),
            changes: 0,
        };
        let (tried, begun) = (self.tried.clone(), self.begun);
        self.decided = Some(Decided { cause, model, tried, begun });
        self.assert_invariants();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLAT: NestingModel = NestingModel::Flat;
    const CLOSED: NestingModel = NestingModel::Closed;
    const OPEN: NestingModel = NestingModel::Open;

    /// Some clients in a closed loop, whose transactions take so long, more or less.
    struct Loop {
        policy: ChoicePolicy,
        now: u64,
        /// When who ends.
        ends: Vec<u64>,
        number: u64,
    }

    impl Loop {
        fn new(models: &[NestingModel]) -> Loop {
            let policy = ChoicePolicy::new(models, Nanos(0));
            Loop { policy, now: 0, ends: vec![0; 4], number: 0 }
        }

        /// How long so many transactions took, together.
        fn run(&mut self, many: u64, took: impl Fn(NestingModel) -> u64) -> u64 {
            let from = self.now;
            for _ in 0..many {
                let client = (0..self.ends.len()).min_by_key(|it| self.ends[*it]).unwrap();
                self.now = self.ends[client];
                if self.number >= self.ends.len() as u64 {
                    self.policy.ended(Nanos(self.now), Some(1));
                }
                let model = self.policy.begin(Nanos(self.now));
                self.number += 1;
                // From half as long to one and a half times.
                let drawn = self.number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54;
                self.ends[client] = self.now + took(model) * (512 + drawn) / 1_024;
            }
            self.now - from
        }
    }

    fn fixed(flat: u64, closed: u64, open: u64) -> impl Fn(NestingModel) -> u64 {
        move |model| match model {
            FLAT => flat,
            CLOSED => closed,
            OPEN => open,
        }
    }

    const MICROS: u64 = 1_000;

    /// How long so many transactions would take if all took so long.
    fn least(many: u64, took: u64) -> f64 {
        (many * took) as f64 / 4.0
    }

    #[test]
    fn the_fastest_is_chosen_and_comparing_costs_little() {
        for costs in [[100, 130, 250], [150, 100, 140], [200, 180, 100], [1_000, 500, 100]] {
            let [flat, closed, open] = costs.map(|it| it * MICROS);
            let mut clients = Loop::new(&[FLAT, CLOSED, OPEN]);
            clients.run(3_000, fixed(flat, closed, open));
            let best = costs.map(|it| it * MICROS).into_iter().min().unwrap();
            let chosen = clients.policy.chosen().map(fixed(flat, closed, open));
            assert_eq!(chosen, Some(best), "{costs:?}");
            let all = clients.run(100_000, fixed(flat, closed, open));
            assert!(all as f64 <= 1.05 * least(100_000, best), "{costs:?}: {all}");
        }
    }

    #[test]
    fn what_makes_no_difference_is_left_simple() {
        let mut clients = Loop::new(&[FLAT, CLOSED]);
        clients.run(3_000, fixed(100 * MICROS, 100 * MICROS, 0));
        assert_eq!(clients.policy.chosen(), Some(FLAT));
    }

    #[test]
    fn a_change_is_followed() {
        let mut clients = Loop::new(&[FLAT, CLOSED]);
        clients.run(10_000, fixed(100 * MICROS, 150 * MICROS, 0));
        assert_eq!(clients.policy.chosen(), Some(FLAT));
        clients.run(10_000, fixed(300 * MICROS, 150 * MICROS, 0));
        assert_eq!(clients.policy.chosen(), Some(CLOSED));
        let all = clients.run(100_000, fixed(300 * MICROS, 150 * MICROS, 0));
        assert!(all as f64 <= 1.05 * least(100_000, 150 * MICROS), "{all}");
    }

    #[test]
    fn with_one_model_nothing_is_tried() {
        let mut clients = Loop::new(&[OPEN]);
        clients.run(1_000, fixed(1, 1, 1));
        assert_eq!(clients.policy.chosen(), Some(OPEN));
    }

    #[test]
    fn nodes_with_one_clock_try_the_same_at_the_same_time() {
        let mut nodes = [0, 1].map(|_| Loop::new(&[FLAT, CLOSED, OPEN]));
        let took = fixed(200 * MICROS, 100 * MICROS, 300 * MICROS);
        nodes[1].run(500, &took);
        while nodes[0].now < nodes[1].now {
            nodes[0].run(1, &took);
        }
        let (mut same, mut tries) = (0, 0);
        while tries < 200 && nodes.iter().all(|it| it.policy.chosen().is_none()) {
            let models = nodes.each_ref().map(|it| it.policy.model_of_slot());
            same += u32::from(models[0] == models[1]);
            tries += 1;
            let behind = usize::from(nodes[1].now < nodes[0].now);
            nodes[behind].run(1, &took);
        }
        assert!(tries > 50 && same * 10 > tries * 9, "{same} of {tries}");
    }

    #[test]
    fn long_pauses_are_no_part_of_any_slot() {
        let mut policy = ChoicePolicy::new(&[FLAT, CLOSED], Nanos(0));
        let mut now = 0;
        for _ in 0..200 {
            policy.begin(Nanos(now));
            policy.ended(Nanos(now + 1_000), Some(1));
            now += 3_600_000_000_000;
        }
        assert!(policy.slot.busy <= 1_000, "{:?}", policy.slot);
        assert!(policy.at + policy.length * IDLE < now);
        // One that runs for a year is no more work than one that runs for a minute.
        policy.begin(Nanos(now));
        policy.ended(Nanos(now + 365 * 24 * 3_600_000_000_000), Some(1));
        assert!(policy.slot.busy <= policy.length);
    }

    #[test]
    fn the_same_transactions_lead_to_the_same_choices() {
        let decisions = || {
            let mut clients = Loop::new(&[FLAT, CLOSED, OPEN]);
            let mut decided = Vec::new();
            for _ in 0..20_000 {
                clients.run(1, fixed(120 * MICROS, 100 * MICROS, 110 * MICROS));
                let decision = clients.policy.take_decided();
                decided.extend(decision.map(|it| (it.begun, it.model, it.cause)));
            }
            decided
        };
        assert!(!decisions().is_empty());
        assert_eq!(decisions(), decisions());
    }
}
