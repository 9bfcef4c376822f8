//! Protocols as the tests see them: what the contract does not tell of a protocol, and a page, an
//! explorer or a judge must know.

pub mod lines;
pub mod procedures;

use std::collections::BTreeMap;

use muesli_core::parts::versions::Versions;
use muesli_core::{Protocol, Role, SpaceId, TxnId};

/// What transcripts call transactions.
pub type Names = BTreeMap<TxnId, String>;

/// What a timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// It ends a wait that is part of how things go.
    Wait,
    /// It mends what went wrong.
    Care,
    /// Nothing that is tested depends on it.
    Idle,
}

/// A protocol under test.
pub trait Subject: Protocol<Participant: Clone, Service: Clone> {
    /// Updates are serialized in the order of real time.
    const STRICT_UPDATES: bool;

    /// Whoever meets a conflict is tried again by itself: two that are tried again at one time may
    /// meet for ever.
    const TRIES_AGAIN: bool;

    /// A message in one line.
    fn show_message(message: &Self::Message, names: &Names) -> String;
    /// A record in one line.
    fn show_record(record: &Self::Record, names: &Names) -> String;
    /// A repository's state in one line.
    fn show_participant(participant: &Self::Participant) -> String;
    /// The transaction that a coordinator begins or ends by this message.
    fn begins(message: &Self::Message) -> Option<TxnId>;
    /// The keys of a space at a repository.
    fn versions(participant: &Self::Participant, space: SpaceId) -> Option<&Versions>;
    /// What a timer is for.
    fn timer(role: Role, timer: u32) -> Timer;
}
