//! An opened object as its transaction has it: its value, by the levels that wrote it.

use std::any::type_name;
use std::sync::{Arc, Mutex, MutexGuard};

use muesli_core::SmallBytes;

use super::Object;
use crate::data::codec::{Postcard, RowCodec};
use crate::data::space::Space;
use crate::error::Error;
use crate::transaction::level_objects::LevelStatus;
use crate::transaction::tx::Tx;

/// A row to be written, and after how many writes of its object.
type NumberedRow = (Option<Vec<u8>>, u64);

/// An object that its transaction has opened; all handles of it share this.
pub(super) struct ObjectState<T> {
    space: Space,
    key: SmallBytes,
    kind: &'static str,
    values: Mutex<ObjectValues<T>>,
}

/// What a level has made of an object.
enum LevelValue<T> {
    /// This; `None`: there is no such object.
    Known(Option<T>),
    /// A write of it failed, or was given up: its row may have been written or not.
    Unknown,
}

/// Invariant: as [`assert_invariants`](ObjectValues::assert_invariants) says.
struct ObjectValues<T> {
    /// What each level has made of it, the newest last. Empty where nothing is known.
    by_level: Vec<(Arc<LevelStatus>, LevelValue<T>)>,
    /// How often it was written, in all levels and also in vain.
    writes: u64,
}

impl<T> ObjectValues<T> {
    /// Forgets what levels did that were undone, and gives what others did to those that have it
    /// since they were merged.
    fn settle(&mut self) {
        self.by_level.retain_mut(|(level, _)| {
            let running = level.running();
            running.is_some_and(|running| {
                *level = running;
                true
            })
        });
        // Of what a level and those that were merged into it did, the last counts.
        let mut next = 1;
        while next < self.by_level.len() {
            match Arc::ptr_eq(&self.by_level[next - 1].0, &self.by_level[next].0) {
                true => drop(self.by_level.remove(next - 1)),
                false => next += 1,
            }
        }
        self.assert_invariants();
    }

    fn assert_invariants(&self) {
        let pairs = self.by_level.windows(2);
        let mut levels = pairs.map(|pair| (&pair[0].0, &pair[1].0));
        assert!(levels.all(|(outer, inner)| !Arc::ptr_eq(outer, inner)), "one value a level");
    }

    /// The newest value, where that is known.
    fn newest(&self) -> Option<&Option<T>> {
        match self.by_level.last() {
            Some((_, LevelValue::Known(value))) => Some(value),
            Some((_, LevelValue::Unknown)) | None => None,
        }
    }

    /// The level has made this of it, after all that is here.
    fn push(&mut self, level: &Arc<LevelStatus>, value: LevelValue<T>) {
        match self.by_level.last_mut() {
            Some((own, newest)) if Arc::ptr_eq(own, level) => *newest = value,
            _ => self.by_level.push((level.clone(), value)),
        }
    }
}

impl<T: Object> ObjectState<T> {
    pub fn new(space: Space, key: SmallBytes, kind: &'static str) -> ObjectState<T> {
        let values = Mutex::new(ObjectValues { by_level: Vec::new(), writes: 0 });
        ObjectState { space, key, kind, values }
    }

    /// The object, for errors.
    pub fn name(&self) -> String {
        format!("`{}` of key `{:?}`", self.kind, self.key)
    }

    pub fn key(&self) -> &SmallBytes {
        &self.key
    }

    #[cold]
    pub fn absent(&self) -> Error {
        Error::NoObject { object: self.name() }
    }

    fn values(&self) -> MutexGuard<'_, ObjectValues<T>> {
        let mut values = self.values.lock().unwrap_or_else(|broken| broken.into_inner());
        values.settle();
        values
    }

    /// Looks at the value; `None`: it is not known. (The value is `None` where there is no object.)
    pub fn look<R>(&self, look: impl FnOnce(Option<&T>) -> R) -> Option<R> {
        self.values().newest().map(|value| look(value.as_ref()))
    }

    /// After how many writes its value is still to be read; `None`: it is known.
    pub fn unknown(&self) -> Option<u64> {
        let values = self.values();
        values.newest().is_none().then_some(values.writes)
    }

    /// A row was read, which was asked for after so many writes. What is known by now stays.
    pub fn fill(
        &self,
        level: &Arc<LevelStatus>,
        writes: u64,
        row: Option<&SmallBytes>,
    ) -> Result<(), Error> {
        let value = row.map(|row| Postcard::decode::<T>(row.as_slice())).transpose();
        let value = value.map_err(|why| {
            let (name, of) = (self.name(), type_name::<T>());
            Error::Codec(format!("object {name}: this is no `{of}`: {why}"))
        })?;
        let mut values = self.values();
        if values.newest().is_none() && values.writes == writes {
            values.push(level, LevelValue::Known(value));
        }
        Ok(())
    }

    /// Changes the value at a level, and writes it at once. `change` gets the value, as far as it
    /// is known, and gives the new one.
    pub async fn write<R>(
        &self,
        tx: &Tx,
        level: &Arc<LevelStatus>,
        change: impl FnOnce(Option<Option<&T>>) -> Result<(Option<T>, R), Error>,
    ) -> Result<R, Error> {
        let (mut row, given) = self.change(level, change)?;
        let mut unfinished = Unfinished { state: self, level, finished: false };
        loop {
            let (bytes, written) = row;
            match bytes {
                Some(bytes) => tx.put(self.space, self.key.clone(), bytes).await?,
                None => tx.delete(self.space, self.key.clone()).await?,
            }
            // Writes side by side may have been done in another order.
            match self.written_since(written)? {
                Some(newer) => row = newer,
                None => break,
            }
        }
        unfinished.finished = true;
        Ok(given)
    }

    fn change<R>(
        &self,
        level: &Arc<LevelStatus>,
        change: impl FnOnce(Option<Option<&T>>) -> Result<(Option<T>, R), Error>,
    ) -> Result<(NumberedRow, R), Error> {
        let mut values = self.values();
        let (value, given) = change(values.newest().map(Option::as_ref))?;
        let row = self.row(value.as_ref())?;
        values.writes += 1;
        values.push(level, LevelValue::Known(value));
        Ok(((row, values.writes), given))
    }

    /// The row to write where the object was written again since.
    fn written_since(&self, writes: u64) -> Result<Option<NumberedRow>, Error> {
        let values = self.values();
        assert!(values.writes >= writes, "writes are counted");
        match values.newest() {
            Some(newest) if values.writes > writes => {
                Ok(Some((self.row(newest.as_ref())?, values.writes)))
            }
            _ => Ok(None),
        }
    }

    fn row(&self, value: Option<&T>) -> Result<Option<Vec<u8>>, Error> {
        let row = value.map(Postcard::encode).transpose();
        row.map_err(|why| {
            let (name, of) = (self.name(), type_name::<T>());
            Error::Codec(format!("object {name}: this `{of}` cannot be stored: {why}"))
        })
    }
}

/// A write whose row may have been written or not: what its level has made of the object is to be
/// read, unless it is finished. Where the level is undone, what those around it know counts again.
struct Unfinished<'a, T> {
    state: &'a ObjectState<T>,
    level: &'a Arc<LevelStatus>,
    finished: bool,
}

impl<T> Drop for Unfinished<'_, T> {
    fn drop(&mut self) {
        if !self.finished {
            let values = self.state.values.lock();
            let mut values = values.unwrap_or_else(|broken| broken.into_inner());
            values.writes += 1;
            values.push(self.level, LevelValue::Unknown);
            values.settle();
        }
    }
}
