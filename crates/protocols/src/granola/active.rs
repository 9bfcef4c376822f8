//! A transaction that a repository has taken up and that is not over there.

use std::sync::Arc;

use muesli_core::parts::votes::Votes;
use muesli_core::{LogPosition, Nanos, RepositoryId, Timestamp};

use super::locking::Prepared;
use super::message::Request;
use super::queue::Lane;

/// A transaction that is not over here.
#[derive(Clone, Debug)]
pub(super) struct Active {
    pub request: Arc<Request>,
    /// What stands for the request, where its client is not believed; zero elsewhere.
    pub about: u64,
    /// What was proposed here.
    pub proposed: Timestamp,
    /// Where it stands in the queue: it will not be done below this.
    pub bound: Timestamp,
    /// Which lane of the queue it stands in, if it is there.
    pub lane: Lane,
    /// The proposals of the others.
    pub votes: Votes<RepositoryId, Timestamp>,
    /// Its place, once all votes are there.
    pub place: Option<Timestamp>,
    /// In locking mode: what came of it. What has nothing here stands in the queue.
    pub prepared: Option<Box<Prepared>>,
    /// Where the log of this life has the vote; whoever comes after it rests on that.
    pub voted: LogPosition,
    /// When it came.
    pub since: Nanos,
    /// When it came, or when votes on it were last asked for.
    pub asked: Nanos,
}

impl Active {
    /// A transaction that is taken up now, proposed `at`: neither prepared nor logged yet.
    pub fn new(
        request: Arc<Request>,
        about: u64,
        at: Timestamp,
        votes: Votes<RepositoryId, Timestamp>,
        now: Nanos,
    ) -> Active {
        Active {
            request,
            about,
            proposed: at,
            bound: at,
            lane: Lane::Placed,
            place: votes.is_complete().then_some(at),
            votes,
            prepared: None,
            voted: LogPosition(0),
            since: now,
            asked: now,
        }
    }
}
