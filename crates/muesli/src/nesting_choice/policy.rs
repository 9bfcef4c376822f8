//! The choice of a node: by its own comparison, or by the one of all nodes that it takes part in.
//!
//! It is told when transactions begin and end, and what was observed of their attempts; what it
//! tells the others, and hears from them, passes through it as values. What is chosen depends on
//! these alone: nothing is drawn, and no clock is read.

use muesli_core::Nanos;

use super::NestingModel;
use super::comparison::{ComparisonCause, ModelComparison, ObservedBy};
use super::meter::SlotMeter;
use super::observation::NestingObservation;
use super::pooled::member::{PoolMember, ReportTime};
use super::pooled::{PoolRefusal, PooledComparison};
use super::took::TimeSlot;
use super::tried::Tried;

/// So many transactions are not compared: what they find is not warm yet.
const WARM_UP: u64 = 8;

/// A decision, with what it was made from.
#[derive(Clone, Debug)]
pub(super) struct Decided {
    pub cause: ComparisonCause,
    pub model: NestingModel,
    pub tried: Vec<Tried>,
    /// How many transactions had begun.
    pub begun: u64,
    /// How many nodes it is of, where they made it together.
    pub nodes: Option<u32>,
}

/// The choice among some models.
///
/// Invariants: slots are those of the comparison that is followed, and have no length where none
/// is; the node's own comparison is there only while it does not follow that of all nodes.
#[derive(Debug)]
pub(super) struct ChoicePolicy {
    /// The simplest first.
    models: Vec<NestingModel>,
    pub meter: SlotMeter,
    begun: u64,
    /// How many had begun when it was last looked for something to tell.
    looked: u64,
    /// This node's; there is none before it is warm.
    pub own: Option<ModelComparison>,
    member: Option<PoolMember>,
    decided: Option<Decided>,
    /// The decision of all nodes that was seen last: that of a row since then, after so many.
    seen_made: Option<(u64, u64)>,
}

impl ChoicePolicy {
    /// A choice among these, the simplest first; among other nodes, where there is a member.
    ///
    /// # Panics
    /// If there are none.
    pub fn new(models: &[NestingModel], now: Nanos, member: Option<PoolMember>) -> ChoicePolicy {
        assert!(!models.is_empty(), "there is something to choose from");
        ChoicePolicy {
            models: models.to_vec(),
            meter: SlotMeter::new(now.0, 0),
            begun: 0,
            looked: 0,
            own: None,
            member: member.filter(|_| models.len() > 1),
            decided: None,
            seen_made: None,
        }
    }

    /// A choice among the others, if there are any; as many transactions run.
    pub fn without_flat(mut self) -> ChoicePolicy {
        let models = self.models.iter().copied();
        let models: Vec<_> = models.filter(|model| *model != NestingModel::Flat).collect();
        if models.is_empty() {
            return self;
        }
        let mut member = self.member.take();
        member.iter_mut().for_each(PoolMember::narrow);
        let meter = SlotMeter::new(self.meter.at, self.meter.running);
        let (begun, now) = (self.begun, Nanos(meter.at));
        ChoicePolicy { meter, begun, ..ChoicePolicy::new(&models, now, member) }
    }

    /// The comparison that this node goes by.
    fn followed(&self) -> Option<&ModelComparison> {
        let pooled = self.member.as_ref().and_then(PoolMember::followed);
        pooled.map(|it| &it.comparison).or(self.own.as_ref())
    }

    /// What is chosen at present; `None`: that is being tried.
    pub fn chosen(&self) -> Option<NestingModel> {
        match self.models.as_slice() {
            [only] => Some(*only),
            _ => self.followed()?.chosen(),
        }
    }

    /// The decision that was made since the last call.
    pub fn take_decided(&mut self) -> Option<Decided> {
        self.decided.take()
    }

    /// Up to when all is counted.
    pub fn counted(&self) -> Nanos {
        Nanos(self.meter.at)
    }

    /// A transaction begins: the model of its first attempt.
    pub fn begin(&mut self, now: Nanos) -> NestingModel {
        self.pass(now.0);
        (self.meter.running, self.begun) = (self.meter.running + 1, self.begun + 1);
        self.attempt(now)
    }

    /// Another attempt of one that runs begins: its model. (A transaction that kept the model it
    /// began with would be tried with it in slots of others, for as long as it gets nowhere.)
    pub fn attempt(&mut self, now: Nanos) -> NestingModel {
        self.pass(now.0);
        if self.member.as_mut().is_some_and(|it| it.is_overdue(now.0)) {
            self.follow();
        }
        self.meter.slot.attempts += 1;
        self.current()
    }

    /// As what attempts are run that begin now.
    fn current(&self) -> NestingModel {
        self.followed().map_or(self.models[0], |it| it.model_at(self.meter.at))
    }

    /// A transaction has ended.
    pub fn ended(&mut self, now: Nanos, is_committed: bool) {
        self.pass(now.0);
        self.meter.running = self.meter.running.saturating_sub(1);
        self.meter.slot.committed += u64::from(is_committed);
        if self.models.len() > 1 && self.followed().is_none() {
            self.warm_up();
        }
    }

    /// Nothing is compared yet: begins with it, when it is warm.
    fn warm_up(&mut self) {
        let TimeSlot { busy, committed, attempts, .. } = self.meter.slot;
        if committed < WARM_UP {
            return;
        }
        let attempt = busy / attempts.max(1);
        if let Some(member) = &mut self.member {
            member.suggest(attempt);
            if member.waits() {
                return;
            }
        }
        let length = ObservedBy::Node.slot_length(attempt);
        self.own = Some(ModelComparison::new(ObservedBy::Node, &self.models, length));
        self.meter.set_length(length);
        self.assert_invariants();
    }

    /// What was observed of an attempt that was run as this model and has just ended.
    pub fn observe(&mut self, now: Nanos, model: NestingModel, seen: &NestingObservation) {
        self.pass(now.0);
        if self.models.len() > 1 && model == self.current() {
            self.meter.slot.seen.add(seen);
        } // Else it began in a slot of another one.
    }

    /// Time passes.
    fn pass(&mut self, now: u64) {
        if self.models.len() == 1 {
            return self.meter.skip_to(now); // There is nothing to compare.
        }
        let to = self.meter.looks_until(now);
        while let Some((begun, slot)) = self.meter.advance(to) {
            self.end_slot(begun, slot);
        }
        self.meter.skip_to(now);
    }

    fn end_slot(&mut self, begun: u64, slot: TimeSlot) {
        if let Some(own) = &mut self.own {
            let made = own.decided;
            own.add(begun, &slot);
            if own.length != self.meter.length() {
                self.meter.set_length(own.length);
            }
            if let Some(last) = own.decided.filter(|_| own.decided != made) {
                let (model, tried, begun) = (own.model, own.tried.clone(), self.begun);
                self.decided =
                    Some(Decided { cause: last.cause, model, tried, begun, nodes: None });
            }
        } else if let Some(member) = &mut self.member {
            member.note(begun, slot);
        }
    }

    /// Whether it chooses among other nodes.
    pub fn pools(&self) -> bool {
        self.member.is_some()
    }

    /// When the node is to tell the others something, and what, where that is now.
    pub fn report(&mut self, now: Nanos) -> ReportTime {
        self.pass(now.0);
        let begun = std::mem::replace(&mut self.looked, self.begun);
        let is_idle = self.meter.running == 0 && self.begun == begun;
        match &mut self.member {
            Some(member) => member.report(now.0, &self.models, is_idle),
            None => ReportTime::Never,
        }
    }

    /// What came of telling it; `None`: nothing.
    pub fn exchanged(
        &mut self,
        now: Nanos,
        found: Option<Result<Option<PooledComparison>, PoolRefusal>>,
    ) {
        self.pass(now.0);
        let Some(member) = &mut self.member else { return };
        let is_other = match found {
            Some(found) => member.exchanged(now.0, found, &self.models),
            None => member.missed(),
        };
        if is_other {
            self.follow();
        }
        let Some(pool) = self.member.as_ref().and_then(PoolMember::followed) else { return };
        let last = pool.comparison.decided.map(|it| (pool.since, it.made));
        let is_new = std::mem::replace(&mut self.seen_made, last) != last;
        let Some(last) = pool.comparison.decided.filter(|_| is_new) else { return };
        self.decided = Some(Decided {
            cause: last.cause,
            model: pool.comparison.model,
            tried: pool.comparison.tried.clone(),
            begun: self.begun,
            nodes: Some(pool.nodes),
        });
    }

    /// Another comparison is followed than before, or none: then the node gets warm again, and has
    /// its own.
    fn follow(&mut self) {
        let pooled = self.member.as_ref().and_then(PoolMember::followed);
        match pooled.map(|it| it.comparison.length) {
            Some(length) => {
                self.own = None;
                self.meter.set_length(length);
            }
            None if self.own.is_none() => self.meter.set_length(0),
            None => {}
        }
        self.assert_invariants();
    }

    fn assert_invariants(&self) {
        let length = self.followed().map_or(0, |it| it.length);
        assert_eq!(length, self.meter.length(), "slots are those that are followed: {self:?}");
        let pooled = self.member.as_ref().and_then(PoolMember::followed);
        assert!(pooled.is_none() || self.own.is_none(), "one is followed: {self:?}");
    }
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "pooled_tests.rs"]
mod pooled_tests;
