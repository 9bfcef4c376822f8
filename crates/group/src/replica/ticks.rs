//! What a member does with time: it says again what may have been lost, and asks for what it lacks.

use muesli_core::{Address, NodeId, Protocol, RepositoryId};

use super::{ANNOUNCE_TICKS, ASK_TICKS, Replica};
use crate::agreement::summary::Formed;
use crate::inside::{Context, send_now};
use crate::protocol::Message;
use crate::timers::{InnerTimer, MemberTimer};

/// After so many ticks without a decision, followers are told to ask for what is missing.
const STALLED_TICKS: u32 = 6;

impl<P: Protocol> Replica<P> {
    /// Says to everyone that this member leads.
    pub(super) fn announce(&mut self, cx: &mut Context<'_, P>) {
        let Some(leading) = &self.leading else { return };
        let (group, member, ballot) = (self.group, self.place, leading.ballot);
        self.inside.observe_leader(group, member, ballot);
        let message = Message::Leads { group, member, ballot, epoch: cx.catalog.placement };
        for &node in cx.catalog.coordinators.iter() {
            send_now(Address::coordinator(node), message.clone(), cx);
        }
        for repository in (0..cx.catalog.repositories() as u16).map(RepositoryId) {
            let home = cx.catalog.home(repository);
            let to = Address::repository(home, repository);
            if to != cx.me && home != NodeId::NOWHERE {
                send_now(to, message.clone(), cx);
            }
        }
    }

    pub(super) fn on_tick(&mut self, cx: &mut Context<'_, P>) {
        cx.set_timer(MemberTimer::<InnerTimer<P>>::Tick, self.group_settings.tick);
        self.ticks += 1;
        if !self.is_home(cx) {
            return;
        }
        self.append_lazy(); // Before the tick, which may have another member lead.
        self.probe_disk(cx);
        self.restrain();
        self.go_on_fetching(cx);
        self.go_on_loading(cx);
        self.bound_entries(cx);
        self.go_on_serving(cx);
        self.send_reached(cx);
        self.trim(cx);
        let ticks = self.is_consensus_tick();
        let Some(consensus) = &mut self.consensus else {
            let remembers = self.ledger.look(|replica_state| replica_state.formed == Formed::Begun);
            match self.ticks.is_multiple_of(ASK_TICKS) {
                true if remembers => self.send_place(cx),
                true => self.tell_others(&Message::Ask, cx),
                false => {}
            }
            return;
        };
        if ticks {
            consensus.tick();
        }
        self.tick_leader(cx);
        self.regroup(cx);
    }

    /// A leader asks and says again what may have been lost.
    fn tick_leader(&mut self, cx: &mut Context<'_, P>) {
        let (is_hung, patience) = (self.is_hung(), self.patience() as u32);
        let (Some(consensus), Some(leading)) = (&self.consensus, &mut self.leading) else { return };
        leading.tick(consensus.decided(), consensus.accepted());
        let (ballot, round) = (leading.ballot, leading.round_under_way());
        let stalled = leading.stalled_ticks > 0
            && leading.stalled_ticks.is_multiple_of(STALLED_TICKS * patience);
        if let Some(round) = round {
            self.tell_others(&Message::Confirm { ballot, round }, cx);
        }
        if stalled {
            self.tell_others(&Message::Resync(ballot), cx);
        }
        if self.ticks.is_multiple_of(ANNOUNCE_TICKS) && !is_hung {
            self.announce(cx);
        }
    }
}
