//! Operations of clients that could not be answered at once.

pub(super) mod deadlines;

use std::collections::BTreeMap;
use std::task::{Poll, Waker};

use muesli_core::outcome::Failure;
use muesli_core::{Answer, OpId};

use super::journal::PendingReport;

/// The operations of one node that somebody waits for.
#[derive(Debug, Default)]
pub(in crate::world) struct HostOperations {
    open: BTreeMap<OpId, OperationState>,
    sleeps: u64,
}

#[derive(Debug)]
enum OperationState {
    Waits(Option<Waker>),
    /// With the commit that this tells of, if it does.
    Answered(Result<Answer, Failure>, Option<PendingReport>),
}

impl OperationState {
    fn unheard(self) -> Option<PendingReport> {
        match self {
            OperationState::Answered(_, pending_report) => pending_report,
            OperationState::Waits(_) => None,
        }
    }
}

/// Sleeps are the driver's own operations; this bit keeps their names apart from the node's.
const SLEEP: u64 = 1 << 63;

impl HostOperations {
    /// The node has answered that an operation waits.
    pub(in crate::world) fn open(&mut self, op: OpId) {
        self.open.insert(op, OperationState::Waits(None));
    }

    /// A name for a sleep.
    fn name_sleep(&mut self) -> OpId {
        self.sleeps += 1;
        OpId(SLEEP | self.sleeps)
    }

    /// A new operation for a sleep.
    pub(in crate::world) fn open_sleep(&mut self) -> OpId {
        let op = self.name_sleep();
        self.open(op);
        op
    }

    /// The answer has come, to the commit of `pending_report` if to one. That is returned if nobody
    /// waits any more: nothing else happens then.
    pub(in crate::world) fn answer(
        &mut self,
        op: OpId,
        result: Result<Answer, Failure>,
        pending_report: Option<PendingReport>,
    ) -> Option<PendingReport> {
        let Some(state) = self.open.get_mut(&op) else { return pending_report };
        let answered = OperationState::Answered(result, pending_report);
        if let OperationState::Waits(Some(waker)) = std::mem::replace(state, answered) {
            waker.wake();
        }
        None
    }

    /// Asks for the answer. An operation that nobody opened, or whose answer was taken, is closed.
    pub(in crate::world) fn poll(
        &mut self,
        op: OpId,
        waker: &Waker,
    ) -> Poll<Result<Answer, Failure>> {
        match self.open.get_mut(&op) {
            Some(OperationState::Waits(waiting)) => {
                if !waiting.as_ref().is_some_and(|known| known.will_wake(waker)) {
                    *waiting = Some(waker.clone());
                }
                Poll::Pending
            }
            Some(OperationState::Answered(..)) => match self.open.remove(&op) {
                Some(OperationState::Answered(result, _)) => Poll::Ready(result),
                _ => unreachable!("it was answered a line ago"),
            },
            None => Poll::Ready(Err(Failure::Closed)),
        }
    }

    /// Nobody waits any more; the commit whose answer was there and is not heard.
    pub(in crate::world) fn forget(&mut self, op: OpId) -> Option<PendingReport> {
        self.open.remove(&op)?.unheard()
    }

    /// Nobody waits for anything any more; the commits whose answers were there.
    pub(in crate::world) fn forget_all(&mut self) -> impl Iterator<Item = PendingReport> + use<> {
        let open = std::mem::take(self).open;
        open.into_values().filter_map(OperationState::unheard)
    }

    /// How many operations somebody waits for.
    pub(in crate::world) fn len(&self) -> usize {
        self.open.len()
    }
}

#[cfg(test)]
mod tests {
    use muesli_core::{Committed, Timestamp};

    use super::*;

    fn poll(operations: &mut HostOperations, op: OpId) -> Poll<Result<Answer, Failure>> {
        operations.poll(op, Waker::noop())
    }

    #[test]
    fn an_answer_is_given_once() {
        let mut operations = HostOperations::default();
        let op = OpId(1);
        operations.open(op);
        assert_eq!(poll(&mut operations, op), Poll::Pending);
        assert_eq!(operations.answer(op, Ok(Answer::Value(None)), None), None);
        assert_eq!(poll(&mut operations, op), Poll::Ready(Ok(Answer::Value(None))));
        let closed = Err(Failure::Closed);
        assert_eq!(poll(&mut operations, op), Poll::Ready(closed));
    }

    #[test]
    fn nothing_is_kept_for_those_who_do_not_wait_any_more() {
        let mut operations = HostOperations::default();
        let (forgotten, asleep) = (OpId(1), operations.open_sleep());
        assert_ne!(asleep, operations.open_sleep());
        operations.open(forgotten);
        operations.forget(forgotten);
        operations.answer(forgotten, Ok(Answer::Awake), None);
        operations.answer(asleep, Ok(Answer::Awake), None);
        assert_eq!(poll(&mut operations, asleep), Poll::Ready(Ok(Answer::Awake)));
        assert_eq!(operations.len(), 1);
    }

    #[test]
    fn who_was_gone_first_has_not_heard_of_its_commit() {
        let mut operations = HostOperations::default();
        let [gone, answered, received, there] = [1, 2, 3, 4].map(OpId);
        let answer = |operations: &mut HostOperations, op: OpId| {
            let committed_answer = Ok(Answer::Committed(Committed { at: Timestamp::ZERO }));
            operations.answer(op, committed_answer, Some(PendingReport::at(op.0 as usize)))
        };
        [gone, answered, received, there].into_iter().for_each(|op| operations.open(op));
        assert_eq!(operations.forget(gone), None, "nothing could be heard yet");
        assert_eq!(answer(&mut operations, gone), Some(PendingReport::at(1)));
        assert_eq!(answer(&mut operations, answered), None);
        assert_eq!(operations.forget(answered), Some(PendingReport::at(2)));
        assert_eq!(answer(&mut operations, received), None);
        assert!(poll(&mut operations, received).is_ready());
        assert_eq!(answer(&mut operations, there), None);
        assert_eq!(operations.forget_all().collect::<Vec<_>>(), [PendingReport::at(4)]);
        assert_eq!(operations.len(), 0);
    }
}
