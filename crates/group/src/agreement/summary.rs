//! What a member knows of its group, in short.

use crate::agreement::ballot::Ballot;
use crate::agreement::configuration::Configuration;

/// How far a group had come when it formed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Formed {
    /// No memory.
    #[default]
    No,
    /// All others had no memory, or had met.
    Met,
    /// All others had met.
    Ready,
    /// All others were ready: the group may have decided something since.
    Begun,
}

/// What a member knows, without the entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// How far the group had come when it formed, as far as the member knows.
    pub formed: Formed,
    /// In which epoch the member came to the node whose memory this is.
    pub since: u64,
    /// Who votes, as far as it knows; ballots and undecided entries are of this configuration.
    pub configuration: Configuration,
    /// It follows nobody with a smaller ballot.
    pub promise: Ballot,
    /// Whose entries it has.
    pub accepted: Ballot,
    /// Not all that is decided here need be that leader's: some came from other members since.
    pub fetched: bool,
    /// How many entries are decided, as far as it knows.
    pub decided: u64,
    /// How many entries it has.
    pub length: u64,
    /// The configuration that is next, if it has an entry that ends the present one. That may not
    /// be decided.
    pub next: Option<Configuration>,
}

impl Summary {
    /// Whether all entries here are those of the leader of this ballot.
    pub fn vouches_for(&self, ballot: Ballot) -> bool {
        !self.fetched && self.accepted == ballot && ballot != Ballot::default()
    }
}
