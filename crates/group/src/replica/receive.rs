//! What a member does about each message.

use muesli_core::{Address, Protocol, Wire};

use super::Replica;
use crate::agreement::consensus::Consensus;
use crate::agreement::entry::Entry;
use crate::agreement::ledger::ReplicaState;
use crate::inside::{Context, send_now};
use crate::protocol::Message;

/// Whether an entry is a record of the protocol inside, or begins a configuration.
pub(super) fn is_entry<P: Protocol>(entry: &Entry) -> bool {
    entry.begins().is_some() || P::Record::decode_all(&entry.0).is_ok()
}

impl<P: Protocol> Replica<P> {
    /// Takes a message.
    pub(super) fn on_message(
        &mut self,
        from: Address,
        message: Message<P::Message>,
        cx: &mut Context<'_, P>,
    ) {
        let member = self.member_at(from, cx);
        if let Some(member) = member {
            self.last_seen.insert(member, self.ticks);
        }
        match (message, member) {
            (Message::Inside { from, hops, message }, _) => {
                self.on_inside(from, hops, message, cx);
            }
            (Message::Leads { group, member, ballot, .. }, _) => {
                self.inside.observe_leader(group, member, ballot);
                if group == self.group {
                    self.seen_at = Some(self.ticks);
                    self.on_at(member, ballot.configuration, cx);
                }
            }
            (Message::Stable(note), _) => {
                if from == cx.me {
                    self.on_note(note);
                }
            }
            (Message::Consensus(configuration, bytes), Some(member)) => {
                self.busy.remove(&member);
                if configuration != self.configuration_number() {
                    self.on_at(member, configuration, cx);
                } else if let Some(consensus) = &mut self.consensus {
                    consensus.receive(member, bytes.as_slice(), is_entry::<P>);
                }
            }
            (Message::At(configuration), Some(member)) => {
                self.on_learned(member, configuration, cx);
            }
            (Message::Confirm { ballot, round }, Some(_)) => {
                if self.consensus.as_ref().is_some_and(|it| it.ballot() == ballot) {
                    send_now(from, Message::Confirmed { ballot, round }, cx);
                }
            }
            (Message::Confirmed { ballot, round }, Some(member)) => {
                let votes = |it: &Consensus| it.configuration().has(member);
                let votes = self.consensus.as_ref().is_some_and(votes);
                if let Some(leading) = self.leading.as_mut().filter(|_| votes) {
                    leading.confirm(member, ballot, round);
                }
            }
            (Message::Begun(begun), _) => self.on_begun(from.node, begun, cx),
            (Message::Ask, Some(_)) => {
                let summary = self.ledger.look(ReplicaState::summary);
                cx.send(from, Message::Knows(Box::new(summary)));
            }
            (Message::Knows(summary), Some(member)) => self.on_summary(member, *summary, cx),
            (Message::Resync(ballot), Some(_)) => {
                if let Some(it) = self.consensus.as_mut().filter(|it| it.ballot() == ballot) {
                    it.catch_up();
                }
            }
            (message, Some(member)) => self.on_transfer(member, message, cx),
            // From no member: whoever sent it here is mistaken.
            (_, None) => {}
        }
    }

    /// Takes a message about what a member lacks.
    fn on_transfer(&mut self, member: u16, message: Message<P::Message>, cx: &mut Context<'_, P>) {
        match message {
            Message::Behind(decided) => self.on_behind(member, decided, cx),
            Message::Reached { decided, bytes } => {
                self.on_reached(member, (decided, bytes), cx);
            }
            Message::Fetch(fetch) => self.on_fetch(member, &fetch, cx),
            Message::Entries(batch) => self.on_batch(member, *batch, cx),
            Message::FetchState(fetch) => self.on_fetch_state(member, &fetch, cx),
            Message::State(piece) => self.on_state(member, *piece, cx),
            Message::NoState => self.on_no_state(member),
            Message::Long(bytes) => self.on_long(member, bytes),
            Message::Inside { .. }
            | Message::Leads { .. }
            | Message::Stable(_)
            | Message::Consensus(..)
            | Message::At(_)
            | Message::Confirm { .. }
            | Message::Confirmed { .. }
            | Message::Begun(_)
            | Message::Ask
            | Message::Knows(_)
            | Message::Resync(_) => unreachable!("taken before"),
            // For coordinators: whoever sent it here is mistaken.
            Message::AskPlacement | Message::AskBegun(_) | Message::Placement { .. } => {}
        }
    }
}
