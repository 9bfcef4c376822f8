//! What drivers settle among themselves, beside the protocol: which spaces there are (`spaces`),
//! and where the members of groups live (`placement`).

pub(crate) mod placement;
pub(crate) mod spaces;
