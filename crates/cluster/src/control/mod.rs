//! What drivers settle among themselves, beside the protocol: which spaces there are (`spaces`),
//! and where the members of groups live (`placement`). And what people are told: of data that are
//! lost (`losses`), in numbers of how a loop does (`status`), and of the partitions that
//! transactions touch (`accesses`).

mod accesses;
pub(crate) mod losses;
pub(crate) mod placement;
pub(crate) mod spaces;
pub(crate) mod status;
