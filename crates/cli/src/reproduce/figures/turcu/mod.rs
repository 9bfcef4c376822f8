//! The figures of the dissertation on nested transactions (Turcu, 2015): closed nesting in chapter
//! 4, open nesting in chapter 5, each beside flat transactions.
//!
//! Its parameters are the calls of a transaction (`c`), of which each is a child, the share of
//! transactions that only read (`r`), the objects (`o`), and the keys there are to choose from
//! (`k`). Transactions there may also be made longer by work that is no access; ours are not, and
//! the groups of figures that vary this are left out.

mod auto;
mod base;
mod checkpoints;
mod closed;
mod open;

use crate::reproduce::figure::Figure;

/// All of them.
pub fn figures() -> impl Iterator<Item = &'static Figure> {
    let chosen = auto::FIGURES.iter().flat_map(|both| both.iter());
    let fixed = closed::FIGURES.iter().chain(open::FIGURES);
    fixed.chain(chosen).chain(checkpoints::FIGURES)
}
