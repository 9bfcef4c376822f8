//! Handles of opened objects, and of their fields.

use std::fmt;
use std::sync::Arc;

use super::Object;
use super::state::ObjectState;
use crate::error::Error;
use crate::transaction::level_objects::{LevelObjects, ObjectTable};
use crate::transaction::tx::Tx;

/// An object that a transaction has opened.
///
/// It is used with the [`Tx`] that it was opened with, or with one of a child or, once that is
/// merged, of a parent; with any other one, and after its transaction, it is refused
/// ([`Error::ObjectHandle`]). Clones, and what else is opened by the same key in the transaction,
/// are the same object.
///
/// The handle that [`Object`](derive@crate::objects::Object) derives has a method for each field,
/// and these of the whole object. A field of the same name hides one of these, which is then called
/// as `(*account).value(tx)`.
pub struct OpenedObject<T> {
    state: Arc<ObjectState<T>>,
    table: Arc<ObjectTable>,
}

impl<T> Clone for OpenedObject<T> {
    fn clone(&self) -> Self {
        OpenedObject { state: self.state.clone(), table: self.table.clone() }
    }
}

impl<T: Object> fmt::Debug for OpenedObject<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OpenedObject").field(&self.state.name()).finish()
    }
}

impl<T: Object> OpenedObject<T> {
    pub(super) fn new(state: Arc<ObjectState<T>>, table: &Arc<ObjectTable>) -> OpenedObject<T> {
        OpenedObject { state, table: table.clone() }
    }

    pub(super) fn state(&self) -> &ObjectState<T> {
        &self.state
    }

    /// What the transaction's level has of its objects, if this is one of them.
    fn admit<'a>(&self, tx: &'a Tx) -> Result<&'a LevelObjects, Error> {
        let objects = tx.objects()?;
        match Arc::ptr_eq(objects.table(), &self.table) {
            true => Ok(objects),
            false => Err(Error::ObjectHandle(format!(
                "object {} was opened in another transaction, or in a part of this one that was \
                 undone: open it in this one",
                self.state.name()
            ))),
        }
    }

    #[cold]
    fn not_known(&self) -> Error {
        Error::ObjectHandle(format!(
            "object {} was opened in a part of the transaction that was undone, or a write of it \
             failed: open it again",
            self.state.name()
        ))
    }

    /// The encoded key of the object.
    pub fn key_bytes(&self) -> &[u8] {
        self.state.key().as_slice()
    }

    /// A copy of the whole object, as the transaction sees it.
    ///
    /// # Errors
    /// [`Error::NoObject`] where it was deleted; [`Error::ObjectHandle`], [`Error::ChildOpen`].
    pub fn value(&self, tx: &Tx) -> Result<T, Error> {
        self.with(tx, T::clone)
    }

    /// Looks at the whole object.
    ///
    /// # Errors
    /// As [`value`](Self::value).
    pub fn with<R>(&self, tx: &Tx, look: impl FnOnce(&T) -> R) -> Result<R, Error> {
        self.admit(tx)?;
        let looked = self.state.look(|value| value.map(look));
        looked.ok_or_else(|| self.not_known())?.ok_or_else(|| self.state.absent())
    }

    /// Whether there is such an object: false once it is deleted.
    ///
    /// # Errors
    /// As [`value`](Self::value).
    pub fn exists(&self, tx: &Tx) -> Result<bool, Error> {
        self.admit(tx)?;
        self.state.look(|value| value.is_some()).ok_or_else(|| self.not_known())
    }

    /// Replaces the whole object.
    ///
    /// # Errors
    /// As [`value`](Self::value); what [`Tx::put`] says; [`Error::Codec`]. After an error of the
    /// write the object has to be opened again.
    pub async fn set(&self, tx: &Tx, value: T) -> Result<(), Error> {
        self.update(tx, |object| *object = value).await
    }

    /// Changes the object as a whole.
    ///
    /// # Errors
    /// As [`set`](Self::set).
    pub async fn update<R>(&self, tx: &Tx, change: impl FnOnce(&mut T) -> R) -> Result<R, Error> {
        let level = self.admit(tx)?.status();
        let change = |value: Option<Option<&T>>| {
            let value = value.ok_or_else(|| self.not_known())?;
            let mut value = value.cloned().ok_or_else(|| self.state.absent())?;
            let given = change(&mut value);
            Ok((Some(value), given))
        };
        self.state.write(tx, level, change).await
    }

    /// Makes the object what it is not yet.
    pub(super) async fn create(&self, tx: &Tx, value: T) -> Result<(), Error> {
        let level = self.admit(tx)?.status();
        let change = |before: Option<Option<&T>>| match before {
            Some(None) => Ok((Some(value), ())),
            Some(Some(_)) => Err(Error::ObjectExists { object: self.state.name() }),
            None => Err(self.not_known()),
        };
        self.state.write(tx, level, change).await
    }

    /// Deletes the object; nothing happens where it is deleted already.
    ///
    /// # Errors
    /// [`Error::ObjectHandle`], [`Error::ChildOpen`]; what [`Tx::delete`] says.
    pub async fn delete(&self, tx: &Tx) -> Result<(), Error> {
        let level = self.admit(tx)?.status();
        self.state.write(tx, level, |_| Ok((None, ()))).await
    }
}

/// A field of an opened object: its value is had with a [`Tx`] alone.
pub struct Field<'a, T, F> {
    opened: &'a OpenedObject<T>,
    get: fn(&T) -> &F,
    get_mut: fn(&mut T) -> &mut F,
}

impl<T, F> Clone for Field<'_, T, F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, F> Copy for Field<'_, T, F> {}

impl<T: Object, F> fmt::Debug for Field<'_, T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Field").field("opened", self.opened).finish_non_exhaustive()
    }
}

impl<'a, T: Object, F> Field<'a, T, F> {
    #[doc(hidden)]
    pub fn new(
        opened: &'a OpenedObject<T>,
        get: fn(&T) -> &F,
        get_mut: fn(&mut T) -> &mut F,
    ) -> Field<'a, T, F> {
        Field { opened, get, get_mut }
    }

    /// A copy of its value, as the transaction sees it.
    ///
    /// # Errors
    /// As [`OpenedObject::value`].
    pub fn get(self, tx: &Tx) -> Result<F, Error>
    where
        F: Clone,
    {
        self.with(tx, F::clone)
    }

    /// Looks at its value.
    ///
    /// # Errors
    /// As [`OpenedObject::value`].
    pub fn with<R>(self, tx: &Tx, look: impl FnOnce(&F) -> R) -> Result<R, Error> {
        self.opened.with(tx, |object| look((self.get)(object)))
    }

    /// Sets it.
    ///
    /// # Errors
    /// As [`OpenedObject::set`].
    pub async fn set(self, tx: &Tx, value: F) -> Result<(), Error> {
        self.update(tx, |field| *field = value).await
    }

    /// Changes it; what `change` gave.
    ///
    /// # Errors
    /// As [`OpenedObject::set`].
    pub async fn update<R>(self, tx: &Tx, change: impl FnOnce(&mut F) -> R) -> Result<R, Error> {
        self.opened.update(tx, |object| change((self.get_mut)(object))).await
    }
}
