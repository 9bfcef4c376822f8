//! What members send each other so that one that is behind comes up with the others: entries
//! ([`catch_up`]), and where these are gone, the state itself, piece by piece ([`serve`] on one
//! side, [`load`] on the other).

pub(super) mod catch_up;
pub(super) mod load;
mod sending;
pub(super) mod serve;
