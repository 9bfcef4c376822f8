//! Clocks, and the timestamps that they gave: when keys were read, and what may be forgotten.

pub mod clock;
pub mod read_timestamps;
pub mod vector_clock;
pub mod watermark;
