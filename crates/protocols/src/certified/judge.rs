//! What is asked of a message from another process before it touches any state: who may say it, and
//! whether its numbers can be.
//!
//! A coordinator, of a member or a client, reads and commits for its own transactions. What sites
//! say comes from members. A read that a client makes up harms nobody: it is compared, and raises
//! no clock.

use muesli_broadcast::epochs::MemberName;
use muesli_core::judgement::{ensure, in_range};
use muesli_core::{Catalog, Decision, KeyRange, Rejection, Role, SpaceId, View};

use super::message::command::{CertifiedCommand, ReadKey, ReadRange, judge_settled};
use super::message::moment::ReadMoment;
use super::message::{Message, PageRequest};
use super::participant::site_of;

/// Whether everything that a message names is there.
pub(super) fn is_about(message: &Message, catalog: &Catalog) -> bool {
    let is_there = |space: SpaceId| catalog.space(space).is_some();
    match message {
        Message::Keys(request) => request.keys.iter().all(|(space, _)| is_there(*space)),
        Message::Page(request) => is_there(request.range.space),
        Message::Commit { command, .. } => {
            command.reads.iter().all(|read| is_there(read.space))
                && command.ranges.iter().all(|range| is_there(range.seen.space))
                && command.writes.iter().all(|(space, ..)| is_there(*space))
                && command.calls.iter().all(|it| catalog.has_partition(it.partition))
        }
        Message::Watch { reads, ranges, .. } => {
            reads.iter().all(|read| is_there(read.space))
                && ranges.iter().all(|range| is_there(range.seen.space))
        }
        Message::Broadcast { spaces, .. } => usize::from(*spaces) <= catalog.spaces().len(),
        Message::KeysReply(_)
        | Message::PageReply(_)
        | Message::Ended { .. }
        | Message::NotKnown { .. }
        | Message::Ask { .. }
        | Message::Release { .. }
        | Message::Renew { .. }
        | Message::Unwatch { .. }
        | Message::Changed { .. }
        | Message::Join { .. }
        | Message::Waits { .. }
        | Message::NotFresh { .. } => true,
    }
}

/// Whether this sender may say this, and whether its numbers can be.
pub(super) fn judge(message: &Message, view: View<'_>) -> Result<(), Rejection> {
    match message {
        Message::Keys(request) => {
            judge_asker(view)?;
            judge_moment(&request.moment)
        }
        Message::Release { .. } | Message::Renew { .. } | Message::Unwatch { .. } => {
            judge_asker(view)
        }
        Message::Watch { reads, ranges, .. } => {
            judge_asker(view)?;
            ranges.iter().try_for_each(|range| judge_read_range(range, view))?;
            reads.iter().try_for_each(ReadKey::judge)?;
            ranges.iter().try_for_each(ReadRange::judge)
        }
        Message::Page(request) => {
            judge_asker(view)?;
            judge_page(request, view)
        }
        Message::Commit { settled_below, command, .. } => {
            judge_asker(view)?;
            view.owner(command.txn)?;
            judge_settled(command.txn, *settled_below)?;
            judge_command(command, view)
        }
        Message::Ask { txn, settled_below, .. } => {
            judge_asker(view)?;
            view.owner(*txn)?;
            judge_settled(*txn, *settled_below)
        }
        Message::KeysReply(reply) => {
            judge_site(view)?;
            in_range(reply.cut)?;
            reply.found.iter().try_for_each(|found| in_range(found.recorded()))
        }
        Message::PageReply(reply) => {
            judge_site(view)?;
            in_range(reply.cut)?;
            reply.rows.iter().try_for_each(|(_, found)| in_range(found.recorded()))
        }
        Message::Ended { decision, member, .. } => {
            judge_named_site(*member, view)?;
            match decision {
                Decision::Commit(at) => in_range(*at),
                Decision::Abort(_) => Ok(()),
            }
        }
        Message::NotKnown { member, .. } => judge_named_site(*member, view),
        Message::Changed { .. } | Message::Waits { .. } | Message::NotFresh { .. } => {
            judge_site(view)
        }
        Message::Broadcast { .. } | Message::Join { .. } => {
            view.member()?;
            ensure(view.repository().is_some(), Rejection::Role)
        }
    }
}

/// A coordinator asks a site.
fn judge_asker(view: View<'_>) -> Result<(), Rejection> {
    view.coordinator()?;
    ensure(view.repository().is_some(), Rejection::Role)
}

/// A site answers a coordinator.
fn judge_site(view: View<'_>) -> Result<(), Rejection> {
    view.member()?;
    let is_site = matches!(view.from.role, Role::Repository(_));
    ensure(is_site, Rejection::Sender)?;
    ensure(view.me.role == Role::Coordinator, Rejection::Role)
}

/// A site answers a coordinator, as the member that it says it is.
fn judge_named_site(member: MemberName, view: View<'_>) -> Result<(), Rejection> {
    judge_site(view)?;
    ensure(view.from.role == Role::Repository(site_of(member)), Rejection::Sender)
}

fn judge_page(request: &PageRequest, view: View<'_>) -> Result<(), Rejection> {
    judge_moment(&request.moment)?;
    view.range(&request.within)?;
    view.range(&request.range)?;
    is_inside(&request.range, &request.within)
}

/// Numbers of a moment can be. What a session claims to have seen harms nobody: a cut that is
/// proposed after it was asked for has all of that.
fn judge_moment(moment: &ReadMoment) -> Result<(), Rejection> {
    match moment {
        ReadMoment::Present | ReadMoment::Known(_) => Ok(()),
        ReadMoment::Cut(bound) => in_range(bound.seen),
    }
}

/// A range lies in another one.
pub(crate) fn is_inside(inner: &KeyRange, outer: &KeyRange) -> Result<(), Rejection> {
    let ends_inside = match (&inner.hi, &outer.hi) {
        (_, None) => true,
        (Some(inner), Some(outer)) => inner <= outer,
        (None, Some(_)) => false,
    };
    let is_so = inner.space == outer.space && inner.lo >= outer.lo && ends_inside;
    ensure(is_so, Rejection::Range)
}

fn judge_command(command: &CertifiedCommand, view: View<'_>) -> Result<(), Rejection> {
    ensure(command.after == 0 && command.spaces == 0, Rejection::Range)?; // The site says them.
    command.ranges.iter().try_for_each(|range| judge_read_range(range, view))?;
    command.judge()
}

/// A range that was read can be.
pub(crate) fn judge_read_range(range: &ReadRange, view: View<'_>) -> Result<(), Rejection> {
    view.range(&range.within)?;
    view.range(&range.seen)?;
    is_inside(&range.seen, &range.within)
}
