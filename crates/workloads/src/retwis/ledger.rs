//! What each client knows that it has done, or may have.

use crate::check::Complaints;
use crate::tally::Ended;

/// What clients did for sure, and what they may have done.
#[derive(Clone, Debug)]
pub(super) struct Surely<T> {
    pub sure: Vec<T>,
    pub perhaps: Vec<T>,
}

impl<T> Default for Surely<T> {
    fn default() -> Surely<T> {
        Surely { sure: Vec::new(), perhaps: Vec::new() }
    }
}

impl<T: Clone> Surely<T> {
    /// Adds what another client did.
    pub fn extend(&mut self, other: &Surely<T>) {
        self.sure.extend_from_slice(&other.sure);
        self.perhaps.extend_from_slice(&other.perhaps);
    }

    /// Notes what a transaction did, by how it ended.
    fn note(&mut self, what: T, ended: &Ended) {
        match ended {
            Ended::Committed => self.sure.push(what),
            Ended::Unknown => self.perhaps.push(what),
            Ended::RolledBack | Ended::Failed(_) => {}
        }
    }
}

/// What the transaction under way changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RetwisUpdate {
    /// A user is registered.
    User(u64),
    /// A tweet of this author and number is written.
    Tweet(u64, u64),
    /// Others follow this user.
    Followers(u64),
}

/// What one client knows.
#[derive(Clone, Debug, Default)]
pub(super) struct RetwisLedger {
    /// Users that it registered.
    pub users: Surely<u64>,
    /// Tweets, by author and number.
    pub tweets: Surely<(u64, u64)>,
    /// Users whose followers it changed, each time.
    pub changes: Surely<u64>,
    /// What a timeline showed that cannot be.
    pub wrong_timelines: Complaints,
    /// How many numbers it has given to tweets and users.
    pub numbers: u64,
    under_way: Option<RetwisUpdate>,
}

impl RetwisLedger {
    /// An incarnation of the client begins; what the one before left open may have committed.
    pub fn begin_incarnation(&mut self) {
        self.settle(&Ended::Unknown);
    }

    /// An attempt is about to commit this.
    pub fn set_out(&mut self, update: RetwisUpdate) {
        self.under_way = Some(update);
    }

    /// The transaction has ended.
    pub fn settle(&mut self, ended: &Ended) {
        match self.under_way.take() {
            Some(RetwisUpdate::User(user)) => self.users.note(user, ended),
            Some(RetwisUpdate::Tweet(author, number)) => self.tweets.note((author, number), ended),
            Some(RetwisUpdate::Followers(user)) => self.changes.note(user, ended),
            None => {}
        }
    }
}
