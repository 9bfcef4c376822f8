//! What is asked of a message from another process before it touches any state: who may say it,
//! and whether its numbers can be.
//!
//! A client owns the transactions of its own node. It may ask for those, decide them where no
//! master does, and follow a repository. Votes, and all else that repositories say, come from
//! members.

use std::sync::Arc;

use muesli_core::judgement::{distinct, ensure, in_range, sequence};
use muesli_core::{
    EVERYWHERE, NodeId, Rejection, RepositoryId, Role, SmallBytes, SpaceId, Timestamp, TxnId, View,
};

use super::locator::name_service;
use super::message::{
    Agreement, Fetched, Followed, Install, Load, Message, News, Owners, Part, PartAnswer,
    ReplyOutcome, Request, Task, TimestampVote, VoteOrder, WatchedReads, Write,
};
use crate::doubts::CLIENTS_ASKED_MAX;

/// Counts of pieces, changes and votes are below this.
const COUNT_MAX: u64 = 1 << 62;

/// Whether this sender may say this, and whether its numbers can be.
pub(super) fn judge(message: &Message, view: View<'_>) -> Result<(), Rejection> {
    match message {
        Message::Request(request) => {
            judge_asker(request, view)?;
            judge_request(request, view)
        }
        Message::Vote { txn, repository, ballot, order, .. } => {
            view.voter(*repository)?;
            sequence(*txn)?;
            order.as_ref().map_or(Ok(()), judge_order)?;
            judge_ballot(ballot, view)
        }
        Message::Decide { txn, ballot, .. } => judge_decide(*txn, ballot, view),
        Message::Follow { has } => judge_follow(has, view),
        Message::Watch { reads, .. } => judge_watch(reads, view),
        Message::Unwatch { .. } => judge_reader(view),
        Message::Changed { repository, .. } => judge_answer(*repository, view),
        Message::Tell { txn, .. } => judge_peer(view).and_then(|()| sequence(*txn)),
        Message::WhichPosition { repository } => judge_named(*repository, view),
        Message::AskDoubts { clients, .. } => {
            judge_peer(view)?;
            ensure(clients.len() <= CLIENTS_ASKED_MAX, Rejection::Range)
        }
        Message::NoDoubts { repository, clients, .. } => {
            judge_named(*repository, view)?;
            ensure(clients.len() <= CLIENTS_ASKED_MAX, Rejection::Range)
        }
        Message::Position { repository, order, at, voted } => {
            judge_named(*repository, view)?;
            voted.iter().try_for_each(|txn| sequence(*txn))?;
            judge_order(order).and_then(|()| in_range(*at))
        }
        Message::Ask { request, repository, ballot } => {
            judge_named(*repository, view)?;
            judge_request(request, view)?;
            judge_ballot(ballot, view)
        }
        Message::Fetch { repository, has, .. } => {
            judge_named(*repository, view)?;
            judge_fetched(has)
        }
        Message::Load { repository, stream, source, load, .. } => {
            judge_named(*repository, view)?;
            in_range(*stream).and_then(|()| in_range(*source))?;
            judge_load(load)
        }
        Message::Reply { txn, repository, end, .. } => {
            judge_answer(*repository, view)?;
            ensure(txn.node == view.me.node, Rejection::Sender)?;
            judge_end(end, view)
        }
        Message::Acknowledge { repository, txns } => {
            judge_answer(*repository, view)?;
            ensure(txns.iter().all(|txn| txn.node == view.me.node), Rejection::Sender)
        }
        Message::News { repository, news, .. } => {
            judge_answer(*repository, view)?;
            judge_news(news)
        }
    }
}

/// A coordinator asks for a transaction of its own; or the master that was asked to count its
/// votes passes it on.
fn judge_asker(request: &Request, view: View<'_>) -> Result<(), Rejection> {
    view.coordinator()?;
    let is_master =
        request.master == Some(view.from.node) && view.catalog.masters.contains(&view.from.node);
    let passes_on = view.sender.is_member() && is_master;
    ensure(view.from.node == request.txn.node || passes_on, Rejection::Sender)?;
    match view.me.role {
        Role::Repository(here) => ensure(request.participants.contains(&here), Rejection::Role),
        Role::Coordinator => ensure(request.master == Some(view.me.node), Rejection::Role),
        Role::Service(_) => Err(Rejection::Role),
    }
}

fn judge_request(request: &Request, view: View<'_>) -> Result<(), Rejection> {
    sequence(request.txn)?;
    ensure(request.settled_below <= request.txn.sequence, Rejection::Range)?;
    view.issued(request.lower_bound)?;
    let is_alone = request.agreement == Agreement::Alone;
    ensure(!request.participants.is_empty(), Rejection::Range)?;
    ensure(is_alone == (request.participants.len() == 1), Rejection::Range)?;
    let follower_read = !request.follower_read || request.read_only && is_alone;
    ensure(follower_read, Rejection::Range)?;
    let known = |master| view.catalog.masters.contains(&master) || master == request.txn.node;
    ensure(request.master.is_none_or(known), Rejection::Catalog)?;
    judge_whole(request, view)?;
    // What is too large is refused by an answer that names the limit (`limits`).
    for part in &request.parts {
        judge_task(&part.task, part.partition, view)?;
        if request.read_only {
            let installs = matches!(&part.task, Task::Install(it) if !it.writes.is_empty());
            ensure(!installs && !matches!(part.task, Task::Move(_)), Rejection::Range)?;
        }
    }
    Ok(())
}

/// All who hold what is written take part, and all who know where a partition is in its move: else
/// copies would differ, or nobody would find it. Whoever names holders that there are not is
/// refused by them.
fn judge_whole(request: &Request, view: View<'_>) -> Result<(), Rejection> {
    let takes_part = |it: &RepositoryId| request.participants.contains(it);
    for part in request.parts.iter().filter(|part| part.is_about_keys()) {
        let mut holders = part.holders(view.catalog);
        holders.sort_unstable();
        holders.dedup();
        let count = match part.partition {
            EVERYWHERE => view.catalog.repositories(),
            _ => usize::from(view.catalog.replicas),
        };
        ensure(holders.len() == count, Rejection::Catalog)?;
        let whole = request.read_only || holders.iter().all(takes_part);
        ensure(whole, Rejection::Catalog)?;
    }
    if let Some(order) = request.moving() {
        let ends = [order.from, order.to];
        let needed = |it: &RepositoryId| {
            ends.contains(it) || name_service(view.catalog).any(|other| other == *it)
        };
        let whole = name_service(view.catalog).all(|it| takes_part(&it));
        ensure(whole && request.participants.iter().all(needed), Rejection::Catalog)?;
    }
    Ok(())
}

/// What is done is about keys of the partition.
fn judge_task(task: &Task, partition: u16, view: View<'_>) -> Result<(), Rejection> {
    let key = |space: SpaceId, key: &SmallBytes| {
        ensure(view.catalog.partition(space, key) == partition, Rejection::Catalog)
    };
    match task {
        Task::Read(keys) => keys.iter().try_for_each(|(space, it)| key(*space, it)),
        Task::Scan { range, .. } => view.range(range),
        Task::Install(install) => judge_install(install, key, view),
        Task::Move(order) => judge_fetched(&order.has),
        Task::Call { .. } | Task::Take { .. } | Task::Names => Ok(()),
    }
}

fn judge_install(
    install: &Install,
    key: impl Fn(SpaceId, &SmallBytes) -> Result<(), Rejection>,
    view: View<'_>,
) -> Result<(), Rejection> {
    for (space, read, version) in &install.reads {
        key(*space, read)?;
        in_range(*version)?;
    }
    for seen in &install.scans {
        view.range(&seen.range)?;
        in_range(seen.at)?;
    }
    install.writes.iter().try_for_each(|(space, written, _)| key(*space, written))?;
    distinct(install.writes.iter().map(|(space, key, _)| (*space, key)))
}

/// Who counts the votes of a transaction decides it: its master, or its own coordinator.
fn judge_decide(txn: TxnId, ballot: &TimestampVote, view: View<'_>) -> Result<(), Rejection> {
    ensure(view.repository().is_some(), Rejection::Role)?;
    let is_master = view.sender.is_member() && view.catalog.masters.contains(&view.from.node);
    view.coordinator()?;
    ensure(view.from.node == txn.node || is_master, Rejection::Sender)?;
    sequence(txn)?;
    judge_ballot(ballot, view)
}

fn judge_ballot(ballot: &TimestampVote, view: View<'_>) -> Result<(), Rejection> {
    match ballot {
        TimestampVote::Commit(at) | TimestampVote::Abort(at, _) | TimestampVote::Moved(at) => {
            view.issued(*at)
        }
        TimestampVote::Conflict => Ok(()),
    }
}

fn judge_follow(has: &Followed, view: View<'_>) -> Result<(), Rejection> {
    judge_reader(view)?;
    in_range(has.upto)
}

/// A coordinator asks a repository for what is about no transaction.
fn judge_reader(view: View<'_>) -> Result<(), Rejection> {
    ensure(view.repository().is_some(), Rejection::Role)?;
    view.coordinator()
}

/// Reads that a client makes up harm nobody: they are compared, and raise no clock. Where they are
/// too much, or of partitions that are elsewhere, the client is told that something has changed.
fn judge_watch(watched: &WatchedReads, view: View<'_>) -> Result<(), Rejection> {
    judge_reader(view)?;
    watched.reads.iter().try_for_each(|(.., version)| in_range(*version))?;
    watched.scans.iter().try_for_each(|(_, seen)| {
        view.range(&seen.range)?;
        in_range(seen.at)
    })
}

/// A repository of a member speaks to another one.
fn judge_peer(view: View<'_>) -> Result<(), Rejection> {
    ensure(view.repository().is_some(), Rejection::Role)?;
    let is_repository = matches!(view.from.role, Role::Repository(_));
    ensure(view.sender.is_member() && is_repository, Rejection::Sender)
}

/// The same, and it says which one it is.
fn judge_named(repository: RepositoryId, view: View<'_>) -> Result<(), Rejection> {
    ensure(view.repository().is_some(), Rejection::Role)?;
    view.voter(repository)
}

/// A repository of a member speaks to a coordinator.
fn judge_answer(repository: RepositoryId, view: View<'_>) -> Result<(), Rejection> {
    ensure(view.repository().is_none(), Rejection::Role)?;
    view.voter(repository)
}

fn judge_order(order: &VoteOrder) -> Result<(), Rejection> {
    ensure(order.number < COUNT_MAX && order.stream > Timestamp::ZERO, Rejection::Range)?;
    in_range(order.stream)
}

fn judge_fetched(has: &Fetched) -> Result<(), Rejection> {
    ensure(has.changes < COUNT_MAX && has.pieces < u32::MAX, Rejection::Range)?;
    in_range(has.stream).and_then(|()| in_range(has.source))
}

fn judge_changes(changes: &[(Timestamp, Vec<Write>)]) -> Result<(), Rejection> {
    ensure(changes.windows(2).all(|pair| pair[0].0 < pair[1].0), Rejection::Range)?;
    changes.iter().try_for_each(|(at, _)| in_range(*at))
}

fn judge_load(load: &Load) -> Result<(), Rejection> {
    match load {
        Load::Piece { number, keys } => {
            ensure(*number < u32::MAX, Rejection::Range)?;
            keys.iter().try_for_each(|(_, _, at, _)| in_range(*at))
        }
        Load::Changes { from, changes, .. } => {
            ensure(*from < COUNT_MAX, Rejection::Range)?;
            judge_changes(changes)
        }
        Load::Unknown => Ok(()),
    }
}

fn judge_news(news: &News) -> Result<(), Rejection> {
    match news {
        News::Piece { number, .. } => ensure(*number < u32::MAX, Rejection::Range),
        News::Changes { upto, changes, .. } => {
            in_range(*upto)?;
            judge_changes(changes)
        }
        News::Unknown => Ok(()),
    }
}

fn judge_end(end: &ReplyOutcome, view: View<'_>) -> Result<(), Rejection> {
    match end {
        ReplyOutcome::Done { at, answers } => {
            in_range(*at)?;
            answers.iter().try_for_each(|(_, answer)| judge_given(answer, view))
        }
        ReplyOutcome::Moved { at } | ReplyOutcome::Refused { at, .. } => in_range(*at),
        ReplyOutcome::Conflict => Ok(()),
    }
}

fn judge_given(answer: &PartAnswer, view: View<'_>) -> Result<(), Rejection> {
    match answer {
        PartAnswer::Found(all) => all.iter().try_for_each(|found| in_range(found.version)),
        PartAnswer::Rows(rows, _) => rows.iter().try_for_each(|(_, found)| in_range(found.version)),
        PartAnswer::Taken { has, .. } => judge_fetched(has),
        PartAnswer::Names(all) => {
            let can_be = |(partition, owners): &(u16, Owners)| {
                usize::from(*partition) < view.catalog.partitions() && owners.can_be(view.catalog)
            };
            ensure(all.iter().all(can_be), Rejection::Catalog)
        }
        PartAnswer::Absent(all) => all.iter().try_for_each(|(.., at)| in_range(*at)),
        PartAnswer::Given(_) | PartAnswer::Installed => Ok(()),
    }
}

/// What a client on `node` would say instead, of a transaction of its own that writes nothing.
pub(super) fn as_client(message: &Message, node: NodeId) -> Option<Message> {
    let own = |txn: &TxnId| {
        let incarnation = if txn.node == node { txn.incarnation } else { 1 };
        TxnId { node, incarnation, ..*txn }
    };
    let harmless = |part: &Part| match &part.task {
        Task::Read(_) | Task::Scan { .. } | Task::Names => Some(part.clone()),
        Task::Install(install) => {
            let install = Install { writes: Vec::new(), ..(**install).clone() };
            Some(Part { task: Task::Install(Box::new(install)), ..part.clone() })
        }
        Task::Call { .. } => Some(part.clone()),
        Task::Take { .. } | Task::Move(_) => None,
    };
    match message {
        Message::Request(request) => {
            let parts = request.parts.iter().map(harmless).collect::<Option<_>>()?;
            // A procedure that may write is not run for a transaction that only reads.
            let calls = request.parts.iter().any(|part| matches!(part.task, Task::Call { .. }));
            let read_only = request.read_only || calls;
            let own = Request { txn: own(&request.txn), parts, read_only, ..(**request).clone() };
            Some(Message::Request(Arc::new(own)))
        }
        Message::Decide { txn, ballot, shown } => {
            let (txn, ballot, shown) = (own(txn), ballot.clone(), shown.clone());
            Some(Message::Decide { txn, ballot, shown })
        }
        Message::Follow { .. } | Message::Watch { .. } | Message::Unwatch { .. } => {
            Some(message.clone())
        }
        Message::Vote { .. }
        | Message::Tell { .. }
        | Message::WhichPosition { .. }
        | Message::Position { .. }
        | Message::AskDoubts { .. }
        | Message::NoDoubts { .. }
        | Message::Ask { .. }
        | Message::Reply { .. }
        | Message::News { .. }
        | Message::Fetch { .. }
        | Message::Load { .. }
        | Message::Changed { .. }
        | Message::Acknowledge { .. } => None,
    }
}
