//! What a transaction's reads see.

use std::fmt::Debug;

/// What reads see, and how they go out.
pub trait ReadPolicy: Copy + Debug + 'static {
    /// Whether reads are made at a snapshot; else they see the newest version, whichever that is,
    /// and once more what they saw before.
    const SNAPSHOTS: bool;
    /// Whether reads that fix a part of the snapshot go out side by side; then an answer is taken
    /// only if it [fits](crate::two_phase::Variant::fits) what was learnt since it was asked for.
    const SIDE_BY_SIDE: bool;
    /// Whether a transaction sees what earlier ones of its node have seen, which a timestamp of its
    /// session does not tell.
    const NODES_REMEMBER: bool;
}

/// At one timestamp, which the first read fixes.
#[derive(Clone, Copy, Debug)]
pub enum AtTimestamp {}

impl ReadPolicy for AtTimestamp {
    const SNAPSHOTS: bool = true;
    const SIDE_BY_SIDE: bool = false;
    const NODES_REMEMBER: bool = false;
}

/// At a vector, of which each repository fixes its entry at the first read there.
#[derive(Clone, Copy, Debug)]
pub enum AtVector {}

impl ReadPolicy for AtVector {
    const SNAPSHOTS: bool = true;
    const SIDE_BY_SIDE: bool = true;
    const NODES_REMEMBER: bool = true;
}

/// The newest version there is, once for each key.
#[derive(Clone, Copy, Debug)]
pub enum NewestOnce {}

impl ReadPolicy for NewestOnce {
    const SNAPSHOTS: bool = false;
    const SIDE_BY_SIDE: bool = false;
    const NODES_REMEMBER: bool = false;
}
