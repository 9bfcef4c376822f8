//! Working out again what the edges of one cycle mean.
//!
//! The graph keeps no labels, which would be most of its memory; the handful of transactions on a
//! reported cycle is looked up instead.

use std::collections::BTreeMap;

use crate::graph::{AuxiliaryKind, Graph};
use crate::history::{Atom, TxnIndex};
use crate::level::EdgeSet;
use crate::resolve::{ChainPosition, Resolved};
use crate::verdict::{Cycle, CycleEdge, CycleTransaction, EdgeKind};

/// The cycle through `nodes`, which start with a transaction, with a label on every edge.
pub(crate) fn explain(
    resolved: &Resolved<'_>,
    graph: &Graph,
    set: EdgeSet,
    nodes: &[u32],
) -> Cycle {
    let mut stops: Vec<(TxnIndex, Option<AuxiliaryKind>)> = Vec::new();
    for &node in nodes {
        match graph.auxiliary_kind(node) {
            None => stops.push((TxnIndex(node), None)),
            Some(kind) => stops.iter_mut().next_back().into_iter().for_each(|s| s.1 = Some(kind)),
        }
    }
    let explainer = Explainer { resolved, set, writes: writes(resolved, &stops) };
    let next = |place: usize| stops[(place + 1) % stops.len()].0;
    let edge = |(place, (txn, via)): (usize, &(TxnIndex, Option<AuxiliaryKind>))| {
        explainer.edge(*txn, next(place), *via)
    };
    Cycle {
        transactions: stops.iter().map(|(txn, _)| describe(resolved, *txn)).collect(),
        edges: stops.iter().enumerate().map(edge).collect(),
    }
}

struct Explainer<'a> {
    resolved: &'a Resolved<'a>,
    set: EdgeSet,
    /// The links that the transactions of the cycle wrote.
    writes: BTreeMap<TxnIndex, Vec<ChainPosition>>,
}

impl Explainer<'_> {
    fn edge(&self, from: TxnIndex, to: TxnIndex, via: Option<AuxiliaryKind>) -> CycleEdge {
        match via {
            Some(AuxiliaryKind::RealTime) => self.time_edge(EdgeKind::RealTime, from, to),
            Some(AuxiliaryKind::Session) => self.time_edge(EdgeKind::Session, from, to),
            Some(AuxiliaryKind::Range) => self.range_edge(from, to),
            Some(AuxiliaryKind::Tail) => self.tail_edge(from, to),
            None => self.data_edge(from, to),
        }
    }

    fn time_edge(&self, kind: EdgeKind, from: TxnIndex, to: TxnIndex) -> CycleEdge {
        let history = self.resolved.history;
        let end = history.transaction(from).end.map_or_else(String::new, |end| end.to_string());
        let begun = match kind {
            EdgeKind::RealTime => history.transaction(to).real_begin(),
            _ => history.transaction(to).begin,
        };
        CycleEdge { kind, key: String::new(), from_version: end, to_version: begun.to_string() }
    }

    fn data_edge(&self, from: TxnIndex, to: TxnIndex) -> CycleEdge {
        let chains = &self.resolved.chains;
        let next_is_to =
            |place: &&ChainPosition| chains.next(**place).is_some_and(|l| l.writer == to);
        let after =
            |place: &ChainPosition| ChainPosition { position: place.position + 1, ..*place };
        let wrote = self.writes.get(&from).map_or(&[][..], Vec::as_slice);
        let read_by_to = self.resolved.reads.of(to);
        if let Some(place) = wrote.iter().find(next_is_to) {
            return self.label(EdgeKind::WriteWrite, *place, after(place));
        }
        let dependency = read_by_to.iter().find(|place| wrote.contains(place));
        if let Some(place) = dependency.filter(|_| self.set.wr) {
            return self.label(EdgeKind::WriteRead, *place, *place);
        }
        let mut read = self.resolved.reads.of(from).iter();
        match read.find(next_is_to) {
            Some(place) => self.label(EdgeKind::ReadWrite, *place, after(place)),
            None => self.range_edge(from, to),
        }
    }

    /// `from` scanned a range in which `to` wrote the first version of a key.
    fn range_edge(&self, from: TxnIndex, to: TxnIndex) -> CycleEdge {
        let scanned = self.resolved.range_reads.iter().filter(|range| range.reader == from);
        let mut keys = scanned.flat_map(|range| {
            self.resolved.range_keys[range.low as usize..range.high as usize].iter().copied()
        });
        let first = |key: &crate::history::KeyId| {
            self.resolved.chains.of(*key).first().is_some_and(|link| link.writer == to)
        };
        match keys.find(first) {
            Some(key) => {
                let place = ChainPosition { key, position: 0 };
                self.label(EdgeKind::ReadWrite, place, ChainPosition { position: 1, ..place })
            }
            None => self.time_edge(EdgeKind::RealTime, from, to),
        }
    }

    /// `to` appended to a key, unseen, after the list that `from` completed or read.
    fn tail_edge(&self, from: TxnIndex, to: TxnIndex) -> CycleEdge {
        let chains = &self.resolved.chains;
        let appended = |key| {
            let tail = self.resolved.tails.iter().find(|tail| tail.key == key);
            tail.is_some_and(|tail| tail.writers.contains(&to))
        };
        let at_end = |place: &&ChainPosition| chains.next(**place).is_none() && appended(place.key);
        let wrote = self.writes.get(&from).into_iter().flatten().find(at_end);
        let read = self.resolved.reads.of(from).iter().find(at_end);
        let (kind, place) = match (wrote, read) {
            (Some(place), _) => (EdgeKind::WriteWrite, place),
            (None, Some(place)) => (EdgeKind::ReadWrite, place),
            (None, None) => return self.time_edge(EdgeKind::RealTime, from, to),
        };
        CycleEdge {
            kind,
            key: self.resolved.history.show_key(place.key),
            from_version: self.resolved.show_place(*place),
            to_version: "an unread element".to_owned(),
        }
    }

    fn label(&self, kind: EdgeKind, from: ChainPosition, to: ChainPosition) -> CycleEdge {
        CycleEdge {
            kind,
            key: self.resolved.history.show_key(from.key),
            from_version: self.resolved.show_place(from),
            to_version: self.resolved.show_place(to),
        }
    }
}

/// The links written by the transactions of the cycle, found in one pass over all chains.
fn writes(
    resolved: &Resolved<'_>,
    stops: &[(TxnIndex, Option<AuxiliaryKind>)],
) -> BTreeMap<TxnIndex, Vec<ChainPosition>> {
    let mut writes: BTreeMap<TxnIndex, Vec<ChainPosition>> =
        stops.iter().map(|(txn, _)| (*txn, Vec::new())).collect();
    for key in resolved.chains.keys() {
        for (link, position) in resolved.chains.of(key).iter().zip(1..) {
            if let Some(places) = writes.get_mut(&link.writer) {
                places.push(ChainPosition { key, position });
            }
        }
    }
    writes
}

fn describe(resolved: &Resolved<'_>, txn: TxnIndex) -> CycleTransaction {
    let history = resolved.history;
    let transaction = history.transaction(txn);
    let session = match transaction.session {
        Atom::Unrecorded => String::new(),
        session => history.show_atom(session),
    };
    CycleTransaction {
        id: history.show_name(txn),
        session,
        begin: transaction.begin,
        end: transaction.real_end(),
        status: transaction.status,
        committed: resolved.committed[txn.index()],
    }
}
