//! Which siblings use each other in circles.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::modules::Uses;

/// The groups of more than one sibling of which each uses each other one, directly or through
/// others of the group: the strongly connected components of the graph.
pub(super) fn circles(uses: &Uses) -> Vec<BTreeSet<&str>> {
    let names: BTreeSet<&str> =
        uses.keys().flat_map(|(from, to)| [from, to]).map(|it| &**it).collect();
    let reached: BTreeMap<&str, _> = names.iter().map(|name| (*name, paths(uses, name))).collect();
    let (mut found, mut done) = (Vec::new(), BTreeSet::new());
    for name in &names {
        let both = |other: &&&str| {
            reached[*name].contains_key(**other) && reached[**other].contains_key(*name)
        };
        let group: BTreeSet<&str> = names.iter().filter(both).copied().collect();
        if group.len() > 1 && done.is_disjoint(&group) {
            done.extend(group.iter().copied());
            found.push(group);
        }
    }
    found
}

/// The shortest circle through siblings of a group, by its uses.
pub(super) fn shortest<'a>(uses: &'a Uses, group: &BTreeSet<&'a str>) -> Vec<(&'a str, &'a str)> {
    let back = |name: &&'a str| paths(uses, name).remove(*name);
    group.iter().filter_map(back).min_by_key(Vec::len).unwrap_or_default()
}

/// The shortest path from a sibling to each that it uses, directly or not; to itself, too.
fn paths<'a>(uses: &'a Uses, start: &str) -> BTreeMap<&'a str, Vec<(&'a str, &'a str)>> {
    let mut found: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    let mut open = VecDeque::from([(start.to_owned(), Vec::new())]);
    while let Some((at, path)) = open.pop_front() {
        for (from, to) in uses.keys().filter(|(from, _)| *from == at) {
            if !found.contains_key(to.as_str()) {
                let mut path: Vec<_> = path.clone();
                path.push((from.as_str(), to.as_str()));
                found.insert(to, path.clone());
                open.push_back((to.clone(), path));
            }
        }
    }
    found
}

#[test]
fn circles_are_groups_of_siblings_that_reach_each_other() {
    let edges = ["ab", "bc", "ca", "cb", "cd", "de", "fg", "gf", "hf"];
    let uses: Uses = edges
        .iter()
        .map(|edge| ((edge[..1].to_owned(), edge[1..].to_owned()), Vec::new()))
        .collect();
    let found = circles(&uses);
    assert_eq!(found, [BTreeSet::from(["a", "b", "c"]), BTreeSet::from(["f", "g"])]);
    assert_eq!(shortest(&uses, &found[0]), [("b", "c"), ("c", "b")]);
}
