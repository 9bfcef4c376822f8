//! How the parts of a transaction are run over the keys that are here.
//!
//! [`parts`] runs procedures, and reads, checks and puts aside what interactive transactions ask
//! for; `reads` looks at keys and ranges, a page at a time; `budget` bounds what the parts of one
//! transaction give and write together. What came of a run is `prepared` until its fate is known,
//! then its writes are [installed](install), and a history [notes](history) what it did.

mod budget;
pub(super) mod history;
pub(super) mod install;
pub mod parts;
pub(super) mod prepared;
pub(super) mod read_set;
mod reads;

use std::ops::Range;

use smallvec::SmallVec;

/// Which operations in the sets are those of which part; where something is told, what that was,
/// and after as many numbers as there are parts, what the parts did.
pub(super) type Notes = SmallVec<[(u16, Range<usize>); 2]>;
