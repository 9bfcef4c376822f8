//! The epoch before: members go on with its broadcast until all have left it.
//!
//! Whoever has left an epoch still answers there, with the memory that it has of it, and says to
//! the others what was decided: so those come to its end by their own quorums, and need no
//! snapshot. What is decided beyond the end is applied nowhere.

use std::collections::BTreeSet;

use super::list::{GroupEpoch, MemberList, MemberName};
use super::message::{EpochEffectsOf, EpochMessage, EpochRecord};
use super::{EpochMember, MemberState};
use crate::broadcast::Broadcast;

/// An epoch that is over here.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct PreviousEpoch<B> {
    pub list: MemberList,
    pub ordered: B,
    /// Those of its members of which was heard in a later one, since this one began to run.
    left: BTreeSet<MemberName>,
}

impl<B> PreviousEpoch<B> {
    pub fn new(list: MemberList, ordered: B) -> PreviousEpoch<B> {
        PreviousEpoch { list, ordered, left: BTreeSet::new() }
    }
}

impl<B: Broadcast> EpochMember<B> {
    /// A member says something in an epoch.
    pub(super) fn observe(&mut self, from: MemberName, epoch: GroupEpoch) {
        let Some(previous) = &mut self.previous else { return };
        if epoch > previous.list.epoch && previous.list.place_of(from).is_some() {
            previous.left.insert(from);
        }
    }

    /// Forgets the last epoch once all members of this one have left it that were in it.
    pub(super) fn forget_previous(&mut self, out: &mut EpochEffectsOf<B>) {
        let Some(previous) = &self.previous else { return };
        let is_there =
            |name: &MemberName| *name != self.me && previous.list.place_of(*name).is_some();
        let have_left = self.list.names().filter(is_there).all(|it| previous.left.contains(&it));
        if self.state == MemberState::Member && have_left {
            self.store(EpochRecord::PreviousForgotten, out);
        }
    }

    pub(super) fn on_ordered(
        &mut self,
        from: MemberName,
        (epoch, message): (GroupEpoch, B::Message),
        out: &mut EpochEffectsOf<B>,
    ) {
        self.observe(from, epoch);
        if epoch == self.list.epoch {
            if let Some(place) = self.list.place_of(from) {
                self.order(out, |it, inside| it.receive(place, message, inside));
            }
            return;
        }
        let previous = self.previous.as_ref().filter(|previous| previous.list.epoch == epoch);
        match previous.map(|previous| previous.list.place_of(from)) {
            Some(Some(place)) => {
                self.order_previous(out, |it, inside| it.receive(place, message, inside));
            }
            // It cannot come to the end of that epoch by what is remembered here.
            None if epoch < self.list.epoch => {
                out.send(from, EpochMessage::Running(self.list.clone()));
            }
            None => self.note_ahead(from, epoch, out.now),
            Some(None) => {}
        }
    }
}
