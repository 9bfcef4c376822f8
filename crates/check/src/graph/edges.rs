//! From places in chains to edges between transactions.
//!
//! With the chain `0 < v1 < v2 < …` of a key: writer(v_i) → writer(v_i+1) (ww), writer(v) →
//! reader(v) (wr), reader(v_i) → writer(v_i+1) (rw). Real time, session order, scans of absent
//! ranges and unobserved appends go through auxiliary nodes.

use super::Graph;
use super::precedence::{Interval, Ties, precede};
use super::ranges::RangeTree;
use super::sink::{AuxiliaryKind, AuxiliaryRole, EdgeSink};
use super::tails::add_tails;
use crate::history::{Atom, TxnIndex};
use crate::level::{EdgeSet, RealTime, Scope};
use crate::resolve::Resolved;

/// The graph of `resolved` with the transactions of `scope` and the edges of `set`.
pub(crate) fn build(resolved: &Resolved<'_>, scope: Scope, set: EdgeSet) -> Graph {
    let mut sink = EdgeSink::new(roles(resolved, scope));
    let mut auxiliary = Vec::new();
    add_write_dependencies(resolved, &mut sink);
    add_read_edges(resolved, set, &mut sink);
    add_real_time(resolved, set, &mut sink);
    auxiliary.push((AuxiliaryKind::RealTime, sink.nodes()));
    if set.session {
        add_sessions(resolved, &mut sink);
    }
    auxiliary.push((AuxiliaryKind::Session, sink.nodes()));
    if set.rw {
        add_range_reads(resolved, &mut sink);
    }
    auxiliary.push((AuxiliaryKind::Range, sink.nodes()));
    add_tails(resolved, set, &mut sink);
    auxiliary.push((AuxiliaryKind::Tail, sink.nodes()));
    sink.finish(auxiliary)
}

fn roles(resolved: &Resolved<'_>, scope: Scope) -> Vec<AuxiliaryRole> {
    let role = |txn: TxnIndex| {
        let (committed, update) = (resolved.committed[txn.index()], resolved.update[txn.index()]);
        match scope {
            Scope::All => AuxiliaryRole::Core,
            Scope::Committed if committed => AuxiliaryRole::Core,
            Scope::Committed => AuxiliaryRole::Absent,
            Scope::UpdatesAndOneReader { .. } if update => AuxiliaryRole::Core,
            Scope::UpdatesAndOneReader { uncommitted } if committed || uncommitted => {
                AuxiliaryRole::Reader
            }
            Scope::UpdatesAndOneReader { .. } => AuxiliaryRole::Absent,
        }
    };
    resolved.history.indices().map(role).collect()
}

fn add_write_dependencies(resolved: &Resolved<'_>, sink: &mut EdgeSink) {
    for key in resolved.chains.keys() {
        for pair in resolved.chains.of(key).windows(2) {
            sink.push(pair[0].writer.0, pair[1].writer.0);
        }
    }
}

fn add_read_edges(resolved: &Resolved<'_>, set: EdgeSet, sink: &mut EdgeSink) {
    if !set.wr && !set.rw {
        return;
    }
    for reader in resolved.history.indices() {
        for place in resolved.reads.of(reader) {
            if let (true, Some(link)) = (set.wr, resolved.chains.link(*place)) {
                sink.push(link.writer.0, reader.0);
            }
            if let (true, Some(link)) = (set.rw, resolved.chains.next(*place)) {
                sink.push(reader.0, link.writer.0);
            }
        }
    }
}

/// Edges from what ended to what began later, as far as the level has them; and at every level to
/// those of which a moment is known that they must see.
fn add_real_time(resolved: &Resolved<'_>, set: EdgeSet, sink: &mut EdgeSink) {
    let history = resolved.history;
    // Who is certified in the end may have read anything, and is refused for it.
    let is_bounded =
        |txn: TxnIndex| history.transaction(txn).as_of.is_some() && resolved.committed[txn.index()];
    let any_bounded = history.indices().any(is_bounded);
    let wanted = |txn: TxnIndex| match set.real_time {
        RealTime::None => false,
        RealTime::Updates => resolved.update[txn.index()],
        RealTime::All => sink.present(txn),
    };
    let interval =
        |txn: TxnIndex, follows| Interval::in_real_time(txn, history.transaction(txn), follows);
    let all = history.indices().filter(|txn| wanted(*txn));
    let mut intervals: Vec<_> = all.map(|txn| interval(txn, true)).collect();
    precede(&mut intervals, Ties::Concurrent, sink);
    if any_bounded {
        // What a bounded reader must see says nothing of others.
        let all = history.indices().filter(|txn| sink.present(*txn));
        let mut intervals: Vec<_> = all.map(|txn| interval(txn, is_bounded(txn))).collect();
        precede(&mut intervals, Ties::Concurrent, sink);
    }
}

fn add_sessions(resolved: &Resolved<'_>, sink: &mut EdgeSink) {
    let history = resolved.history;
    let session = |txn: TxnIndex| match history.transaction(txn).session {
        Atom::Unrecorded | Atom::Null => None,
        Atom::Int(number) => Some((0, number as u64)),
        Atom::Unsigned(number) => Some((1, number)),
        Atom::Json(text) => Some((2, u64::from(text))),
    };
    let mut members: Vec<((u8, u64), Interval)> = history
        .indices()
        .filter(|txn| sink.present(*txn))
        .filter_map(|txn| Some((session(txn)?, Interval::new(txn, history.transaction(txn)))))
        .collect();
    members.sort_by_key(|(session, _)| *session);
    for group in members.chunk_by(|a, b| a.0 == b.0) {
        let mut intervals: Vec<Interval> = group.iter().map(|(_, interval)| *interval).collect();
        precede(&mut intervals, Ties::InOrder, sink);
    }
}

fn add_range_reads(resolved: &Resolved<'_>, sink: &mut EdgeSink) {
    if resolved.range_reads.is_empty() {
        return;
    }
    let tree = RangeTree::new(resolved.range_keys.len(), sink);
    for (rank, key) in resolved.range_keys.iter().enumerate() {
        if let Some(first) = resolved.chains.of(*key).first() {
            sink.push(tree.leaf(rank), first.writer.0);
        }
    }
    for range in &resolved.range_reads {
        tree.cover(range.low, range.high, |node| sink.push(range.reader.0, node));
    }
}
