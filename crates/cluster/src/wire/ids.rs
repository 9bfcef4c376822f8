//! Which cluster a process belongs to, and since when its data are there.

use muesli_core::wire::{Reader, Wire, WireError};

/// The cluster that a process belongs to; zero asks for whichever answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClusterId(pub u64);

/// A life of a process's data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct DataId(pub u64);

impl Wire for ClusterId {
    const LEAST_BYTES: usize = 8;

    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }

    fn decode(input: &mut Reader<'_>) -> Result<ClusterId, WireError> {
        u64::decode(input).map(ClusterId)
    }
}

impl Wire for DataId {
    const LEAST_BYTES: usize = 8;

    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }

    fn decode(input: &mut Reader<'_>) -> Result<DataId, WireError> {
        u64::decode(input).map(DataId)
    }
}
