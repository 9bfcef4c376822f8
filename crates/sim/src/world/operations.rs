//! Operations of clients that could not be answered at once.

use std::collections::BTreeMap;
use std::task::{Poll, Waker};

use muesli_core::outcome::Failure;
use muesli_core::{OpId, OpResult};

/// The operations of one node that somebody waits for.
#[derive(Debug, Default)]
pub(super) struct Operations {
    open: BTreeMap<OpId, State>,
    sleeps: u64,
}

#[derive(Debug)]
enum State {
    Waits(Option<Waker>),
    Answered(OpResult),
}

/// Sleeps are the driver's own operations; this bit keeps their names apart from the node's.
const SLEEP: u64 = 1 << 63;

impl Operations {
    /// The node has answered that an operation waits.
    pub(super) fn open(&mut self, op: OpId) {
        self.open.insert(op, State::Waits(None));
    }

    /// A new operation for a sleep.
    pub(super) fn open_sleep(&mut self) -> OpId {
        self.sleeps += 1;
        let op = OpId(SLEEP | self.sleeps);
        self.open(op);
        op
    }

    /// The answer has come. Nothing happens if nobody waits any more.
    pub(super) fn answer(&mut self, op: OpId, result: OpResult) {
        if let Some(state) = self.open.get_mut(&op)
            && let State::Waits(Some(waker)) = std::mem::replace(state, State::Answered(result))
        {
            waker.wake();
        }
    }

    /// Asks for the answer. An operation that nobody opened, or whose answer was taken, is closed.
    pub(super) fn poll(&mut self, op: OpId, waker: &Waker) -> Poll<OpResult> {
        match self.open.get_mut(&op) {
            Some(State::Waits(waiting)) => {
                if !waiting.as_ref().is_some_and(|known| known.will_wake(waker)) {
                    *waiting = Some(waker.clone());
                }
                Poll::Pending
            }
            Some(State::Answered(_)) => match self.open.remove(&op) {
                Some(State::Answered(result)) => Poll::Ready(result),
                _ => unreachable!("it was answered a line ago"),
            },
            None => Poll::Ready(OpResult::Failed(Failure::Closed)),
        }
    }

    /// Nobody waits any more.
    pub(super) fn forget(&mut self, op: OpId) {
        self.open.remove(&op);
    }

    /// How many operations somebody waits for.
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn poll(operations: &mut Operations, op: OpId) -> Poll<OpResult> {
        operations.poll(op, Waker::noop())
    }

    #[test]
    fn an_answer_is_given_once() {
        let mut operations = Operations::default();
        let op = OpId(1);
        operations.open(op);
        assert_eq!(poll(&mut operations, op), Poll::Pending);
        operations.answer(op, OpResult::Value(None));
        assert_eq!(poll(&mut operations, op), Poll::Ready(OpResult::Value(None)));
        let closed = OpResult::Failed(Failure::Closed);
        assert_eq!(poll(&mut operations, op), Poll::Ready(closed));
    }

    #[test]
    fn nothing_is_kept_for_those_who_do_not_wait_any_more() {
        let mut operations = Operations::default();
        let (forgotten, asleep) = (OpId(1), operations.open_sleep());
        assert_ne!(asleep, operations.open_sleep());
        operations.open(forgotten);
        operations.forget(forgotten);
        operations.answer(forgotten, OpResult::Awake);
        operations.answer(asleep, OpResult::Awake);
        assert_eq!(poll(&mut operations, asleep), Poll::Ready(OpResult::Awake));
        assert_eq!(operations.len(), 1);
    }
}
