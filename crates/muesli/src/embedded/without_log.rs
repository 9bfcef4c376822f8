//! In the place of the [log](super::log) where the library is built without the files of servers:
//! no database has any, and the compiler knows.

use std::path::Path;
use std::sync::Arc;

use muesli_core::{Catalog, LogPosition, Nanos, RecoverableMachine, Role, SpaceOptions, Wire};

use super::CompactionWaiter;
use super::links::signal::Signal;
use crate::error::Error;
use crate::options::Options;

/// What no database has, and no loop.
pub(super) enum NoStorage {}

pub(super) type DatabaseStorage = NoStorage;
pub(super) type LoopStorage = NoStorage;
pub(super) type LoopLog = NoStorage;

/// Why a log failed: none does.
pub(super) type LogFailure = std::convert::Infallible;

pub(super) fn open_files(
    _: &Options,
    _: &Catalog,
) -> Result<Option<(DatabaseStorage, Vec<LoopStorage>)>, Error> {
    Ok(None)
}

impl NoStorage {
    pub fn spaces(&self) -> impl Iterator<Item = (&str, &SpaceOptions)> {
        std::iter::empty()
    }

    pub fn keep_space(&mut self, _: &str, _: &SpaceOptions) -> Result<(), Error> {
        match *self {}
    }

    pub fn path(&self) -> &Path {
        match *self {}
    }

    pub fn reads_only(&self) -> bool {
        match *self {}
    }

    pub fn compact(&mut self, _: CompactionWaiter) {
        match *self {}
    }

    pub fn starts(&self) -> u32 {
        match *self {}
    }

    pub fn lost_disk(&self) -> Option<u64> {
        match *self {}
    }

    pub fn answers_at_once(&self) -> bool {
        match *self {}
    }

    pub fn open(self, _: &mut dyn RecoverableMachine, _: &Arc<Signal>) -> Result<LoopLog, Error> {
        match self {}
    }

    pub fn append(&mut self, _: Role, _: &impl Wire) {
        match *self {}
    }

    pub fn settle(
        &mut self,
        _: Option<LogPosition>,
        _: LogPosition,
        _: Nanos,
    ) -> Result<Option<LogPosition>, LogFailure> {
        match *self {}
    }

    pub fn go_on_with_checkpoint(
        &mut self,
        _: &mut dyn RecoverableMachine,
        _: Nanos,
    ) -> Result<(), LogFailure> {
        match *self {}
    }

    pub fn is_congested(&self) -> bool {
        match *self {}
    }

    pub fn next(&self, _: Nanos) -> Option<Nanos> {
        match *self {}
    }

    pub fn close(self) -> Result<(), LogFailure> {
        match self {}
    }
}
