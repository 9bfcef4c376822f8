//! `muesli partition` against servers that run: which partitions should move, moves, and moves
//! again and again; and what servers need that do so themselves.

pub mod apply;
mod following;
mod lines;
mod live;
mod moving;
mod options;
mod report;
pub mod suggest;
pub mod watch;

pub use following::{FollowedCluster, PeriodEvent};
pub use live::{LiveCluster, servers_of};
pub use options::{LiveTerms, only_with_connection};
