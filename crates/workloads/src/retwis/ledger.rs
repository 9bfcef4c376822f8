//! What each client knows that it has done, or may have.

use std::collections::BTreeMap;

use crate::check::Complaints;
use crate::ledgers::{NumberedUpdates, Surely};
use crate::tally::Ended;

/// A change of who follows a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FollowerChange {
    pub follower: u64,
    /// Whether it follows from then on, or does not.
    pub follows: bool,
}

/// What the transaction under way changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RetwisUpdate {
    /// A user is registered.
    User(u64),
    /// A tweet of this author and number is written.
    Tweet(u64, u64),
    /// Another one follows this user, or does not any more.
    Followers(u64, FollowerChange),
}

/// What one client knows.
#[derive(Clone, Debug, Default)]
pub(super) struct RetwisLedger {
    /// Users that it registered.
    pub users: Surely<u64>,
    /// All users that it set out to register, however that ended.
    pub set_out_users: Vec<u64>,
    /// Tweets, by author and number.
    pub tweets: Surely<(u64, u64)>,
    /// How it changed the followers of each user.
    pub changes: BTreeMap<u64, NumberedUpdates<FollowerChange>>,
    /// What a timeline showed that cannot be.
    pub wrong_timelines: Complaints,
    /// What was committed that was to be refused.
    pub wrong_commits: Complaints,
    /// How many numbers it has given to tweets and users.
    pub numbers: u64,
    under_way: Option<RetwisUpdate>,
}

impl RetwisLedger {
    /// An incarnation of the client begins; what the one before left open may have committed.
    pub fn begin_incarnation(&mut self) {
        self.settle(&Ended::Unknown, None);
    }

    /// An attempt is about to commit this.
    pub fn set_out(&mut self, update: RetwisUpdate) {
        if let RetwisUpdate::User(user) = update {
            self.set_out_users.push(user);
        }
        self.under_way = Some(update);
    }

    /// The transaction has ended; with the number of the change, if it was one that is numbered.
    pub fn settle(&mut self, ended: &Ended, number: Option<u64>) {
        match self.under_way.take() {
            Some(RetwisUpdate::User(user)) => self.users.note(user, ended),
            Some(RetwisUpdate::Tweet(author, number)) => self.tweets.note((author, number), ended),
            Some(RetwisUpdate::Followers(user, change)) => {
                self.changes.entry(user).or_default().note(change, ended, number);
            }
            None => {}
        }
    }

    /// Adds what another client knows.
    pub fn join(&mut self, other: &RetwisLedger) {
        self.users.extend(&other.users);
        self.set_out_users.extend_from_slice(&other.set_out_users);
        self.tweets.extend(&other.tweets);
        for (user, changes) in &other.changes {
            self.changes.entry(*user).or_default().extend(changes);
        }
        self.wrong_timelines.extend(&other.wrong_timelines);
        self.wrong_commits.extend(&other.wrong_commits);
    }
}
