//! Figures of the thesis on validation by a tree (Amaro 2018, section 3.5 and chapter 4).
//!
//! Eight nodes with data below one root on a node of its own, clients on nodes of their own, and
//! transactions that update an object on each of the eight. Nobody meets anybody.

mod base;
mod messages;
mod unchecked;
mod validated;
mod wins;

use crate::reproduce::figure::Figure;

/// All of them, a list for each section.
pub const FIGURES: [&[Figure]; 6] = [
    messages::FIGURES,
    unchecked::FIGURES,
    validated::FIGURES,
    wins::FIGURES[0],
    wins::FIGURES[1],
    wins::FIGURES[2],
];
