//! What must hold after a run: nothing came or went, both copies of a review are the same, and each
//! row was overwritten as often as clients committed that, the last time with what it has.

use std::collections::{BTreeMap, BTreeSet};

use muesli::plans::PlanTable;
use muesli::{Db, Error, Key};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Epinions;
use super::ledger::{EpinionsLedger, EpinionsRow};
use super::plans::LoadedReviews;
use super::tables::{
    ITEMS, Overwritten, PEOPLE, REVIEWS, REVIEWS_OF_USER, RatingRow, TRUST, TRUST_CHANGES,
};
use crate::check::{Check, Complaints};
use crate::ledgers::NumberedUpdates;
use crate::reading::rows_of;

/// All rows of a table whose keys begin with one of these numbers.
async fn read<K: Key + Ord, V: Serialize + DeserializeOwned>(
    db: &Db,
    table: PlanTable<K, V>,
    first: std::ops::RangeInclusive<u64>,
) -> Result<BTreeMap<K, V>, Error> {
    let mut all = BTreeMap::new();
    for number in first {
        all.extend(rows_of(db, table, (number,)).await?);
    }
    Ok(all)
}

/// All rows.
#[derive(Clone, Debug, Default)]
struct AllReviews {
    names: BTreeMap<(u64,), Overwritten>,
    titles: BTreeMap<(u64,), Overwritten>,
    of_items: BTreeMap<(u64, u64), RatingRow>,
    of_users: BTreeMap<(u64, u64), RatingRow>,
    trust: BTreeMap<(u64, u64), RatingRow>,
    changes: BTreeMap<(u64,), u64>,
}

impl AllReviews {
    async fn read(db: &Db, users: u64, items: u64) -> Result<AllReviews, Error> {
        let (users, items) = (1..=users, 1..=items);
        Ok(AllReviews {
            names: read(db, PEOPLE, users.clone()).await?,
            titles: read(db, ITEMS, items.clone()).await?,
            of_items: read(db, REVIEWS, items).await?,
            of_users: read(db, REVIEWS_OF_USER, users.clone()).await?,
            trust: read(db, TRUST, users.clone()).await?,
            changes: read(db, TRUST_CHANGES, users).await?,
        })
    }

    /// Whether there are the rows that were loaded, and no other.
    fn there(&self, users: &[LoadedReviews], items: &[LoadedReviews]) -> Complaints {
        let mut wrong = Complaints::default();
        let alone = |all: &[LoadedReviews]| -> BTreeSet<(u64, u64)> {
            all.iter().map(|it| (it.of, 0)).collect()
        };
        let pairs = |all: &[LoadedReviews], of: fn(&LoadedReviews) -> &Vec<(u64, u16)>| {
            let pairs = all.iter().flat_map(|one| of(one).iter().map(|it| (one.of, it.0)));
            pairs.collect::<BTreeSet<_>>()
        };
        let ones = |keys: Vec<&(u64,)>| keys.into_iter().map(|key| (key.0, 0)).collect();
        let of_items = pairs(items, |it| &it.reviews);
        let tables: [(&str, BTreeSet<_>, BTreeSet<_>); 6] = [
            ("users", ones(self.names.keys().collect()), alone(users)),
            ("items", ones(self.titles.keys().collect()), alone(items)),
            ("reviews of items", self.of_items.keys().copied().collect(), of_items),
            (
                "reviews of users",
                self.of_users.keys().copied().collect(),
                pairs(users, |it| &it.reviews),
            ),
            ("trust", self.trust.keys().copied().collect(), pairs(users, |it| &it.trust)),
            ("counts of trust", ones(self.changes.keys().collect()), alone(users)),
        ];
        for (name, found, loaded) in tables {
            for key in found.symmetric_difference(&loaded) {
                wrong.add(|| format!("{name}: {key:?} came or went"));
            }
        }
        wrong
    }

    /// Whether both copies of each review are the same, and changes of trust are counted.
    fn copies(&self) -> Complaints {
        let mut wrong = Complaints::default();
        for ((item, user), row) in &self.of_items {
            if self.of_users.get(&(*user, *item)) != Some(row) {
                wrong.add(|| format!("review of {item} by {user}: {row:?}"));
            }
        }
        for ((user,), counted) in &self.changes {
            let rows = self.trust.range((*user, 0)..=(*user, u64::MAX));
            let updates: u64 = rows.map(|(_, row)| row.updates).sum();
            if updates != *counted {
                wrong.add(|| format!("trust of {user} changed {updates} times, not {counted}"));
            }
        }
        wrong
    }

    /// Whether each row is what the updates have left that clients know of.
    fn updates(&self, first: &AllReviews, known: &EpinionsLedger) -> Complaints {
        let (mut wrong, none) = (Complaints::default(), NumberedUpdates::default());
        let mut judge = |row, updates: u64, is_loaded, is_left_by: &dyn Fn(u64) -> bool| {
            let known = known.updates.get(&row).unwrap_or(&none);
            if let Err(text) = known.judge_last(updates, is_loaded, is_left_by) {
                wrong.add(|| format!("{row:?}: {text}"));
            }
        };
        for ((user,), row) in &self.names {
            let is_loaded = first.names.get(&(*user,)).is_some_and(|it| it.text == row.text);
            let is_left_by = |drawn| row.text == Epinions::name(*user, drawn);
            judge(EpinionsRow::Name(*user), row.updates, is_loaded, &is_left_by);
        }
        for ((item,), row) in &self.titles {
            let is_loaded = first.titles.get(&(*item,)).is_some_and(|it| it.text == row.text);
            let is_left_by = |drawn| row.text == Epinions::title(*item, drawn);
            judge(EpinionsRow::Title(*item), row.updates, is_loaded, &is_left_by);
        }
        for ((item, user), row) in &self.of_items {
            let loaded = first.of_items.get(&(*item, *user));
            let is_loaded = loaded.is_some_and(|it| it.rating == row.rating);
            let is_left_by = |drawn| row.rating == Epinions::rating(drawn);
            judge(EpinionsRow::Review(*item, *user), row.updates, is_loaded, &is_left_by);
        }
        for ((user, other), row) in &self.trust {
            let is_loaded =
                first.trust.get(&(*user, *other)).map(|it| it.rating) == Some(row.rating);
            let is_left_by = |drawn| row.rating == Epinions::trust(drawn);
            judge(EpinionsRow::Trust(*user, *other), row.updates, is_loaded, &is_left_by);
        }
        wrong
    }
}

/// The rows as they are loaded.
fn loaded(users: &[LoadedReviews], items: &[LoadedReviews]) -> AllReviews {
    let text = |it: &LoadedReviews| ((it.of,), Overwritten { text: it.text.clone(), updates: 0 });
    let rating = |rating: u16| RatingRow { rating, updates: 0 };
    let mut first = AllReviews {
        names: users.iter().map(text).collect(),
        titles: items.iter().map(text).collect(),
        changes: users.iter().map(|it| ((it.of,), 0)).collect(),
        ..AllReviews::default()
    };
    for user in users {
        let of_users = user.reviews.iter().map(|it| ((user.of, it.0), rating(it.1)));
        first.of_users.extend(of_users);
        first.trust.extend(user.trust.iter().map(|it| ((user.of, it.0), rating(it.1))));
    }
    for item in items {
        first.of_items.extend(item.reviews.iter().map(|it| ((item.of, it.0), rating(it.1))));
    }
    first
}

pub(super) async fn check(epinions: &Epinions, db: &Db) -> Result<Vec<Check>, Error> {
    let mut all = EpinionsLedger::default();
    for mut ledger in epinions.ledgers.all() {
        ledger.begin_incarnation();
        all.join(&ledger);
    }
    let rows = AllReviews::read(&db.read_only(), epinions.users, epinions.items).await?;
    let (users, items) = epinions.first();
    let updates = rows.updates(&loaded(&users, &items), &all);
    let sum = format!("{} reviews, {} rows of trust", rows.of_items.len(), rows.trust.len());
    let overwritten = format!("{} rows overwritten", all.updates.len());
    Ok(vec![
        Check::none_wrong("nothing came or went", &rows.there(&users, &items), sum),
        Check::none_wrong("copies and counts are the same", &rows.copies(), String::new()),
        Check::none_wrong("rows are what the last update left", &updates, overwritten),
        Check::none_wrong("answers have what there is", &all.wrong_answers, String::new()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::epinions::PARAMETERS;
    use crate::parameters::Values;
    use crate::tally::Ended;

    #[test]
    fn each_check_finds_what_it_is_for() {
        let given = ["users=8", "items=4", "communities=2"].map(str::to_owned);
        let values = Values::read("epinions", PARAMETERS, &given).unwrap();
        let (users, items) = Epinions::new(&values, 1).unwrap().first();
        let (first, mut known) = (loaded(&users, &items), EpinionsLedger::default());
        let mut rows = first.clone();
        let (item, user) = *first.of_items.keys().next().unwrap();
        let trusted = *first.trust.keys().next().unwrap();
        for (row, drawn, number) in [
            (EpinionsRow::Name(user), 7, 2),
            (EpinionsRow::Name(user), 6, 1),
            (EpinionsRow::Title(item), 8, 1),
            (EpinionsRow::Review(item, user), 9, 1),
            (EpinionsRow::Trust(trusted.0, trusted.1), 3, 1),
        ] {
            known.set_out(row, drawn);
            known.settle(&Ended::Committed, Some(number));
        }
        rows.names.insert((user,), Overwritten { text: Epinions::name(user, 7), updates: 2 });
        rows.titles.insert((item,), Overwritten { text: Epinions::title(item, 8), updates: 1 });
        let review = RatingRow { rating: Epinions::rating(9), updates: 1 };
        rows.of_items.insert((item, user), review);
        rows.of_users.insert((user, item), review);
        let trust = RatingRow { rating: Epinions::trust(3), updates: 1 };
        rows.trust.insert(trusted, trust);
        rows.changes.insert((trusted.0,), 1);
        let are_right = |rows: &AllReviews| {
            let all = [rows.there(&users, &items), rows.copies(), rows.updates(&first, &known)];
            all.map(|it| it == Complaints::default())
        };
        assert_eq!(are_right(&rows), [true; 3]);
        let spoilt = |spoil: &dyn Fn(&mut AllReviews)| {
            let mut spoilt = rows.clone();
            spoil(&mut spoilt);
            are_right(&spoilt)
        };
        // A row that went while another one came.
        assert!(
            !spoilt(&|it| {
                let row = it.names.remove(&(user,)).unwrap();
                it.names.insert((99,), row);
            })[0]
        );
        assert!(!spoilt(&|it| _ = it.of_users.remove(&(user, item)))[1]);
        assert!(!spoilt(&|it| _ = it.changes.insert((trusted.0,), 2))[1]);
        // An update that was lost, one that came too late, and one that nobody did.
        assert!(!spoilt(&|it| it.names.get_mut(&(user,)).unwrap().updates = 1)[2]);
        let earlier = Epinions::name(user, 6);
        assert!(!spoilt(&|it| it.names.get_mut(&(user,)).unwrap().text = earlier.clone())[2]);
        assert!(!spoilt(&|it| it.titles.get_mut(&(item,)).unwrap().updates = 2)[2]);
        assert!(!spoilt(&|it| it.of_items.get_mut(&(item, user)).unwrap().rating += 1)[2]);
        assert!(!spoilt(&|it| it.trust.get_mut(&trusted).unwrap().rating = 7)[2]);
    }
}
