//! The whole footprints of transactions whose order or fate is not known yet.

pub mod claims;
pub mod queued_footprints;
