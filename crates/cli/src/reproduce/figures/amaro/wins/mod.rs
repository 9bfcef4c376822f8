//! Where a tree pays: with validation, and against the same leaves without a tree.
//!
//! All lines of a figure have the same leaves, clients, machines and batches. Validators live
//! beside data, so that no line has more machines than another, but where a line is called
//! *apart*: those are counted. Clients are on nodes of their own, as programs are that use a
//! database; these are not counted, as every line has as many of them.

mod base;
mod cores;
mod cost_model;
mod lines;
mod map;
mod predicted;
mod racks;
mod trees;

use crate::reproduce::figure::Figure;

/// All of them.
pub const FIGURES: [&[Figure]; 3] = [map::FIGURES, racks::FIGURES, cores::FIGURES];
