//! Keys that a client watches, and whether they have changed.
//!
//! Who watches leaves a mark at the key, with a version. Who changes a key looks for a mark, in the
//! transaction of the change, and gives it another version. Nobody writes where nobody watches, so
//! that two who change different members of a collection do not meet. `docs/inside/redis.md` has
//! the argument.

use super::rows::Generation;
use super::scope::{KeyScope, WatchMark, mark_row};
use super::stop::CommandStop;

/// A client can watch a key for so long; of one that takes longer the key may count as changed.
const WATCHED_FOR_MS: u64 = 10 * 60 * 1000;
/// A mark is of use for so long, so that not every client that comes to it has to renew it.
const MARKED_FOR_MS: u64 = 2 * WATCHED_FOR_MS;

/// A key, as it was when a client began to watch it.
#[derive(Clone, Debug)]
pub(crate) struct Watched {
    pub db: u8,
    pub key: Vec<u8>,
    generation: Generation,
    version: u64,
    was_there: bool,
}

impl KeyScope<'_> {
    /// Begins to watch a key.
    pub async fn watch(&self, db: u8, key: &[u8]) -> Result<Watched, CommandStop> {
        let generation = self.generation(db).await?;
        let row = mark_row(generation, key);
        let found = self.get(row.clone()).await?.as_ref().and_then(WatchMark::of_row);
        let found = found.filter(|it| it.until > self.now);
        let version = found.map_or_else(|| self.new_id(), |it| it.version);
        let until = self.now + MARKED_FOR_MS;
        if found.is_none_or(|it| it.until < self.now + WATCHED_FOR_MS) {
            self.put(row, WatchMark { version, until }.to_row()).await?;
        }
        let was_there = self.header(db, key).await?.is_some();
        Ok(Watched { db, key: key.to_vec(), generation, version, was_there })
    }

    /// Whether a key is as it was.
    pub async fn is_unchanged(&self, watched: &Watched) -> Result<bool, CommandStop> {
        let Watched { db, key, generation, version, was_there } = watched;
        if self.generation(*db).await? != *generation {
            // Flushed, or swapped: what was not there may still be so.
            return Ok(!was_there && self.header(*db, key).await?.is_none());
        }
        let found =
            self.get(mark_row(*generation, key)).await?.as_ref().and_then(WatchMark::of_row);
        if found.is_none_or(|it| it.version != *version) {
            return Ok(false);
        }
        // That it has expired leaves no other trace.
        let is_there = self.header(*db, key).await?.is_some();
        Ok(is_there || !was_there)
    }
}

#[cfg(test)]
mod tests {
    use muesli::{Db, Error, Options, SpaceOptions, Tx};

    use super::*;
    use crate::keyspace::scope::Ids;

    #[test]
    fn a_key_is_watched_for_ten_minutes_whenever_its_mark_was_made() {
        let db = Db::open(Options::default()).unwrap();
        let space = db.create_space("redis", SpaceOptions::default()).unwrap();
        for after in [0, WATCHED_FOR_MS / 2, WATCHED_FOR_MS - 1, WATCHED_FOR_MS + 1] {
            let key = after.to_be_bytes();
            let unchanged = db.blocking().transact(async move |tx: &Tx| {
                let ids = Ids::of_instance(1);
                let at = |now: u64| KeyScope::new(tx, space, &ids, now, 1);
                let failed = |stop: CommandStop| Error::rollback(format!("{stop:?}"));
                at(0).watch(0, &key).await.map_err(failed)?;
                let watched = at(after).watch(0, &key).await.map_err(failed)?;
                let end = at(after + WATCHED_FOR_MS - 1);
                end.sweep_marks(&[]).await.map_err(failed)?;
                end.is_unchanged(&watched).await.map_err(failed)
            });
            assert_eq!(unchanged, Ok(true), "{after}");
        }
        db.close();
    }
}
