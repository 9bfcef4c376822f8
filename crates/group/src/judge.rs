//! What is asked of a message from another process before it touches any state.
//!
//! Members of a group, and members of the cluster, speak of groups; a client may ask where members
//! are, and say what the protocol inside lets a client say, for itself. What a member passes on is
//! judged as its first sender's word, where that is a client.
//!
//! Nobody speaks for another one: that a member leads, it says itself, from where it lives; what a
//! server knows of a group's having begun, its coordinator says. To those who are not in the
//! catalog any server repeats who leads, and they believe it.

use muesli_core::judgement::ensure;
use muesli_core::{
    Address, Catalog, NodeId, Protocol, Rejection, RepositoryId, Role, Sender, StateMachine,
    Timestamp, View,
};

use crate::inside::Inside;
use crate::layout;
use crate::placement::EPOCHS_AHEAD_MAX;
use crate::protocol::{Message, between_members};

/// Whether this sender may say this, and whether its numbers can be.
pub(crate) fn judge<P: Protocol>(
    message: &Message<P::Message>,
    view: View<'_>,
) -> Result<(), Rejection> {
    let to_member = view.me.role != Role::Coordinator;
    match message {
        Message::Inside { from: first, .. } => {
            ensure(layout::is_inner(*first, view.catalog), Rejection::Catalog)?;
            ensure(view.sender.is_member() || *first == view.from, Rejection::Sender)
        }
        Message::AskPlacement | Message::AskBegun(_) => ensure(!to_member, Rejection::Role),
        Message::Placement { epoch, homes, leaving } => {
            ensure(!to_member, Rejection::Role)?;
            view.member()?;
            judge_placement(view.catalog, *epoch, homes, leaving)
        }
        Message::Leads { group, member, epoch, .. } => {
            view.member()?;
            judge_leader((*group, *member), *epoch, view)
        }
        Message::Begun(_) => {
            view.member()?;
            let is_asked =
                view.from.role == Role::Coordinator && !view.catalog.is_client(view.from.node);
            ensure(is_asked || !to_member, Rejection::Sender)
        }
        between_members!() => judge_fellow(view),
        // It is behind a member's own log, and never leaves its node.
        Message::Stable(_) => Err(Rejection::Sender),
    }
}

/// Another member of the same group. It may have moved, which is known there before it is here.
fn judge_fellow(view: View<'_>) -> Result<(), Rejection> {
    view.member()?;
    let (Role::Repository(other), Some(here)) = (view.from.role, view.repository()) else {
        return Err(Rejection::Role);
    };
    let is_fellow = layout::place(other).0 == layout::place(here).0 && other != here;
    ensure(is_fellow, Rejection::Sender)
}

/// That a member of a group leads: it says so itself, and to visitors any coordinator repeats it.
/// A member that goes by another placement may live elsewhere than is known here.
fn judge_leader((group, member): (u16, u16), epoch: u64, view: View<'_>) -> Result<(), Rejection> {
    let Role::Repository(repository) = view.from.role else {
        let is_unregistered = view.repository().is_none() && view.catalog.is_client(view.me.node);
        return ensure(is_unregistered, Rejection::Sender);
    };
    ensure(layout::place(repository) == (group, member), Rejection::Sender)?;
    let is_placed_there =
        epoch != view.catalog.placement || view.catalog.home(repository) == view.from.node;
    ensure(is_placed_there, Rejection::Sender)
}

/// Whether a placement can come after the one that is known here, or before it. An older one is
/// left alone by whoever receives it.
fn judge_placement(
    known: &Catalog,
    epoch: u64,
    homes: &[(NodeId, u64)],
    leaving: &[RepositoryId],
) -> Result<(), Rejection> {
    ensure(homes.len() == known.repositories(), Rejection::Catalog)?;
    let is_there = |member: &RepositoryId| usize::from(member.0) < homes.len();
    ensure(leaving.iter().all(is_there), Rejection::Catalog)?;
    if epoch <= known.placement {
        return Ok(());
    }
    ensure(epoch - known.placement <= EPOCHS_AHEAD_MAX, Rejection::Range)?;
    ensure(homes.iter().all(|(_, since)| *since <= epoch), Rejection::Range)?;
    ensure(homes.iter().all(|(home, _)| !known.left.contains(home)), Rejection::State)?;
    // A node that joins knows no homes.
    let stays = known.homes.iter().zip(&*known.since).filter(|_| known.placement > 0);
    let agrees = |((home, since), (known, known_since)): (&(NodeId, u64), (&NodeId, &u64))| {
        since != known_since || home == known
    };
    ensure(homes.iter().zip(stays).all(agrees), Rejection::State)
}

/// A message of the protocol inside, which `first` said; by its catalog, as `me` sees it.
/// Timestamps up to `issued` are known here to have been issued. What it is judged by further comes
/// back.
pub(crate) fn judge_inside<'a, P: Protocol>(
    (first, message): (Address, &P::Message),
    (me, catalog): (Address, &'a Catalog),
    issued: Timestamp,
    view: View<'a>,
) -> Result<View<'a>, Rejection> {
    ensure(P::is_about(message, catalog), Rejection::Catalog)?;
    let sender = first_sender(first, view.sender, catalog).knowing(issued);
    let view = View { me, from: first, sender, catalog, settings: view.settings };
    P::judge(message, view).map(|()| view)
}

/// Judges what is said to a role that stands under the same number in both catalogs: as a message
/// of the protocol inside, and by that role. `None`: it is no such message.
pub(crate) fn judge_by<P: Protocol, M: StateMachine<P>>(
    role: &M,
    inside: &Inside<P>,
    message: &Message<P::Message>,
    view: View<'_>,
) -> Option<Result<(), Rejection>> {
    let Message::Inside { from: first, message, .. } = message else { return None };
    let catalog = inside.known_catalog(view.catalog);
    let judged = judge_inside::<P>((*first, message), (view.me, &catalog), role.issued(), view);
    Some(judged.and_then(|inner| role.judge(message, inner)))
}

/// Who said it first, where a member may have passed it on. The proof that a client showed to that
/// member is not passed on.
fn first_sender(first: Address, sender: Sender, inner: &Catalog) -> Sender {
    match (sender, first.role) {
        (Sender::Member, Role::Coordinator) if inner.is_client(first.node) => Sender::CLIENT,
        (sender, _) => sender,
    }
}

/// A role as the protocol inside names it.
pub(crate) fn inner_address(me: Address, inner: &Catalog) -> Address {
    match me.role {
        Role::Coordinator | Role::Service(_) => me,
        Role::Repository(member) => {
            let group = RepositoryId(layout::place(member).0);
            let known = usize::from(group.0) < inner.repositories();
            let home = if known { inner.home(group) } else { NodeId::NOWHERE };
            Address::repository(home, group)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Groups = crate::protocol::Grouped<muesli_protocols::score::Score>;
    type GroupMessage = <Groups as Protocol>::Message;

    /// Two groups on four nodes, and clients that the catalog does not list.
    fn known() -> Catalog {
        let nodes: Vec<_> = (0..4).map(NodeId).collect();
        let catalog = Catalog::new(&layout::homes(2, 3, 4).unwrap(), 1, &nodes).unwrap();
        catalog.with_visiting_coordinators()
    }

    /// Whether `to` takes this of a server.
    fn judged_as(message: &GroupMessage, from: Address, to: Address) -> Result<(), Rejection> {
        let (catalog, settings) = (known(), muesli_core::Settings::default());
        let (catalog, settings) = (&catalog, &settings);
        let view = View { me: to, from, sender: Sender::Member, catalog, settings };
        <Groups as Protocol>::judge(message, view)
    }

    /// Where a member of the second group lives at first.
    fn second(place: u16) -> Address {
        layout::address(&known(), 1, place).unwrap()
    }

    fn leads(member: u16, epoch: u64) -> GroupMessage {
        let number = u64::from(member) + 1;
        let ballot =
            crate::agreement::ballot::Ballot { configuration: 1, number: 1, member: number };
        Message::Leads { group: 1, member, ballot, epoch }
    }

    #[test]
    fn that_a_member_leads_it_says_itself() {
        let epoch = known().placement;
        let (server, unregistered) = (Address::coordinator(NodeId(0)), NodeId(1 << 31));
        let (leader, follower) = (second(1), second(2));
        for to in [server, second(0), layout::address(&known(), 0, 0).unwrap()] {
            assert_eq!(judged_as(&leads(1, epoch), leader, to), Ok(()));
            assert_eq!(judged_as(&leads(2, epoch), leader, to), Err(Rejection::Sender));
            assert_eq!(judged_as(&leads(1, epoch), follower, to), Err(Rejection::Sender));
            let of_another = layout::address(&known(), 0, 1).unwrap();
            assert_eq!(judged_as(&leads(1, epoch), of_another, to), Err(Rejection::Sender));
            let repeated = judged_as(&leads(1, epoch), Address::coordinator(leader.node), to);
            assert_eq!(repeated, Err(Rejection::Sender), "only to visitors");
            let elsewhere = Address { node: follower.node, ..leader };
            assert_eq!(judged_as(&leads(1, epoch), elsewhere, to), Err(Rejection::Sender));
            assert_eq!(judged_as(&leads(1, epoch + 1), elsewhere, to), Ok(()), "it has moved");
        }
        let unregistered = Address::coordinator(unregistered);
        assert_eq!(judged_as(&leads(1, epoch), server, unregistered), Ok(()));
        let unknown = leads(u16::MAX, epoch);
        assert_eq!(judged_as(&unknown, leader, server), Err(Rejection::Sender));
    }

    #[test]
    fn what_a_server_knows_of_a_group_its_coordinator_says() {
        let begun = Message::Begun(true);
        let to = second(0);
        assert_eq!(judged_as(&begun, Address::coordinator(NodeId(3)), to), Ok(()));
        assert_eq!(judged_as(&begun, second(1), to), Err(Rejection::Sender));
        let stranger = Address::coordinator(NodeId(1 << 31));
        assert_eq!(judged_as(&begun, stranger, to), Err(Rejection::Sender));
    }

    /// Whether a placement of this epoch is taken that differs in this from the one known.
    fn judged(
        known: &Catalog,
        epoch: u64,
        change: impl FnOnce(&mut Vec<(NodeId, u64)>),
    ) -> Result<(), Rejection> {
        let mut homes = known.stays();
        change(&mut homes);
        judge_placement(known, epoch, &homes, &known.leaving)
    }

    #[test]
    fn placements_that_nobody_can_have_made_are_left_out() {
        let nodes: Vec<_> = (0..5).map(NodeId).collect();
        let known = Catalog::new(&layout::homes(2, 3, 4).unwrap(), 1, &nodes).unwrap();
        let known = known.without(&[NodeId(4)]);
        let epoch = known.placement;
        assert_eq!(judged(&known, epoch + 1, |it| it[0] = (NodeId(3), epoch + 1)), Ok(()));
        assert_eq!(judged(&known, epoch, |_| {}), Ok(()), "that is no news");
        assert_eq!(judged(&known, epoch + EPOCHS_AHEAD_MAX, |_| {}), Ok(()));
        let far = judged(&known, epoch + EPOCHS_AHEAD_MAX + 1, |_| {});
        assert_eq!((far, judged(&known, u64::MAX, |_| {})), (Err(Rejection::Range), far));
        let newer = judged(&known, epoch + 1, |it| it[0] = (NodeId(3), epoch + 2));
        assert_eq!(newer, Err(Rejection::Range));
        let moved = judged(&known, epoch + 1, |it| it[0].0 = NodeId(3));
        assert_eq!(moved, Err(Rejection::State), "it lives elsewhere since the same epoch");
        let left = judged(&known, epoch + 1, |it| it[0] = (NodeId(4), epoch + 1));
        assert_eq!(left, Err(Rejection::State), "that node has left for good");
        assert_eq!(judged(&known, epoch + 1, |it| it.truncate(3)), Err(Rejection::Catalog));
        let going = [RepositoryId(known.repositories() as u16)];
        let unknown = judge_placement(&known, epoch + 1, &known.stays(), &going);
        assert_eq!(unknown, Err(Rejection::Catalog));
    }
}
