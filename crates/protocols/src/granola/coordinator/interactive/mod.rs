//! Interactive transactions over one-round ones (section 7.5).
//!
//! [`reads`] answers operations by read-only transactions of one repository each, large ones in
//! `pages`; [`commit`] is the end, which checks what was read and writes. Where a transaction
//! cannot go on with what it has read, `watching` waits until something of that has changed.

pub mod commit;
pub(super) mod pages;
pub mod reads;
pub(super) mod watching;
