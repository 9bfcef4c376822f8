//! Roots: that their transactions belong to them, and that some serial order of them explains what
//! their operations answered.
//!
//! Which roots count as committed: those whose clients were told so. One of unknown outcome counts
//! as committed if one of its own transactions does and has a write; as aborted if it has own
//! transactions, and none does; else nobody can tell, and an order with it will do as well as one
//! without it. What aborted roots did is left out: if something of it stayed, no order explains
//! what others answered.
//!
//! Real time and sessions order roots as they order transactions at the level that is judged.

use hashbrown::HashMap;

use crate::abstract_operations::{
    AbstractHistory, AbstractOperation, AbstractTransaction, Contents, PartOrder, SerialOrder,
    direct_predecessors,
};
use crate::finding::{Anomaly, Findings};
use crate::graph::{Graph, in_edge_order};
use crate::history::{Atom, History, Root, RootPart, RootRole, Status, TxnIndex};
use crate::level::{EdgeSet, Level, RealTime};
use crate::resolve::Resolved;
use crate::verdict::RootStats;

/// So many looks whether a root may come next the search for an order takes at most.
const STEPS: u64 = 2_000_000;
/// Of so many roots is told why they cannot come next.
const EXPLAINED: usize = 3;

/// Judges the roots of a history: what is wrong, and how many were judged by their operations.
pub(crate) fn judge(
    resolved: &Resolved<'_>,
    graph: &Graph,
    level: Level,
    set: EdgeSet,
) -> (Findings, RootStats) {
    let mut findings = Findings::default();
    let members = Members::of(resolved, &mut findings);
    if !level.judges_roots() {
        return (findings, RootStats::default());
    }
    let fates = members.fates(&mut findings);
    let (places, history) = abstract_history(resolved, graph, &members, &fates, set);
    let mut stats = RootStats::default();
    for part in history.orders_of_parts(STEPS) {
        let count = part.members.len();
        match &part.order {
            SerialOrder::Found(_) => stats.judged += count,
            SerialOrder::Undecided => stats.undecided += count,
            SerialOrder::None { .. } => {
                stats.judged += count;
                let explain = || explain(resolved.history, &places, &history, &part);
                findings.add(Anomaly::Operations, true, explain);
            }
        }
    }
    (findings, stats)
}

/// What is known of a root by the transactions that are part of it.
#[derive(Clone, Copy, Debug, Default)]
struct RootMembers {
    /// Whether it has own accesses.
    has_own: bool,
    /// Whether some of them count as committed.
    own_committed: bool,
    /// Whether some of these have a write.
    own_wrote: bool,
    /// Whether any transaction of it counts as committed and has a write.
    wrote: bool,
    /// Its own transaction that committed.
    own: Option<TxnIndex>,
    /// The timestamp of that one, if it is a number.
    hint: Option<u64>,
    /// Of its own transactions that may be stale: what had ended before this they must see.
    as_of: Option<u64>,
}

/// The roots of a history with their transactions.
struct Members<'a> {
    history: &'a History,
    /// As the roots.
    of_root: Vec<RootMembers>,
}

/// Whether a root happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RootFate {
    Committed,
    Aborted,
    Either,
}

impl<'a> Members<'a> {
    /// Looks at each transaction that is part of a root, and whether the root is there and ran
    /// around it.
    fn of(resolved: &Resolved<'a>, findings: &mut Findings) -> Members<'a> {
        let history = resolved.history;
        let mut of_root = vec![RootMembers::default(); history.roots.len()];
        for part in &history.parts {
            let committed = resolved.committed[part.txn.index()];
            let Some(place) = history.root_places.get(&part.root) else {
                findings.add(Anomaly::MissingRoot, committed, || {
                    let (root, role) = (history.show_any(part.root), part.role.name());
                    let name = history.show_name(part.txn);
                    format!("{name} is of root {root} ({role}), and the history has no such root")
                });
                continue;
            };
            let root = &history.roots[*place as usize];
            if !is_within(history, root, part) {
                let detail = || show_outside(history, root, part);
                findings.add(Anomaly::OutsideRoot, committed, detail);
            }
            let wrote = resolved.update[part.txn.index()];
            let known = &mut of_root[*place as usize];
            known.wrote |= wrote;
            if part.role == RootRole::Own {
                known.has_own = true;
                known.own_committed |= committed;
                known.own_wrote |= wrote;
                let as_of = history.transaction(part.txn).as_of;
                known.as_of = as_of.into_iter().chain(known.as_of).min();
                if committed {
                    known.own = Some(part.txn);
                    known.hint = hint(history.transaction(part.txn).timestamp);
                }
            }
        }
        Members { history, of_root }
    }

    /// Whether each root happened.
    fn fates(&self, findings: &mut Findings) -> Vec<RootFate> {
        let mut fates = Vec::with_capacity(self.of_root.len());
        for (root, known) in self.history.roots.iter().zip(&self.of_root) {
            let contradiction = match root.status {
                Status::Committed if known.has_own && !known.own_committed => {
                    Some("committed, and none of its own transactions did")
                }
                Status::Aborted if known.own_wrote => {
                    Some("was aborted, and an own transaction that writes committed")
                }
                _ => None,
            };
            if let Some(text) = contradiction {
                findings.add(Anomaly::RootOutcome, true, || {
                    format!("root {} {text}", self.history.show_any(root.name))
                });
            }
            fates.push(match root.status {
                Status::Committed => RootFate::Committed,
                Status::Aborted => RootFate::Aborted,
                Status::Unknown | Status::Running if known.own_wrote => RootFate::Committed,
                Status::Unknown | Status::Running if known.has_own => RootFate::Aborted,
                Status::Unknown | Status::Running => RootFate::Either,
            });
        }
        fates
    }
}

/// Whether a root ran around a transaction of it. Compensations and handlers may be run by others,
/// later.
fn is_within(history: &History, root: &Root, part: &RootPart) -> bool {
    let transaction = history.transaction(part.txn);
    let ends_within = match (root.end, transaction.real_end()) {
        (Some(root_end), Some(end)) => end <= root_end,
        (Some(root_end), None) => transaction.begin <= root_end,
        (None, _) => true,
    };
    match part.role {
        RootRole::Own | RootRole::Child => transaction.begin >= root.begin && ends_within,
        RootRole::Compensation | RootRole::CommitHandler => transaction.begin >= root.begin,
    }
}

fn show_outside(history: &History, root: &Root, part: &RootPart) -> String {
    let end =
        |end: Option<u64>| end.map_or_else(|| "never ended".to_owned(), |it| format!("to {it}"));
    let transaction = history.transaction(part.txn);
    format!(
        "{} ({}) ran from {} {}, and its root {} from {} {}",
        history.show_name(part.txn),
        part.role.name(),
        transaction.begin,
        end(transaction.end),
        history.show_any(root.name),
        root.begin,
        end(root.end),
    )
}

/// The roots that count, in the order in which they are tried, by their places in the history.
fn abstract_history(
    resolved: &Resolved<'_>,
    graph: &Graph,
    members: &Members<'_>,
    fates: &[RootFate],
    set: EdgeSet,
) -> (Vec<usize>, AbstractHistory) {
    let history = resolved.history;
    let known = |place: usize| &members.of_root[place];
    let places = in_likely_order(history, graph, members, fates);
    let transactions = places.iter().map(|place| {
        let root = &history.roots[*place];
        let is_timed = match set.real_time {
            RealTime::None => false,
            RealTime::Updates => members.of_root[*place].wrote,
            RealTime::All => true,
        };
        let begin = known(*place).as_of.unwrap_or(root.begin);
        AbstractTransaction {
            operations: root.operations.clone(),
            optional: fates[*place] == RootFate::Either,
            interval: is_timed.then_some((begin.min(root.begin), known_end(root))),
        }
    });
    let transactions: Vec<_> = transactions.collect();
    // What real time orders need not be said twice.
    let by_session = set.session && set.real_time != RealTime::All;
    let precedes = if by_session { session_pairs(history, &places) } else { Vec::new() };
    (places, AbstractHistory { start: history.start.clone(), transactions, precedes })
}

/// The roots that count, in an order that is worth trying first: one that goes with the edges among
/// their own transactions, which is the order where no open child committed before its root; else
/// as near as may be to the order that the system's timestamps say, or in which they ended. What is
/// found does not depend on it, only how long it takes.
fn in_likely_order(
    history: &History,
    graph: &Graph,
    members: &Members<'_>,
    fates: &[RootFate],
) -> Vec<usize> {
    let mut places: Vec<usize> =
        (0..fates.len()).filter(|place| fates[*place] != RootFate::Aborted).collect();
    if places.is_empty() {
        return places; // Most histories have no roots: nothing is to be ordered.
    }
    let end = |place: usize| history.roots[place].end.unwrap_or(u64::MAX);
    let known = |place: usize| &members.of_root[place];
    match places.iter().all(|place| known(*place).hint.is_some()) {
        true => places.sort_by_key(|at| (known(*at).hint, !known(*at).own_wrote, end(*at))),
        false => places.sort_by_key(|at| end(*at)),
    }
    let (mut ranks, mut free) = (HashMap::new(), Vec::new());
    for (place, rank) in places.iter().zip(0_u32..) {
        match known(*place).own {
            // Two roots with one own transaction: the first of them goes where it may.
            Some(own) => free.extend(ranks.insert(own.0, rank)),
            None => free.push(rank),
        }
    }
    let order = in_edge_order(graph, |node| ranks.get(&node).copied(), free);
    assert_eq!(order.len(), places.len(), "each has a place in the order");
    order.into_iter().map(|rank| places[rank as usize]).collect()
}

/// A timestamp as a number.
fn hint(timestamp: Atom) -> Option<u64> {
    match timestamp {
        Atom::Int(number) => u64::try_from(number).ok(),
        Atom::Unsigned(number) => Some(number),
        Atom::Unrecorded | Atom::Null | Atom::Json(_) => None,
    }
}

/// When its client was told.
fn known_end(root: &Root) -> Option<u64> {
    root.end.filter(|_| root.status == Status::Committed)
}

/// Which roots of a session ended before others of it began.
fn session_pairs(history: &History, places: &[usize]) -> Vec<(usize, usize)> {
    let mut sessions: HashMap<Atom, Vec<usize>> = HashMap::new();
    for (at, place) in places.iter().enumerate() {
        let session = history.roots[*place].session;
        if session != Atom::Unrecorded {
            sessions.entry(session).or_default().push(at);
        }
    }
    let mut pairs = Vec::new();
    for of_session in sessions.values() {
        let root = |at: &usize| &history.roots[places[*at]];
        let spans: Vec<_> =
            of_session.iter().map(|at| (root(at).begin, known_end(root(at)))).collect();
        for (second, before) in of_session.iter().zip(direct_predecessors(&spans)) {
            pairs.extend(before.iter().map(|first| (of_session[*first], *second)));
        }
    }
    pairs.sort_unstable();
    pairs
}

/// Why there is no order, as far as a few words tell.
fn explain(
    history: &History,
    places: &[usize],
    given: &AbstractHistory,
    part: &PartOrder,
) -> String {
    let SerialOrder::None { longest, stuck } = &part.order else { unreachable!("it has no order") };
    let done = longest.iter().flat_map(|at| &given.transactions[*at].operations);
    let mut contents = Contents::new();
    for operation in given.start.iter().chain(done) {
        *contents.entry(operation.object()).or_default() += operation.change();
    }
    let mut text = format!(
        "no serial order of {} roots explains what they answered; after {} of them",
        part.members.len(),
        longest.len()
    );
    for at in stuck.iter().take(EXPLAINED) {
        let name = history.show_any(history.roots[places[*at]].name);
        let operations = &given.transactions[*at].operations;
        let why = match first_wrong(operations, contents.clone()) {
            Some((operation, holds)) => {
                format!("did {} where that is {holds}", show(history, operation))
            }
            None => "can come, and then nobody else".to_owned(),
        };
        text.push_str(&format!("; root {name} {why}"));
    }
    let more = stuck.len().saturating_sub(EXPLAINED);
    if more > 0 {
        text.push_str(&format!("; and {more} others cannot come either"));
    }
    text
}

/// The first operation that answers something else than it would, one after the other, from here;
/// and what its object holds.
fn first_wrong(
    operations: &[AbstractOperation],
    mut contents: Contents,
) -> Option<(AbstractOperation, i128)> {
    for operation in operations {
        let holds = contents.entry(operation.object()).or_default();
        if operation.holds().is_some_and(|expected| expected != *holds) {
            return Some((*operation, *holds));
        }
        *holds += operation.change();
    }
    None
}

fn show(history: &History, operation: AbstractOperation) -> String {
    let name = |number: u64| history.show_object(number);
    match operation {
        AbstractOperation::Add { set, key, was_new } => {
            format!("add {} to {}: {was_new}", name(key), name(set))
        }
        AbstractOperation::Remove { set, key, was_there } => {
            format!("remove {} from {}: {was_there}", name(key), name(set))
        }
        AbstractOperation::Contains { set, key, found } => {
            format!("look for {} in {}: {found}", name(key), name(set))
        }
        AbstractOperation::Increase { counter, by } => format!("add {by} to {}", name(counter)),
        AbstractOperation::Read { counter, value } => format!("read {}: {value}", name(counter)),
    }
}
