//! What is forgotten of clients that are gone
//! ([`silent`](crate::granola::participant::failures::gone_clients)).

use std::ops::Bound;

use super::*;
use crate::doubts::ClientsUntil;

impl EndedTransactions {
    /// A client was heard of.
    pub fn hear_client(&mut self, node: NodeId, now: Nanos) {
        if let Some(known) = self.coordinators.get_mut(&node) {
            let before = known.weight();
            (known.heard, known.is_silent) = (now.max(Nanos(1)), false);
            self.of_clients = self.of_clients + known.weight() - before;
        }
    }

    /// Looks for clients that were silent for `lease`: what was refused of them is forgotten, and
    /// what parts gave; and they are, where nothing is left. What is done here lies at or below
    /// `done`. How many became silent.
    pub fn forget_silent(&mut self, now: Nanos, lease: Nanos, done: Timestamp) -> u64 {
        let (of_clients, before, mut forgotten) =
            (&mut self.of_clients, self.coordinators.len(), 0);
        self.coordinators.retain(|_, known| {
            if known.heard == Nanos(0) || known.heard + lease > now {
                return true; // Members are never heard of here.
            }
            let before = known.weight();
            known.forget_refused();
            known.forget_answers();
            // What is left of one that is gone keeps no room from others.
            forgotten += u64::from(!known.is_silent);
            known.is_silent = true;
            *of_clients -= before;
            known.len() > 0 || known.bytes > 0
        });
        if self.coordinators.len() < before {
            self.floor = self.floor.max(done);
        }
        forgotten
    }

    /// Whether any client is known.
    pub fn knows_clients(&self) -> bool {
        self.coordinators.values().any(|known| known.heard != Nanos(0))
    }

    /// Clients behind one of which something is left that may go: of one that is silent all, of
    /// others what is of earlier lives, for of these nothing new is taken up.
    pub fn left_by_clients(
        &self,
        after: Option<ClientsUntil>,
    ) -> impl Iterator<Item = ClientsUntil> + '_ {
        let from = after.map_or(Bound::Unbounded, |(node, _)| Bound::Excluded(node));
        let behind = self.coordinators.range((from, Bound::Unbounded));
        let clients = behind.filter(|(_, known)| known.heard != Nanos(0));
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
        if is_whole && (!known.is_silent || known.heard >= asked) {
            return;
        }
        let before = known.weight();
        let end = TxnId { node, incarnation: until, sequence: 0 };
        let told = self.data.extract_if(TxnId { incarnation: 0, ..end }..end, |_, _| true);
        let told = told.map(|(_, heard)| data_bytes(&heard)).sum::<usize>();
        let earlier = known.earlier.extract_if(..(until, 0), |_, _| true);
        let freed = told + earlier.map(|(_, over)| over.end.bytes()).sum::<usize>();
        assert!(freed <= known.bytes, "{freed} bytes of {node:?} were not counted");
        known.bytes -= freed;
        self.of_clients = self.of_clients + known.weight() - before;
        if is_whole {
            self.coordinators.remove(&node); // A silent one counts towards nobody's room.
            self.floor = self.floor.max(done);
        }
    }

    /// Up to where this may have been done here and forgotten, if it may: of a client that was not
    /// known, a request by whoever has seen no more than `seen`.
    pub fn may_be_forgotten(&self, txn: TxnId, seen: Timestamp) -> Option<Timestamp> {
        let known = self.coordinators.get(&txn.node)?;
        Some(known.floor).filter(|floor| seen < *floor)
    }

    /// The floor, and those of the clients that came again.
    pub fn floors(&self) -> (Timestamp, Vec<(NodeId, Timestamp)>) {
        let known = self.coordinators.iter().filter(|(_, known)| known.floor > Timestamp::ZERO);
        (self.floor, known.map(|(node, known)| (*node, known.floor)).collect())
    }

    /// Takes over the [floors](Self::floors) of clients that another memory knows.
    pub fn recall_floors(&mut self, floors: Vec<(NodeId, Timestamp)>) {
        for (node, floor) in floors {
            self.coordinators.entry(node).or_default().floor = floor;
        }
    }

    /// Takes over the [floor](Self::floors) of another memory, once its clients are known.
    pub fn recall_floor(&mut self, floor: Timestamp) {
        self.floor = floor;
    }
}
