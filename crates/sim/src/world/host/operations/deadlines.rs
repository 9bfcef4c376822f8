//! Deadlines of what clients run on a host: for all of them one event, that of the earliest.

use muesli_core::deadlines::{DeadlineId, Deadlines, Due};
use muesli_core::{Nanos, OpId};

use super::HostOperations;

/// The deadlines of a host.
#[derive(Debug, Default)]
pub(in crate::world) struct HostDeadlines {
    deadlines: Deadlines,
    /// The sleep at whose end they are looked at, and when that is.
    alarm: Option<(OpId, Nanos)>,
}

impl HostDeadlines {
    pub(in crate::world) fn set(&mut self, at: Nanos, due: Due) -> DeadlineId {
        self.deadlines.set(at, due)
    }

    pub(in crate::world) fn take_back(&mut self, deadline: DeadlineId) {
        self.deadlines.take_back(deadline);
    }

    /// Has them looked at when the earliest may have come: after which sleep, if after another one
    /// than before.
    pub(in crate::world) fn arm(
        &mut self,
        now: Nanos,
        operations: &mut HostOperations,
    ) -> Option<(OpId, Nanos)> {
        let next = self.deadlines.next()?;
        if self.alarm.is_some_and(|(_, at)| at <= next) {
            return None;
        }
        let op = operations.open_sleep();
        if let Some((later, _)) = self.alarm.replace((op, next)) {
            operations.forget(later);
        }
        Some((op, Nanos(next.0.saturating_sub(now.0))))
    }

    /// Whether that sleep is over; then it is no more.
    pub(in crate::world) fn is_over(&mut self, op: OpId, operations: &mut HostOperations) -> bool {
        let is_alarm = self.alarm.is_some_and(|(alarm, _)| alarm == op);
        if is_alarm {
            self.alarm = None;
            operations.forget(op);
        }
        is_alarm
    }

    /// Takes those that have come.
    pub(in crate::world) fn due(&mut self, now: Nanos) -> Vec<Due> {
        self.deadlines.due(now)
    }

    /// The node has crashed, and its sleeps are none any more. What its clients have set is theirs
    /// to take back.
    pub(in crate::world) fn crash(&mut self) {
        self.alarm = None;
    }
}
