//! What is forgotten of clients that are gone
//! ([`silent`](crate::granola::participant::failures::gone_clients)).

use std::ops::Bound;

use super::*;
use crate::doubts::ClientsUntil;

impl EndedTransactions {
    /// A client was heard of.
    pub fn observe_client(&mut self, node: NodeId, now: Nanos) {
        if let Some(known) = self.coordinators.get_mut(&node) {
            let before = known.weight();
            (known.seen_at, known.is_silent) = (now.max(Nanos(1)), false);
            self.of_clients = self.of_clients + known.weight() - before;
        }
    }

    /// Looks for clients that were silent for `lease`: what was refused of them is forgotten, and
    /// what parts gave; and they are, where nothing is left. What is done here lies at or below
    /// `done`. How many became silent.
    pub fn forget_silent(&mut self, now: Nanos, lease: Nanos, done: Timestamp) -> u64 {
        let (of_clients, before, mut forgotten) =
            (&mut self.of_clients, self.coordinators.len(), 0);
        let data = &self.data;
        self.coordinators.retain(|node, known| {
            if known.seen_at == Nanos(0) || known.seen_at + lease > now {
                return true; // Members are never heard of here.
            }
            let before = known.weight();
            known.forget_refused();
            known.forget_answers();
            // What is left of one that is gone keeps no room from others.
            forgotten += u64::from(!known.is_silent);
            known.is_silent = true;
            *of_clients -= before;
            // Data may have no bytes: that there is nothing to know is known, too.
            let first = TxnId { node: *node, incarnation: 0, sequence: 0 };
            let has_data = || data.range(first..).next().is_some_and(|(txn, _)| txn.node == *node);
            known.len() > 0 || known.bytes > 0 || has_data()
        });
        if self.coordinators.len() < before {
            self.lower_bound = self.lower_bound.max(done);
        }
        forgotten
    }

    /// Whether any client is known.
    pub fn knows_clients(&self) -> bool {
        self.coordinators.values().any(|known| known.seen_at != Nanos(0))
    }

    /// Clients behind one of which something is left that may go: of one that is silent all, of
    /// others what is of earlier lives, for of these nothing new is taken up.
    pub fn left_by_clients(
        &self,
        after: Option<ClientsUntil>,
    ) -> impl Iterator<Item = ClientsUntil> + '_ {
        let from = after.map_or(Bound::Unbounded, |(node, _)| Bound::Excluded(node));
        let behind = self.coordinators.range((from, Bound::Unbounded));
        let clients = behind.filter(|(_, known)| known.seen_at != Nanos(0));
        clients.filter_map(|(node, known)| {
            self.steps.count();
            match known.is_silent {
                true => Some((*node, known.incarnation.saturating_add(1))),
                false => (!known.earlier.is_empty()).then_some((*node, known.incarnation)),
            }
        })
    }

    /// Nothing of a client was under way anywhere as it was asked: forgets it, if nothing was put
    /// in since. What is done here lies at or below `done`.
    pub fn forget_client(&mut self, of: ClientsUntil, asked: Nanos, done: Timestamp) {
        let (node, until) = of;
        let Some(known) = self.coordinators.get_mut(&node) else { return };
        let is_whole = until > known.incarnation;
        if is_whole && (!known.is_silent || known.seen_at >= asked) {
            return;
        }
        let before = known.weight();
        let end = TxnId { node, incarnation: until, sequence: 0 };
        let shared = self.data.extract_if(TxnId { incarnation: 0, ..end }..end, |_, _| true);
        let shared = shared.map(|(_, seen_at)| data_bytes(&seen_at)).sum::<usize>();
        let earlier = known.earlier.extract_if(..(until, 0), |_, _| true);
        let freed = shared + earlier.map(|(_, over)| over.end.bytes()).sum::<usize>();
        assert!(freed <= known.bytes, "{freed} bytes of {node:?} were not counted");
        known.bytes -= freed;
        self.of_clients = self.of_clients + known.weight() - before;
        if is_whole {
            self.coordinators.remove(&node); // A silent one counts towards nobody's room.
            self.lower_bound = self.lower_bound.max(done);
        }
    }

    /// Up to where this may have been done here and forgotten, if it may: of a client that was not
    /// known, a request by whoever has seen no more than `seen`.
    pub fn may_be_forgotten(&self, txn: TxnId, seen: Timestamp) -> Option<Timestamp> {
        let known = self.coordinators.get(&txn.node)?;
        Some(known.lower_bound).filter(|lower_bound| seen < *lower_bound)
    }

    /// The lower bound, and those of the clients that came again.
    pub fn lower_bounds(&self) -> (Timestamp, Vec<(NodeId, Timestamp)>) {
        let known =
            self.coordinators.iter().filter(|(_, known)| known.lower_bound > Timestamp::ZERO);
        (self.lower_bound, known.map(|(node, known)| (*node, known.lower_bound)).collect())
    }

    /// Takes over the [lower bounds](Self::lower_bounds) of clients that another memory knows.
    pub fn recall_lower_bounds(&mut self, lower_bounds: Vec<(NodeId, Timestamp)>) {
        for (node, lower_bound) in lower_bounds {
            self.coordinators.entry(node).or_default().lower_bound = lower_bound;
        }
    }

    /// Takes over the [lower bound](Self::lower_bounds) of another memory, once its clients are
    /// known.
    pub fn recall_lower_bound(&mut self, lower_bound: Timestamp) {
        self.lower_bound = lower_bound;
    }
}
