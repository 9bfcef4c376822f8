//! Up to where clients had come that a shard has forgotten.
//!
//! A request of a commit may lie unread at a member that stands still for longer than its client is
//! remembered, while another member carries it out. What is known here keeps it from being taken
//! for a new one. It is the member's own: no command depends on it, and no restart keeps it, as
//! what lay unread is gone then.

use std::collections::BTreeMap;

use muesli_core::{Nanos, NodeId, TxnId};

/// So many clients are known at most.
const MOST: usize = 16_384;

/// An incarnation of a client, and a number of a transaction of it.
type ClientPosition = (u32, u64);

/// What is known of clients that were forgotten: each for a lease at least, and for two at most,
/// unless there are very many.
///
/// Invariants: each of both parts has half of the most clients at most.
#[derive(Clone, Debug, Default)]
pub(crate) struct ForgottenClients {
    /// Below this are all transactions of a client that were delivered.
    recent: BTreeMap<NodeId, ClientPosition>,
    /// The same, of the lease before.
    earlier: BTreeMap<NodeId, ClientPosition>,
    /// When the recent ones began.
    since: Nanos,
}

impl ForgottenClients {
    /// A client is forgotten whose transactions were all below this.
    pub fn insert(&mut self, client: NodeId, until: ClientPosition, now: Nanos) {
        let until = self.position(client).map_or(until, |known| until.max(known));
        if self.recent.len() >= MOST / 2 {
            self.begin_lease(now);
        }
        self.recent.insert(client, until);
        self.assert_invariants();
    }

    /// Time passes: what is older than this goes, by and by.
    pub fn expire(&mut self, lease: Nanos, now: Nanos) {
        if self.since + lease <= now {
            self.begin_lease(now);
        }
    }

    fn begin_lease(&mut self, now: Nanos) {
        self.earlier = std::mem::take(&mut self.recent);
        self.since = now;
    }

    fn position(&self, client: NodeId) -> Option<ClientPosition> {
        self.recent.get(&client).or_else(|| self.earlier.get(&client)).copied()
    }

    /// Whether a transaction may be one that was delivered before its client was forgotten.
    pub fn may_have(&self, txn: TxnId) -> bool {
        self.position(txn.node).is_some_and(|until| (txn.incarnation, txn.sequence) < until)
    }

    /// # Panics
    /// If an invariant does not hold.
    pub fn assert_invariants(&self) {
        let (recent, earlier) = (self.recent.len(), self.earlier.len());
        assert!(recent <= MOST / 2, "{recent} clients of this lease are known");
        assert!(earlier <= MOST / 2, "{earlier} clients of the lease before are known");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Nanos = Nanos(10);

    fn txn(client: u32, sequence: u64) -> TxnId {
        TxnId { node: NodeId(client), incarnation: 1, sequence }
    }

    #[test]
    fn a_client_is_known_for_a_lease_at_least_and_for_two_at_most() {
        let mut clients = ForgottenClients::default();
        clients.expire(LEASE, Nanos(10));
        clients.insert(NodeId(7), (1, 5), Nanos(19));
        clients.expire(LEASE, Nanos(20));
        clients.expire(LEASE, Nanos(29));
        assert!(clients.may_have(txn(7, 4)) && !clients.may_have(txn(7, 5)));
        assert!(!clients.may_have(txn(8, 4)), "another client");
        clients.expire(LEASE, Nanos(30));
        assert!(!clients.may_have(txn(7, 4)));
    }

    #[test]
    fn who_is_forgotten_again_had_come_no_less_far() {
        let mut clients = ForgottenClients::default();
        clients.insert(NodeId(7), (1, 101), Nanos(1));
        clients.expire(LEASE, Nanos(11));
        clients.insert(NodeId(7), (1, 51), Nanos(12));
        assert!(clients.may_have(txn(7, 100)));
    }

    #[test]
    fn of_very_many_the_last_ones_are_known() {
        let mut clients = ForgottenClients::default();
        let many = 100 * MOST as u32;
        (0..many).for_each(|client| clients.insert(NodeId(client), (1, 2), Nanos(1)));
        assert!(clients.may_have(txn(many - 1, 1)) && !clients.may_have(txn(0, 1)));
        assert!(clients.recent.len() + clients.earlier.len() <= MOST);
    }
}
