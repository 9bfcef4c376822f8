//! Records of whatever protocol, on their way from a log to the node that replays them.
//!
//! Decoding a record takes about as long as applying it: another thread than the node's may do it.

use std::any::Any;
use std::fmt;

use crate::contract::Protocol;
use crate::roles::Role;
use crate::wire::{Reader, Wire, WireError};

/// Decoded records of one protocol, in the order of the log.
pub struct Records(Box<dyn Any + Send>);

impl fmt::Debug for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Records").finish_non_exhaustive()
    }
}

impl Records {
    /// # Panics
    /// If they are another protocol's.
    pub(super) fn of<P: Protocol>(self) -> Vec<(Role, P::Record)> {
        *self.0.downcast().expect("records that this protocol decoded")
    }
}

/// Decodes the records of a log.
pub trait Decoding: Send {
    /// Decodes a record: its role, then what it says.
    ///
    /// # Errors
    /// The bytes are no such thing.
    fn decode(&mut self, payload: &[u8]) -> Result<(), WireError>;
    /// How many records were decoded and not [taken](Self::take).
    fn count(&self) -> usize;
    /// The records that were decoded since this was asked before.
    fn take(&mut self) -> Records;
}

/// The records of a protocol.
pub(super) struct DecodedRecords<P: Protocol>(Vec<(Role, P::Record)>);

impl<P: Protocol> DecodedRecords<P> {
    pub fn new() -> DecodedRecords<P> {
        DecodedRecords(Vec::new())
    }
}

impl<P: Protocol> Decoding for DecodedRecords<P> {
    fn decode(&mut self, payload: &[u8]) -> Result<(), WireError> {
        let mut input = Reader::new(payload);
        let role = Role::decode(&mut input)?;
        let record = P::Record::decode(&mut input)?;
        input.finish()?;
        self.0.push((role, record));
        Ok(())
    }

    fn count(&self) -> usize {
        self.0.len()
    }

    fn take(&mut self) -> Records {
        let next = Vec::with_capacity(self.0.len());
        Records(Box::new(std::mem::replace(&mut self.0, next)))
    }
}
