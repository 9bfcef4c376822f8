//! What clients know that they have done, or may have.

mod numbered;
mod surely;

pub(crate) use numbered::NumberedUpdates;
pub(crate) use surely::Surely;
