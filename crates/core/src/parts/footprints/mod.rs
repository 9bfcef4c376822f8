//! The whole footprints of transactions whose order or fate is not known yet.

pub mod footprint_locks;
pub mod queued_footprints;
