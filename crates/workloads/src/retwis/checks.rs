//! What must hold after a run: ties have two ends, tweets are those that committed, and each is in
//! the timelines of its author and of all who followed then, and in no other.

use std::collections::{BTreeMap, BTreeSet};

use muesli::plans::PlanTable;
use muesli::{Db, Error, Key};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Retwis;
use super::ledger::{RetwisLedger, Surely};
use super::tables::{AUDIENCES, FOLLOWERS, FOLLOWING, TIMELINES, TWEETS, TweetRow, USERS};
use crate::check::{Check, Complaints};
use crate::reading::rows_at;

/// All rows of the users that there may be.
#[derive(Debug, Default)]
struct AllRows {
    users: BTreeSet<u64>,
    changes: BTreeMap<u64, u64>,
    followers: BTreeSet<(u64, u64)>,
    following: BTreeSet<(u64, u64)>,
    tweets: BTreeMap<(u64, u64), TweetRow>,
    timelines: BTreeMap<(u64, u64, u64), String>,
}

async fn read<K: Key, V: Serialize + DeserializeOwned>(
    db: &Db,
    table: PlanTable<K, V>,
    user: u64,
) -> Result<Vec<(K, V)>, Error> {
    let (space, prefix) = (db.space(table.name)?, (user,).encoded());
    rows_at(db, space.typed(), &space.place(prefix.clone()), &prefix).await
}

async fn read_one<V: Serialize + DeserializeOwned>(
    db: &Db,
    table: PlanTable<(u64,), V>,
    user: u64,
) -> Result<Option<V>, Error> {
    use muesli::procedures::builtin::{Get, Keyed};
    let (space, key) = (db.space(table.name)?, (user,).encoded());
    let keyed = Keyed { space, keys: vec![key.clone().into()] };
    let found = db.execute::<Get>(space.place(key), &keyed).await?.into_iter().next().flatten();
    let decoded = found.map(|value| postcard::from_bytes(value.0.as_slice())).transpose();
    decoded.map_err(|error| Error::Codec(error.to_string()))
}

impl AllRows {
    async fn read(db: &Db, users: impl Iterator<Item = u64>) -> Result<AllRows, Error> {
        let mut all = AllRows::default();
        for user in users {
            all.users.extend(read_one(db, USERS, user).await?.map(|_| user));
            all.changes.extend(read_one(db, AUDIENCES, user).await?.map(|it| (user, it)));
            all.followers.extend(read(db, FOLLOWERS, user).await?.into_iter().map(|it| it.0));
            all.following.extend(read(db, FOLLOWING, user).await?.into_iter().map(|it| it.0));
            all.tweets.extend(read(db, TWEETS, user).await?);
            all.timelines.extend(read(db, TIMELINES, user).await?);
        }
        Ok(all)
    }

    fn ties(&self) -> Complaints {
        let mut wrong = Complaints::default();
        let turned: BTreeSet<_> =
            self.following.iter().map(|(one, other)| (*other, *one)).collect();
        for (followed, follower) in self.followers.symmetric_difference(&turned) {
            wrong.add(|| format!("{follower} and {followed} have one end"));
        }
        for (followed, follower) in &self.followers {
            let known = self.users.contains(followed) && self.users.contains(follower);
            if !known || followed == follower {
                wrong.add(|| format!("{follower} follows {followed}"));
            }
        }
        wrong
    }

    fn timelines(&self) -> Complaints {
        let (mut wrong, mut expected) = (Complaints::default(), BTreeSet::new());
        for ((author, number), tweet) in &self.tweets {
            for reader in tweet.readers.iter().chain([author]) {
                let key = (*reader, *number, *author);
                expected.insert(key);
                if self.timelines.get(&key) != Some(&tweet.text) {
                    wrong.add(|| format!("tweet {author}.{number} is not shown to {reader}"));
                }
            }
        }
        for (reader, number, author) in self.timelines.keys() {
            if !expected.contains(&(*reader, *number, *author)) {
                wrong.add(|| format!("tweet {author}.{number} is shown to {reader}"));
            }
        }
        wrong
    }
}

/// Whether what is there is what committed, with what may have.
fn judge<T: Ord + Copy + std::fmt::Debug>(
    there: &BTreeSet<T>,
    done: &Surely<T>,
    wrong: &mut Complaints,
) {
    let sure: BTreeSet<T> = done.sure.iter().copied().collect();
    let perhaps: BTreeSet<T> = done.perhaps.iter().copied().collect();
    for missing in sure.difference(there) {
        wrong.add(|| format!("{missing:?} committed and is not there"));
    }
    for more in there.iter().filter(|it| !sure.contains(it) && !perhaps.contains(it)) {
        wrong.add(|| format!("{more:?} is there and did not commit"));
    }
}

pub(super) async fn check(retwis: &Retwis, db: &Db) -> Result<Vec<Check>, Error> {
    let mut all = RetwisLedger::default();
    for mut ledger in retwis.ledgers.all() {
        ledger.begin_incarnation();
        all.users.extend(&ledger.users);
        all.tweets.extend(&ledger.tweets);
        all.changes.extend(&ledger.changes);
        all.wrong_timelines.extend(&ledger.wrong_timelines);
    }
    let registered = all.users.sure.iter().chain(&all.users.perhaps).copied();
    let rows = AllRows::read(&db.read_only(), (1..=retwis.users).chain(registered)).await?;
    let (mut users, mut tweets, mut changes) =
        (Complaints::default(), Complaints::default(), Complaints::default());
    all.users.sure.extend(1..=retwis.users);
    judge(&rows.users, &all.users, &mut users);
    judge(&rows.tweets.keys().copied().collect(), &all.tweets, &mut tweets);
    let count = |list: &[u64], user: u64| list.iter().filter(|it| **it == user).count() as u64;
    for (user, found) in &rows.changes {
        let sure = count(&all.changes.sure, *user);
        if !(sure..=sure + count(&all.changes.perhaps, *user)).contains(found) {
            changes.add(|| format!("followers of {user} changed {found} times, not {sure}"));
        }
    }
    let none = String::new;
    let ties = format!("{} ties", rows.followers.len());
    let shown = format!("{} tweets, {} shown", rows.tweets.len(), rows.timelines.len());
    let registered = format!("{} users", rows.users.len());
    Ok(vec![
        Check::none_wrong("users are those that registered", &users, registered),
        Check::none_wrong("ties have two ends", &rows.ties(), ties),
        Check::none_wrong("changes of followers are counted", &changes, none()),
        Check::none_wrong("tweets are those that committed", &tweets, none()),
        Check::none_wrong("tweets are shown to whom they were for", &rows.timelines(), shown),
        Check::none_wrong("timelines showed whole tweets", &all.wrong_timelines, none()),
    ])
}
