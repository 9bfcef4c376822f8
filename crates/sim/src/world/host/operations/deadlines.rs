//! Deadlines of what clients run on a host: for all of them one event, that of the earliest.

use muesli_core::deadlines::{DeadlineId, Deadlines, Due};
use muesli_core::{Nanos, OpId};

use super::HostOperations;

/// By clocks that run wrong a deadline may be a little ahead when its sleep is over.
const SHORTEST: Nanos = Nanos::from_micros(1);

/// The deadlines of a host.
#[derive(Debug, Default)]
pub(in crate::world) struct HostDeadlines {
    deadlines: Deadlines,
    /// The sleep at whose end they are looked at, which nobody waits for, and when that is.
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
        let op = operations.name_sleep();
        self.alarm = Some((op, next));
        Some((op, Nanos(next.0.saturating_sub(now.0)).max(SHORTEST)))
    }

    /// Whether that sleep is over; then it is no more.
    pub(in crate::world) fn is_over(&mut self, op: OpId) -> bool {
        self.alarm.take_if(|(alarm, _)| *alarm == op).is_some()
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
