//! The timers of a member: its own, and those of the participant inside.

use muesli_core::{Protocol, StateMachine, Timer};

/// A timer of a member whose participant has timers `T`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberTimer<T> {
    /// The consensus ticks.
    Tick,
    /// What was put aside for its length is taken in.
    Long,
    /// One of the participant inside.
    Inside(T),
}

impl<T: Timer> Timer for MemberTimer<T> {
    fn number(self) -> u32 {
        match self {
            MemberTimer::Tick => 0,
            MemberTimer::Long => u32::MAX,
            MemberTimer::Inside(timer) => 1 + timer.number(),
        }
    }

    fn numbered(number: u32) -> Option<MemberTimer<T>> {
        match number {
            0 => Some(MemberTimer::Tick),
            u32::MAX => Some(MemberTimer::Long),
            inside => T::numbered(inside - 1).map(MemberTimer::Inside),
        }
    }
}

/// The timers of the participant of a protocol inside.
pub(crate) type InnerTimer<P> = <<P as Protocol>::Participant as StateMachine<P>>::Timer;

/// The timer of this number, which a role of the protocol inside has set.
pub(crate) fn inner<T: Timer>(number: u32) -> T {
    T::numbered(number).expect("a timer that the role inside has set")
}

#[cfg(test)]
mod tests {
    use super::*;

    muesli_core::timers! {
        enum Own {
            First = 0,
            Other = 7,
        }
    }

    #[test]
    fn timers_inside_come_after_the_members_own() {
        let inside = [Own::First, Own::Other].map(MemberTimer::Inside);
        for timer in [[MemberTimer::Tick, MemberTimer::Long], inside].concat() {
            assert_eq!(MemberTimer::numbered(timer.number()), Some(timer));
        }
        assert_eq!(MemberTimer::<Own>::numbered(3), None);
    }
}
