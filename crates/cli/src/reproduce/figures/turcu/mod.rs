//! The figures of the dissertation on nested transactions (Turcu, 2015): closed nesting in chapter
//! 4, open nesting in chapter 5, each beside flat transactions, and in chapter 6 the interface of
//! objects; and of those on certification at several sites, in chapter 9,
//! on commands alone, in chapter 10, and on where data are placed, in chapter 8.
//!
//! Its parameters are the calls of a transaction (`c`), of which each is a child, the share of
//! transactions that only read (`r`), the objects (`o`), the keys there are to choose from (`k`),
//! and how long transactions take besides their accesses (`L`). Workloads call these `calls`,
//! `reads`, `objects` (of hash tables, `buckets` for `o`) and `length`.

mod alvin;
mod auto;
mod base;
mod checkpoints;
mod closed;
mod closed_by_nodes;
mod interface;
mod m2paxos;
mod open;
mod placement;

use crate::reproduce::figure::Figure;

/// All of them.
pub fn figures() -> impl Iterator<Item = &'static Figure> {
    let chosen = auto::FIGURES.iter().flat_map(|both| both.iter());
    let all = closed::FIGURES
        .iter()
        .chain(closed_by_nodes::FIGURES)
        .chain(open::FIGURES)
        .chain(interface::FIGURES);
    let all = all.chain(chosen).chain(checkpoints::FIGURES).chain(placement::FIGURES);
    all.chain(alvin::FIGURES).chain(m2paxos::FIGURES)
}
