//! `muesli partition` against servers that run: which partitions should move, moves, and moves
//! again and again.

pub mod apply;
mod live;
mod moving;
mod options;
mod report;
pub mod suggest;
pub mod watch;

pub use options::{LiveTerms, only_with_connection};
