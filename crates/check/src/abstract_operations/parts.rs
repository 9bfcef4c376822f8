//! Transactions that share no object are searched apart, and what was found is put together.

use std::collections::{BTreeMap, BTreeSet};

use super::footprint::{AbstractFootprint, AbstractObject, Contents};
use super::precedence::direct_predecessors;
use super::search::OrderSearch;
use super::{AbstractHistory, AbstractOperation, PartOrder, SerialOrder};

/// The orders of all parts; of all transactions together where those of the parts do not go
/// together.
pub(super) fn orders(history: &AbstractHistory, steps: u64) -> Vec<PartOrder> {
    let transactions = history.transactions.iter();
    let footprints: Vec<_> = transactions.map(|it| AbstractFootprint::of(&it.operations)).collect();
    let (mut steps, mut found, mut members) = (steps, Vec::new(), Vec::new());
    for (at, (transaction, footprint)) in history.transactions.iter().zip(&footprints).enumerate() {
        match footprint {
            // It matters to nobody whether it committed.
            Some(footprint) if transaction.optional && footprint.changes.is_empty() => {}
            Some(_) => members.push(at),
            // It cannot have committed.
            None if transaction.optional => {}
            None => {
                let order = SerialOrder::None { longest: Vec::new(), stuck: vec![at] };
                found.push(PartOrder { members: vec![at], order });
            }
        }
    }
    let pairs = pairs(history, &members);
    let start = start(&history.start);
    let footprint = |at: usize| footprints[at].as_ref().expect("members have footprints");
    let search = |members: Vec<usize>, steps: &mut u64| {
        let of = |at: &usize| (footprint(*at), !history.transactions[*at].optional);
        let mut local: Vec<usize> = members.clone();
        // Those that need not be there are tried last.
        local.sort_by_key(|at| history.transactions[*at].optional);
        let order =
            OrderSearch::new(&local, local.iter().map(of).collect(), &pairs, &start).run(steps);
        PartOrder { members, order }
    };
    let mut parts = parts(&members, footprint);
    parts.sort_by_key(Vec::len);
    found.extend(parts.into_iter().map(|part| search(part, &mut steps)));
    let all_found = found.iter().all(|part| matches!(part.order, SerialOrder::Found(_)));
    if all_found && merge(history, &found, &pairs).is_none() {
        return vec![search(members, &mut steps)];
    }
    found
}

/// One order of all that were found, if they go together.
pub(super) fn merged(history: &AbstractHistory, found: &[PartOrder]) -> Option<Vec<usize>> {
    let members: Vec<usize> = found.iter().flat_map(|part| part.members.clone()).collect();
    merge(history, found, &pairs(history, &members))
}

fn merge(
    history: &AbstractHistory,
    found: &[PartOrder],
    pairs: &[(usize, usize)],
) -> Option<Vec<usize>> {
    let count = history.transactions.len();
    let (mut there, mut successors) = (vec![false; count], vec![Vec::new(); count]);
    let mut earlier = vec![0_usize; count];
    let mut edges = Vec::new();
    for part in found {
        let SerialOrder::Found(order) = &part.order else { continue };
        order.iter().for_each(|at| there[*at] = true);
        edges.extend(order.windows(2).map(|two| (two[0], two[1])));
    }
    for (first, second) in edges.iter().chain(pairs).filter(|(a, b)| there[*a] && there[*b]) {
        successors[*first].push(*second);
        earlier[*second] += 1;
    }
    let mut ready: BTreeSet<usize> =
        (0..count).filter(|at| there[*at] && earlier[*at] == 0).collect();
    let mut order = Vec::new();
    while let Some(at) = ready.pop_first() {
        order.push(at);
        for next in &successors[at] {
            earlier[*next] -= 1;
            if earlier[*next] == 0 {
                ready.insert(*next);
            }
        }
    }
    (order.len() == there.iter().filter(|there| **there).count()).then_some(order)
}

/// What structures hold at first.
fn start(operations: &[AbstractOperation]) -> Contents {
    let mut contents = Contents::new();
    for operation in operations {
        let holds = contents.entry(operation.object()).or_default();
        *holds += operation.change();
        if let AbstractObject::Key(..) = operation.object() {
            *holds = (*holds).min(1);
        }
    }
    contents
}

/// Who of these comes before whom, by the pairs that are given and by real time. What follows from
/// others that are sure to be there is left out.
fn pairs(history: &AbstractHistory, members: &[usize]) -> Vec<(usize, usize)> {
    let is_member: BTreeSet<usize> = members.iter().copied().collect();
    let given = history.precedes.iter().copied();
    let mut pairs: Vec<_> = given
        .filter(|(first, second)| is_member.contains(first) && is_member.contains(second))
        .collect();
    let timed = members.iter().filter_map(|at| Some((*at, history.transactions[*at].interval?)));
    let is_sure = |(at, _): &(usize, (u64, Option<u64>))| !history.transactions[*at].optional;
    let (sure, unsure): (Vec<_>, Vec<_>) = timed.partition(is_sure);
    let spans: Vec<_> = sure.iter().map(|(_, span)| *span).collect();
    for ((at, _), before) in sure.iter().zip(direct_predecessors(&spans)) {
        pairs.extend(before.iter().map(|other| (sure[*other].0, *at)));
    }
    // Few: each is compared with all.
    for (at, (begin, end)) in &unsure {
        for (other, (other_begin, other_end)) in sure.iter().chain(&unsure) {
            if end.is_some_and(|end| end < *other_begin) {
                pairs.push((*at, *other));
            }
            let is_sure = !history.transactions[*other].optional;
            if is_sure && other_end.is_some_and(|end| end < *begin) {
                pairs.push((*other, *at));
            }
        }
    }
    pairs
}

/// The members in groups of which no two share an object.
fn parts<'f>(
    members: &[usize],
    footprint: impl Fn(usize) -> &'f AbstractFootprint,
) -> Vec<Vec<usize>> {
    let mut leader: Vec<usize> = (0..members.len()).collect();
    fn find(leader: &mut [usize], mut at: usize) -> usize {
        while leader[at] != at {
            leader[at] = leader[leader[at]];
            at = leader[at];
        }
        at
    }
    let mut users: BTreeMap<AbstractObject, usize> = BTreeMap::new();
    for (place, at) in members.iter().enumerate() {
        let AbstractFootprint { needs, changes } = footprint(*at);
        for object in needs.keys().chain(changes.keys()) {
            let user = *users.entry(*object).or_insert(place);
            let (one, other) = (find(&mut leader, user), find(&mut leader, place));
            leader[one.max(other)] = one.min(other);
        }
    }
    let mut parts: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (place, at) in members.iter().enumerate() {
        parts.entry(find(&mut leader, place)).or_default().push(*at);
    }
    parts.into_values().collect()
}
