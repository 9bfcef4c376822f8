//! What must hold of the objects after a run, by the books of the clients.

use muesli::{Db, Error, Tx};

use super::ledger::ClosedBooks;
use super::value::StoredObject;
use super::{Objects, SPACE};
use crate::check::{Check, Complaints};
use crate::loading::BATCH_BYTES;

/// At most so many objects are read in one transaction.
const PAGE: u64 = 500;

/// What was found of the objects.
#[derive(Debug, Default)]
struct FoundObjects {
    count: u64,
    /// Updates that objects show that nobody wrote unread, and how few and many there may be.
    updates: u64,
    least: u64,
    most: u64,
    /// Objects that were written unread.
    blind: u64,
    wrong: Complaints,
    miscounted: Complaints,
    wrong_writes: Complaints,
}

pub(super) async fn check(objects: &Objects, db: &Db) -> Result<Vec<Check>, Error> {
    let (keys, books) = (objects.keys(db)?, objects.books.closed());
    let (space, strict) = (db.space(SPACE)?, db.strict().read_only());
    let page = (BATCH_BYTES / objects.bytes).clamp(1, PAGE as usize);
    let mut found = FoundObjects::default();
    let mut left = keys.numbers().peekable();
    while left.peek().is_some() {
        let numbers: Vec<u64> = left.by_ref().take(page).collect();
        let wanted = || numbers.iter().map(|number| keys.key(*number));
        let read = async |tx: &Tx| tx.get_many(space, wanted()).await;
        for (number, value) in numbers.iter().zip(strict.transact_here(read).await?) {
            match StoredObject::decode(value.as_ref(), objects.bytes) {
                Ok(object) if object.number == *number => found.judge(&object, &books),
                other => found.wrong.add(|| format!("object {number} is {other:?}")),
            }
        }
    }
    Ok(found.checks())
}

impl FoundObjects {
    fn judge(&mut self, object: &StoredObject, books: &ClosedBooks<'_>) {
        let StoredObject { number, updates, blind } = *object;
        let bounds = books.bounds(number);
        self.count += 1;
        if books.is_blind(number) {
            self.blind += 1;
        } else {
            self.updates += updates;
            self.least += bounds.start();
            self.most += bounds.end();
        }
        if !bounds.contains(&updates) {
            self.miscounted.add(|| format!("object {number} shows {updates}, not {bounds:?}"));
        }
        if !books.may_show(object) {
            self.wrong_writes.add(|| format!("object {number} shows {blind:?}"));
        }
    }

    fn checks(&self) -> Vec<Check> {
        let FoundObjects { count, updates, least, most, blind, .. } = self;
        let counted = format!("{updates} counted, {least}..={most} committed");
        vec![
            Check::none_wrong("objects are there and whole", &self.wrong, count.to_string()),
            Check::none_wrong("counters show every committed update", &self.miscounted, counted),
            Check::none_wrong(
                "last writes that did not read are seen",
                &self.wrong_writes,
                format!("{blind} objects"),
            ),
        ]
    }
}
