//! Transactions whose operations do not go straight to the engine that is here: those that live on
//! another loop, those whose accesses a layer above watches, and those that are recorded.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use muesli_core::{Row, Scan, SmallBytes, SpaceId};

use crate::database::handle::Db;
use crate::error::Error;
use crate::recording::Recording;

/// One access of a transaction, before it is made.
#[derive(Clone, Copy, Debug)]
pub enum Access<'a> {
    /// A key is read.
    Read(SpaceId, &'a SmallBytes),
    /// A key is written or deleted.
    Write(SpaceId, &'a SmallBytes, Option<&'a SmallBytes>),
    /// A key is changed by a delayed action, which may be run anywhere.
    Act(SpaceId, &'a SmallBytes),
    /// A range is read.
    Scan(&'a Scan),
}

/// How far a transaction was when a closed child of it began.
#[derive(Clone, Copy, Debug, Default)]
pub struct ChildMark(pub usize);

/// A layer that must know what a transaction accesses, and what it finds.
pub trait AccessWatcher: Send + Sync + fmt::Debug {
    /// The transaction is about to do this.
    ///
    /// # Errors
    /// It must not.
    fn note(&self, access: Access<'_>) -> Result<(), Error>;

    /// A delayed action is done at once: it reads the key and writes it, of which is told.
    fn acts_at_once(&self, space: SpaceId, key: &SmallBytes);

    /// A closed child of the transaction is about to begin: waits until nothing is read for it
    /// beside its body, which would end with the child; and how far the transaction is.
    fn begin_child(&self) -> Pin<Box<dyn Future<Output = ChildMark> + Send + '_>>;

    /// What the transaction did from there on was undone.
    fn undo_child(&self, from: ChildMark);

    /// Whether a key is to be read before it is written, as it has not been.
    fn reads_before_write(&self, space: SpaceId, key: &SmallBytes) -> bool;

    /// A key that it has read has this value.
    fn found(&self, space: SpaceId, key: &SmallBytes, value: Option<&SmallBytes>);

    /// A range that it has read has these rows.
    fn found_range(&self, scan: &Scan, rows: &[Row]);
}

/// Which way operations go otherwise.
#[derive(Clone, Debug)]
pub(crate) enum Detour {
    /// To another loop, by its number.
    Remote(Db, usize),
    /// Past a layer that watches them.
    Watched(Arc<dyn AccessWatcher>),
    /// Past a recording, which answers what was asked before.
    Recorded(Arc<Recording>),
}
