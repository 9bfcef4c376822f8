//! Transaction protocols, each in a folder of its own, composed from the parts of `muesli-core`.
//!
//! * [`score`]: multi-version, genuine partial replication, one-copy serializable; read-only
//!   transactions never abort.

pub mod score;

/// The names that `--protocol` takes.
pub const NAMES: &[&str] = &["score"];
