//! Objects of one type, by their keys.

use std::any::type_name;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use muesli_core::SmallBytes;

use super::Object;
use super::opened::OpenedObject;
use super::state::ObjectState;
use crate::data::key::{AsKey, Key};
use crate::data::space::Space;
use crate::database::handle::Db;
use crate::error::Error;
use crate::transaction::tx::Tx;

/// The objects of one type in a [`Space`], by keys of type `K`. Several kinds may share a space.
///
/// An object is one row: the name and the key, [encoded](crate::key) as a tuple of the two would
/// be, and the fields as [`Postcard`](crate::Postcard) stores them. So an object is what
/// transactions conflict on, and what moves where the protocol moves data (`tfa`).
pub struct Objects<K, T> {
    space: Space,
    name: &'static str,
    types: PhantomData<fn(K) -> T>,
}

impl<K, T> Clone for Objects<K, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, T> Copy for Objects<K, T> {}

impl<K, T> fmt::Debug for Objects<K, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Objects").field("space", &self.space).field("name", &self.name).finish()
    }
}

impl<K: Key + 'static, T: Object> Objects<K, T> {
    /// The objects of this name.
    pub fn new(space: Space, name: &'static str) -> Objects<K, T> {
        Objects { space, name, types: PhantomData }
    }

    /// The object's row in its space.
    fn row_key<Q: AsKey<K> + ?Sized>(&self, key: &Q) -> SmallBytes {
        let mut bytes = Vec::with_capacity(self.name.len() + 24);
        self.name.encode_key(&mut bytes);
        key.encode_key(&mut bytes);
        bytes.into()
    }

    /// The object in the transaction, whether it is read yet or not.
    fn find(&self, tx: &Tx, key: SmallBytes) -> Result<OpenedObject<T>, Error> {
        tx.check(self.space)?;
        let table = tx.objects()?.table();
        let found = table.object((self.space.id(), key.clone()), || {
            Arc::new(ObjectState::<T>::new(self.space, key.clone(), self.name))
        });
        let state = found.downcast::<ObjectState<T>>().map_err(|_| {
            let (name, of) = (self.name, type_name::<T>());
            Error::ObjectHandle(format!(
                "`{name}` of key `{key:?}` was opened in this transaction as another type than \
                 `{of}`: a name is of one type"
            ))
        })?;
        Ok(OpenedObject::new(state, table))
    }

    /// The object in the transaction, read where it is not known.
    async fn read_in(&self, tx: &Tx, key: SmallBytes) -> Result<OpenedObject<T>, Error> {
        let opened = self.find(tx, key)?;
        while let Some(writes) = opened.state().unknown() {
            let row = tx.get(self.space, opened.state().key().clone()).await?;
            opened.state().fill(tx.objects()?.status(), writes, row.as_ref())?;
        }
        Ok(opened)
    }

    /// Opens an object: one read, and none where the transaction has opened it already.
    ///
    /// # Errors
    /// [`Error::NoObject`] where it is absent; as [`Tx::get`]; [`Error::Codec`] where its row is of
    /// another type; [`Error::ObjectHandle`] where it was opened as another type.
    pub async fn open<Q: AsKey<K> + ?Sized>(&self, tx: &Tx, key: &Q) -> Result<T::Fields, Error> {
        let opened = self.read_in(tx, self.row_key(key)).await?;
        match opened.exists(tx)? {
            true => Ok(opened.into()),
            false => Err(opened.state().absent()),
        }
    }

    /// Opens an object; `None` where it is absent.
    ///
    /// # Errors
    /// As [`open`](Self::open), but for that.
    pub async fn try_open<Q: AsKey<K> + ?Sized>(
        &self,
        tx: &Tx,
        key: &Q,
    ) -> Result<Option<T::Fields>, Error> {
        let opened = self.read_in(tx, self.row_key(key)).await?;
        Ok(opened.exists(tx)?.then(|| opened.into()))
    }

    /// Opens several objects at once: those that the transaction does not have yet are asked for
    /// side by side. That is one round trip, and a second one where the protocol fixes a snapshot
    /// by the first answer and the transaction has none yet.
    ///
    /// # Errors
    /// As [`open`](Self::open), where one of them is absent of the first of these.
    pub async fn open_all<Q: AsKey<K>>(
        &self,
        tx: &Tx,
        keys: &[Q],
    ) -> Result<Vec<T::Fields>, Error> {
        let keys: Vec<SmallBytes> = keys.iter().map(|key| self.row_key(key)).collect();
        let found: Result<Vec<_>, Error> =
            keys.iter().map(|key| self.find(tx, key.clone())).collect();
        let found = found?;
        let unknown = found.iter().filter_map(|it| it.state().unknown().map(|writes| (it, writes)));
        let unknown: Vec<(&OpenedObject<T>, u64)> = unknown.collect();
        if !unknown.is_empty() {
            let asked = unknown.iter().map(|(opened, _)| opened.state().key().clone());
            let rows = tx.get_many(self.space, asked).await?;
            assert_eq!(rows.len(), unknown.len(), "a row, or none, for each key");
            let level = tx.objects()?.status();
            for ((opened, writes), row) in unknown.iter().zip(&rows) {
                opened.state().fill(level, *writes, row.as_ref())?;
            }
        }
        let mut all = Vec::with_capacity(found.len());
        for key in keys {
            let opened = self.read_in(tx, key).await?; // Known, unless a write of it failed.
            if !opened.exists(tx)? {
                return Err(opened.state().absent());
            }
            all.push(opened.into());
        }
        Ok(all)
    }

    /// Makes an object. It is looked whether there is one already, so this reads as
    /// [`open`](Self::open) does.
    ///
    /// # Errors
    /// [`Error::ObjectExists`] where there is one; as [`open`](Self::open), and as
    /// [`OpenedObject::set`].
    pub async fn create<Q: AsKey<K> + ?Sized>(
        &self,
        tx: &Tx,
        key: &Q,
        value: T,
    ) -> Result<T::Fields, Error> {
        let opened = self.read_in(tx, self.row_key(key)).await?;
        opened.create(tx, value).await?;
        Ok(opened.into())
    }

    /// Deletes an object; nothing happens where it is absent, and nothing is read.
    ///
    /// # Errors
    /// As [`Tx::delete`].
    pub async fn delete<Q: AsKey<K> + ?Sized>(&self, tx: &Tx, key: &Q) -> Result<(), Error> {
        self.find(tx, self.row_key(key))?.delete(tx).await
    }

    /// Reads an object in a transaction of its own, which only reads; `None` where it is absent.
    ///
    /// # Errors
    /// As [`Db::transact`] and [`open`](Self::open).
    pub async fn read<Q: AsKey<K> + ?Sized>(&self, db: &Db, key: &Q) -> Result<Option<T>, Error> {
        let (objects, key) = (*self, self.row_key(key));
        let body = async move |tx: &Tx| {
            let opened = objects.read_in(tx, key.clone()).await?;
            opened.exists(tx)?.then(|| opened.value(tx)).transpose()
        };
        db.read_only().transact(body).await
    }

    /// Changes an object in a transaction of its own; what `change` gave. It may be called several
    /// times, so it should have no other effects.
    ///
    /// # Errors
    /// [`Error::NoObject`] where it is absent; as [`Db::transact`] and [`OpenedObject::set`].
    pub async fn modify<Q, R, F>(&self, db: &Db, key: &Q, change: F) -> Result<R, Error>
    where
        Q: AsKey<K> + ?Sized,
        R: Send + 'static,
        F: Fn(&mut T) -> R + Send + 'static,
    {
        let (objects, key) = (*self, self.row_key(key));
        let body = async move |tx: &Tx| {
            let opened = objects.read_in(tx, key.clone()).await?;
            opened.update(tx, &change).await
        };
        db.transact(body).await
    }

    /// Makes an object in a transaction of its own.
    ///
    /// # Errors
    /// As [`Db::transact`] and [`create`](Self::create).
    pub async fn insert<Q>(&self, db: &Db, key: &Q, value: T) -> Result<(), Error>
    where
        Q: AsKey<K> + ?Sized,
    {
        let (objects, key) = (*self, self.row_key(key));
        let body = async move |tx: &Tx| {
            let opened = objects.read_in(tx, key.clone()).await?;
            opened.create(tx, value.clone()).await
        };
        db.transact(body).await
    }

    /// Deletes an object in a transaction of its own; nothing happens where it is absent.
    ///
    /// # Errors
    /// As [`Db::transact`] and [`delete`](Self::delete).
    pub async fn remove<Q: AsKey<K> + ?Sized>(&self, db: &Db, key: &Q) -> Result<(), Error> {
        let (objects, key) = (*self, self.row_key(key));
        db.transact(async move |tx: &Tx| objects.find(tx, key.clone())?.delete(tx).await).await
    }
}
