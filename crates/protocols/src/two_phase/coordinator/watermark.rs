//! The watermark: how far garbage may be collected.
//!
//! A coordinator's *bound* is the least snapshot of its running transactions, or where there are
//! none what its next transaction would read at; transactions begin at or above the bound last
//! told, so bounds only grow. The coordinator beside repository 0 gathers them and tells the
//! minimum; a database of one node needs no messages for it. Clients that coordinate their own
//! transactions come and go: while they are heard of they count like the others, and each is
//! answered alone. Each node's coordinator hands the minimum to the repositories there.
//!
//! With more than [`NODES_OFTEN`] coordinators each tells its bound so much more seldom that the
//! gatherer hears of, and answers, as many a second as with so many. What comes later is garbage
//! collection alone: an old bound is merely careful, and a watermark that is told late is too.

use muesli_core::parts::watermark::Bound;
use muesli_core::{Address, Here, Nanos, NodeId, RepositoryId, Role, Settings, TxnId};

use super::slot::Slot;
use super::{Coordinator, CoordinatorTimer};
use crate::two_phase::message::Message;
use crate::two_phase::policy::FamilySwitch;
use crate::two_phase::{Context, TwoPhase, Variant};

/// So many coordinators tell their bounds as often as the settings say; more do it more seldom.
const NODES_OFTEN: u64 = 16;
/// While nothing happens, bounds are told this much more seldom at most.
const IDLE_FACTOR_MAX: u64 = 32;

impl<V: Variant> Coordinator<V> {
    /// What a transaction that begins now may read at, at least.
    pub(in crate::two_phase) fn newest_here(&self, here: &Here<'_, TwoPhase<V>>) -> V::Snapshot {
        self.greatest(here.all().map(|participant| participant.committed()))
    }

    /// The greatest of what the repositories here say; without any, what was heard of. A node that
    /// remembers knows of other repositories what it has heard.
    fn greatest(&self, all: impl Iterator<Item = V::Snapshot>) -> V::Snapshot {
        let also = V::POLICIES.reading.nodes_remember().then(|| self.observed.clone());
        let joined = all.chain(also).reduce(|mut greatest, other| {
            greatest.join(&other);
            greatest
        });
        joined.unwrap_or_else(|| self.observed.clone())
    }

    /// The bound of what runs here. What has run for too long does not count: where versions that
    /// it needs are gone, its next read says so.
    fn raise_bound(
        &mut self,
        here: &Here<'_, TwoPhase<V>>,
        cx: &mut Context<'_, V>,
    ) -> V::Snapshot {
        let since = cx.now() - cx.settings.snapshot_age_max;
        let all = V::switches(&self.switches).keeps(FamilySwitch::ReadersHoldLow);
        let aged = self.running().filter(|it| (self.aged..since).contains(&it.begun)).count();
        cx.effects.maintenance.snapshots_aged += aged as u64;
        self.aged = self.aged.max(since);
        let counts = |slot: &&Slot<V>| all && slot.begun >= since;
        let running = self.running().filter(counts).map(|slot| slot.reads_at().clone());
        let least = running.reduce(|mut least, other| {
            least.meet(&other);
            least
        });
        let bound = least.unwrap_or_else(|| self.newest_here(here));
        self.bound.join(&bound);
        self.bound.clone()
    }

    /// A transaction ended: once in a while its node's bound is worth telling.
    #[inline]
    pub(in crate::two_phase) fn count_ended(
        &mut self,
        here: &mut Here<'_, TwoPhase<V>>,
        cx: &mut Context<'_, V>,
    ) {
        self.ended_since_sent += 1;
        let (ended, tell_after) =
            (u64::from(self.ended_since_sent), cx.settings.pace.tell_bound_after);
        if ended >= tell_after && ended >= tell_after * stretch(cx.catalog.coordinators.len()) {
            self.tell_bound(here, cx);
        }
    }

    fn tell_bound(&mut self, here: &mut Here<'_, TwoPhase<V>>, cx: &mut Context<'_, V>) {
        self.ended_since_sent = 0;
        let bound = self.raise_bound(here, cx);
        if cx.catalog.is_only_coordinator(self.id) {
            Self::raise_low(&bound, &V::Snapshot::default(), here, cx);
            return;
        }
        let newest = self.greatest(here.all().map(|participant| participant.newest()));
        let gatherer = cx.catalog.home(RepositoryId(0));
        if gatherer == self.id {
            self.on_bound(self.id, bound, &newest, here, cx);
        } else {
            let to = Address::coordinator(gatherer);
            cx.send(to, Message::Bound { bound, newest });
        }
    }

    pub(in crate::two_phase) fn on_bound(
        &mut self,
        from: NodeId,
        bound: V::Snapshot,
        newest: &V::Snapshot,
        here: &mut Here<'_, TwoPhase<V>>,
        cx: &mut Context<'_, V>,
    ) {
        self.observed.join(newest);
        let now = cx.now();
        self.watermark.observe(from, bound, now);
        let (since, started) = (now - cx.settings.snapshot_lease, self.started.unwrap_or(now));
        cx.effects.maintenance.leases_ended += self.watermark.lapsed(since);
        if cx.catalog.visiting_coordinators {
            self.watermark.forget_silent(&cx.catalog.coordinators, since);
        }
        let low = self.watermark.advance(&cx.catalog.coordinators, since, started);
        let newest = self.observed.clone();
        Self::raise_low(&low, &newest, here, cx);
        self.pass_on(&low, here, cx);
        if cx.catalog.is_client(from) {
            let (low, newest) = (low.clone(), newest.clone());
            cx.send(Address::coordinator(from), Message::Watermark { low, newest });
        }
        if now - self.sent_all_at
            < Nanos(bound_interval(1, cx.catalog.coordinators.len(), cx.settings).0 / 2)
        {
            return;
        }
        self.sent_all_at = now;
        for &node in cx.catalog.coordinators.iter().filter(|&&node| node != self.id) {
            let (low, newest) = (low.clone(), newest.clone());
            cx.send(Address::coordinator(node), Message::Watermark { low, newest });
        }
    }

    pub(in crate::two_phase) fn on_watermark(
        &mut self,
        low: &V::Snapshot,
        newest: &V::Snapshot,
        here: &mut Here<'_, TwoPhase<V>>,
        cx: &mut Context<'_, V>,
    ) {
        self.observed.join(newest);
        Self::raise_low(low, newest, here, cx);
        self.pass_on(low, here, cx);
    }

    /// Tells the repositories of this node that cannot be reached by calls: those that groups of
    /// nodes keep.
    fn pass_on(&self, low: &V::Snapshot, here: &Here<'_, TwoPhase<V>>, cx: &mut Context<'_, V>) {
        for repository in (0..cx.catalog.repositories() as u16).map(RepositoryId) {
            if cx.catalog.home(repository) == self.id && !here.holds(repository) {
                let (low, newest) = (low.clone(), V::Snapshot::default());
                cx.send_to_repository(repository, Message::Watermark { low, newest });
            }
        }
    }

    /// Whether this is a client's, which comes and goes.
    pub(in crate::two_phase) fn is_client(&self, cx: &Context<'_, V>) -> bool {
        cx.catalog.is_client(self.id)
    }

    /// A client that has nothing under way says so to those that keep the ends of its
    /// transactions, for it may never have a next one to say it with.
    pub(in crate::two_phase) fn tell_settled(&mut self, cx: &mut Context<'_, V>) {
        if self.took_part.is_empty() || !self.committing.is_empty() {
            return;
        }
        let sequence = self.settled_below() + 1;
        assert!(sequence > self.sequence, "number {sequence} was given out");
        let txn = TxnId { node: self.id, incarnation: self.incarnation, sequence };
        for repository in std::mem::take(&mut self.took_part) {
            cx.send_to_repository(repository, Message::Settled { txn });
        }
    }

    fn raise_low(
        low: &V::Snapshot,
        newest: &V::Snapshot,
        here: &mut Here<'_, TwoPhase<V>>,
        cx: &mut Context<'_, V>,
    ) {
        for (repository, participant) in here.all_mut() {
            let cx = &mut cx.at(Role::Repository(repository));
            participant.observe(newest, cx);
            participant.raise_low(low, cx);
        }
    }

    pub(in crate::two_phase) fn on_gossip_timeout(
        &mut self,
        here: &mut Here<'_, TwoPhase<V>>,
        cx: &mut Context<'_, V>,
    ) {
        self.started.get_or_insert(cx.now());
        if cx.catalog.is_only_coordinator(self.id) {
            return; // Nobody to tell: commits do it.
        }
        let active = self.begun_since_gossip || self.running().next().is_some();
        self.begun_since_gossip = false;
        self.idle_factor = if active { 1 } else { (self.idle_factor * 2).min(IDLE_FACTOR_MAX) };
        self.tell_bound(here, cx);
        self.tell_settled(cx);
        let nodes = cx.catalog.coordinators.len();
        cx.set_timer(
            CoordinatorTimer::Gossip,
            bound_interval(self.idle_factor, nodes, cx.settings),
        );
    }
}

/// So much more seldom than the settings say so many coordinators tell their bounds.
fn stretch(coordinators: usize) -> u64 {
    (coordinators as u64).div_ceil(NODES_OFTEN).max(1)
}

/// Between two times that one of so many coordinators tells its bound, `idle` times longer than
/// when it is busy. Their number may lengthen it up to a quarter of the lease, after which whoever
/// is silent does not count.
fn bound_interval(idle: u64, coordinators: usize, settings: &Settings) -> Nanos {
    assert!((1..=IDLE_FACTOR_MAX).contains(&idle), "{idle} times more seldom");
    let usual = settings.gossip_every.0.saturating_mul(idle);
    let most = settings.snapshot_lease.0 / 4;
    Nanos(usual.saturating_mul(stretch(coordinators)).min(most.max(usual)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gatherer_hears_as_many_bounds_a_second_of_many_nodes_as_of_few() {
        let settings = Settings::default();
        let observed =
            |nodes: usize| nodes as u64 * 1_000_000_000 / bound_interval(1, nodes, &settings).0;
        assert_eq!(observed(2), 2 * 200);
        assert_eq!(observed(16), 16 * 200);
        assert!([17, 40, 160, 1_000].iter().all(|&nodes| observed(nodes) <= observed(16)));
        assert_eq!(bound_interval(1, 160, &settings), Nanos::from_millis(50));
    }

    #[test]
    fn nobody_is_silent_for_the_lease_because_there_are_many() {
        let settings = Settings::default();
        for idle in [1, 2, IDLE_FACTOR_MAX] {
            let alone = bound_interval(idle, 1, &settings);
            assert_eq!(alone.0, settings.gossip_every.0 * idle);
            let among_many = bound_interval(idle, 100_000, &settings);
            assert_eq!(among_many.0, settings.snapshot_lease.0 / 4);
        }
        let short = Settings { snapshot_lease: Nanos::from_millis(8), ..settings };
        assert_eq!(bound_interval(1, 1_000, &short), short.gossip_every);
    }
}
