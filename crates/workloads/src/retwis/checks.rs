//! What must hold after a run: users, ties and tweets are what committed left, and each tweet is in
//! the timelines of its author and of all who followed when it committed, and in no other.

use std::collections::{BTreeMap, BTreeSet};

use muesli::{Db, Error};

use super::Retwis;
use super::followers::FollowerHistory;
use super::ledger::RetwisLedger;
use super::tables::{
    AUDIENCES, FOLLOWERS, FOLLOWING, NOBODY, TIMELINES, TWEETS, TweetRow, USERS, name, text,
};
use crate::check::{Check, Complaints};
use crate::reading::rows_of;

/// All rows of the users that there may be.
#[derive(Debug, Default)]
struct AllRows {
    users: BTreeMap<u64, String>,
    changes: BTreeMap<u64, u64>,
    followers: BTreeSet<(u64, u64)>,
    following: BTreeSet<(u64, u64)>,
    tweets: BTreeMap<(u64, u64), TweetRow>,
    timelines: BTreeMap<(u64, u64, u64), String>,
}

impl AllRows {
    async fn read(db: &Db, users: impl Iterator<Item = u64>) -> Result<AllRows, Error> {
        let mut all = AllRows::default();
        for user in users {
            let (names, changes) =
                (rows_of(db, USERS, (user,)).await?, rows_of(db, AUDIENCES, (user,)).await?);
            all.users.extend(names.into_iter().map(|(key, name)| (key.0, name)));
            all.changes.extend(changes.into_iter().map(|(key, count)| (key.0, count)));
            let followers = rows_of(db, FOLLOWERS, (user,)).await?;
            all.followers.extend(followers.into_iter().map(|it| it.0));
            let following = rows_of(db, FOLLOWING, (user,)).await?;
            all.following.extend(following.into_iter().map(|it| it.0));
            all.tweets.extend(rows_of(db, TWEETS, (user,)).await?);
            all.timelines.extend(rows_of(db, TIMELINES, (user,)).await?);
        }
        Ok(all)
    }

    fn names(&self) -> Complaints {
        let mut wrong = Complaints::default();
        for (user, found) in self.users.iter().filter(|(user, found)| **found != name(**user)) {
            wrong.add(|| format!("user {user} is called {found:?}"));
        }
        for user in self.users.keys().filter(|user| !self.changes.contains_key(user)) {
            wrong.add(|| format!("the followers of user {user} are not counted"));
        }
        for user in self.changes.keys().filter(|user| !self.users.contains_key(user)) {
            wrong.add(|| format!("followers of {user}, who is no user, are counted"));
        }
        wrong
    }

    fn ties(&self) -> Complaints {
        let mut wrong = Complaints::default();
        let turned: BTreeSet<_> =
            self.following.iter().map(|(one, other)| (*other, *one)).collect();
        for (followed, follower) in self.followers.symmetric_difference(&turned) {
            wrong.add(|| format!("{follower} and {followed} have one end"));
        }
        for (followed, follower) in &self.followers {
            let known = self.users.contains_key(followed) && self.users.contains_key(follower);
            if !known || followed == follower {
                wrong.add(|| format!("{follower} follows {followed}"));
            }
        }
        wrong
    }

    fn followers_of(&self, user: u64) -> BTreeSet<u64> {
        self.followers.range((user, 0)..=(user, u64::MAX)).map(|it| it.1).collect()
    }

    /// Whether followers are those that clients have left, and tweets were for those of their time.
    fn followers(&self, retwis: &Retwis, known: &RetwisLedger) -> (Complaints, Complaints) {
        let (mut wrong, mut unread) = (Complaints::default(), Complaints::default());
        let mut first: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
        for loaded in retwis.first_ties() {
            first.insert(loaded.user, loaded.followers.into_iter().collect());
        }
        let none = Default::default();
        for (user, count) in &self.changes {
            let loaded = first.remove(user).unwrap_or_default();
            let changes = known.changes.get(user).unwrap_or(&none);
            let history = match FollowerHistory::new(loaded, changes, *count) {
                Ok(history) => history,
                Err(text) => {
                    wrong.add(|| format!("followers of {user}: {text}"));
                    continue;
                }
            };
            if let Err(text) = history.judge(*count, &self.followers_of(*user)) {
                wrong.add(|| format!("followers of {user}: {text}"));
            }
            for ((_, number), tweet) in self.tweets.range((*user, 0)..=(*user, u64::MAX)) {
                let readers = tweet.readers.iter().copied().collect();
                if let Err(text) = history.judge(tweet.changes, &readers) {
                    unread.add(|| format!("tweet {user}.{number}: {text}"));
                }
            }
        }
        (wrong, unread)
    }

    fn timelines(&self) -> Complaints {
        let (mut wrong, mut expected) = (Complaints::default(), BTreeSet::new());
        for ((author, number), tweet) in &self.tweets {
            if tweet.text != text(*author, *number) {
                wrong.add(|| format!("tweet {author}.{number} says {:?}", tweet.text));
            }
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

pub(super) async fn check(retwis: &Retwis, db: &Db) -> Result<Vec<Check>, Error> {
    let mut all = RetwisLedger::default();
    for mut ledger in retwis.ledgers.all() {
        ledger.begin_incarnation();
        all.join(&ledger);
    }
    let set_out = all.set_out_users.iter().copied().chain([NOBODY]);
    let rows = AllRows::read(&db.read_only(), (1..=retwis.users).chain(set_out)).await?;
    let (mut users, mut tweets) = (Complaints::default(), Complaints::default());
    all.users.sure.extend(1..=retwis.users);
    all.users.judge(&rows.users.keys().copied().collect(), &mut users);
    users.extend(&rows.names());
    all.tweets.judge(&rows.tweets.keys().copied().collect(), &mut tweets);
    let (changes, unread) = rows.followers(retwis, &all);
    let none = String::new;
    let ties = format!("{} ties", rows.followers.len());
    let shown = format!("{} tweets, {} shown", rows.tweets.len(), rows.timelines.len());
    let registered = format!("{} users", rows.users.len());
    let refused = "what is taken or not there is refused";
    Ok(vec![
        Check::none_wrong("users are those that registered", &users, registered),
        Check::none_wrong("ties have two ends", &rows.ties(), ties),
        Check::none_wrong("followers are those that committed left", &changes, none()),
        Check::none_wrong("tweets are those that committed", &tweets, none()),
        Check::none_wrong("tweets are for those who followed then", &unread, none()),
        Check::none_wrong("tweets are shown to whom they were for", &rows.timelines(), shown),
        Check::none_wrong("timelines showed whole tweets", &all.wrong_timelines, none()),
        Check::none_wrong(refused, &all.wrong_commits, none()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::Values;
    use crate::retwis::PARAMETERS;
    use crate::retwis::ledger::{FollowerChange, RetwisUpdate};
    use crate::tally::Ended;

    fn retwis() -> Retwis {
        let given = ["users=6", "follows=2", "community=6"].map(str::to_owned);
        Retwis::new(&Values::read("retwis", PARAMETERS, &given).unwrap(), 1).unwrap()
    }

    /// What is loaded.
    fn loaded(retwis: &Retwis) -> AllRows {
        let mut rows = AllRows::default();
        for user in retwis.first_ties() {
            rows.users.insert(user.user, user.name);
            rows.changes.insert(user.user, 0);
            rows.followers.extend(user.followers.iter().map(|other| (user.user, *other)));
            rows.following.extend(user.following.iter().map(|other| (user.user, *other)));
        }
        rows
    }

    fn are_right(rows: &AllRows, known: &RetwisLedger) -> [bool; 5] {
        let none = Complaints::default();
        let (changes, unread) = rows.followers(&retwis(), known);
        [rows.names(), rows.ties(), changes, unread, rows.timelines()].map(|it| it == none)
    }

    #[test]
    fn each_check_finds_what_it_is_for() {
        let (retwis, mut known) = (retwis(), RetwisLedger::default());
        let mut rows = loaded(&retwis);
        assert_eq!(are_right(&rows, &known), [true; 5]);
        // A follow of one user that both ends have, and a tweet after it.
        let follower = (2..=6).find(|it| !rows.followers.contains(&(1, *it))).unwrap();
        let change = FollowerChange { follower, follows: true };
        known.set_out(RetwisUpdate::Followers(1, change));
        known.settle(&Ended::Committed, Some(1));
        rows.followers.insert((1, follower));
        rows.following.insert((follower, 1));
        rows.changes.insert(1, 1);
        let readers: Vec<u64> = rows.followers_of(1).into_iter().collect();
        let tweet = TweetRow { text: text(1, 9), readers: readers.clone(), changes: 1 };
        let shown = readers.iter().chain([&1]).map(|reader| ((*reader, 9, 1), text(1, 9)));
        rows.timelines.extend(shown);
        rows.tweets.insert((1, 9), tweet);
        assert_eq!(are_right(&rows, &known), [true; 5]);
        type BreakRows = fn(&mut AllRows, u64);
        let breaks: [(BreakRows, usize); 9] = [
            (|rows, _| _ = rows.users.insert(2, "somebody".to_owned()), 0),
            (|rows, _| _ = rows.changes.remove(&3), 0),
            (|rows, follower| _ = rows.following.remove(&(follower, 1)), 1),
            (|rows, _| _ = rows.changes.insert(1, 2), 2),
            (
                |rows, follower| {
                    rows.followers.remove(&(1, follower));
                    rows.following.remove(&(follower, 1));
                },
                2,
            ),
            // The guard let a tweet through that was for those who followed before.
            (|rows, _| rows.tweets.get_mut(&(1, 9)).unwrap().changes = 0, 3),
            (|rows, _| _ = rows.timelines.remove(&(1, 9, 1)), 4),
            (|rows, _| _ = rows.timelines.insert((6, 8, 5), text(5, 8)), 4),
            (|rows, _| rows.tweets.get_mut(&(1, 9)).unwrap().text.push('!'), 4),
        ];
        for (number, (spoil, check)) in breaks.iter().enumerate() {
            let mut spoilt = AllRows {
                users: rows.users.clone(),
                changes: rows.changes.clone(),
                followers: rows.followers.clone(),
                following: rows.following.clone(),
                tweets: rows.tweets.clone(),
                timelines: rows.timelines.clone(),
            };
            spoil(&mut spoilt, follower);
            assert!(!are_right(&spoilt, &known)[*check], "the mistake of number {number}");
        }
    }
}
