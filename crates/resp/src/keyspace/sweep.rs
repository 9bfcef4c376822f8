//! What is of no use any more is taken away, a little at a time: keys that have expired, rows of
//! collections that are gone, databases that were flushed, marks that nobody renews.

use muesli::{Range, SmallBytes};

use super::header::KeyHeader;
use super::rows::{DATABASES, Generation, RowKey, tag, take_number};
use super::scope::{KeyHandle, KeyScope, WatchMark};
use super::stop::CommandStop;

/// So many rows are looked at in one transaction, about.
const ROWS_AT_ONCE: usize = 256;
/// So many keys: each has several rows.
const KEYS_AT_ONCE: usize = ROWS_AT_ONCE / 2;

/// What a transaction of a sweep has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SweepStep {
    /// So much was taken.
    pub count: usize,
    /// It ended because it was enough for one transaction: there may be more.
    pub is_full: bool,
}

impl KeyScope<'_> {
    /// Takes some keys away that have expired.
    pub async fn sweep_expired(&self) -> Result<SweepStep, CommandStop> {
        let lo = RowKey::new(tag::EXPIRY).done();
        let hi = RowKey::new(tag::EXPIRY).ordered(self.now + 1).done();
        let range = Range::of(lo.as_slice()..hi.as_slice()).limit(KEYS_AT_ONCE);
        let rows = self.scan(range).await?;
        for (row, _) in &rows {
            self.delete(row.clone()).await?;
            let after_time = row.as_slice().get(1 + size_of::<u64>()..).unwrap_or_default();
            let Some((generation, key)) = take_number(after_time) else { continue };
            if let Some(db) = self.database_of(generation as Generation).await? {
                let mut entry = self.entry(db, key).await?;
                if entry.found.is_none() {
                    self.erase(&mut entry, None).await?;
                    self.events.add('x', "expired", db, key);
                }
            }
        }
        Ok(SweepStep { count: rows.len(), is_full: rows.len() == KEYS_AT_ONCE })
    }

    /// The database that has a generation, if one has.
    async fn database_of(&self, generation: Generation) -> Result<Option<u8>, CommandStop> {
        for db in 0..DATABASES as u8 {
            if self.generation(db).await? == generation {
                return Ok(Some(db));
            }
        }
        Ok(None)
    }

    /// Takes some rows away of collections that are gone.
    pub async fn sweep_rows(&self) -> Result<SweepStep, CommandStop> {
        let unused = self.scan(Range::prefix([tag::UNUSED_CONTENT]).limit(ROWS_AT_ONCE)).await?;
        let mut count = 0;
        for (mark, _) in unused {
            let rows = [&[tag::CONTENT], &mark.as_slice()[1..]].concat();
            let most = ROWS_AT_ONCE.saturating_sub(count);
            if most == 0 {
                break;
            }
            let found = self.scan(Range::prefix(&rows).limit(most)).await?;
            let is_last = found.len() < most;
            count += found.len() + 1;
            for (row, _) in found {
                self.delete(row).await?;
            }
            if is_last {
                self.delete(mark).await?;
            }
        }
        Ok(SweepStep { count, is_full: count >= ROWS_AT_ONCE })
    }

    /// Takes some keys away of databases that were flushed.
    pub async fn sweep_flushed(&self) -> Result<SweepStep, CommandStop> {
        let unused = self.scan(Range::prefix([tag::UNUSED_GENERATION]).limit(DATABASES)).await?;
        let mut count = 0;
        for (mark, _) in unused {
            let most = ROWS_AT_ONCE.saturating_sub(count);
            if most == 0 {
                break;
            }
            count += self.sweep_generation(mark, most).await? + 1;
        }
        Ok(SweepStep { count, is_full: count >= ROWS_AT_ONCE })
    }

    /// Takes some rows away of the generation that a mark names, at most so many of each kind, and
    /// the mark with the last ones; how many.
    async fn sweep_generation(&self, mark: SmallBytes, most: usize) -> Result<usize, CommandStop> {
        let of = |tag: u8| [&[tag], &mark.as_slice()[1..]].concat();
        let mut count = 0;
        for kind in [tag::HEADER, tag::COUNT, tag::MARK] {
            let rows = self.scan(Range::prefix(of(kind)).limit(most)).await?;
            let is_last = rows.len() < most;
            count += rows.len();
            for (row, value) in rows {
                self.delete(row).await?;
                if kind != tag::HEADER {
                    continue;
                }
                if let Some(id) = KeyHeader::of_row(&value).ok().and_then(|it| it.value.id()) {
                    let unused = RowKey::new(tag::UNUSED_CONTENT).number(id).done();
                    self.put(unused, SmallBytes::EMPTY).await?;
                }
            }
            if !is_last {
                return Ok(count);
            }
        }
        self.delete(mark).await?;
        Ok(count)
    }

    /// Takes some marks away that are of no use any more, from one on; where to go on. Where most
    /// of them were of use, the step is not full: the others can wait.
    pub async fn sweep_marks(&self, from: &[u8]) -> Result<(Vec<u8>, SweepStep), CommandStop> {
        let end = [tag::MARK + 1];
        let from = if from.is_empty() { &[tag::MARK][..] } else { from };
        let rows = self.scan(Range::of(from..&end[..]).limit(ROWS_AT_ONCE)).await?;
        let next = match rows.last() {
            Some((row, _)) if rows.len() == ROWS_AT_ONCE => row.successor().as_slice().to_vec(),
            _ => Vec::new(),
        };
        let mut count = 0;
        for (row, mark) in rows {
            if WatchMark::of_row(&mark).is_none_or(|it| it.until <= self.now) {
                self.delete(row).await?;
                count += 1;
            }
        }
        let is_full = !next.is_empty() && count > ROWS_AT_ONCE / 2;
        Ok((next, SweepStep { count, is_full }))
    }

    /// Gives a database to new keys; the old ones are swept.
    pub async fn flush(&self, db: u8) -> Result<(), CommandStop> {
        let old = self.generation(db).await?;
        let last = RowKey::new(tag::LAST_GENERATION).done();
        let next = self.number(last.clone()).await?.unwrap_or(DATABASES as u64) + 1;
        self.put_number(last, next).await?;
        let unused = RowKey::new(tag::UNUSED_GENERATION).number(u64::from(old)).done();
        self.put(unused, SmallBytes::EMPTY).await?;
        self.changes.set(self.changes.get() + 1);
        self.set_generation(db, next as Generation).await
    }

    /// A number that no other instance has, of this or another server.
    pub async fn new_instance(&self) -> Result<u64, CommandStop> {
        let row = RowKey::new(tag::INSTANCE).done();
        let next = self.number(row.clone()).await?.unwrap_or(0) + 1;
        self.put_number(row, next).await?;
        Ok(next)
    }

    /// Puts what an entry has under another key, as it is; its rows go with it.
    pub async fn move_to(
        &self,
        entry: &mut KeyHandle,
        to: &mut KeyHandle,
    ) -> Result<(), CommandStop> {
        let Some(header) = entry.found.clone() else { return Ok(()) };
        self.erase(entry, Some(&header)).await?;
        self.changed(entry).await?;
        self.set(to, header).await
    }
}

#[cfg(test)]
mod tests {
    use muesli::{Db, Error, Options, SpaceOptions, Tx};

    use super::*;
    use crate::keyspace::rows::ContentPart;
    use crate::keyspace::scope::Ids;

    fn failed(stop: CommandStop) -> Error {
        match stop {
            CommandStop::Database(error) => error,
            other => Error::rollback(format!("{other:?}")),
        }
    }

    #[test]
    fn a_step_takes_many_small_collections_and_goes_on_with_a_large_one() {
        let db = Db::open(Options::default()).unwrap();
        let space = db.create_space("redis", SpaceOptions::default()).unwrap();
        let steps = db.blocking().transact(async move |tx: &Tx| {
            let ids = Ids::of_instance(1);
            let scope = KeyScope::new(tx, space, &ids, 0, 1);
            for size in std::iter::repeat_n(1, 200).chain([ROWS_AT_ONCE]) {
                let id = scope.new_id();
                for at in 0..size {
                    let row = RowKey::content(id, ContentPart::Item).ordered(at as u64).done();
                    scope.put(row, SmallBytes::EMPTY).await.map_err(failed)?;
                }
                let mark = RowKey::new(tag::UNUSED_CONTENT).number(id).done();
                scope.put(mark, SmallBytes::EMPTY).await.map_err(failed)?;
            }
            let mut steps = Vec::new();
            while steps.len() < 5 {
                steps.push(scope.sweep_rows().await.map_err(failed)?);
            }
            let left = scope.scan(Range::prefix([tag::CONTENT])).await.map_err(failed)?;
            Ok::<_, Error>((steps, left.len()))
        });
        let (steps, left) = steps.unwrap();
        let full: Vec<_> = steps.iter().map(|it| it.is_full).collect();
        assert_eq!((full, left), (vec![true, true, false, false, false], 0), "{steps:?}");
        db.close();
    }
}
