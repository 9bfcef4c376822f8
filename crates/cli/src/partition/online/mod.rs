//! `muesli partition` against servers that run: which partitions should move, moves, and moves
//! again and again; and what servers need that do so themselves.

use std::io::{Write, stdout};

pub mod apply;
mod following;
mod live;
mod moving;
mod options;
mod report;
pub mod suggest;
pub mod watch;

pub use following::{FollowedCluster, PeriodEvent};
pub use live::{LiveCluster, servers_of};
pub use options::{LiveTerms, only_with_connection};

/// Says a line at once. That whoever reads has gone away is no matter.
fn print(text: &str) {
    let mut out = stdout().lock();
    let _ = writeln!(out, "{text}");
    let _ = out.flush();
}
