//! Commands that touch everything: by a cut through all objects, on which members agree by the
//! order of requests (`m2paxos/cut.rs`).
//!
//! Members have mostly the same. So the proposer says first what it has, and the others, once that
//! is ordered or does not come, what is not said yet: what an ordered part says stays true, whoever
//! crashes before its other parts.

use std::collections::BTreeMap;

use muesli_core::Nanos;

use super::message::{BoundedRequest, FrozenReport};
use super::{Effects, M2PaxosBounded, OrdersOwnership};
use crate::command::{CommandId, MemberId};

/// What a member has said, by the number of the part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct MemberReport {
    /// A member that crashed begins anew.
    attempt: u64,
    parts: BTreeMap<u32, FrozenReport>,
    /// Parts of earlier attempts: others have left out what these say.
    earlier: Vec<FrozenReport>,
}

impl MemberReport {
    fn all(&self) -> impl Iterator<Item = &FrozenReport> {
        self.earlier.iter().chain(self.parts.values())
    }
}

/// Commands that touch everything and wait for the next cut, and what members have said for that.
///
/// Invariants: while no command waits there is nothing; whose report is complete has all its parts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct ClosingCommands {
    queue: Vec<CommandId>,
    reports: BTreeMap<MemberId, MemberReport>,
    /// Whose reports are complete, in their order.
    complete: Vec<MemberId>,
    /// Whether this member has said what it has.
    has_reported: bool,
    /// Since when it waits for what the proposer of the first command has.
    since: Option<Nanos>,
}

impl ClosingCommands {
    /// All parts that have come, as they go into a checkpoint.
    pub fn parts(&self) -> impl Iterator<Item = &FrozenReport> {
        self.reports.values().flat_map(MemberReport::all)
    }

    /// The commands that wait, and whose reports are complete.
    pub fn head(&self) -> (Vec<CommandId>, Vec<MemberId>) {
        (self.queue.clone(), self.complete.clone())
    }

    /// Takes that back, from a checkpoint.
    pub fn take_head(&mut self, queue: Vec<CommandId>, complete: Vec<MemberId>) {
        (self.queue, self.complete) = (queue, complete);
    }

    /// Whether all parts of these members are there.
    pub fn are_complete(&self, members: &[MemberId]) -> bool {
        let is_complete = |member: &MemberId| {
            let parts = self.reports.get(member).map(|report| &report.parts);
            let count = parts.and_then(|parts| parts.values().next().map(|it| it.parts as usize));
            parts.is_some_and(|parts| Some(parts.len()) == count)
        };
        members.iter().all(is_complete)
    }

    pub fn assert_invariants(&self) {
        let is_idle = *self == ClosingCommands::default();
        assert!(!self.queue.is_empty() || is_idle, "no command waits for a cut: {self:?}");
        assert!(self.are_complete(&self.complete), "a part is missing: {self:?}");
    }

    /// Takes a part. True: all parts of its member are there.
    pub fn take(&mut self, report: FrozenReport) -> bool {
        if self.complete.contains(&report.member) {
            return false;
        }
        let of_member = self.reports.entry(report.member).or_default();
        if of_member.attempt > report.attempt {
            return false;
        }
        if of_member.attempt < report.attempt {
            of_member.attempt = report.attempt;
            of_member.earlier.extend(std::mem::take(&mut of_member.parts).into_values());
        }
        let count = report.parts as usize;
        of_member.parts.insert(report.part, report);
        of_member.parts.len() == count
    }
}

impl<B: OrdersOwnership> M2PaxosBounded<B> {
    /// A command that touches everything was ordered.
    pub(super) fn close(&mut self, id: CommandId) {
        if !self.closing.queue.contains(&id) {
            self.closing.queue.push(id);
            self.objects.freeze(true);
        }
    }

    /// Says what this member has, once for each cut.
    pub(super) fn report_frozen(&mut self, out: &mut Effects<B>) {
        let Some(id) = self.closing.queue.first().copied() else { return };
        let me = self.objects.member_id();
        if self.closing.has_reported || self.closing.complete.contains(&me) {
            return;
        }
        let is_first = id.leader == me || self.closing.complete.contains(&id.leader);
        let since = *self.closing.since.get_or_insert(out.now);
        if !is_first && out.now - since < self.objects.retry_after() {
            return;
        }
        self.closing.has_reported = true;
        let all = self.objects.frozen_parts(self.closing.parts().map(|report| &report.content));
        let (attempt, parts) = (out.now.0, all.len() as u32);
        for (part, content) in (0..).zip(all) {
            let report = FrozenReport { id, member: me, attempt, part, parts, content };
            self.propose_request(&BoundedRequest::Frozen(report), out);
        }
    }

    /// A part of what a member has was ordered.
    pub(super) fn on_frozen(&mut self, report: FrozenReport, out: &mut Effects<B>) {
        let member = report.member;
        let is_due = self.closing.queue.first() == Some(&report.id);
        if !is_due || !self.objects.is_report(&report.content, member) || report.parts == 0 {
            return;
        }
        if report.part >= report.parts || !self.closing.take(report) {
            return;
        }
        self.closing.complete.push(member);
        if self.closing.complete.len() < self.objects.majority() {
            return;
        }
        // Nothing comes between those that were ordered up to here.
        let ClosingCommands { queue, reports, .. } = std::mem::take(&mut self.closing);
        let all = reports.values().flat_map(MemberReport::all).map(|report| &report.content);
        self.act_on_objects(out, |it, inside| it.cut(&queue, all, inside));
        self.objects.freeze(false);
        self.cuts += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::m2paxos::FrozenPart;

    /// Others leave out what it says.
    #[test]
    fn a_part_stays_though_its_member_begins_anew() {
        let member = MemberId(1);
        let id = CommandId { leader: MemberId(0), sequence: 1 };
        let part = |attempt, part, parts| {
            let content = FrozenPart::default();
            FrozenReport { id, member, attempt, part, parts, content }
        };
        let mut closing = ClosingCommands { queue: vec![id], ..ClosingCommands::default() };
        assert!(!closing.take(part(1, 0, 2)));
        assert!(closing.take(part(2, 0, 1)), "the second attempt has one part");
        assert!(!closing.take(part(1, 1, 2)), "a part of an attempt that is over");
        let attempts: Vec<u64> = closing.parts().map(|it| it.attempt).collect();
        assert_eq!(attempts, [1, 2]);
        // From a checkpoint they come in this order.
        let mut restored = ClosingCommands { queue: vec![id], ..ClosingCommands::default() };
        closing.parts().for_each(|it| _ = restored.take(it.clone()));
        assert_eq!(restored, closing);
        closing.assert_invariants();
    }
}
