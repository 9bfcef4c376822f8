//! Which part a repository takes where several nodes keep it, as those are told who look after it.

use crate::wire::{Reader, Wire, WireError};

/// A repository's part in its group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplicaRole {
    /// It has no group: its node alone keeps it.
    #[default]
    Alone,
    /// It answers for its group.
    Leads,
    /// It votes, and replays what its leader does.
    Follows,
    /// It learns what it has to know, or it does not know yet for certain that it will remember it.
    Joins,
    /// It lives on another node now.
    Moved,
    /// It has no memory, and so many others have none that what they decided may be lost: it waits
    /// until somebody brings a memory back, or accepts the loss.
    Lost,
    /// It votes, in a group that is to have other members, as the placement says, and has not got
    /// so far yet.
    Regroups,
    /// The group goes on without it, and does not need it any more.
    Leaves,
}

const REPLICA_ROLES: [ReplicaRole; 8] = [
    ReplicaRole::Alone,
    ReplicaRole::Leads,
    ReplicaRole::Follows,
    ReplicaRole::Joins,
    ReplicaRole::Moved,
    ReplicaRole::Lost,
    ReplicaRole::Regroups,
    ReplicaRole::Leaves,
];

impl ReplicaRole {
    /// Whether it votes, in a group of just those members that there are to be, and will remember
    /// how it did.
    pub fn takes_part(self) -> bool {
        matches!(self, ReplicaRole::Leads | ReplicaRole::Follows)
    }

    /// Whether it votes, and will remember how it did; perhaps in a group that is to have other
    /// members.
    pub fn votes(self) -> bool {
        self.takes_part() || self == ReplicaRole::Regroups
    }
}

impl Wire for ReplicaRole {
    const LEAST_BYTES: usize = 1;

    fn encode(&self, out: &mut Vec<u8>) {
        out.push(*self as u8);
    }

    fn decode(input: &mut Reader<'_>) -> Result<ReplicaRole, WireError> {
        let found = input.variant("role of a replica", REPLICA_ROLES.len() as u8)?;
        Ok(REPLICA_ROLES[usize::from(found)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn posts_come_back_from_their_bytes() {
        for role in REPLICA_ROLES {
            let mut out = Vec::new();
            role.encode(&mut out);
            assert_eq!(ReplicaRole::decode_all(&out), Ok(role));
        }
        assert!(ReplicaRole::decode_all(&[REPLICA_ROLES.len() as u8]).is_err());
    }
}
