//! A user, and what it may do.

use super::hashes::StoredHash;

/// What a user may do: each role may do what those before it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UserRole {
    /// Commands that change nothing.
    Read,
    /// All commands that work on data.
    Write,
    /// All commands.
    Admin,
}

/// The roles, and their names.
const ROLES: [(UserRole, &str); 3] =
    [(UserRole::Read, "read"), (UserRole::Write, "write"), (UserRole::Admin, "admin")];

impl UserRole {
    /// The role of this name.
    pub fn named(name: &str) -> Option<UserRole> {
        ROLES.iter().find(|it| it.1 == name).map(|it| it.0)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        ROLES.iter().find(|it| it.0 == self).map_or("", |it| it.1)
    }

    /// Whether a user of this role may do what needs that one.
    pub fn may(self, needed: UserRole) -> bool {
        self >= needed
    }
}

/// How a user proves who it is.
#[derive(Debug)]
pub(crate) enum UserProof {
    /// By the password with this hash.
    Password(StoredHash),
    /// By these random bytes, which only this process knows.
    Secret(Vec<u8>),
}

/// A user.
#[derive(Debug)]
pub(crate) struct RespUser {
    pub name: String,
    pub role: UserRole,
    pub proof: UserProof,
}
