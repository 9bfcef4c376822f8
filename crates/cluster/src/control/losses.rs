//! Data that are lost: what those who look after a server are told.

use muesli_core::{Nanos, ReplicaRole};

use crate::dispatch::event_loop::Loop;

/// A server whose peers all say that they lost their disks waits so long before it tells of it:
/// those that have got their data back say so, too.
const ALL_LOST_AFTER: Nanos = Nanos::from_millis(10_000);

impl Loop {
    /// Tells, once each, of data that nobody can give back.
    pub(crate) fn tell_losses(&mut self, now: Nanos) {
        if self.peers.forgives() {
            self.tell_lost_members();
        } else if self.peers.exchanges_members() {
            self.tell_that_all_lost(now);
        }
    }

    /// Tells, once each, of members that wait because too many of their group forgot.
    fn tell_lost_members(&mut self) {
        let replica_roles = self.loop_engine.inner.borrow().machine.replica_roles();
        let lost =
            |(member, role): &(_, ReplicaRole)| (*role == ReplicaRole::Lost).then_some(*member);
        let lost: Vec<_> = replica_roles.iter().filter_map(lost).collect();
        for member in lost.iter().filter(|member| !self.reported_lost.contains(member)) {
            (self.notice)(&format!(
                "member {} takes no part: a majority of its group has lost its folders, and with \
                 them what only those knew. Bring one of these back as it was, or accept the loss: \
                 start the servers that lost theirs with `accept_loss = true`",
                member.0
            ));
        }
        self.reported_lost = lost;
    }

    /// Tells, once, that all servers of a cluster say that their disks were lost, and none gives
    /// this one its data: so it is where a new cluster is started with `accept_loss`.
    fn tell_that_all_lost(&mut self, now: Nanos) {
        let replica_roles = self.loop_engine.inner.borrow().machine.replica_roles();
        let joins = replica_roles.iter().any(|(_, role)| *role == ReplicaRole::Joins);
        if !joins || !self.peers.all_lost() {
            self.all_lost_since = None;
            return;
        }
        let since = *self.all_lost_since.get_or_insert(now);
        if since + ALL_LOST_AFTER > now || self.reported_all_lost {
            return;
        }
        self.reported_all_lost = true;
        (self.notice)(
            "this server waits for its data, and all others say as well that their disks were lost \
             (`accept_loss = true`). Where one of them has got its data back since, it gives them, \
             which may take a while. Where none has any, as in a new cluster, all wait for each \
             other: stop all servers, delete their data folders, and start them without \
             `accept_loss`",
        );
    }
}
