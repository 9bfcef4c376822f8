//! Which cluster a process belongs to, and since when its data are there.

use muesli_core::wire::{Reader, Wire, WireError};

/// The cluster that a process belongs to; zero asks for whichever answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClusterId(pub u64);

/// A life of a process's data.
///
/// Its highest bit says that data were there before, and are lost, and that somebody has said so:
/// under a protocol whose nodes exchange members, the others may take it for a new member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct DataId(pub u64);

impl DataId {
    const REPLACES: u64 = 1 << 63;
    /// So many of its lowest bits are the number of a memory that replaces a lost one.
    const NUMBER_BITS: u32 = 47;

    /// A new one.
    pub fn draw(replaces_lost: bool) -> DataId {
        let drawn = fastrand::u64(1..DataId::REPLACES);
        DataId(if replaces_lost { drawn | DataId::REPLACES } else { drawn })
    }

    /// Where it replaces data that were lost: a number of this memory alone.
    pub fn replaces_lost(self) -> Option<u64> {
        let number = self.0 & ((1 << DataId::NUMBER_BITS) - 1);
        (self.0 & DataId::REPLACES != 0).then_some(number)
    }
}

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
