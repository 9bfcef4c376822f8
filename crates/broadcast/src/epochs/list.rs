//! Who is in an epoch.

use std::fmt;

use muesli_core::wire::{Reader, Wire, WireError};
use muesli_core::wire_struct;
use thiserror::Error;

use crate::command::MemberId;

/// A member, by a name that no other memory ever has: who begins with an empty disk has a new one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberName(pub u64);

impl fmt::Display for MemberName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "n{}", self.0)
    }
}

/// The number of an epoch, from 1; 0: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupEpoch(pub u64);

impl GroupEpoch {
    /// That of the members with which the group began.
    pub const FIRST: GroupEpoch = GroupEpoch(1);

    /// No group comes to a later one.
    pub const LAST: GroupEpoch = GroupEpoch(1 << 62);

    fn next(self) -> GroupEpoch {
        GroupEpoch(self.0 + 1)
    }
}

/// A member of an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ListedMember {
    /// Which.
    pub name: MemberName,
    /// The first epoch that it is in.
    pub since: GroupEpoch,
}

/// One member goes, and another one comes in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MemberChange {
    /// Who goes.
    pub leaves: MemberName,
    /// Who comes.
    pub joins: MemberName,
}

/// Why a change is not proposed, or has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ChangeError {
    /// The broadcast has no order of everything.
    #[error(
        "members cannot be exchanged under this broadcast: it orders no command with all others"
    )]
    Unordered,
    /// This one is no member.
    #[error("only a member can propose that members are exchanged")]
    NoMember,
    /// Who is to go is none.
    #[error("{0} is no member of this epoch")]
    NotThere(MemberName),
    /// The name of who is to come is taken.
    #[error("{0} is, or was, a member: who begins with an empty disk needs a new name")]
    Taken(MemberName),
    /// Nobody would be left who has the state.
    #[error("the only member of a group cannot be exchanged: nobody else has its state")]
    Alone,
}

/// The members of an epoch, by their places.
///
/// Invariants: no name is there twice; a name that has gone does not come again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct MemberList {
    /// Which epoch.
    pub epoch: GroupEpoch,
    /// By place.
    pub members: Vec<ListedMember>,
    /// Who was there before.
    pub gone: Vec<MemberName>,
}

impl MemberList {
    /// Those with which a group begins.
    pub fn founded(names: impl IntoIterator<Item = MemberName>) -> MemberList {
        let since = GroupEpoch::FIRST;
        let members = names.into_iter().map(|name| ListedMember { name, since }).collect();
        let list = MemberList { epoch: since, members, gone: Vec::new() };
        assert!(list.is_sound(), "two members of one name, or none: {list:?}");
        list
    }

    /// Whether it can be one.
    pub(super) fn is_sound(&self) -> bool {
        let mut names: Vec<MemberName> = self.names().chain(self.gone.iter().copied()).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        let are_there = self.members.iter().all(|it| it.since <= self.epoch);
        let is_number = (GroupEpoch::FIRST..=GroupEpoch::LAST).contains(&self.epoch);
        is_number && names.len() == count && !self.members.is_empty() && are_there
    }

    /// All names, by place.
    pub fn names(&self) -> impl Iterator<Item = MemberName> + '_ {
        self.members.iter().map(|it| it.name)
    }

    /// The place of a member.
    pub fn place_of(&self, name: MemberName) -> Option<MemberId> {
        let place = self.members.iter().position(|it| it.name == name)?;
        Some(MemberId(place as u16))
    }

    /// Who is at a place.
    pub fn name_at(&self, place: MemberId) -> Option<MemberName> {
        self.members.get(place.place()).map(|it| it.name)
    }

    /// Whether a member was there when the group began.
    pub(super) fn is_founder(&self, name: MemberName) -> bool {
        let founder = ListedMember { name, since: GroupEpoch::FIRST };
        self.members.contains(&founder)
    }

    /// Whether a change can be made in this epoch; the place of who goes.
    pub(super) fn judge(&self, change: MemberChange) -> Result<MemberId, ChangeError> {
        let MemberChange { leaves, joins } = change;
        let place = self.place_of(leaves).ok_or(ChangeError::NotThere(leaves))?;
        let is_taken = self.place_of(joins).is_some() || self.gone.contains(&joins);
        match (is_taken, self.members.len()) {
            (true, _) => Err(ChangeError::Taken(joins)),
            (false, 1) => Err(ChangeError::Alone),
            (false, _) => Ok(place),
        }
    }

    /// The next epoch, after a change that can be made.
    pub(super) fn after(&self, change: MemberChange) -> MemberList {
        let place = self.judge(change).expect("a change that can be made");
        let mut next = self.clone();
        next.epoch = self.epoch.next();
        next.members[place.place()] = ListedMember { name: change.joins, since: next.epoch };
        next.gone.push(change.leaves);
        next
    }
}

impl Wire for MemberName {
    const LEAST_BYTES: usize = 8;

    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, WireError> {
        u64::decode(input).map(MemberName)
    }
}

impl Wire for GroupEpoch {
    const LEAST_BYTES: usize = 8;

    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, WireError> {
        u64::decode(input).map(GroupEpoch)
    }
}

wire_struct!(ListedMember { name: MemberName, since: GroupEpoch });
wire_struct!(MemberChange { leaves: MemberName, joins: MemberName });
wire_struct!(MemberList {
    epoch: GroupEpoch,
    members: Vec<ListedMember>,
    gone: Vec<MemberName>,
});

#[cfg(test)]
mod tests {
    use super::*;

    fn change(leaves: u64, joins: u64) -> MemberChange {
        MemberChange { leaves: MemberName(leaves), joins: MemberName(joins) }
    }

    #[test]
    fn who_joins_has_a_new_name_and_takes_a_place() {
        let first = MemberList::founded([0, 1, 2].map(MemberName));
        let next = first.after(change(1, 7));
        assert!(next.is_sound());
        assert_eq!(next.epoch, GroupEpoch(2));
        assert_eq!(next.place_of(MemberName(7)), Some(MemberId(1)));
        assert_eq!(next.place_of(MemberName(1)), None);
        assert!(next.is_founder(MemberName(2)));
        assert!(!next.is_founder(MemberName(7)));
        for (refused, why) in [
            (change(1, 8), ChangeError::NotThere(MemberName(1))),
            (change(2, 0), ChangeError::Taken(MemberName(0))),
            (change(2, 1), ChangeError::Taken(MemberName(1))),
        ] {
            assert_eq!(next.judge(refused), Err(why));
        }
        let alone = MemberList::founded([MemberName(0)]);
        assert_eq!(alone.judge(change(0, 1)), Err(ChangeError::Alone));
    }
}
