//! The state machines of a node, by kind and number, and their addresses.
//!
//! A node is a map of roles. Every node has a coordinator. It has a participant for each repository
//! whose home it is, and the services that its protocol asks for: validators of a tree, orderers of
//! a broadcast, directories of owners, or what a protocol adds of its own. Messages, records,
//! timers and pieces of checkpoints name the role that they are for.

pub mod checkpoint;
pub mod lag;
pub mod links;
pub mod positions;
pub mod replica_role;
pub mod timers;

use std::fmt;

use crate::ids::{NodeId, REPOSITORIES_MAX, RepositoryId};
use crate::wire::{Reader, Wire, WireError};

/// How many services of a kind there can be.
pub const SERVICES_MAX: u16 = REPOSITORIES_MAX as u16;
/// How many kinds of services a protocol can add of its own.
pub const OWN_KINDS_MAX: u8 = 11;
/// On the wire the kind is above so many bits of number.
const NUMBER_BITS: u32 = SERVICES_MAX.trailing_zeros();

/// What kind of service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ServiceKind {
    /// An inner node of a validation tree.
    Validator,
    /// Orders what is broadcast.
    Orderer,
    /// Knows who owns what.
    Directory,
    /// A kind that the protocol adds, below [`OWN_KINDS_MAX`].
    Own(u8),
}

/// A service: its kind, and its number among those of the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServiceId {
    kind: ServiceKind,
    number: u16,
}

impl ServiceId {
    /// The service of this kind and number.
    ///
    /// # Panics
    /// If the number is not below [`SERVICES_MAX`], or a kind of one's own not below
    /// [`OWN_KINDS_MAX`].
    pub fn new(kind: ServiceKind, number: u16) -> ServiceId {
        assert!(number < SERVICES_MAX, "service number {number}: the most is {}", SERVICES_MAX - 1);
        if let ServiceKind::Own(own) = kind {
            assert!(own < OWN_KINDS_MAX, "own kind {own}: the most is {}", OWN_KINDS_MAX - 1);
        }
        ServiceId { kind, number }
    }

    /// Its kind.
    pub fn kind(self) -> ServiceKind {
        self.kind
    }

    /// Its number among those of its kind.
    pub fn number(self) -> u16 {
        self.number
    }
}

impl fmt::Display for ServiceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            ServiceKind::Validator => write!(f, "validator {}", self.number),
            ServiceKind::Orderer => write!(f, "orderer {}", self.number),
            ServiceKind::Directory => write!(f, "directory {}", self.number),
            ServiceKind::Own(kind) => write!(f, "service {kind}.{}", self.number),
        }
    }
}

/// Which state machine of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// The coordinator of the transactions begun there.
    Coordinator,
    /// The participant of a repository hosted there.
    Repository(RepositoryId),
    /// A service hosted there.
    Service(ServiceId),
}

impl From<RepositoryId> for Role {
    fn from(repository: RepositoryId) -> Role {
        Role::Repository(repository)
    }
}

impl From<ServiceId> for Role {
    fn from(service: ServiceId) -> Role {
        Role::Service(service)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Role::Coordinator => f.write_str("coordinator"),
            Role::Repository(repository) => write!(f, "repository {}", repository.0),
            Role::Service(service) => service.fmt(f),
        }
    }
}

impl Role {
    /// The role as a number. Below [`REPOSITORIES_MAX`] it is a repository's; the bits above are
    /// the kind of a service and one, and all bits are the coordinator.
    #[inline]
    pub fn code(self) -> u16 {
        match self {
            Role::Repository(repository) => repository.0,
            Role::Coordinator => u16::MAX,
            Role::Service(ServiceId { kind, number }) => {
                let kind = match kind {
                    ServiceKind::Validator => 1,
                    ServiceKind::Orderer => 2,
                    ServiceKind::Directory => 3,
                    ServiceKind::Own(kind) => 4 + u16::from(kind),
                };
                kind << NUMBER_BITS | number
            }
        }
    }
}

impl Wire for Role {
    const LEAST_BYTES: usize = u16::LEAST_BYTES;

    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        self.code().encode(out);
    }

    #[inline]
    fn decode(input: &mut Reader<'_>) -> Result<Role, WireError> {
        let at = input.position();
        let code = u16::decode(input)?;
        if code < SERVICES_MAX {
            return Ok(Role::Repository(RepositoryId(code)));
        }
        let kind = match code >> NUMBER_BITS {
            _ if code == u16::MAX => return Ok(Role::Coordinator),
            1 => ServiceKind::Validator,
            2 => ServiceKind::Orderer,
            3 => ServiceKind::Directory,
            own if own - 4 < u16::from(OWN_KINDS_MAX) => ServiceKind::Own((own - 4) as u8),
            other => return Err(WireError::no_variant("kind of role", at, other as u8)),
        };
        Ok(Role::Service(ServiceId { kind, number: code & (SERVICES_MAX - 1) }))
    }
}

/// A state machine, by node and role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// The node.
    pub node: NodeId,
    /// The role there.
    pub role: Role,
}

impl Address {
    /// The coordinator of `node`.
    pub fn coordinator(node: NodeId) -> Address {
        Address { node, role: Role::Coordinator }
    }

    /// The repository, when it lives on `node`.
    pub fn repository(node: NodeId, repository: RepositoryId) -> Address {
        Address { node, role: Role::Repository(repository) }
    }

    /// The service, when it lives on `node`.
    pub fn service(node: NodeId, service: ServiceId) -> Address {
        Address { node, role: Role::Service(service) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_one_role_or_none() {
        let mut none = 0;
        for code in 0..=u16::MAX {
            let mut bytes = Vec::new();
            code.encode(&mut bytes);
            match Role::decode_all(&bytes) {
                Ok(role) => {
                    let mut again = Vec::new();
                    role.encode(&mut again);
                    assert_eq!(again, bytes, "{role}");
                }
                Err(_) => none += 1,
            }
        }
        assert_eq!(none, usize::from(SERVICES_MAX) - 1, "the kind above all others, but for one");
    }

    #[test]
    fn roles_name_themselves() {
        let own = ServiceId::new(ServiceKind::Own(2), 7);
        assert_eq!(Role::from(own).to_string(), "service 2.7");
        let validator = ServiceId::new(ServiceKind::Validator, 3);
        assert_eq!((validator.kind(), validator.number()), (ServiceKind::Validator, 3));
        assert_eq!(Role::from(RepositoryId(4)).to_string(), "repository 4");
        assert_eq!(Address::service(NodeId(1), own).role, Role::Service(own));
    }

    #[test]
    #[should_panic(expected = "service number 4096")]
    fn a_service_has_a_number_that_can_be_said() {
        ServiceId::new(ServiceKind::Orderer, SERVICES_MAX);
    }
}
