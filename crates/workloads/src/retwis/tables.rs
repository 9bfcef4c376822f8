//! The tables of ReTwis, all of them by user, and the rows of some.

use std::sync::Arc;

use muesli::plans::{PlanTable, TableUnit};
use muesli::{Index, SpaceOptions, UnitMap};
use serde::{Deserialize, Serialize};

use crate::distribution::fnv_hash;

/// What the units are.
const USER: &str = "user";

/// By the user.
pub(super) const USERS: PlanTable<(u64,), String> = PlanTable::by_unit("retwis-user", USER, 1);
/// How often those have changed who follow a user.
pub(super) const AUDIENCES: PlanTable<(u64,), u64> = PlanTable::by_unit("retwis-audience", USER, 1);
/// Who follows the first one.
pub(super) const FOLLOWERS: PlanTable<(u64, u64), ()> =
    PlanTable::by_unit("retwis-follower", USER, 1);
/// Whom the first one follows.
pub(super) const FOLLOWING: PlanTable<(u64, u64), ()> =
    PlanTable::by_unit("retwis-following", USER, 1);
/// By author and number.
pub(super) const TWEETS: PlanTable<(u64, u64), TweetRow> =
    PlanTable::by_unit("retwis-tweet", USER, 1);
/// What a user is shown: by the user, the tweet's number, and its author.
pub(super) const TIMELINES: PlanTable<(u64, u64, u64), String> =
    PlanTable::by_unit("retwis-timeline", USER, 1);

/// A tweet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TweetRow {
    pub text: String,
    /// Who followed the author, as the tweet was sent.
    pub readers: Vec<u64>,
    /// How often those had changed when it was committed.
    pub changes: u64,
}

/// A user that there is not.
pub(super) const NOBODY: u64 = 0;

/// What a user is called.
pub(super) fn name(user: u64) -> String {
    format!("user {user}")
}

/// What a tweet says: it follows from who wrote it and from its number.
pub(super) fn text(author: u64, number: u64) -> String {
    format!("tweet {number} of user {author}, about {:x}", fnv_hash(author ^ number))
}

/// The tables: by what their rows are placed, what the values of their keys' columns are, and how
/// many of these are named by all that touches them.
pub const COLUMNS: &[(&str, TableUnit, &[&str], u16)] = &[
    (USERS.name, USERS.unit, &["user"], 1),
    (AUDIENCES.name, AUDIENCES.unit, &["user"], 1),
    (FOLLOWERS.name, FOLLOWERS.unit, &["user", "user"], 1),
    (FOLLOWING.name, FOLLOWING.unit, &["user", "user"], 2),
    (TWEETS.name, TWEETS.unit, &["user", "tweet"], 2),
    (TIMELINES.name, TIMELINES.unit, &["user", "tweet", "user"], 1),
];

/// All spaces; all have an order, by which the checks read them.
pub(super) fn spaces() -> Vec<(&'static str, SpaceOptions)> {
    let (map, ordered) = (Arc::new(UnitMap::default()), Index::Ordered);
    vec![
        USERS.space(ordered, &map),
        AUDIENCES.space(ordered, &map),
        FOLLOWERS.space(ordered, &map),
        FOLLOWING.space(ordered, &map),
        TWEETS.space(ordered, &map),
        TIMELINES.space(ordered, &map),
    ]
}
