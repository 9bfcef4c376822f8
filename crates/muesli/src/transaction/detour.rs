//! Transactions whose operations do not go straight to the engine that is here: those that live on
//! another loop, those whose accesses a layer above watches, and those that are recorded.

use std::fmt;
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

/// A layer that must know what a transaction accesses, and what it finds.
pub trait AccessWatcher: Send + Sync + fmt::Debug {
    /// The transaction is about to do this.
    ///
    /// # Errors
    /// It must not.
    fn note(&self, access: Access<'_>) -> Result<(), Error>;

    /// A delayed action is done at once: it reads the key and writes it, of which is told.
    fn acts_at_once(&self, space: SpaceId, key: &SmallBytes);

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
