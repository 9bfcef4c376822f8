//! What is asked of a message from another process before it touches any state.
//!
//! Members of a group, and members of the cluster, speak of groups; a client may ask where members
//! are, and say what the protocol inside lets a client say, for itself. What a member passes on is
//! judged as its first sender's word, where that is a client.

use muesli_core::judgement::ensure;
use muesli_core::{
    Address, Catalog, NodeId, Protocol, Rejection, RepositoryId, Role, Sender, View,
};

use crate::layout;
use crate::protocol::Message;

/// Whether this sender may say this, and whether its numbers can be.
pub(crate) fn judge<P: Protocol>(
    message: &Message<P::Message>,
    from: Address,
    sender: Sender,
    view: View<'_>,
) -> Result<(), Rejection> {
    let to_member = view.repository().is_some();
    match message {
        Message::Inside { from: first, .. } => {
            ensure(layout::is_inner(*first, view.catalog), Rejection::Catalog)?;
            ensure(sender.is_member() || *first == from, Rejection::Sender)
        }
        Message::AskPlacement | Message::AskBegun(_) => ensure(!to_member, Rejection::Role),
        Message::Placement { .. } => {
            ensure(!to_member, Rejection::Role)?;
            ensure(sender.is_member(), Rejection::Sender)
        }
        Message::Leads { .. } | Message::Begun(_) => ensure(sender.is_member(), Rejection::Sender),
        Message::Consensus(..)
        | Message::Confirm { .. }
        | Message::Confirmed { .. }
        | Message::At(_)
        | Message::Ask
        | Message::Knows(_)
        | Message::Behind(_)
        | Message::Reached { .. }
        | Message::Fetch(_)
        | Message::Entries(_)
        | Message::FetchState(_)
        | Message::State(_)
        | Message::NoState
        | Message::Resync(_) => judge_fellow(from, sender, view),
        // It is behind a member's own log, and never leaves its node.
        Message::Stable(_) => Err(Rejection::Sender),
    }
}

/// Another member of the same group. It may have moved, which is known there before it is here.
fn judge_fellow(from: Address, sender: Sender, view: View<'_>) -> Result<(), Rejection> {
    ensure(sender.is_member(), Rejection::Sender)?;
    let (Role::Repository(other), Some(here)) = (from.role, view.repository()) else {
        return Err(Rejection::Role);
    };
    let is_fellow = layout::place(other).0 == layout::place(here).0 && other != here;
    ensure(is_fellow, Rejection::Sender)
}

/// A message of the protocol inside, by its catalog; and the sender that its words count as.
pub(crate) fn judge_inside<P: Protocol>(
    first: Address,
    message: &P::Message,
    sender: Sender,
    view: View<'_>,
) -> Result<Sender, Rejection> {
    ensure(P::is_about(message, view.catalog), Rejection::Catalog)?;
    let sender = first_sender(first, sender, view.catalog);
    P::judge(message, first, sender, view).map(|()| sender)
}

/// Who said it first, where a member may have passed it on.
fn first_sender(first: Address, sender: Sender, inner: &Catalog) -> Sender {
    match (sender, first.role) {
        (Sender::Member, Role::Coordinator) if inner.is_client(first.node) => Sender::CLIENT,
        (sender, _) => sender,
    }
}

/// A role as the protocol inside names it.
pub(crate) fn inner_address(me: Address, inner: &Catalog) -> Address {
    match me.role {
        Role::Coordinator => me,
        Role::Repository(member) => {
            let group = RepositoryId(layout::place(member).0);
            let known = usize::from(group.0) < inner.repositories();
            let home = if known { inner.home(group) } else { NodeId::NOWHERE };
            Address::repository(home, group)
        }
    }
}
