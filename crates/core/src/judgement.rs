//! What is asked of a message from another node before it touches any state.
//!
//! Bytes that decode may still say anything. A driver says who sent a message ([`Sender`]), and the
//! node has the protocol judge it: whether that sender may say it to that role, whether the numbers
//! in it are in range, and whether it agrees with what the role knows. What is rejected is counted
//! by its kind and by the [reason](Rejection), and has no other effect: an honest sender repeats
//! what matters.
//!
//! Roles of one node trust each other, as the loops of one process do: nothing is judged there.

use std::collections::BTreeMap;
use std::fmt;

use smallvec::SmallVec;

use crate::bytes::SmallBytes;
use crate::catalog::Catalog;
use crate::ids::{RepositoryId, SpaceId, Timestamp, TxnId};
use crate::options::Settings;
use crate::ranges::KeyRange;
use crate::roles::{Address, Role};

/// Who sent a message, as far as its driver has made sure of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// A member of the cluster: it has shown that it knows the cluster's secret.
    Member,
    /// A client: it speaks for the coordinator of its own node, and for nobody else.
    Client {
        /// Members have issued timestamps up to this one, as the client has proven.
        issued: Timestamp,
    },
}

impl Sender {
    /// A client that has proven nothing.
    pub const CLIENT: Sender = Sender::Client { issued: Timestamp::ZERO };

    /// Whether it is a member.
    pub fn is_member(self) -> bool {
        self == Sender::Member
    }

    /// The same, where timestamps up to `known` are known to have been issued.
    #[must_use]
    pub fn knowing(self, known: Timestamp) -> Sender {
        match self {
            Sender::Member => Sender::Member,
            Sender::Client { issued } => Sender::Client { issued: issued.max(known) },
        }
    }
}

/// Why a message is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rejection {
    /// The sender may not say this: it is said by members, by the owner of the transaction, or by
    /// the repository that the message names.
    Sender,
    /// The role that it is for takes no such message, or does not live here.
    Role,
    /// It names a repository, a space, a partition or a key that is not there.
    Catalog,
    /// A number, a size or an order in it is not one that can be.
    Range,
    /// No member is known to have issued a timestamp in it.
    Unissued,
    /// It is a client's, and what members must have said before it is not shown with it.
    Unproven,
    /// It contradicts what is known of its transaction.
    State,
    /// Its sender has begun another incarnation since.
    Incarnation,
    /// So much is kept for its sender, or for all clients, already that no more is taken.
    Full,
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Rejection::Sender => "its sender may not say this",
            Rejection::Role => "the role that it is for takes no such message",
            Rejection::Catalog => "it names something that is not there",
            Rejection::Range => "a number in it is out of range",
            Rejection::Unissued => "no member is known to have issued a timestamp in it",
            Rejection::Unproven => "what members must have said before it is not shown with it",
            Rejection::State => "it contradicts what is known of its transaction",
            Rejection::Incarnation => "its sender has begun another incarnation since",
            Rejection::Full => "too much is kept for its sender, or for all clients, already",
        })
    }
}

/// Messages left out, by kind and reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rejections {
    counts: BTreeMap<(&'static str, Rejection), u64>,
}

impl Rejections {
    /// Counts one.
    pub fn count(&mut self, message: &'static str, reason: Rejection) {
        *self.counts.entry((message, reason)).or_default() += 1;
    }

    /// Adds what was counted elsewhere.
    pub fn add(&mut self, others: &Rejections) {
        for (key, count) in &others.counts {
            *self.counts.entry(*key).or_default() += count;
        }
    }

    /// How many there were.
    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    /// Each kind of message with each reason, and how often.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, Rejection, u64)> + '_ {
        self.counts.iter().map(|(&(message, reason), &count)| (message, reason, count))
    }
}

/// What a role knows of a message beside its own state as it judges it.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// Which role judges.
    pub me: Address,
    /// Which role says it.
    pub from: Address,
    /// As whose word it counts.
    pub sender: Sender,
    /// Spaces and placement.
    pub catalog: &'a Catalog,
    /// Settings of the node.
    pub settings: &'a Settings,
}

/// What protocols ask of messages, whichever they are.
impl View<'_> {
    /// The repository that judges, if one does.
    pub fn repository(&self) -> Option<RepositoryId> {
        match self.me.role {
            Role::Repository(repository) => Some(repository),
            Role::Coordinator | Role::Service(_) => None,
        }
    }

    /// A coordinator says it, of a transaction of its own.
    ///
    /// # Errors
    /// It is another role, or another node's transaction; or the number is not one that can be.
    pub fn owner(&self, txn: TxnId) -> Result<(), Rejection> {
        self.coordinator()?;
        ensure(self.from.node == txn.node, Rejection::Sender)?;
        sequence(txn)
    }

    /// The sender is a member's repository, and the one that it says it is.
    ///
    /// # Errors
    /// It is not.
    pub fn voter(&self, repository: RepositoryId) -> Result<(), Rejection> {
        self.member()?;
        ensure(self.from.role == Role::Repository(repository), Rejection::Sender)
    }

    /// It is a member's word.
    ///
    /// # Errors
    /// It is a client's.
    pub fn member(&self) -> Result<(), Rejection> {
        ensure(self.sender.is_member(), Rejection::Sender)
    }

    /// A coordinator says it.
    ///
    /// # Errors
    /// Another role does.
    pub fn coordinator(&self) -> Result<(), Rejection> {
        ensure(self.from.role == Role::Coordinator, Rejection::Sender)
    }

    /// A member or a client may name this timestamp.
    ///
    /// # Errors
    /// It is out of range, or a client's word is all that there is for it.
    pub fn issued(&self, at: Timestamp) -> Result<(), Rejection> {
        in_range(at)?;
        match self.sender {
            Sender::Member => Ok(()),
            Sender::Client { issued } => ensure(at <= issued, Rejection::Unissued),
        }
    }

    /// The space is there, and the repository that judges holds a key of it, as the locator of its
    /// protocol says. How long a key may be is judged where a refusal is answered
    /// ([`Limits`](crate::limits::Limits)).
    ///
    /// # Errors
    /// It is not there, or does not hold it.
    pub fn key(
        &self,
        space: SpaceId,
        is_held_by: impl FnOnce(RepositoryId) -> bool,
    ) -> Result<(), Rejection> {
        ensure(self.catalog.space(space).is_some(), Rejection::Catalog)?;
        ensure(self.repository().is_some_and(is_held_by), Rejection::Catalog)
    }

    /// A range is one of a space that is there and in order, and its ends are in order too.
    ///
    /// # Errors
    /// It is not.
    pub fn range(&self, range: &KeyRange) -> Result<(), Rejection> {
        ensure(self.catalog.space(range.space).is_some(), Rejection::Catalog)?;
        let most = self.settings.limits.key_bytes;
        let hi_bytes = range.hi.as_ref().map_or(0, SmallBytes::len);
        // An end may be the longest key and a byte.
        let most = most.saturating_add(1);
        ensure(range.lo.len() <= most && hi_bytes <= most, Rejection::Range)
    }
}

/// `Ok` where something holds.
///
/// # Errors
/// It does not, for this reason.
pub fn ensure(holds: bool, reason: Rejection) -> Result<(), Rejection> {
    if holds { Ok(()) } else { Err(reason) }
}

/// A timestamp that may be taken from elsewhere: there is room above it for all that will ever be
/// issued.
///
/// # Errors
/// It is beyond.
pub fn in_range(at: Timestamp) -> Result<(), Rejection> {
    ensure(at <= Timestamp::FARTHEST, Rejection::Range)
}

/// A timestamp that a repository may have logged: one of its own may lie above all that are
/// [taken from elsewhere](in_range), and there is room above it all the same.
///
/// # Errors
/// It is beyond.
pub fn has_capacity(at: Timestamp) -> Result<(), Rejection> {
    ensure(at <= Timestamp::LOGGED_MOST, Rejection::Range)
}

/// The number of a transaction is one that a coordinator can have come to.
///
/// # Errors
/// It is not.
pub fn sequence(txn: TxnId) -> Result<(), Rejection> {
    ensure(txn.sequence <= TxnId::SEQUENCE_MAX, Rejection::Range)
}

/// No key is among these twice.
///
/// # Errors
/// One is.
pub fn distinct<'k>(
    keys: impl Iterator<Item = (SpaceId, &'k SmallBytes)>,
) -> Result<(), Rejection> {
    let mut all: SmallVec<[_; 4]> = keys.collect();
    if all.len() < 2 {
        return Ok(());
    }
    all.sort_unstable();
    ensure(all.windows(2).all(|pair| pair[0] != pair[1]), Rejection::Range)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::NodeId;

    #[test]
    fn a_client_may_name_what_is_known_to_be_issued_and_a_member_what_is_in_range() {
        let catalog = Catalog::new(&[NodeId(0)], 1, &[NodeId(0)]).unwrap();
        let settings = Settings::default();
        let me = Address::coordinator(NodeId(0));
        let of_sender =
            |sender| View { me, from: me, sender, catalog: &catalog, settings: &settings };
        let client = of_sender(Sender::CLIENT.knowing(Timestamp(9)));
        assert_eq!(client.issued(Timestamp(9)), Ok(()));
        assert_eq!(client.issued(Timestamp(10)), Err(Rejection::Unissued));
        let member = of_sender(Sender::Member);
        assert_eq!(member.issued(Timestamp(10)), Ok(()));
        assert_eq!(member.issued(Timestamp::MAX), Err(Rejection::Range));
        assert_eq!(Sender::Member.knowing(Timestamp(3)), Sender::Member);
    }

    #[test]
    fn a_key_that_comes_twice_is_noticed_wherever_it_stands() {
        let keys = ["a", "b", "c", "a"].map(SmallBytes::from);
        let all = |keys: &'static [usize], of: &[SmallBytes]| {
            distinct(keys.iter().map(|&at| (SpaceId(0), &of[at])))
        };
        assert_eq!(all(&[0, 1, 2], &keys), Ok(()));
        assert_eq!(all(&[0, 1, 2, 3], &keys), Err(Rejection::Range));
    }
}
