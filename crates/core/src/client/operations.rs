//! What a loop keeps for the client code polled on it: operations that wait for answers, and alarms
//! that wait for their time. Drivers on the machine's own clock share them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::task::{Poll, Waker};

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::contract::Answer;
use crate::deadlines::Deadlines;
use crate::ids::OpId;
use crate::outcome::Failure;
use crate::time::Nanos;
use crate::timers::MachineTimer;

/// Operation numbers of sleeps; those of the node are below.
const SLEEPS: u64 = 1 << 63;

#[derive(Debug)]
enum PendingAnswer {
    Nobody,
    Somebody(Waker),
    Answered(Result<Answer, Failure>),
    Forgotten,
}

/// Operations of clients on a loop.
#[derive(Debug, Default)]
pub struct PendingOperations {
    waiting: HashMap<u64, PendingAnswer, FixedState>,
}

impl PendingOperations {
    /// The answer has come.
    pub fn answer(&mut self, op: OpId, result: Result<Answer, Failure>) {
        match self.waiting.insert(op.0, PendingAnswer::Answered(result)) {
            Some(PendingAnswer::Somebody(waker)) => waker.wake(),
            Some(PendingAnswer::Forgotten) => {
                self.waiting.remove(&op.0);
            }
            Some(PendingAnswer::Nobody | PendingAnswer::Answered(_)) | None => {}
        }
    }

    /// The answer, if it has come; else `waker` is woken when it does.
    pub fn poll(&mut self, op: OpId, waker: &Waker) -> Poll<Result<Answer, Failure>> {
        let waiting = self.waiting.entry(op.0).or_insert(PendingAnswer::Nobody);
        match waiting {
            PendingAnswer::Answered(_) => match self.waiting.remove(&op.0) {
                Some(PendingAnswer::Answered(result)) => Poll::Ready(result),
                _ => unreachable!("just seen"),
            },
            PendingAnswer::Somebody(known) if known.will_wake(waker) => Poll::Pending,
            PendingAnswer::Nobody | PendingAnswer::Somebody(_) | PendingAnswer::Forgotten => {
                *waiting = PendingAnswer::Somebody(waker.clone());
                Poll::Pending
            }
        }
    }

    /// Whether somebody waits for an answer of the node, rather than for a time.
    pub fn expects_answers(&self) -> bool {
        self.waiting.keys().any(|op| op & SLEEPS == 0)
    }

    /// Nobody waits for it any more.
    pub fn forget(&mut self, op: OpId) {
        if let Some(PendingAnswer::Answered(_)) =
            self.waiting.insert(op.0, PendingAnswer::Forgotten)
        {
            self.waiting.remove(&op.0);
        }
    }
}

/// A driver does what is left over for so long before it looks for what has come.
pub const SLICE: Nanos = Nanos::from_micros(20);

/// What an alarm is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Alarm {
    /// A timer of the loop's machine.
    Timer(MachineTimer),
    /// A client's sleep.
    Sleep(OpId),
}

/// Alarms in the order of their times.
#[derive(Debug, Default)]
pub struct Alarms {
    set: BinaryHeap<Reverse<(Nanos, u64, Alarm)>>,
    count: u64,
    /// What is mostly taken back before its time.
    pub deadlines: Deadlines,
}

impl Alarms {
    /// Sets an alarm.
    pub fn set(&mut self, at: Nanos, alarm: Alarm) {
        self.count += 1;
        self.set.push(Reverse((at, self.count, alarm)));
    }

    /// Sets an alarm that answers an operation.
    pub fn sleep(&mut self, until: Nanos) -> OpId {
        let op = OpId(SLEEPS | (self.count + 1));
        self.set(until, Alarm::Sleep(op));
        op
    }

    /// When the next one rings.
    pub fn next(&self) -> Option<Nanos> {
        let set = self.set.peek().map(|Reverse((at, ..))| *at);
        match self.deadlines.next() {
            Some(next) => Some(set.map_or(next, |at| at.min(next))),
            None => set,
        }
    }

    /// Takes the next one that is due.
    pub fn due(&mut self, now: Nanos) -> Option<Alarm> {
        let Reverse((at, ..)) = self.set.peek()?;
        if *at > now {
            return None;
        }
        self.set.pop().map(|Reverse((_, _, alarm))| alarm)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roles::Role;

    fn timer(number: u32) -> Alarm {
        Alarm::Timer(MachineTimer::Role(Role::Coordinator, number))
    }

    #[test]
    fn alarms_ring_in_the_order_of_their_times_and_then_of_being_set() {
        let mut alarms = Alarms::default();
        for (at, timer) in [(30, 1), (10, 2), (30, 0), (20, 3)] {
            alarms.set(Nanos(at), self::timer(timer));
        }
        let op = alarms.sleep(Nanos(40));
        let mut rung = Vec::new();
        while let Some(alarm) = alarms.due(Nanos(30)) {
            rung.push(alarm);
        }
        let timers = [2, 3, 1, 0].map(timer);
        assert_eq!(rung, timers);
        assert_eq!(
            (alarms.next(), alarms.due(Nanos(40))),
            (Some(Nanos(40)), Some(Alarm::Sleep(op)))
        );
    }

    #[test]
    fn an_answer_waits_for_whoever_asks_and_for_nobody_who_forgot() {
        let (mut operations, waker) = (PendingOperations::default(), Waker::noop());
        operations.answer(OpId(1), Ok(Answer::Awake));
        assert_eq!(operations.poll(OpId(1), waker), Poll::Ready(Ok(Answer::Awake)));
        assert_eq!(operations.poll(OpId(2), waker), Poll::Pending);
        operations.answer(OpId(2), Ok(Answer::Awake));
        assert_eq!(operations.poll(OpId(2), waker), Poll::Ready(Ok(Answer::Awake)));
        operations.forget(OpId(3));
        operations.answer(OpId(3), Ok(Answer::Awake));
        assert!(operations.waiting.is_empty());
        let (asleep, asked) = (Alarms::default().sleep(Nanos(1)), OpId(4));
        assert_eq!(operations.poll(asleep, waker), Poll::Pending);
        assert!(!operations.expects_answers());
        assert_eq!(operations.poll(asked, waker), Poll::Pending);
        assert!(operations.expects_answers());
    }
}
