//! What is asked of a message from another process before it touches any state: who may say it, and
//! whether its numbers can be.
//!
//! A coordinator, of a member or a client, reads and commits for its own transactions. What shards
//! say comes from members. A timestamp that a coordinator names makes a shard's clock go on: it is
//! one that was issued.

use muesli_core::judgement::{ensure, in_range};
use muesli_core::parts::single_repository::UNSETTLED_MAX;
use muesli_core::{Catalog, Decision, Rejection, RepositoryId, Role, SpaceId};
use muesli_core::{Timestamp, View};

use super::locator::{ShardId, shard_of, shard_of_key, shard_of_partition, shards};
use super::message::command::judge_participants;
use super::message::{Message, ShardAnswer, ShardPageRequest};
use crate::certified::judge::{is_inside, judge_read_range};
use crate::certified::message::command::{CertifiedCommand, ReadKey, ReadRange};

/// Whether everything that a message names is there.
pub(super) fn is_about(message: &Message, catalog: &Catalog) -> bool {
    let is_there = |space: SpaceId| catalog.space(space).is_some();
    let are_shards = |all: &[ShardId]| all.iter().all(|it| usize::from(it.0) < shards(catalog));
    match message {
        Message::Keys(request) => request.keys.iter().all(|(space, _)| is_there(*space)),
        Message::Page(request) => is_there(request.range.space),
        Message::Commit { command, participants, .. } => {
            command.reads.iter().all(|read| is_there(read.space))
                && command.ranges.iter().all(|range| is_there(range.seen.space))
                && command.writes.iter().all(|(space, ..)| is_there(*space))
                && command.calls.iter().all(|it| usize::from(it.partition) < catalog.partitions())
                && are_shards(participants)
        }
        Message::Watch { reads, ranges, .. } => {
            reads.iter().all(|read| is_there(read.space))
                && ranges.iter().all(|range| is_there(range.seen.space))
        }
        Message::Broadcast { spaces, .. } => usize::from(*spaces) <= catalog.spaces().len(),
        Message::Ask { participants, .. } => are_shards(participants),
        Message::KeysReply(_)
        | Message::PageReply(_)
        | Message::Ended { .. }
        | Message::NotKnown { .. }
        | Message::Release { .. }
        | Message::Renew { .. }
        | Message::Answer { .. }
        | Message::AskClock { .. }
        | Message::ClockReply { .. }
        | Message::NotFresh { .. }
        | Message::Unwatch { .. }
        | Message::Changed { .. } => true,
    }
}

/// Whether this sender may say this, and whether its numbers can be.
pub(super) fn judge(message: &Message, view: View<'_>) -> Result<(), Rejection> {
    match message {
        Message::Keys(request) => {
            judge_reader(request.snapshot, request.at_least, view)?;
            let shard = own_shard(view)?;
            let is_here = |(space, key)| shard_of_key(space, key, view.catalog) == shard;
            let all_here = request.keys.iter().all(|(space, key)| is_here((*space, key)));
            ensure(all_here, Rejection::Catalog)
        }
        Message::Page(request) => {
            judge_reader(request.snapshot, request.at_least, view)?;
            judge_page(request, view)
        }
        Message::AskClock { bound, .. } => {
            judge_asker(view)?;
            judge_moment(None, bound.seen)?;
            view.issued(Timestamp::new(bound.seen, RepositoryId(0)))
        }
        Message::Release { .. } | Message::Renew { .. } | Message::Unwatch { .. } => {
            judge_asker(view)
        }
        Message::Watch { reads, ranges, .. } => judge_watch(reads, ranges, view),
        Message::Commit { settled_below, participants, command, .. } => {
            judge_asker(view)?;
            view.owner(command.txn)?;
            let sequence = command.txn.sequence;
            ensure(*settled_below <= sequence, Rejection::Range)?;
            ensure(sequence - settled_below < UNSETTLED_MAX, Rejection::Range)?;
            judge_participants(participants)?;
            let shard = own_shard(view)?;
            ensure(participants.contains(&shard), Rejection::Role)?;
            judge_command(command, shard, view)
        }
        Message::KeysReply(_)
        | Message::PageReply(_)
        | Message::Ended { .. }
        | Message::NotKnown { .. }
        | Message::NotFresh { .. }
        | Message::Changed { .. }
        | Message::ClockReply { .. } => judge_reply(message, view),
        Message::Broadcast { .. } => {
            view.member()?;
            ensure(view.repository().is_some(), Rejection::Role)
        }
        Message::Answer { answer, .. } => {
            judge_other_shard(view)?;
            match answer {
                ShardAnswer::Proposed { at } | ShardAnswer::Voted { at, .. } => in_range(*at),
                ShardAnswer::Ended { decision } => judge_decision(*decision),
                ShardAnswer::Settled => Ok(()),
            }
        }
        Message::Ask { participants, .. } => {
            let from = judge_other_shard(view)?;
            judge_participants(participants)?;
            let take_part =
                participants.contains(&from) && participants.contains(&own_shard(view)?);
            ensure(take_part, Rejection::Sender)
        }
    }
}

/// Whether this sender may answer so.
fn judge_reply(message: &Message, view: View<'_>) -> Result<(), Rejection> {
    judge_answerer(view)?;
    match message {
        Message::KeysReply(reply) => {
            judge_moment(reply.snapshot, reply.clock)?;
            reply.found.iter().try_for_each(|found| in_range(found.recorded()))
        }
        Message::PageReply(reply) => {
            judge_moment(reply.snapshot, reply.clock)?;
            reply.rows.iter().try_for_each(|(_, found)| in_range(found.recorded()))
        }
        Message::Ended { decision, .. } => judge_decision(*decision),
        Message::Changed { clock, .. } | Message::ClockReply { clock, .. } => {
            judge_moment(None, *clock)
        }
        _ => Ok(()),
    }
}

/// The shard of the member that judges.
fn own_shard(view: View<'_>) -> Result<ShardId, Rejection> {
    let repository = view.repository().ok_or(Rejection::Role)?;
    // Whoever forges a message may say that it is for a repository that there is not.
    ensure(usize::from(repository.0) < view.catalog.repositories(), Rejection::Role)?;
    Ok(shard_of(repository, view.catalog))
}

/// A coordinator asks a member.
fn judge_asker(view: View<'_>) -> Result<(), Rejection> {
    view.coordinator()?;
    ensure(view.repository().is_some(), Rejection::Role)
}

/// A coordinator reads, at timestamps that were issued.
fn judge_reader(
    snapshot: Option<Timestamp>,
    at_least: Timestamp,
    view: View<'_>,
) -> Result<(), Rejection> {
    judge_asker(view)?;
    let begins = |at: Timestamp| Timestamp::new(at.counter(), RepositoryId(0));
    snapshot.into_iter().try_for_each(|at| view.issued(begins(at)))?;
    view.issued(begins(at_least))
}

/// A coordinator waits for a change of what it has read in this shard.
fn judge_watch(reads: &[ReadKey], ranges: &[ReadRange], view: View<'_>) -> Result<(), Rejection> {
    judge_asker(view)?;
    let shard = own_shard(view)?;
    let is_here = |read: &ReadKey| shard_of_key(read.space, &read.key, view.catalog) == shard;
    ensure(reads.iter().all(is_here), Rejection::Catalog)?;
    ranges.iter().try_for_each(|range| judge_read_range(range, view))?;
    reads.iter().try_for_each(ReadKey::judge)?;
    ranges.iter().try_for_each(ReadRange::judge)
}

/// A member answers a coordinator.
fn judge_answerer(view: View<'_>) -> Result<(), Rejection> {
    view.member()?;
    let is_member = matches!(view.from.role, Role::Repository(_));
    ensure(is_member, Rejection::Sender)?;
    ensure(view.me.role == Role::Coordinator, Rejection::Role)
}

/// A member of another shard says something: of which.
fn judge_other_shard(view: View<'_>) -> Result<ShardId, Rejection> {
    view.member()?;
    let own = own_shard(view)?;
    let Role::Repository(from) = view.from.role else { return Err(Rejection::Sender) };
    ensure(usize::from(from.0) < view.catalog.repositories(), Rejection::Sender)?;
    let from = shard_of(from, view.catalog);
    ensure(from != own, Rejection::Sender).map(|()| from)
}

/// A snapshot, and a clock, that can be.
fn judge_moment(snapshot: Option<Timestamp>, clock: u64) -> Result<(), Rejection> {
    ensure(clock <= Timestamp::FARTHEST.counter(), Rejection::Range)?;
    snapshot.into_iter().try_for_each(in_range)
}

fn judge_decision(decision: Decision) -> Result<(), Rejection> {
    match decision {
        Decision::Commit(at) => in_range(at),
        Decision::Abort(_) => Ok(()),
    }
}

fn judge_page(request: &ShardPageRequest, view: View<'_>) -> Result<(), Rejection> {
    view.range(&request.within)?;
    view.range(&request.range)?;
    is_inside(&request.range, &request.within)
}

fn judge_command(
    command: &CertifiedCommand,
    shard: ShardId,
    view: View<'_>,
) -> Result<(), Rejection> {
    ensure(command.spaces == 0, Rejection::Range)?; // The member says it.
    ensure(command.after <= Timestamp::FARTHEST.counter(), Rejection::Range)?;
    view.issued(Timestamp::new(command.after, RepositoryId(0)))?;
    command.ranges.iter().try_for_each(|range| judge_read_range(range, view))?;
    let keys = command.reads.iter().map(|read| (read.space, &read.key));
    let mut keys = keys.chain(command.writes.iter().map(|(space, key, _)| (*space, key)));
    let are_here = keys.all(|(space, key)| shard_of_key(space, key, view.catalog) == shard);
    let of_call = |partition| shard_of_partition(partition, view.catalog);
    let calls_here = command.calls.iter().all(|call| of_call(call.partition) == shard);
    ensure(are_here && calls_here, Rejection::Catalog)?;
    command.judge()
}
