//! What is asked of every protocol, or of most; each program says of which.

pub mod fair;
pub mod leaving;
pub mod memory;
pub mod outstanding;
pub mod too_old;
