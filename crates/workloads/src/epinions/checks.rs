//! What must hold after a run: nothing came or went, both copies of a review are the same, and
//! each row was overwritten as often as clients committed that.

use std::collections::BTreeMap;

use muesli::plans::PlanTable;
use muesli::{Db, Error, Key};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Epinions;
use super::ledger::EpinionsLedger;
use super::tables::{
    ITEMS, Overwritten, PEOPLE, REVIEWS, REVIEWS_OF_USER, RatingRow, TRUST, TRUST_CHANGES,
};
use crate::check::{Check, Complaints};
use crate::reading::rows_at;

/// All rows of a table whose keys begin with one of these numbers.
async fn read<K: Key, V: Serialize + DeserializeOwned>(
    db: &Db,
    table: PlanTable<K, V>,
    first: std::ops::RangeInclusive<u64>,
) -> Result<Vec<(K, V)>, Error> {
    let (space, mut all) = (db.space(table.name)?, Vec::new());
    for number in first {
        let prefix = (number,).encoded();
        all.extend(rows_at(db, space.typed(), &space.place(prefix.clone()), &prefix).await?);
    }
    Ok(all)
}

/// So often a table's rows were overwritten.
fn counted(name: &'static str, found: u64, (sure, perhaps): (u64, u64), wrong: &mut Complaints) {
    if !(sure..=sure + perhaps).contains(&found) {
        wrong.add(|| format!("{name}: {found} updates, not {sure} and at most {perhaps} more"));
    }
}

pub(super) async fn check(epinions: &Epinions, db: &Db) -> Result<Vec<Check>, Error> {
    let mut all = EpinionsLedger::default();
    epinions.ledgers.all().for_each(|mut ledger| all.join(&mut ledger));
    let (db, users, items) = (&db.read_only(), 1..=epinions.users, 1..=epinions.items);
    let names = read(db, PEOPLE, users.clone()).await?;
    let titles = read(db, ITEMS, items.clone()).await?;
    let of_items: BTreeMap<_, _> = read(db, REVIEWS, items).await?.into_iter().collect();
    let of_users = read(db, REVIEWS_OF_USER, users.clone()).await?;
    let trust = read(db, TRUST, users.clone()).await?;
    let changes = read(db, TRUST_CHANGES, users).await?;
    let (loaded_users, loaded_items) = epinions.first();
    let count = |reviews: &[super::plans::LoadedReviews]| -> (usize, usize) {
        (
            reviews.iter().map(|it| it.reviews.len()).sum(),
            reviews.iter().map(|it| it.trust.len()).sum(),
        )
    };
    let (reviews, trusted) = count(&loaded_users);
    let mut there = Complaints::default();
    let found = [names.len(), titles.len(), of_items.len(), of_users.len(), trust.len()];
    let first = [loaded_users.len(), loaded_items.len(), reviews, reviews, trusted];
    if found != first {
        there.add(|| format!("{found:?} rows, not {first:?}"));
    }
    let mut copies = Complaints::default();
    for ((user, item), row) in &of_users {
        if of_items.get(&(*item, *user)) != Some(row) {
            copies.add(|| format!("review of {item} by {user}: {row:?}"));
        }
    }
    let mut updates = Complaints::default();
    let of_texts = |rows: &[((u64,), Overwritten)]| rows.iter().map(|it| it.1.updates).sum();
    let of_ratings = |rows: &[((u64, u64), RatingRow)]| rows.iter().map(|it| it.1.updates).sum();
    counted("names", of_texts(&names), all.names, &mut updates);
    counted("titles", of_texts(&titles), all.titles, &mut updates);
    counted("reviews", of_ratings(&of_users), all.reviews, &mut updates);
    counted("trust", of_ratings(&trust), all.trust, &mut updates);
    let noted: u64 = changes.iter().map(|(_, changes)| *changes).sum();
    counted("changes of trust", noted, all.trust, &mut updates);
    let mut texts = Complaints::default();
    for (letters, rows) in [(24, &names), (128, &titles)] {
        for ((number,), row) in rows.iter().filter(|(_, row)| row.text.len() != letters) {
            texts.add(|| format!("{number} has {:?}", row.text));
        }
    }
    let sum = format!("{} reviews, {} rows of trust", of_items.len(), trust.len());
    Ok(vec![
        Check::none_wrong("nothing came or went", &there, sum),
        Check::none_wrong("reviews of items and of users are the same", &copies, String::new()),
        Check::none_wrong("updates are those that committed", &updates, String::new()),
        Check::none_wrong("texts are whole", &texts, String::new()),
        Check::none_wrong("answers are of one moment", &all.wrong_answers, String::new()),
    ])
}
