//! What a member hears of the others, and what operators are told of it by that: how far it is
//! behind them.
//!
//! What is decided, a majority has accepted. So a member that has heard lately from enough others
//! for a majority with itself how far they have come knows how far its group has come, but for the
//! last moment; and one that has not cannot tell, whatever it heard before: its group may go on
//! without it. A member without its participant's state says nothing of itself, so it does not
//! count as one that was heard: who hears just such ones says that it cannot tell, though it may be
//! up to date.
//!
//! A leader decides itself, and needs only to hear that a majority is there, whatever they say.
//! Without it nothing is decided here, and others may have elected another one.

use muesli_core::{Lag, Protocol};

use super::{ANNOUNCE_TICKS, Replica, SILENT_TICKS};
use crate::agreement::configuration::Configuration;
use crate::agreement::summary::Formed;
use crate::inside::{Context, send_now};
use crate::layout;
use crate::protocol::Message;

/// How far another member has come, as it said last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MemberProgress {
    /// So many entries are decided and replayed there.
    pub(super) decided: u64,
    /// The bytes of these.
    bytes: u64,
    /// At which tick it said so.
    tick: u64,
    /// Since which epoch it lives where it said so.
    since: u64,
}

impl<P: Protocol> Replica<P> {
    /// Says to the others now and then how far it has come.
    pub(super) fn send_reached(&mut self, cx: &mut Context<'_, P>) {
        if !self.ticks.is_multiple_of(ANNOUNCE_TICKS) || !self.has_state() {
            return;
        }
        let known = self.ledger.look(|it| {
            let upto = it.decided.min(self.applied);
            let remembers = it.formed == Formed::Begun;
            it.log.bytes_upto(upto).filter(|_| remembers).map(|bytes| (upto, bytes))
        });
        let Some((decided, bytes)) = known else { return };
        for other in self.others(cx) {
            if let Some(to) = self.address_of(other, cx) {
                send_now(to, Message::Reached { decided, bytes }, cx);
            }
        }
    }

    /// Another member has come so far.
    pub(super) fn on_reached(
        &mut self,
        member: u16,
        (decided, bytes): (u64, u64),
        cx: &Context<'_, P>,
    ) {
        let since = self.since_of(member, cx);
        self.reached.insert(member, MemberProgress { decided, bytes, tick: self.ticks, since });
        // A state of before this member's log is of no use to it.
        if decided >= self.ledger.look(|it| it.log.base()) {
            self.served = self.ticks;
        }
    }

    /// Forgets what members said that are in the group no more, or live elsewhere now.
    pub(super) fn forget_who_left(&mut self, cx: &Context<'_, P>) {
        let others = self.others(cx);
        let mut reached = std::mem::take(&mut self.reached);
        reached.retain(|it, reached_of| {
            others.contains(it) && reached_of.since == self.since_of(*it, cx)
        });
        self.reached = reached;
        self.last_seen.retain(|it, _| others.contains(it));
    }

    fn since_of(&self, member: u16, cx: &Context<'_, P>) -> u64 {
        cx.catalog.since[usize::from(layout::member(self.group, member).0)]
    }

    /// Whether it knows how far it is behind the others.
    pub(super) fn can_tell_lag(&self) -> bool {
        let remembers = self.ledger.look(|it| it.formed == Formed::Begun);
        let knows = remembers || self.fetching.is_some();
        let (configuration, ticks) = (self.configuration(), self.ticks);
        let is_fresh = |tick: &u64| tick + SILENT_TICKS >= ticks;
        let reaches = reaches_majority(&configuration, self.place, |other| match self.leading {
            Some(_) => self.last_seen.get(&other).is_some_and(is_fresh),
            None => self.reached.get(&other).is_some_and(|it| is_fresh(&it.tick)),
        });
        !self.moved && knows && reaches
    }

    /// By how much this member is behind the one that has come furthest, as far as it knows.
    pub(super) fn behind(&self) -> Lag {
        let lacks_state = self.lacks_state();
        let (decided, bytes) = self.ledger.look(|it| {
            let upto = if lacks_state { it.decided } else { it.decided.min(self.applied) };
            (upto, it.log.bytes_upto(upto).unwrap_or(it.log.bytes()))
        });
        let reached = self.reached.values().map(|it| (it.decided, it.bytes));
        let furthest = reached.max().unwrap_or_default();
        let percent = match (&self.loading, &self.fetching) {
            (Some(loading), _) if loading.has_begun() => Some(loading.percent),
            (_, Some(fetching)) => Some(fetching.percent(decided)),
            (Some(_), None) => Some(0),
            (None, None) => lacks_state.then_some(0),
        };
        let entries = furthest.0.saturating_sub(decided);
        Lag { entries, bytes: furthest.1.saturating_sub(bytes), percent }
    }
}

/// Whether those who are heard are a majority of those who vote, together with this member if it
/// does.
fn reaches_majority(
    configuration: &Configuration,
    place: u16,
    is_reached: impl Fn(u16) -> bool,
) -> bool {
    let others_reached = configuration.others(place).filter(|other| is_reached(*other)).count();
    others_reached + usize::from(configuration.has(place)) >= configuration.majority()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_majority_is_of_those_who_vote() {
        let five = Configuration::first(vec![0, 1, 2, 3, 4]);
        let reaches = |place: u16, others_reached: &[u16]| {
            reaches_majority(&five, place, |other| others_reached.contains(&other))
        };
        assert!(!reaches(0, &[]) && !reaches(0, &[1]) && reaches(0, &[1, 4]));
        assert!(!reaches(0, &[1, 7, 8]), "others than those who vote do not count");
        assert!(!reaches(5, &[0, 1]) && reaches(5, &[0, 1, 2]), "nor does one that does not vote");
    }
}
