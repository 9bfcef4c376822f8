//! What is forgotten of clients that are gone ([`silent`](super::super::silent)).

use std::ops::Bound;

use super::*;
use crate::doubts::ClientsUntil;

impl Memory {
    /// A client was heard of.
    pub fn hear_client(&mut self, node: NodeId, now: Nanos) {
        if let Some(known) = self.coordinators.get_mut(&node) {
            let before = known.weight();
            (known.heard, known.is_silent) = (now.max(Nanos(1)), false);
            self.of_clients = self.of_clients + known.weight() - before;
        }
    }

    /// Looks for clients that were silent for `lease`: what was refused of them is forgotten, and
    /// what parts gave; and they are, where nothing is left.
    pub fn forget_silent(&mut self, now: Nanos, lease: Nanos) {
        let of_clients = &mut self.of_clients;
        self.coordinators.retain(|_, known| {
            if known.heard == Nanos(0) || known.heard + lease > now {
                return true; // Members are never heard of here.
            }
            let before = known.weight();
            known.forget_refused();
            known.forget_answers();
            // What is left of one that is gone keeps no room from others.
            known.is_silent = true;
            *of_clients -= before;
            known.len() > 0 || known.bytes > 0
        });
    }

    /// Whether any client is known.
    pub fn knows_clients(&self) -> bool {
        self.coordinators.values().any(|known| known.heard != Nanos(0))
    }

    /// Silent clients behind one, in whose transactions participants were told something, and which
    /// may go: at most so many.
    pub fn told_to_silent(
        &self,
        after: Option<ClientsUntil>,
        most: usize,
        may_go: impl Fn(ClientsUntil) -> bool,
    ) -> Vec<ClientsUntil> {
        let mut all = Vec::new();
        let mut from = after.map_or(Bound::Unbounded, |(node, _)| behind(node));
        while let Some((txn, _)) = self.heard.range((from, Bound::Unbounded)).next() {
            self.steps.count();
            let known = self.coordinators.get(&txn.node).filter(|known| known.is_silent);
            let silent = known.map(|known| (txn.node, known.life.saturating_add(1)));
            all.extend(silent.filter(|of| may_go(*of)));
            if all.len() >= most {
                break;
            }
            from = behind(txn.node);
        }
        all
    }

    /// Nothing of a client was under way anywhere as it was asked: forgets what was told in its
    /// transactions, if nothing was put in since.
    pub fn forget_told(&mut self, (node, until): ClientsUntil, asked: Nanos) {
        let Some(known) = self.coordinators.get_mut(&node) else { return };
        if !known.is_silent || known.heard >= asked || known.life >= until {
            return;
        }
        let end = TxnId { node, incarnation: until, sequence: 0 };
        let first = TxnId { incarnation: 0, ..end };
        let told = self.heard.extract_if(first..end, |_, _| true);
        known.bytes -= told.map(|(_, heard)| heard_bytes(&heard)).sum::<usize>();
        if known.len() == 0 && known.bytes == 0 {
            self.coordinators.remove(&node);
        }
    }

    /// Counts once more what is counted as it changes.
    pub fn assert_counts(&self) {
        let weights: usize = self.coordinators.values().map(Known::weight).sum();
        assert_eq!(self.of_clients, weights, "ends of clients, and clients");
        let mut told: BTreeMap<NodeId, usize> = BTreeMap::new();
        for (txn, heard) in &self.heard {
            *told.entry(txn.node).or_default() += heard_bytes(heard);
        }
        for (node, known) in &self.coordinators {
            let over = known.over.iter().map(|(_, over)| over).chain(known.earlier.values());
            let ends: usize = over.map(|over| over.end.bytes()).sum();
            let told = told.get(node).copied().unwrap_or_default();
            assert_eq!(known.bytes, ends + told, "bytes that are kept of {node:?}");
        }
    }
}

/// Where the transactions of the coordinators behind one begin.
fn behind(node: NodeId) -> Bound<TxnId> {
    Bound::Excluded(TxnId { node, incarnation: u32::MAX, sequence: u64::MAX })
}
