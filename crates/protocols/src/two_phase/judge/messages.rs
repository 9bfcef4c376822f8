//! What is asked of messages from other processes.

use std::sync::Arc;

use muesli_core::judgement::{distinct, ensure, in_range, sequence};
use muesli_core::parts::locator::Static;
use muesli_core::{
    Decision, Nanos, NodeId, Rejection, RepositoryId, Role, ServiceKind, SmallBytes, SpaceId,
    Timestamp, Txn, TxnId, View,
};

use super::moves::{judge_moved, judge_moves, judge_owned, judge_placed, judge_question};
use crate::doubts::CLIENTS_ASKED_MAX;
use crate::two_phase::ReaderBounds;
use crate::two_phase::Variant;
use crate::two_phase::message::merged_decision::MergedDecision;
use crate::two_phase::message::merged_vote::MergedVote;
use crate::two_phase::message::{
    Few, LockRequest, Message, Prepare, ReadRequest, ReadWants, ScanRequest, Vote, WatchRequest,
    requests,
};
use crate::two_phase::participant::waits::watches::WAITING_MAX;
use crate::two_phase::time::{Snapshot, Time};
use crate::two_phase::validator::tree::Tree;

/// Whether this sender may say this, and whether its numbers can be.
pub(in crate::two_phase) fn judge<V: Variant>(
    message: &Message<V>,
    view: View<'_>,
) -> Result<(), Rejection> {
    let to_repository = matches!(view.me.role, Role::Repository(_));
    match message {
        Message::NewOwners { moved } => {
            ensure(to_repository || view.me.role == Role::Coordinator, Rejection::Role)?;
            judge_moved(moved, to_repository, view)
        }
        requests!() => {
            ensure(to_repository, Rejection::Role)?;
            judge_request(message, view)
        }
        Message::Vote { txn, repository, vote, committed, .. } => {
            view.voter(*repository)?;
            sequence(*txn)?;
            committed.judge(view.catalog.repositories())?;
            judge_vote(*txn, vote, view)
        }
        Message::MergedVote(ballot) => judge_merged_vote::<V>(ballot, view),
        Message::MergedDecision(ended) => judge_merged_decision(ended, view),
        Message::ReadReply(_)
        | Message::ScanReply(_)
        | Message::Locked { .. }
        | Message::Acknowledge { .. }
        | Message::Ended { .. }
        | Message::Ran { .. }
        | Message::Changed { .. }
        | Message::Waiting { .. }
        | Message::Bound { .. } => {
            ensure(!to_repository, Rejection::Role)?;
            judge_reply(message, view)
        }
        Message::Watermark { low, newest } => {
            view.member()?;
            view.coordinator()?;
            let repositories = view.catalog.repositories();
            low.judge(repositories).and_then(|_| newest.judge(repositories)).map(|_| ())
        }
    }
}

/// What is said to a repository, but for votes.
fn judge_request<V: Variant>(message: &Message<V>, view: View<'_>) -> Result<(), Rejection> {
    match message {
        Message::Read(request) => judge_read(request, view),
        Message::Scan(request) => judge_scan(request, view),
        Message::Lock(asked) => {
            judge_reader::<V>(asked.reader, view)?;
            ensure(asked.key.len() <= view.settings.limits.key_bytes, Rejection::Range)?;
            judge_key::<V>(asked.space, &asked.key, view)
        }
        Message::Unlock { reader } => judge_reader::<V>(*reader, view),
        Message::Prepare(prepare) => judge_prepare(prepare, view),
        Message::Decide { txn, decision, .. } => judge_decide::<V>(*txn, decision, view),
        Message::Settled { txn } => view.owner(*txn),
        Message::Ask { txn } => judge_ask(*txn, view),
        Message::AskDoubts { clients, .. } => {
            judge_answer(view)?;
            ensure(clients.len() <= CLIENTS_ASKED_MAX, Rejection::Range)
        }
        Message::NoDoubts { repository, clients, .. } => {
            view.voter(*repository)?;
            ensure(clients.len() <= CLIENTS_ASKED_MAX, Rejection::Range)
        }
        Message::Watch(watch) => judge_watch(watch, view),
        Message::Unwatch { .. } => view.coordinator(),
        Message::KnownOwners { moved } => judge_moved(moved, false, view),
        Message::AskOwned(_) => judge_question(view),
        Message::Owned(page) => judge_owned(page, view),
        _ => Err(Rejection::Role),
    }
}

/// What is said to a coordinator, but for votes.
fn judge_reply<V: Variant>(message: &Message<V>, view: View<'_>) -> Result<(), Rejection> {
    match message {
        Message::ReadReply(reply) => {
            judge_answer(view)?;
            reply.found.iter().try_for_each(|found| in_range(found.version))?;
            judge_answered(reply.snapshot.as_ref(), &reply.committed, view)
        }
        Message::ScanReply(reply) => {
            judge_answer(view)?;
            reply.rows.iter().try_for_each(|(_, found)| in_range(found.version))?;
            judge_answered(reply.snapshot.as_ref(), &reply.committed, view)
        }
        Message::Locked { .. } => judge_answer(view),
        // That some wait longer or shorter than they must is all that could come of it.
        Message::Changed { .. } => view.member(),
        Message::Waiting { txn, waiting } => {
            judge_answer(view)?;
            ensure(txn.node == view.me.node, Rejection::Sender)?;
            ensure(waiting.len() <= WAITING_MAX, Rejection::Range)
        }
        Message::Acknowledge { repository, txns } => {
            view.voter(*repository)?;
            ensure(txns.iter().all(|txn| txn.node == view.me.node), Rejection::Sender)
        }
        Message::Ended { txn, decision, newest, .. } => {
            ensure(view.me.role == Role::Coordinator, Rejection::Role)?;
            judge_validator::<V>(view)?;
            ensure(txn.node == view.me.node, Rejection::Sender)?;
            newest.judge(view.catalog.repositories())?;
            judge_end::<V>(decision, view)
        }
        Message::Ran { txn, .. } => {
            judge_answer(view)?;
            ensure(txn.node == view.me.node, Rejection::Sender)
        }
        Message::Bound { bound, newest } => judge_bound(bound, newest, view),
        _ => Err(Rejection::Role),
    }
}

/// A key is here, or may have been.
fn judge_key<V: Variant>(
    space: SpaceId,
    key: &SmallBytes,
    view: View<'_>,
) -> Result<(), Rejection> {
    match V::keys_move(view.catalog) {
        true => view.key(space, |_| true),
        false => judge_placed(space, key, view),
    }
}

/// A coordinator speaks for a transaction of its own.
fn judge_reader<V: Variant>(reader: V::Reader, view: View<'_>) -> Result<(), Rejection> {
    view.coordinator()?;
    ensure(reader.is_of(view.from.node), Rejection::Sender)
}

/// A coordinator reads keys that are here, at a snapshot that it can have.
fn judge_read<V: Variant>(request: &ReadRequest<V>, view: View<'_>) -> Result<(), Rejection> {
    judge_reader::<V>(request.reader, view)?;
    ensure(!request.keys.is_empty(), Rejection::Range)?;
    let can_be = request.wanted == ReadWants::Values || V::POLICIES.reading.can_move();
    ensure(can_be, Rejection::State)?;
    judge_snapshot(&request.snapshot, view)?;
    request.keys.iter().try_for_each(|(space, key)| judge_key::<V>(*space, key, view))
}

/// A coordinator has read keys that are here, and ranges, and waits for a change of them.
fn judge_watch<V: Variant>(watch: &WatchRequest<V>, view: View<'_>) -> Result<(), Rejection> {
    view.coordinator()?;
    judge_snapshot(&watch.snapshot, view)?;
    for (space, key, version) in &watch.reads {
        in_range(*version)?;
        ensure(key.len() <= view.settings.limits.key_bytes, Rejection::Range)?;
        judge_key::<V>(*space, key, view)?;
    }
    watch.scans.iter().try_for_each(|range| view.range(range))
}

/// A coordinator scans partitions that are here, at a snapshot that it can have.
fn judge_scan<V: Variant>(request: &ScanRequest<V>, view: View<'_>) -> Result<(), Rejection> {
    judge_reader::<V>(request.reader, view)?;
    ensure(request.partitions.len() <= view.catalog.partitions(), Rejection::Range)?;
    let here = view.repository().ok_or(Rejection::Role)?;
    let held = |partition: &u16| Static.holds(here, *partition, view.catalog);
    ensure(request.partitions.iter().all(held), Rejection::Catalog)?;
    judge_snapshot(&request.snapshot, view)?;
    view.range(&request.range)
}

/// A coordinator asks about a transaction of its own, of keys that are here, each written once.
fn judge_prepare<V: Variant>(prepare: &Prepare<V>, view: View<'_>) -> Result<(), Rejection> {
    view.owner(prepare.txn)?;
    ensure(prepare.reader.is_of(view.from.node), Rejection::Sender)?;
    ensure(prepare.settled_below <= prepare.txn.sequence, Rejection::Range)?;
    judge_participants(&prepare.participants, view)?;
    judge_snapshot(&prepare.snapshot, view)?;
    for (space, key, version) in &prepare.reads {
        in_range(*version)?;
        judge_key::<V>(*space, key, view)?;
    }
    // What is too large is refused by a vote, which names the limit (`limits`).
    prepare.writes.iter().try_for_each(|(space, key, _)| judge_key::<V>(*space, key, view))?;
    prepare.scans.iter().try_for_each(|range| view.range(range))?;
    judge_delayed(prepare, view)?;
    judge_moves(prepare, view)?;
    let written = prepare.writes.iter().map(|(space, key, _)| (*space, key));
    distinct(written.chain(delayed_keys(prepare)))
}

/// The participants ascend, and the repository that judges is one of them.
fn judge_participants(all: &[RepositoryId], view: View<'_>) -> Result<(), Rejection> {
    let here = view.repository().ok_or(Rejection::Role)?;
    ensure(all.windows(2).all(|pair| pair[0] < pair[1]), Rejection::Range)?;
    ensure(all.contains(&here), Rejection::Role)
}

/// What is left to the turn is about keys that are here, and what is asked of it is part of it.
fn judge_delayed<V: Variant>(prepare: &Prepare<V>, view: View<'_>) -> Result<(), Rejection> {
    for (space, key, _) in &prepare.delayed {
        judge_key::<V>(*space, key, view)?;
    }
    for call in prepare.calls() {
        call.ranges.iter().try_for_each(|range| view.range(range))?;
        call.keys.iter().try_for_each(|(space, key)| {
            judge_key::<V>(*space, key, view)?;
            // All who hold the partition run it, so they must hold all of its keys.
            let partition = view.catalog.partition(*space, key);
            ensure(
                Static.are_colocated(partition, call.partition, view.catalog),
                Rejection::Catalog,
            )
        })?;
    }
    let all = prepare.delayed.len() + prepare.calls().len();
    ensure(prepare.asked().iter().all(|(at, _)| (*at as usize) < all), Rejection::Range)
}

/// The keys that are changed in the turn; those of actions once each, though several actions may
/// be on one key.
fn delayed_keys<V: Variant>(
    prepare: &Prepare<V>,
) -> impl Iterator<Item = (SpaceId, &SmallBytes)> + '_ {
    let mut actions: Vec<_> = prepare.delayed.iter().map(|(space, key, _)| (*space, key)).collect();
    actions.sort_unstable();
    actions.dedup();
    let called = prepare.calls().iter().flat_map(|call| &call.keys);
    actions.into_iter().chain(called.map(|(space, key)| (*space, key)))
}

/// The owner of a transaction says how it ended; or a member that takes part in it does.
fn judge_decide<V: Variant>(
    txn: TxnId,
    decision: &Decision<V::Place>,
    view: View<'_>,
) -> Result<(), Rejection> {
    match view.from.role {
        Role::Coordinator => view.owner(txn)?,
        Role::Repository(_) => view.member()?,
        Role::Service(_) => judge_validator::<V>(view)?,
    }
    sequence(txn)?;
    judge_end::<V>(decision, view)
}

/// An end that a transaction can have.
fn judge_end<V: Variant>(decision: &Decision<V::Place>, view: View<'_>) -> Result<(), Rejection> {
    match decision {
        Decision::Commit(place) => {
            let at = V::Time::judge_place(place, view.catalog.repositories())?;
            view.issued(at)
        }
        Decision::Abort(_) => Ok(()),
    }
}

/// A validator says it, of a member.
fn judge_validator<V: Variant>(view: View<'_>) -> Result<(), Rejection> {
    ensure(V::POLICIES.deciding.may_have_validators(), Rejection::Role)?;
    view.member()?;
    ensure(sending_validator(view).is_some(), Rejection::Sender)
}

/// The number of the validator that says it, if one does.
fn sending_validator(view: View<'_>) -> Option<u16> {
    match view.from.role {
        Role::Service(it) if it.kind() == ServiceKind::Validator => Some(it.number()),
        Role::Service(_) | Role::Repository(_) | Role::Coordinator => None,
    }
}

/// Votes from below: of the repository that says it, or of some below the validator that does.
fn judge_merged_vote<V: Variant>(ballot: &MergedVote, view: View<'_>) -> Result<(), Rejection> {
    ensure(V::POLICIES.deciding.may_have_validators(), Rejection::Role)?;
    let Role::Service(me) = view.me.role else { return Err(Rejection::Role) };
    view.member()?;
    sequence(ballot.txn)?;
    let tree = Tree::of(view.catalog);
    let ascend = |all: &[RepositoryId]| all.windows(2).all(|pair| pair[0] < pair[1]);
    ensure(ascend(&ballot.participants) && ascend(&ballot.voters), Rejection::Range)?;
    ensure(!ballot.voters.is_empty(), Rejection::Range)?;
    let takes_part = |voter: &RepositoryId| ballot.participants.contains(voter);
    ensure(ballot.voters.iter().all(takes_part), Rejection::Range)?;
    in_range(ballot.proposal)?;
    let is_vote = ballot.refused.is_some() || ballot.proposal > Timestamp::ZERO;
    ensure(is_vote, Rejection::Range)?;
    let may_send = match (view.from.role, sending_validator(view)) {
        // Which validator it votes to depends on who decides: the validator looks at that.
        (Role::Repository(voter), _) => ballot.voters[..] == [voter],
        (_, Some(number)) => tree.inner_for(number, ballot.txn).is_some_and(|child| {
            let is_below = |voter: &RepositoryId| tree.covers(child, *voter);
            let parent = tree.parent(child).filter(|_| ballot.voters.iter().all(is_below));
            parent.is_some() && parent == tree.inner_for(me.number(), ballot.txn)
        }),
        _ => false,
    };
    ensure(may_send, Rejection::Sender)
}

/// An end for those below the one that judges, or for it alone. As where a validator says it to
/// each of them itself, any may: trees change, and who hears of it by an earlier one has to hear of
/// it all the same.
fn judge_merged_decision<V: Variant>(
    ended: &MergedDecision<V>,
    view: View<'_>,
) -> Result<(), Rejection> {
    judge_validator::<V>(view)?;
    match view.me.role {
        Role::Service(_) => {}
        Role::Repository(me) => ensure(ended.participants[..] == [me], Rejection::Range)?,
        Role::Coordinator => return Err(Rejection::Role),
    }
    sequence(ended.txn)?;
    ensure(ended.is_well_formed(), Rejection::Range)?;
    judge_end::<V>(&ended.decision, view)
}

/// A participant asks the others: nobody else may, for the answer binds.
fn judge_ask(txn: TxnId, view: View<'_>) -> Result<(), Rejection> {
    judge_answer(view)?;
    sequence(txn)
}

fn judge_vote<V: Variant>(txn: TxnId, vote: &Vote<V>, view: View<'_>) -> Result<(), Rejection> {
    let repositories = view.catalog.repositories();
    match vote {
        Vote::Yes(yes) => V::Time::judge_yes(txn, yes, repositories),
        Vote::Decided(Decision::Commit(place)) => {
            V::Time::judge_place(place, repositories).and_then(in_range)
        }
        Vote::Decided(Decision::Abort(_)) | Vote::No(_) => Ok(()),
    }
}

/// What a repository answers.
fn judge_answer(view: View<'_>) -> Result<(), Rejection> {
    view.member()?;
    ensure(matches!(view.from.role, Role::Repository(_)), Rejection::Sender)
}

fn judge_answered<S: Snapshot>(
    snapshot: Option<&S>,
    committed: &S,
    view: View<'_>,
) -> Result<(), Rejection> {
    let repositories = view.catalog.repositories();
    committed.judge(repositories)?;
    snapshot.map_or(Ok(()), |snapshot| snapshot.judge(repositories).map(|_| ()))
}

/// A coordinator tells its bound to the one that gathers them.
fn judge_bound<S: Snapshot>(bound: &S, newest: &S, view: View<'_>) -> Result<(), Rejection> {
    view.coordinator()?;
    ensure(view.catalog.home(RepositoryId(0)) == view.me.node, Rejection::Role)?;
    let may_visit = view.catalog.visiting_coordinators;
    ensure(may_visit || !view.catalog.is_client(view.from.node), Rejection::Sender)?;
    judge_snapshot(bound, view)?;
    judge_snapshot(newest, view)
}

fn judge_snapshot<S: Snapshot>(snapshot: &S, view: View<'_>) -> Result<(), Rejection> {
    view.issued(snapshot.judge(view.catalog.repositories())?)
}

/// What a client on `node` would say instead, of a transaction of its own that writes nothing.
pub(in crate::two_phase) fn as_client<V: Variant>(
    message: &Message<V>,
    node: NodeId,
) -> Option<Message<V>> {
    let reader = V::Reader::new(node, 1, Txn { slot: 1, generation: 1 }, Nanos(0));
    let own = |txn: &TxnId| {
        let incarnation = if txn.node == node { txn.incarnation } else { 1 };
        TxnId { node, incarnation, ..*txn }
    };
    match message {
        Message::Read(request) => Some(Message::Read(ReadRequest { reader, ..request.clone() })),
        Message::Scan(request) => {
            let request = ScanRequest { reader, ..(**request).clone() };
            Some(Message::Scan(Box::new(request)))
        }
        Message::Prepare(prepare) => {
            let (txn, writes) = (own(&prepare.txn), Few::new());
            let (delayed, extra) = (Vec::new(), None);
            let prepare = (**prepare).clone();
            let (leaving, arriving) = Default::default();
            let own = Prepare { txn, reader, writes, delayed, extra, leaving, arriving, ..prepare };
            Some(Message::Prepare(Arc::new(own)))
        }
        Message::Decide { txn, decision, ballots } => {
            let (txn, decision, ballots) = (own(txn), decision.clone(), ballots.clone());
            Some(Message::Decide { txn, decision, ballots })
        }
        Message::Ask { txn } => Some(Message::Ask { txn: own(txn) }),
        Message::Settled { txn } => Some(Message::Settled { txn: own(txn) }),
        Message::Lock(asked) => Some(Message::Lock(LockRequest { reader, ..asked.clone() })),
        Message::Unlock { .. } => Some(Message::Unlock { reader }),
        Message::Bound { .. } | Message::Watch(_) | Message::Unwatch { .. } => {
            Some(message.clone())
        }
        Message::ReadReply(_)
        | Message::ScanReply(_)
        | Message::MergedVote(_)
        | Message::MergedDecision(_)
        | Message::Ended { .. }
        | Message::Vote { .. }
        | Message::Acknowledge { .. }
        | Message::Ran { .. }
        | Message::Changed { .. }
        | Message::Waiting { .. }
        | Message::Locked { .. }
        | Message::NewOwners { .. }
        | Message::KnownOwners { .. }
        | Message::AskOwned(_)
        | Message::Owned(_)
        | Message::AskDoubts { .. }
        | Message::NoDoubts { .. }
        | Message::Watermark { .. } => None,
    }
}
