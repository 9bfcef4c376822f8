//! Points of figures that no workload is measured for: of commands alone, and of placements.

pub mod commands;
pub mod placement;
