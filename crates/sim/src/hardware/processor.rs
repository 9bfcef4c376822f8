//! The processor of a node: one server, whose work costs virtual time.
//!
//! A node's loop drains what has arrived, steps the node, and flushes once; that is a *turn*. What
//! arrives while a turn lasts waits in the inbox for the next, so that batches grow with load, as
//! they do in the real loop. A turn that starts at t and costs c takes its effect on the world
//! (what it sends, logs and answers) at t + c.
//!
//! Costs are figures of the real node: so much per turn, message, byte and key. A slow node
//! multiplies them; a paused one starts no turn until the pause is over.

use std::collections::VecDeque;
use std::ops::{Add, AddAssign};

use crate::hardware::costs::Costs;
use crate::time::{Span, VirtualTime};

/// One node's processor, with the inputs `I` that wait for it.
#[derive(Debug)]
pub struct Processor<I> {
    inbox: VecDeque<I>,
    busy_until: VirtualTime,
    paused_until: VirtualTime,
    /// Costs are multiplied by this; 1 is the usual speed.
    slowdown: u64,
    /// When the turn that the world was told to begin is to begin.
    scheduled: Option<VirtualTime>,
}

/// What a turn was kept busy with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessorLoad {
    /// Nodes of other machines that messages were taken in from.
    pub sources: u64,
    /// Nodes of other machines that messages were sent to.
    pub destinations: u64,
    /// Other cores of the machine that messages were taken in from, or sent to.
    pub cores: u64,
    /// Messages taken in.
    pub received: u64,
    /// Messages sent out.
    pub sent: u64,
    /// Bytes of both.
    pub bytes: u64,
    /// Operations of clients, and timers.
    pub operations: u64,
    /// Keys read.
    pub reads: u64,
    /// Keys locked and validated.
    pub validated: u64,
    /// Versions installed.
    pub installed: u64,
    /// Records logged.
    pub logged: u64,
}

impl ProcessorLoad {
    /// What this load costs at usual speed, in a turn of its own.
    pub fn cost(&self, costs: &Costs) -> Span {
        costs.tick
            + costs.fetch.times(self.sources)
            + costs.flush.times(self.destinations)
            + costs.core.times(self.cores)
            + costs.receive.times(self.received)
            + costs.send.times(self.sent)
            + costs.operation.times(self.operations)
            + costs.read.times(self.reads)
            + costs.validate.times(self.validated)
            + costs.install.times(self.installed)
            + costs.log.times(self.logged)
            + Span::from_nanos(costs.byte_picos.saturating_mul(self.bytes) / 1_000)
    }
}

impl ProcessorLoad {
    /// What was done after `before`, an earlier look at the same counts.
    pub fn since(&self, before: &ProcessorLoad) -> ProcessorLoad {
        self.with(before, u64::saturating_sub)
    }

    fn with(&self, other: &ProcessorLoad, counted: fn(u64, u64) -> u64) -> ProcessorLoad {
        ProcessorLoad {
            sources: counted(self.sources, other.sources),
            destinations: counted(self.destinations, other.destinations),
            cores: counted(self.cores, other.cores),
            received: counted(self.received, other.received),
            sent: counted(self.sent, other.sent),
            bytes: counted(self.bytes, other.bytes),
            operations: counted(self.operations, other.operations),
            reads: counted(self.reads, other.reads),
            validated: counted(self.validated, other.validated),
            installed: counted(self.installed, other.installed),
            logged: counted(self.logged, other.logged),
        }
    }
}

impl Add for ProcessorLoad {
    type Output = ProcessorLoad;

    fn add(self, more: ProcessorLoad) -> ProcessorLoad {
        self.with(&more, u64::wrapping_add)
    }
}

impl AddAssign for ProcessorLoad {
    fn add_assign(&mut self, more: ProcessorLoad) {
        *self = *self + more;
    }
}

/// Whether a scheduled turn can begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tick {
    /// Yes, now.
    Begins,
    /// Something came between: ask again then.
    At(VirtualTime),
    /// This turn has been overtaken; there is nothing to do.
    Void,
}

impl<I> Default for Processor<I> {
    fn default() -> Self {
        Processor {
            inbox: VecDeque::new(),
            busy_until: VirtualTime::ZERO,
            paused_until: VirtualTime::ZERO,
            slowdown: 1,
            scheduled: None,
        }
    }
}

impl<I> Processor<I> {
    /// An idle processor.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an input. If no turn is scheduled yet, returns when to begin one, which may be now.
    pub fn offer(&mut self, now: VirtualTime, input: I) -> Option<VirtualTime> {
        self.inbox.push_back(input);
        self.wake(now)
    }

    /// Asks for a turn, even with an empty inbox: the node has work of its own. Returns when to
    /// begin it, if none is scheduled yet.
    pub fn wake(&mut self, now: VirtualTime) -> Option<VirtualTime> {
        if self.scheduled.is_some() {
            return None;
        }
        let start = now.max(self.busy_until).max(self.paused_until);
        self.scheduled = Some(start);
        Some(start)
    }

    /// A scheduled turn is due.
    pub fn begin(&mut self, now: VirtualTime) -> Tick {
        if self.scheduled != Some(now) {
            return Tick::Void;
        }
        let start = now.max(self.busy_until).max(self.paused_until);
        if start > now {
            self.scheduled = Some(start);
            return Tick::At(start);
        }
        Tick::Begins
    }

    /// The next input of the turn under way.
    pub fn take(&mut self) -> Option<I> {
        self.inbox.pop_front()
    }

    /// How many inputs wait.
    pub fn waiting(&self) -> usize {
        self.inbox.len()
    }

    /// Ends the turn that began now and did `load`. Returns when its effects leave. A further turn
    /// must be asked for by [`wake`](Self::wake) if something is left.
    pub fn end(&mut self, now: VirtualTime, load: &ProcessorLoad, costs: &Costs) -> VirtualTime {
        self.scheduled = None;
        // Never nothing, or a node that always has work of its own would stop the time.
        self.busy_until = now + self.cost(load, costs).max(Span::from_nanos(1));
        self.busy_until
    }

    /// What a turn that did `load` costs here.
    pub fn cost(&self, load: &ProcessorLoad, costs: &Costs) -> Span {
        load.cost(costs).times(self.slowdown)
    }

    /// When the turn under way ends; in the past if there is none.
    pub fn free_at(&self) -> VirtualTime {
        self.busy_until
    }

    /// Begins no turn before `until`. What is under way ends.
    pub fn pause(&mut self, until: VirtualTime) {
        self.paused_until = self.paused_until.max(until);
    }

    /// From now on everything costs `factor` times as much; 1 is the usual speed.
    pub fn slow_down(&mut self, factor: u64) {
        self.slowdown = factor.max(1);
    }

    /// Forgets everything that waits and whatever was under way; a pause and a slowdown, which are
    /// the machine's and not the process's, stay.
    pub fn crash(&mut self) {
        self.inbox.clear();
        self.scheduled = None;
        self.busy_until = VirtualTime::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::queue::EventQueue;

    fn at(nanos: u64) -> VirtualTime {
        VirtualTime::from_nanos(nanos)
    }

    fn costs() -> Costs {
        Costs { tick: Span::from_nanos(10), receive: Span::from_nanos(5), ..Costs::FREE }
    }

    fn receive_all(processor: &mut Processor<u32>, now: VirtualTime) -> (Vec<u32>, VirtualTime) {
        let taken: Vec<u32> = std::iter::from_fn(|| processor.take()).collect();
        let load = ProcessorLoad { received: taken.len() as u64, ..ProcessorLoad::default() };
        (taken, processor.end(now, &load, &costs()))
    }

    #[test]
    fn what_comes_during_a_turn_shares_the_next() {
        let mut processor = Processor::new();
        assert_eq!(processor.offer(at(100), 1), Some(at(100)));
        assert_eq!(processor.begin(at(100)), Tick::Begins);
        assert_eq!(receive_all(&mut processor, at(100)), (vec![1], at(115)));
        assert_eq!(processor.offer(at(101), 2), Some(at(115)));
        assert_eq!(processor.offer(at(102), 3), None);
        assert_eq!(processor.begin(at(115)), Tick::Begins);
        assert_eq!(receive_all(&mut processor, at(115)), (vec![2, 3], at(135)));
    }

    #[test]
    fn a_pause_delays_turns_and_a_slowdown_stretches_them() {
        let mut processor = Processor::new();
        assert_eq!(processor.offer(at(0), 1), Some(at(0)));
        processor.pause(at(50));
        assert_eq!(processor.begin(at(0)), Tick::At(at(50)));
        processor.slow_down(3);
        assert_eq!(processor.begin(at(50)), Tick::Begins);
        assert_eq!(receive_all(&mut processor, at(50)), (vec![1], at(95)));
    }

    #[test]
    fn a_crash_voids_the_turn_that_was_scheduled() {
        let mut processor = Processor::new();
        processor.offer(at(0), 1);
        processor.crash();
        assert_eq!(processor.begin(at(0)), Tick::Void);
        assert_eq!(processor.offer(at(7), 2), Some(at(7)));
        assert_eq!(processor.begin(at(7)), Tick::Begins);
        assert_eq!(receive_all(&mut processor, at(7)).0, vec![2]);
    }

    proptest! {
        /// Every input is taken once, in order, and turns never overlap.
        #[test]
        fn serves_everything_in_order_and_one_turn_at_a_time(
            gaps in prop::collection::vec(0..40_u64, 1..100),
            pause_at in 0..100_usize,
        ) {
            let (mut processor, mut ticks) = (Processor::new(), EventQueue::new());
            let (mut now, mut free, mut taken) = (0, at(0), Vec::new());
            let mut run = |processor: &mut Processor<u32>, ticks: &mut EventQueue<()>, limit| {
                while let Some((time, ())) = ticks.pop_until(limit) {
                    match processor.begin(time) {
                        Tick::At(begins_at) => ticks.push(begins_at, ()),
                        Tick::Void => panic!("a turn was scheduled twice"),
                        Tick::Begins => {
                            assert!(time >= free);
                            let (inputs, end) = receive_all(processor, time);
                            free = end;
                            taken.extend(inputs);
                        }
                    }
                }
            };
            for (number, gap) in gaps.iter().enumerate() {
                now += gap;
                run(&mut processor, &mut ticks, at(now));
                if number == pause_at {
                    processor.pause(at(now + 500));
                }
                if let Some(start) = processor.offer(at(now), number as u32) {
                    ticks.push(start, ());
                }
            }
            run(&mut processor, &mut ticks, VirtualTime::NEVER);
            prop_assert_eq!(taken, (0..gaps.len() as u32).collect::<Vec<_>>());
        }
    }
}
