//! At which site transactions of this node are run: its own, or else the nearest that answers.
//!
//! A transaction is run at one site, to its end. A site that cannot be reached, or that leaves
//! reads without an answer for long (the node's own, too, while it has not got its data back), is
//! passed over for a while: what reads there is given up, to be run again at the next one. A commit
//! that it was asked for is asked for there alone, as another site cannot know that it is not under
//! way; how it ended others are asked as well (`elsewhere.rs`).

use std::collections::BTreeMap;

use muesli_broadcast::epochs::MemberName;
use muesli_core::{Abort, Catalog, Failure, Nanos, NodeId, RepositoryId, Txn};

use super::CertifiedCoordinator;
use crate::certified::Context;
use crate::certified::locator::by_distance;

/// So many times [`in_doubt_after`](muesli_core::Settings::in_doubt_after) a site may take to
/// answer before it is passed over.
const PATIENCE: u64 = 5;
/// The same of the time for which it is passed over, unless a link to it comes up.
const PASSED_OVER: u64 = 50;

/// The sites, as a node sees them.
#[derive(Clone, Debug, Default)]
pub struct NearSites {
    /// Those that are passed over, until when.
    passed_over: BTreeMap<RepositoryId, Nanos>,
    /// The site that the last transaction was begun at.
    last: Option<RepositoryId>,
    /// Since when it may not have applied yet what this node's clients have seen elsewhere before.
    behind: Option<Nanos>,
    /// As which members of the broadcast sites have answered last.
    members: BTreeMap<RepositoryId, MemberName>,
}

impl NearSites {
    /// Where a transaction that begins now is run.
    fn next(&mut self, node: NodeId, catalog: &Catalog, now: Nanos) -> RepositoryId {
        let (all, count) = (by_distance(node, catalog), catalog.repositories() as u16);
        self.passed_over.retain(|_, until| *until > now);
        let answers = |site: &RepositoryId| !self.passed_over.contains_key(site);
        let site = all.clone().find(answers).unwrap_or_else(|| {
            let until = |site: &RepositoryId| self.passed_over[site];
            all.min_by_key(until).expect("there is a site")
        });
        assert!(site.0 < count, "{site:?} of {count} sites");
        let before = self.last.replace(site);
        if before.is_some_and(|before| before != site) {
            self.behind = Some(now);
        }
        site
    }

    /// Whether this site has applied all that clients of the node have seen.
    pub fn is_caught_up(&self) -> bool {
        self.behind.is_none()
    }

    /// Checks what holds between steps.
    ///
    /// # Panics
    /// It does not.
    pub fn assert_invariants(&self) {
        assert!(self.behind.is_none() || self.last.is_some(), "behind at no site");
        assert!(self.passed_over.values().all(|until| until.0 > 0), "passed over, and never was");
    }

    /// A commit that was asked for at this site, at this time, was answered now, by this one. Where
    /// that is another one than transactions are run at, that one may not have applied it. Where it
    /// is this one, and commits have one order, it has applied all that was committed before it was
    /// asked; one that was asked before says nothing of what clients have seen since.
    pub fn has_committed(
        &mut self,
        (site, asked): (RepositoryId, Nanos),
        by: RepositoryId,
        in_one_order: bool,
        now: Nanos,
    ) {
        assert!(asked <= now, "{site:?} was asked in the future");
        if self.last.is_some_and(|last| last != by) {
            self.behind = Some(now);
        } else if site == by && in_one_order {
            self.behind.take_if(|since| *since < asked);
        }
    }

    /// A transaction of this site that began then reads at a cut that was proposed since: the site
    /// has applied all that anybody had been told of before.
    pub fn has_read_cut(&mut self, site: RepositoryId, began: Nanos) {
        if self.last == Some(site) {
            self.behind.take_if(|since| *since < began);
        }
    }

    /// The member that a site is, as far as that is known.
    pub fn member(&self, site: RepositoryId) -> Option<MemberName> {
        self.members.get(&site).copied()
    }

    /// A site has answered as this member.
    pub fn set_member(&mut self, site: RepositoryId, member: MemberName) {
        self.members.insert(site, member);
    }

    /// Whether no transactions are run at a site for a while.
    pub fn is_passed_over(&self, site: RepositoryId) -> bool {
        self.passed_over.contains_key(&site)
    }

    /// Whether a site may have answered by now what it was asked at this time.
    pub fn is_late(&self, since: Nanos, cx: &Context<'_>) -> bool {
        since + patience(cx) <= cx.now()
    }

    /// Another one of so many sites than this one, by turns: those that are not passed over, if
    /// there are any.
    pub fn other_than(&self, site: RepositoryId, number: u32, count: u16) -> RepositoryId {
        assert!(site.0 < count && count > 1, "{site:?} of {count} sites has no other ones");
        let others = (1..count).map(|step| RepositoryId((site.0 + step) % count));
        let reached: Vec<_> = others.clone().filter(|it| !self.is_passed_over(*it)).collect();
        let all = if reached.is_empty() { others.collect() } else { reached };
        all[number as usize % all.len()]
    }
}

impl CertifiedCoordinator {
    /// The site of a transaction that begins.
    pub(super) fn site_of_next(&mut self, cx: &Context<'_>) -> RepositoryId {
        self.sites.next(self.node, cx.catalog, cx.now())
    }

    /// A transaction that has asked its site for nothing, and whose site is passed over now, is run
    /// at another one.
    pub(super) fn leave_lost_site(&mut self, txn: Txn, cx: &Context<'_>) {
        let Some(running) = self.running.get(&txn.slot).filter(|it| !it.has_asked) else { return };
        if self.sites.is_passed_over(running.site) {
            let options = running.options;
            let site = self.site_of_next(cx);
            let options = self.guarded(options, cx);
            let running = self.running.get_mut(&txn.slot).expect("just seen");
            (running.site, running.options) = (site, options);
        }
    }

    /// A link to a node has come up: its sites are asked again.
    pub(super) fn on_linked(&mut self, node: NodeId, cx: &Context<'_>) {
        self.sites.passed_over.retain(|site, _| cx.catalog.home(*site) != node);
    }

    /// The link to a node is gone.
    pub(super) fn on_unlinked(&mut self, node: NodeId, cx: &mut Context<'_>) {
        let sites = (0..cx.catalog.repositories() as u16).map(RepositoryId);
        let lost: Vec<_> = sites.filter(|site| cx.catalog.home(*site) == node).collect();
        lost.into_iter().for_each(|site| self.pass_over(site, cx));
    }

    /// Passes over sites that leave reads without an answer. Commits say nothing of their site:
    /// they may wait for others.
    pub(super) fn pass_over_silent(&mut self, cx: &mut Context<'_>) {
        let reads = self.operations.values().filter(|it| self.sites.is_late(it.observed, cx));
        assert!(patience(cx).0 > 0, "nothing is late as it is asked for");
        let silent: Vec<_> = reads.map(|it| self.site_of(it.txn)).collect();
        for site in silent {
            if !self.sites.passed_over.contains_key(&site) {
                self.pass_over(site, cx);
            }
        }
    }

    /// Runs no transactions at a site for a while, and gives up those that have read there.
    fn pass_over(&mut self, site: RepositoryId, cx: &mut Context<'_>) {
        if cx.catalog.repositories() == 1 {
            return;
        }
        assert!(usize::from(site.0) < cx.catalog.repositories(), "{site:?} is none");
        let until = cx.now() + Nanos(cx.settings.in_doubt_after.0 * PASSED_OVER);
        self.sites.passed_over.insert(site, until);
        let reads = self.running.iter().filter(|(_, it)| it.site == site && it.has_asked);
        let reads: Vec<_> = reads.map(|(&slot, _)| Txn { slot, generation: 0 }).collect();
        let failure = Failure::Aborted(Abort::SnapshotTooOld);
        reads.into_iter().for_each(|txn| self.fail(txn, &failure, cx));
        let mut left = self.running.values();
        assert!(left.all(|it| it.site != site || !it.has_asked), "who reads at {site:?} goes on");
        self.wake_watchers_of(site, cx);
    }
}

/// How long a site may take to answer before it is passed over.
fn patience(cx: &Context<'_>) -> Nanos {
    Nanos(cx.settings.in_doubt_after.0 * PATIENCE)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: NodeId = NodeId(7);

    fn catalog() -> Catalog {
        let homes = [NodeId(0), NodeId(1), NodeId(2)];
        Catalog::new(&homes, 1, &[]).unwrap().with_nearest(&[(CLIENT, NodeId(1))])
    }

    #[test]
    fn a_site_that_is_passed_over_is_asked_again_when_its_time_is_over() {
        let (catalog, mut sites) = (catalog(), NearSites::default());
        let next = |sites: &mut NearSites, now| sites.next(CLIENT, &catalog, Nanos(now)).0;
        assert_eq!((next(&mut sites, 0), sites.is_caught_up()), (1, true));
        sites.passed_over.insert(RepositoryId(1), Nanos(10));
        assert_eq!((next(&mut sites, 5), sites.is_caught_up()), (2, false));
        let answered = |sites: &mut NearSites, (site, asked), by, in_one_order| {
            let (asked, by) = ((RepositoryId(site), Nanos(asked)), RepositoryId(by));
            sites.has_committed(asked, by, in_one_order, Nanos(7));
        };
        let has_committed = |sites: &mut NearSites, site, by| answered(sites, (site, 6), by, true);
        has_committed(&mut sites, 1, 2);
        assert!(!sites.is_caught_up(), "it was asked for at another site");
        answered(&mut sites, (2, 5), 2, true);
        assert!(!sites.is_caught_up(), "it was asked for before");
        answered(&mut sites, (2, 6), 2, false);
        assert!(!sites.is_caught_up(), "it may have applied this and not others");
        has_committed(&mut sites, 2, 2);
        assert!(sites.is_caught_up());
        has_committed(&mut sites, 1, 2);
        assert!(sites.is_caught_up(), "this site has applied it");
        for (asked, by) in [(2, 0), (1, 1)] {
            sites.behind = None;
            has_committed(&mut sites, asked, by);
            assert!(!sites.is_caught_up(), "this site may not have applied it");
        }
        sites.has_read_cut(RepositoryId(2), Nanos(7));
        assert!(!sites.is_caught_up(), "it began at that very time, perhaps before");
        sites.has_read_cut(RepositoryId(1), Nanos(8));
        assert!(!sites.is_caught_up(), "another site has it");
        sites.has_read_cut(RepositoryId(2), Nanos(8));
        assert!(sites.is_caught_up());
        sites.behind = Some(Nanos(7));
        sites.passed_over.extend([(RepositoryId(2), Nanos(8)), (RepositoryId(0), Nanos(9))]);
        assert_eq!(next(&mut sites, 6), 2, "the one that is passed over for the shortest time");
        assert_eq!((next(&mut sites, 10), sites.is_caught_up()), (1, false));
    }

    #[test]
    fn a_node_with_data_uses_another_site_only_while_its_own_has_none() {
        let mut sites = NearSites::default();
        let next = |now, sites: &mut NearSites| sites.next(NodeId(2), &catalog(), Nanos(now));
        assert_eq!(next(0, &mut sites), RepositoryId(2));
        sites.passed_over.insert(RepositoryId(2), Nanos(10));
        assert_eq!(next(5, &mut sites), RepositoryId(0));
        assert_eq!(next(10, &mut sites), RepositoryId(2));
    }

    #[test]
    fn others_are_asked_in_turn_and_first_those_that_are_reached() {
        let mut sites = NearSites::default();
        let other = |sites: &NearSites, number| sites.other_than(RepositoryId(1), number, 4).0;
        assert_eq!([0, 1, 2, 3].map(|number| other(&sites, number)), [2, 3, 0, 2]);
        sites.passed_over.extend([1, 3].map(|site| (RepositoryId(site), Nanos(9))));
        assert_eq!([0, 1, 2].map(|number| other(&sites, number)), [2, 0, 2]);
        sites.passed_over.extend([0, 2].map(|site| (RepositoryId(site), Nanos(9))));
        assert_eq!([0, 1, 2].map(|number| other(&sites, number)), [2, 3, 0]);
    }
}
