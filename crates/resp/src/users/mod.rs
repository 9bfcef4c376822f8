//! Users of a server for Redis clients: who they are, what they may do, and their passwords.
//!
//! Passwords are not kept: a file has a hash of each, of argon2id, which costs memory and time on
//! purpose. So they are verified on threads of their own ([`checking`]), and never on the loop.

pub(crate) mod checking;
mod file;
mod hashes;
mod user;

pub use file::{RespUsers, UsersError};
pub(crate) use user::RespUser;
pub use user::UserRole;
