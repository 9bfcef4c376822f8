//! The machine below each node: what its work costs, when its disk is done, what its clock shows.
//!
//! [`costs`] says how long each kind of work takes; the [`processor`] is busy for so long and takes
//! inputs in order; the [`disk`] makes records stable, several at once, and keeps what a crash
//! leaves; the [`clock`] drifts.

pub mod clock;
pub mod costs;
pub mod disk;
pub mod processor;
