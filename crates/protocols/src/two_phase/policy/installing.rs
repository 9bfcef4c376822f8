//! Where the versions of a transaction are installed.

use std::fmt::Debug;

/// Where versions are installed.
pub trait InstallPolicy: Copy + Debug + 'static {
    /// Whether the protocol has stale reads of updates that need not abort them: these are
    /// serialized, and their versions installed, before transactions that were committed earlier.
    const MAY_TIME_WARP: bool;
}

/// At the commit timestamp.
#[derive(Clone, Copy, Debug)]
pub enum AtCommitTimestamp {}

impl InstallPolicy for AtCommitTimestamp {
    const MAY_TIME_WARP: bool = false;
}

/// At the serialization timestamp, which may lie below the commit timestamp.
#[derive(Clone, Copy, Debug)]
pub enum AtSerializationTimestamp {}

impl InstallPolicy for AtSerializationTimestamp {
    const MAY_TIME_WARP: bool = true;
}
