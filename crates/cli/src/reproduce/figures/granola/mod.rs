//! Granola's figures (Cowling's thesis, chapter 6 and appendix B).
//!
//! Figures that show one set of runs in two ways share a base. The conflicts that a figure asks for
//! are those of two transactions; each uses the shared counter of its repository with the square
//! root of that chance.

mod load;
mod locking_mode;
mod locks;
mod machines;
mod repositories;
mod tpcc;
mod ways_back;

use crate::reproduce::figure::Figure;

/// All of them, a list for each part of the chapter.
pub const FIGURES: [&[Figure]; 6] = [
    load::FIGURES,
    repositories::FIGURES,
    locks::FIGURES,
    locking_mode::FIGURES,
    tpcc::FIGURES,
    ways_back::FIGURES,
];
