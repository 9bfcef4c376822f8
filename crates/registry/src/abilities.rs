//! What the protocols of the table can do, by name.

use muesli_core::{AnyProtocol, Nanos, StalenessSupport};
use thiserror::Error;

use crate::table::{names, protocol};

/// Masters on nodes of their own under a protocol that has none.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("protocol `{name}` has no masters; these have: {}", with_masters().join(", "))]
pub struct NoMasters {
    /// The protocol.
    pub name: String,
}

/// A tree under a protocol that validates by none.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("protocol `{name}` goes by no tree; these do: {}", with_validators().join(", "))]
pub struct NoTree {
    /// The protocol.
    pub name: String,
}

/// Strict transactions alone under a protocol whose order does not keep real time for them.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "protocol `{name}` has no strict transactions, whose order keeps real time; these have: {}",
    with_strict().join(", ")
)]
pub struct NotStrict {
    /// The protocol.
    pub name: String,
}

/// Copies of repositories under a protocol that keeps none.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "protocol `{name}` keeps no copies of repositories that live elsewhere; these do: {}",
    with_caches().join(", ")
)]
pub struct NoCaches {
    /// The protocol.
    pub name: String,
}

/// A timestamp lease under a protocol whose timestamps follow no clock.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "protocol `{name}` has no timestamp leases, as its timestamps follow no clock; these have: {}",
    with_timestamp_leases().join(", ")
)]
pub struct NoTimestampLeases {
    /// The protocol.
    pub name: String,
}

/// Sites of shards under a protocol that has none.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("protocol `{name}` has no shards; these have: {}", with_shards().join(", "))]
pub struct NoShards {
    /// The protocol.
    pub name: String,
}

/// What is so of the protocol called `name`; nothing is of what is no protocol.
fn of(name: &str, is_so: impl Fn(&dyn AnyProtocol) -> bool) -> bool {
    protocol(name, None).is_ok_and(|found| is_so(&*found))
}

/// Those of which something is so.
fn those(is_so: impl Fn(&dyn AnyProtocol) -> bool) -> Vec<&'static str> {
    names().into_iter().filter(|name| of(name, &is_so)).collect()
}

/// The protocols whose masters may be put on nodes of their own.
pub fn with_masters() -> Vec<&'static str> {
    those(|it| it.has_masters())
}

/// The protocols whose data is split over shards.
pub fn with_shards() -> Vec<&'static str> {
    those(|it| it.has_shards())
}

/// Looks whether the protocol called `name` has shards, if it is said where they are.
///
/// # Errors
/// It is said, and it has none.
pub fn check_shards(name: &str, shards: bool) -> Result<(), NoShards> {
    let fits = !shards || of(name, |it| it.has_shards());
    if fits { Ok(()) } else { Err(NoShards { name: name.to_owned() }) }
}

/// Whether nodes get the data of a lost disk back from others under the protocol called `name`,
/// though no group keeps it.
pub fn exchanges_members(name: &str) -> bool {
    of(name, |it| it.exchanges_members())
}

/// Whether a node under the protocol called `name` may come back with nothing once its disk is
/// lost, where each key has one copy and no group keeps it: keys that others hold are found again.
pub fn may_start_empty(name: &str) -> bool {
    of(name, |it| it.may_start_empty())
}

/// The protocols whose votes climb a tree of validators.
pub fn with_validators() -> Vec<&'static str> {
    those(|it| it.has_validators())
}

/// Looks whether the protocol called `name` goes by a tree, if there is to be one.
///
/// # Errors
/// There is to be one, and it does not.
pub fn check_tree(name: &str, tree: bool) -> Result<(), NoTree> {
    let fits = !tree || of(name, |it| it.has_validators());
    if fits { Ok(()) } else { Err(NoTree { name: name.to_owned() }) }
}

/// Whether the protocol called `name` keeps real time for transactions that ask for it
/// (`TxnOptions::strict`). What is no protocol does not.
pub fn offers_strict(name: &str) -> bool {
    of(name, |it| it.offers_strict())
}

/// Whether transactions may say how stale what they see may be under the protocol called `name`
/// ([`Protocol::staleness`](muesli_core::Protocol::staleness)). Under what is no protocol they may
/// not.
pub fn bounds_staleness(name: &str) -> bool {
    of(name, |it| it.staleness() != StalenessSupport::Refused)
}

/// The protocols that have strict transactions.
pub fn with_strict() -> Vec<&'static str> {
    those(|it| it.offers_strict())
}

/// Whether replaced versions are kept for open transactions under the protocol called `name`
/// ([`Protocol::KEEPS_OLD_VERSIONS`](muesli_core::Protocol::KEEPS_OLD_VERSIONS)). What is no
/// protocol keeps none.
pub fn keeps_old_versions(name: &str) -> bool {
    of(name, |it| it.keeps_old_versions())
}

/// How long a step of timestamps is under the protocol called `name`, if they follow clocks
/// ([`Protocol::TIMESTAMP_STEP`](muesli_core::Protocol::TIMESTAMP_STEP)), as a client's timestamp
/// lease needs.
///
/// # Errors
/// They do not. What is no protocol has none either.
pub fn timestamp_step(name: &str) -> Result<Nanos, NoTimestampLeases> {
    let step = protocol(name, None).ok().and_then(|found| found.timestamp_step());
    step.ok_or_else(|| NoTimestampLeases { name: name.to_owned() })
}

/// The protocols under which nodes can keep copies of repositories that live elsewhere.
pub fn with_caches() -> Vec<&'static str> {
    those(|it| it.keeps_copies())
}

/// Looks whether nodes can keep copies of repositories that live elsewhere under the protocol
/// called `name`, if they are to.
///
/// # Errors
/// They are to, and cannot.
pub fn check_caches(name: &str, caches: bool) -> Result<(), NoCaches> {
    let fits = !caches || of(name, |it| it.keeps_copies());
    if fits { Ok(()) } else { Err(NoCaches { name: name.to_owned() }) }
}

/// The protocols under which clients may have timestamp leases.
pub fn with_timestamp_leases() -> Vec<&'static str> {
    those(|it| it.timestamp_step().is_some())
}

/// Looks whether all transactions under the protocol called `name` can be strict, if they are to
/// be.
///
/// # Errors
/// They are to be, and cannot.
pub fn check_strict(name: &str, strict: bool) -> Result<(), NotStrict> {
    let fits = !strict || offers_strict(name);
    if fits { Ok(()) } else { Err(NotStrict { name: name.to_owned() }) }
}

/// Looks whether the protocol called `name` can have so many masters on nodes of their own.
///
/// # Errors
/// It has none, and is to have some. What is no protocol has none either.
pub fn check_masters(name: &str, masters: usize) -> Result<(), NoMasters> {
    let fits = masters == 0 || of(name, |it| it.has_masters());
    if fits { Ok(()) } else { Err(NoMasters { name: name.to_owned() }) }
}
