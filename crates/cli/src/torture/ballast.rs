//! Data beside the workload's: loaded once a round, and read, changed and checked.
//!
//! A value is a function of its key, its revision and the seed, and its length is too: whoever
//! reads one sees at once whether it is whole. One client changes them, so that each has a newest
//! revision that was acknowledged, and perhaps newer ones whose outcome nobody knows.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use anyhow::ensure;
use muesli::{Db, Error, SmallBytes, Space, SpaceOptions};

use crate::reach;

/// The space of these data.
const SPACE: &str = "ballast";
/// So many bytes are loaded in one transaction, or one value.
const LOAD_BYTES: usize = 1 << 20;
/// How long an answer is waited for.
const GIVE_UP_AFTER: Duration = Duration::from_secs(5);
/// The pause between two changes.
const PAUSE: Duration = Duration::from_millis(20);
/// One of so many uses only reads.
const READS: usize = 3;

/// How much there is to be.
#[derive(Clone, Copy, Debug)]
pub struct Ballast {
    pub bytes: u64,
    longest: u64,
}

impl Ballast {
    /// So many bytes, in values of random lengths up to `longest`.
    pub fn of(bytes: u64, longest: u64) -> Ballast {
        Ballast { bytes, longest }
    }

    /// Loads it, if it is more than nothing, until `over` is set.
    ///
    /// # Errors
    /// What the cluster says; or `over` was set.
    pub fn load(
        self,
        addresses: &[String],
        protocol: &str,
        seed: u64,
        over: &AtomicBool,
    ) -> anyhow::Result<Option<LoadedBallast>> {
        if self.bytes == 0 {
            return Ok(None);
        }
        let db = reach::connect(addresses, protocol, GIVE_UP_AFTER)?;
        let space = db.create_space(SPACE, SpaceOptions::default())?;
        let content = Content { seed, longest: self.longest as usize };
        let (mut keys, mut bytes) = (0, 0);
        while bytes < self.bytes {
            ensure!(!over.load(Ordering::Relaxed), "interrupted while data were loaded");
            let (first, mut batch, mut of_batch) = (keys, Vec::new(), 0);
            while of_batch < LOAD_BYTES && bytes + (of_batch as u64) < self.bytes {
                let value = content.value(keys, 0);
                of_batch += value.len();
                batch.push((keys, SmallBytes::from(value)));
                keys += 1;
            }
            bytes += of_batch as u64;
            load_batch(&db, space, batch).map_err(|error| {
                anyhow::anyhow!("the keys from {first} on cannot be loaded: {error}")
            })?;
        }
        let revisions = Mutex::new(vec![Revisions::default(); keys as usize]);
        Ok(Some(LoadedBallast { db, space, content, revisions, wrong: Mutex::default() }))
    }
}

/// Writes a batch; again, where its outcome is not known, for it is the same then.
fn load_batch(db: &Db, space: Space, batch: Vec<(u64, SmallBytes)>) -> Result<(), Error> {
    let mut tries = 0;
    loop {
        tries += 1;
        let rows = batch.clone();
        let done = db.blocking().transact(async move |tx| {
            for (key, value) in &rows {
                tx.put(space, key_of(*key), value.clone()).await?;
            }
            Ok(())
        });
        match done {
            Err(Error::Unknown { .. } | Error::Timeout { .. } | Error::Conflict { .. })
                if tries < 20 => {}
            done => return done,
        }
    }
}

fn key_of(key: u64) -> SmallBytes {
    SmallBytes::new(&key.to_be_bytes())
}

/// What values are.
#[derive(Clone, Copy, Debug)]
struct Content {
    seed: u64,
    longest: usize,
}

impl Content {
    /// A key's value: its revision, and noise.
    fn value(self, key: u64, revision: u64) -> Vec<u8> {
        let seed = self.seed ^ key.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (revision << 48);
        let mut random = fastrand::Rng::with_seed(seed);
        let mut value = vec![0; random.usize(8..=self.longest.max(8))];
        random.fill(&mut value);
        value[..8].copy_from_slice(&revision.to_be_bytes());
        value
    }

    /// The revision that a value is of.
    fn revision(self, key: u64, value: &[u8]) -> Result<u64, String> {
        let head = value.first_chunk().copied().map(u64::from_be_bytes);
        let revision = head.ok_or_else(|| format!("{} bytes are no value", value.len()))?;
        match self.value(key, revision) == value {
            true => Ok(revision),
            false => Err(format!("its {} bytes are not those of revision {revision}", value.len())),
        }
    }
}

/// Which revisions of a key were written.
#[derive(Clone, Copy, Debug, Default)]
struct Revisions {
    /// The newest that was acknowledged.
    known: u64,
    /// The newest that was tried.
    tried: u64,
}

/// Data that are there.
pub struct LoadedBallast {
    db: Db,
    space: Space,
    content: Content,
    revisions: Mutex<Vec<Revisions>>,
    wrong: Mutex<Option<String>>,
}

impl LoadedBallast {
    fn revisions(&self) -> MutexGuard<'_, Vec<Revisions>> {
        self.revisions.lock().unwrap_or_else(|broken| broken.into_inner())
    }

    /// Reads and changes values until `stop` is set.
    pub fn use_until(&self, stop: &AtomicBool) {
        let mut random = fastrand::Rng::with_seed(self.content.seed);
        let keys = self.revisions().len() as u64;
        while !stop.load(Ordering::Relaxed) {
            let key = random.u64(..keys);
            let wrong = match random.usize(..READS) {
                0 => self.look(key).unwrap_or_default(),
                _ => {
                    self.change(key);
                    None
                }
            };
            if wrong.is_some() {
                *self.wrong.lock().unwrap_or_else(|broken| broken.into_inner()) = wrong;
                return;
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Writes the next revision of a key. The value before is read: a commit of unknown outcome
    /// cannot take effect any more when a later one has.
    fn change(&self, key: u64) {
        let next = {
            let of_key = &mut self.revisions()[key as usize];
            of_key.tried += 1;
            of_key.tried
        };
        let (space, value) = (self.space, SmallBytes::from(self.content.value(key, next)));
        let done = self.db.blocking().transact(async move |tx| {
            tx.get(space, key_of(key)).await?;
            tx.put(space, key_of(key), value.clone()).await
        });
        if done.is_ok() {
            self.revisions()[key as usize].known = next;
        }
    }

    /// What is wrong with a key's value, if anything; the error, if it cannot be read now.
    fn look(&self, key: u64) -> Result<Option<String>, Error> {
        let Revisions { known, tried } = self.revisions()[key as usize];
        let space = self.space;
        let read = async move |tx: &muesli::Tx| tx.get(space, key_of(key)).await;
        let found = self.db.blocking().transact(read)?;
        let revision = match found {
            None => Err("it is gone".to_owned()),
            Some(value) => self.content.revision(key, value.as_slice()),
        };
        Ok(match revision {
            Ok(revision) if (known..=tried).contains(&revision) => None,
            Ok(revision) => Some(format!("it has revision {revision} of {known} to {tried}")),
            Err(wrong) => Some(wrong),
        }
        .map(|wrong| format!("key {key} of the loaded data: {wrong}")))
    }

    /// What is wrong with the data after all, if anything; each key may take so long to be read.
    pub fn check(&self, patience: Duration) -> Option<String> {
        let seen = self.wrong.lock().unwrap_or_else(|broken| broken.into_inner()).clone();
        let keys = self.revisions().len() as u64;
        seen.or_else(|| (0..keys).find_map(|key| self.check_key(key, patience)))
    }

    fn check_key(&self, key: u64, patience: Duration) -> Option<String> {
        let deadline = Instant::now() + patience;
        loop {
            match self.look(key) {
                Ok(wrong) => return wrong,
                Err(error) if Instant::now() > deadline => {
                    return Some(format!("key {key} of the loaded data cannot be read: {error}"));
                }
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_tells_its_revision_and_whether_it_is_whole() {
        let content = Content { seed: 7, longest: 1000 };
        for (key, revision) in [(0, 0), (1, 0), (1, 3), (9, 70)] {
            let mut value = content.value(key, revision);
            assert_eq!(content.revision(key, &value), Ok(revision));
            assert!(content.revision(key + 1, &value).is_err(), "another key's");
            assert!(content.revision(key, &value[..value.len() - 1]).is_err(), "cut");
            *value.last_mut().unwrap() ^= 1;
            assert!(value.len() == 8 || content.revision(key, &value).is_err(), "flipped");
        }
        assert!(content.revision(0, b"short").is_err());
    }
}
