//! What a master on a node of its own keeps: the transactions of other nodes' coordinators that it
//! counts votes on (section 6.1.2).
//!
//! A coordinator that has such a master ([`Catalog::master_of`](muesli_core::Catalog::master_of))
//! sends its requests there instead of to the participants, and the master sends them on. From then
//! on all is as where the coordinator is the master itself: votes come here, decisions leave from
//! here, and participants answer the coordinator.
//!
//! # Why a master may forget
//! What it knows follows from votes that are stable, and which their voters repeat when the request
//! comes once more. So it writes nothing, and one that has started again counts anew what is
//! repeated to it: it can come to no other decision. A coordinator that is not answered repeats its
//! request to the master and to the participants. Where the master is dead, these ask each other
//! in the end, as they do when a coordinator is. That also bounds the memory: a case is dropped
//! when its coordinator says that it is settled, or has begun another life, and at the latest when
//! nothing was heard of it for as long as clients wait for an answer.

use std::collections::BTreeMap;
use std::sync::Arc;

use muesli_core::parts::votes::Votes;
use muesli_core::parts::window::Window;
use muesli_core::{Nanos, NodeId, TxnId};

use super::Ruling;
use crate::granola::coordinator::{Context, Coordinator, GranolaCoordinatorTimer};
use crate::granola::message::{Agreement, Message, Repositories, Request, evidence};

/// A transaction of another node's coordinator.
#[derive(Clone, Debug)]
pub(in super::super) struct Case {
    pub participants: Repositories,
    pub ruling: Ruling,
    /// What stands for the request; votes on another one are against it.
    pub about: u64,
    /// When anything was heard of it last.
    seen_at: Nanos,
}

/// What is known of a coordinator.
#[derive(Clone, Debug, Default)]
struct DelegatingClient {
    /// Its newest life.
    incarnation: u32,
    /// The number below which all of that life is settled.
    settled_below: u64,
    /// What is not settled of it, by number.
    open: Window<Case>,
}

/// All cases of a master.
///
/// Invariants: no case is settled, and a timer is set while there is one.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Cases {
    clients: BTreeMap<NodeId, DelegatingClient>,
    timer_set: bool,
}

impl Cases {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.clients.values().map(|client| client.open.len()).sum()
    }

    /// Checks the invariants.
    ///
    /// # Panics
    /// One of them does not hold.
    pub fn assert_invariants(&self) {
        for (node, client) in &self.clients {
            client.open.assert_invariants();
            let first = client.open.first().unwrap_or(u64::MAX);
            assert!(first >= client.settled_below, "{first} of {node:?} is settled, and a case");
            for (_, case) in client.open.iter() {
                if let Ruling::Open(votes) = &case.ruling {
                    votes.assert_invariants();
                    assert_eq!(votes.voters(), case.participants.len(), "who votes on a case");
                }
            }
        }
        assert!(self.len() == 0 || self.timer_set, "nobody drops cases");
    }

    /// The case of a transaction, of which something is heard now.
    pub fn get_mut(&mut self, txn: TxnId, now: Nanos) -> Option<&mut Case> {
        let client =
            self.clients.get_mut(&txn.node).filter(|it| it.incarnation == txn.incarnation)?;
        let case = client.open.get_mut(txn.sequence)?;
        case.seen_at = now;
        Some(case)
    }

    /// Takes a request up; false: it is known, or nobody waits for it any more.
    fn open(&mut self, request: &Request, about: u64, now: Nanos) -> bool {
        let TxnId { node, incarnation, sequence } = request.txn;
        let client = self.clients.entry(node).or_default();
        if incarnation > client.incarnation {
            *client = DelegatingClient { incarnation, ..DelegatingClient::default() };
        }
        if incarnation < client.incarnation {
            return false;
        }
        client.settled_below = client.settled_below.max(request.settled_below);
        while let Some(first) = client.open.first().filter(|it| *it < client.settled_below) {
            client.open.remove(first);
        }
        let first = client.open.first().unwrap_or(u64::MAX);
        assert!(first >= client.settled_below, "case {first} of {node:?} is kept, and settled");
        if sequence < client.settled_below || client.open.get(sequence).is_some() {
            return false;
        }
        let participants = request.participants.clone();
        let ruling = Ruling::Open(Votes::from_voters(participants.iter().copied()));
        assert!(client.incarnation == incarnation, "a case of another life");
        client.open.insert(sequence, Case { participants, ruling, about, seen_at: now });
        true
    }

    /// Drops what was not heard of since `then`, and coordinators of which nothing is left.
    fn drop_before(&mut self, then: Nanos) {
        for client in self.clients.values_mut() {
            let old = client.open.iter().filter(|(_, case)| case.seen_at <= then);
            let old: Vec<u64> = old.map(|(sequence, _)| sequence).collect();
            old.into_iter().for_each(|sequence| drop(client.open.remove(sequence)));
        }
        self.clients.retain(|_, client| !client.open.is_empty());
    }
}

impl Coordinator {
    /// Another node's coordinator wants a transaction decided here.
    pub(in super::super) fn on_case(&mut self, request: &Arc<Request>, cx: &mut Context<'_>) {
        let mine = request.master == Some(self.id) && request.txn.node != self.id;
        if !self.switches.has_master() || !mine || request.agreement == Agreement::Alone {
            return; // Whoever sent it here is mistaken.
        }
        // Who repeats it, because it was not answered, repeats it to the participants, too.
        let about = evidence::about(request, cx.settings, cx.catalog);
        if !self.cases.open(request, about, cx.now()) {
            return;
        }
        for &participant in &request.participants {
            cx.send_to_repository(participant, Message::Request(request.clone()));
        }
        self.set_cases_timer(cx);
    }

    fn set_cases_timer(&mut self, cx: &mut Context<'_>) {
        if !self.cases.timer_set {
            self.cases.timer_set = true;
            cx.set_timer(GranolaCoordinatorTimer::Cases, cx.settings.give_up_after);
        }
    }

    pub(in super::super) fn on_cases_timeout(&mut self, cx: &mut Context<'_>) {
        self.cases.timer_set = false;
        let then = Nanos(cx.now().0.saturating_sub(cx.settings.give_up_after.0));
        self.cases.drop_before(then);
        if self.cases.len() > 0 {
            self.set_cases_timer(cx);
        }
    }
}

#[cfg(test)]
mod tests {
    use muesli_core::RepositoryId;

    use super::*;
    use crate::granola::message::Few;

    const NOW: Nanos = Nanos(10);

    fn txn(node: u32, incarnation: u32, sequence: u64) -> TxnId {
        TxnId { node: NodeId(node), incarnation, sequence }
    }

    fn request(txn: TxnId, settled_below: u64) -> Request {
        Request {
            settled_below,
            agreement: Agreement::Coordinated,
            master: Some(NodeId(9)),
            ..Request::new(
                txn,
                [RepositoryId(0), RepositoryId(1)].into_iter().collect(),
                Few::new(),
            )
        }
    }

    #[test]
    fn what_is_settled_is_forgotten_and_not_taken_up_again() {
        let mut cases = Cases::default();
        for sequence in 1..5 {
            assert!(cases.open(&request(txn(0, 1, sequence), 1), 0, NOW));
        }
        assert!(!cases.open(&request(txn(0, 1, 4), 1), 0, NOW), "it is known");
        assert!(cases.open(&request(txn(0, 1, 5), 4), 0, NOW));
        assert_eq!(cases.len(), 2);
        assert!(!cases.open(&request(txn(0, 1, 3), 1), 0, NOW), "a late copy");
        assert!(cases.get_mut(txn(0, 1, 4), NOW).is_some());
        assert!(cases.get_mut(txn(0, 1, 3), NOW).is_none());
    }

    #[test]
    fn another_life_ends_the_ones_before() {
        let mut cases = Cases::default();
        assert!(cases.open(&request(txn(0, 1, 7), 7), 0, NOW));
        assert!(cases.open(&request(txn(1, 1, 1), 1), 0, NOW));
        assert!(cases.open(&request(txn(0, 2, 1), 1), 0, NOW));
        assert!(!cases.open(&request(txn(0, 1, 8), 7), 0, NOW));
        assert!(cases.get_mut(txn(0, 1, 7), NOW).is_none());
        assert_eq!(cases.len(), 2);
    }

    #[test]
    fn what_nobody_speaks_of_is_dropped_with_its_coordinator() {
        let mut cases = Cases::default();
        for (node, sequence) in [(0, 1), (0, 2), (1, 1)] {
            assert!(cases.open(&request(txn(node, 1, sequence), 1), 0, NOW));
        }
        assert!(cases.get_mut(txn(0, 1, 2), Nanos(20)).is_some());
        cases.drop_before(Nanos(15));
        assert_eq!((cases.len(), cases.clients.len()), (1, 1));
        cases.drop_before(Nanos(20));
        assert!(cases.clients.is_empty());
        assert!(cases.open(&request(txn(1, 1, 1), 1), 0, NOW), "it may count anew");
    }
}
