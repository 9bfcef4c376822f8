//! The profiles of ReTwis as plans.
//!
//! Which timelines a tweet is written to follows from who follows its author: as one procedure it
//! takes two rounds ([`Tweet`], which cannot be registered). So the followers are read in a round
//! before, are passed as arguments, and a tweet is refused where they have changed meanwhile
//! ([`TweetWithFollowers`]).

use muesli::arg;
use muesli::plans::{PlanBuilder, PlanValue, PlannedProcedure, RowRange};
use serde::{Deserialize, Serialize};

use super::tables::{AUDIENCES, FOLLOWERS, FOLLOWING, TIMELINES, TWEETS, TweetRow, USERS};
use crate::workload::{ExplainsPlan, explained};

/// The names of the plans, each with what says what is derived of it.
pub const EXPLAINED: &[(&str, ExplainsPlan)] = explained! {
    LoadUser RegisterUser Follow Unfollow ReadFollowers Tweet TweetWithFollowers ReadTimeline
};

/// The names of plans that are no transactions of the mix: those that load, and rounds that read
/// for another one.
pub const APART: &[&str] = &[LoadUser::NAME, ReadFollowers::NAME];

/// So many tweets of a timeline are shown.
pub(super) const SHOWN: usize = 10;

/// Why a tweet is refused whose author's followers are others by now.
pub(super) const CHANGED: &str = "followers have changed";

/// A user as it is loaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LoadedUser {
    pub user: u64,
    pub name: String,
    pub followers: Vec<u64>,
    pub following: Vec<u64>,
}

/// Writes the rows of a user that are there at first, and leaves alone those that are there.
pub(super) struct LoadUser;

impl PlannedProcedure for LoadUser {
    const NAME: &'static str = "retwis-load";
    type Arguments = LoadedUser;
    type Answer = ();

    fn plan(plan: &mut PlanBuilder<LoadedUser>) -> PlanValue<()> {
        let user = arg!(plan, user);
        plan.update(USERS, (user,), (), |loaded, row, ()| row.or(Some(loaded.name.clone())));
        plan.update(AUDIENCES, (user,), (), |_, changes, ()| changes.or(Some(0)));
        let (followers, following) = (arg!(plan, followers), arg!(plan, following));
        plan.each(followers, |plan, other| {
            plan.update(FOLLOWERS, (user, other.item), (), |_, _, ()| Some(()));
        });
        plan.each(following, |plan, other| {
            plan.update(FOLLOWING, (user, other.item), (), |_, _, ()| Some(()));
        });
        plan.nothing()
    }
}

/// A new user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct NewUser {
    pub user: u64,
    pub name: String,
}

/// Registers a user; refuses where there is one.
pub(super) struct RegisterUser;

impl PlannedProcedure for RegisterUser {
    const NAME: &'static str = "retwis-register";
    type Arguments = NewUser;
    type Answer = ();

    fn plan(plan: &mut PlanBuilder<NewUser>) -> PlanValue<()> {
        let user = arg!(plan, user);
        let row = plan.read(USERS, (user,));
        plan.refuse_unless("the user is taken", row, |_, row| row.is_none());
        plan.insert(USERS, (user,), (), |new, ()| new.name.clone());
        plan.insert(AUDIENCES, (user,), (), |_, ()| 0);
        plan.nothing()
    }
}

/// Who follows whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Tie {
    pub follower: u64,
    pub followed: u64,
}

fn both_ends(plan: &mut PlanBuilder<Tie>) -> (PlanValue<u64>, PlanValue<u64>) {
    (arg!(plan, follower), arg!(plan, followed))
}

/// Counts a change of who follows a user; its number.
fn count_change(plan: &mut PlanBuilder<Tie>, followed: PlanValue<u64>) -> PlanValue<u64> {
    let before = plan.read(AUDIENCES, (followed,));
    plan.update(AUDIENCES, (followed,), (), |_, changes, ()| Some(changes.unwrap_or(0) + 1));
    plan.field(before, "number", |changes| changes.unwrap_or(0) + 1)
}

/// Lets a user follow another one, whom there must be; the number of the change.
pub(super) struct Follow;

impl PlannedProcedure for Follow {
    const NAME: &'static str = "retwis-follow";
    type Arguments = Tie;
    type Answer = u64;

    fn plan(plan: &mut PlanBuilder<Tie>) -> PlanValue<u64> {
        let (follower, followed) = both_ends(plan);
        let row = plan.shared(USERS, (followed,));
        plan.refuse_unless("there is no such user", row, |_, row| row.is_some());
        plan.update(FOLLOWERS, (followed, follower), (), |_, _, ()| Some(()));
        plan.update(FOLLOWING, (follower, followed), (), |_, _, ()| Some(()));
        count_change(plan, followed)
    }
}

/// The reverse.
pub(super) struct Unfollow;

impl PlannedProcedure for Unfollow {
    const NAME: &'static str = "retwis-unfollow";
    type Arguments = Tie;
    type Answer = u64;

    fn plan(plan: &mut PlanBuilder<Tie>) -> PlanValue<u64> {
        let (follower, followed) = both_ends(plan);
        plan.delete(FOLLOWERS, (followed, follower));
        plan.delete(FOLLOWING, (follower, followed));
        count_change(plan, followed)
    }
}

/// Who follows a user, and how often that has changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Audience {
    pub changes: u64,
    pub followers: Vec<u64>,
}

/// A question about a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OfUser {
    pub user: u64,
}

/// Reads who follows a user.
pub(super) struct ReadFollowers;

impl PlannedProcedure for ReadFollowers {
    const NAME: &'static str = "retwis-followers";
    type Arguments = OfUser;
    type Answer = Audience;

    fn plan(plan: &mut PlanBuilder<OfUser>) -> PlanValue<Audience> {
        let user = arg!(plan, user);
        let changes = plan.read(AUDIENCES, (user,));
        let rows = plan.scan(FOLLOWERS, (user,), RowRange::ALL);
        plan.compute("audience", (changes, rows), |_, (changes, rows)| Audience {
            changes: changes.unwrap_or(0),
            followers: rows.iter().map(|((_, follower), ())| *follower).collect(),
        })
    }
}

/// A tweet as it is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SentTweet {
    pub author: u64,
    pub number: u64,
    pub text: String,
    /// As it was read before.
    pub audience: Audience,
}

/// Tweets to who follows the author, whoever that is: in two rounds.
pub(super) struct Tweet;

impl PlannedProcedure for Tweet {
    const NAME: &'static str = "retwis-tweet";
    type Arguments = SentTweet;
    type Answer = ();

    fn plan(plan: &mut PlanBuilder<SentTweet>) -> PlanValue<()> {
        let (author, number) = (arg!(plan, author), arg!(plan, number));
        let rows = plan.scan(FOLLOWERS, (author,), RowRange::ALL);
        plan.insert(TWEETS, (author, number), rows, |tweet, rows| TweetRow {
            text: tweet.text.clone(),
            readers: rows.iter().map(|((_, follower), ())| *follower).collect(),
            changes: tweet.audience.changes,
        });
        plan.each(rows, |plan, row| {
            let reader = plan.field(row.item, "follower", |((_, follower), ())| *follower);
            plan.insert(TIMELINES, (reader, number, author), (), |tweet, ()| tweet.text.clone());
        });
        plan.nothing()
    }
}

/// The same, to followers who were read before: refuses where others follow by now.
pub(super) struct TweetWithFollowers;

impl PlannedProcedure for TweetWithFollowers {
    const NAME: &'static str = "retwis-tweet-with-followers";
    type Arguments = SentTweet;
    type Answer = ();

    fn plan(plan: &mut PlanBuilder<SentTweet>) -> PlanValue<()> {
        let (author, number) = (arg!(plan, author), arg!(plan, number));
        let changes = plan.shared(AUDIENCES, (author,));
        plan.refuse_unless(CHANGED, changes, |tweet, changes| {
            changes.is_some_and(|changes| changes == tweet.audience.changes)
        });
        // What there is now, and not what was read: so it is seen whether the guard has held.
        let now = plan.read(AUDIENCES, (author,));
        plan.insert(TWEETS, (author, number), now, |tweet, now| TweetRow {
            text: tweet.text.clone(),
            readers: tweet.audience.followers.clone(),
            changes: now.unwrap_or(0),
        });
        plan.insert(TIMELINES, (author, number, author), (), |tweet, ()| tweet.text.clone());
        let followers = arg!(plan, audience.followers);
        plan.each(followers, |plan, reader| {
            let key = (reader.item, number, author);
            plan.insert(TIMELINES, key, (), |tweet, ()| tweet.text.clone());
        });
        plan.nothing()
    }
}

/// What a user is shown, the newest first: numbers, authors, and texts.
pub(super) type Shown = Vec<(u64, u64, String)>;

/// Reads the newest tweets of a user's timeline.
pub(super) struct ReadTimeline;

impl PlannedProcedure for ReadTimeline {
    const NAME: &'static str = "retwis-timeline";
    type Arguments = OfUser;
    type Answer = Shown;

    fn plan(plan: &mut PlanBuilder<OfUser>) -> PlanValue<Shown> {
        let user = arg!(plan, user);
        let rows = plan.scan(TIMELINES, (user,), RowRange::last(SHOWN));
        plan.field(rows, "shown", |rows| {
            let shown =
                rows.iter().map(|((_, number, author), text)| (*number, *author, text.clone()));
            shown.collect()
        })
    }
}
