//! Spaces: named sets of keys.

use super::units::Units;
use crate::bytes::SmallBytes;
use crate::wire::{Reader, Wire, WireError};

/// How a space finds its keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Index {
    /// By hash only: point look-ups; scans are refused, but to [who lists
    /// it](crate::options::TxnOptions::lists).
    Hash,
    /// By hash and in order: point look-ups as fast, scans allowed; inserts cost a tree's insert
    /// and about 45 bytes more a key.
    #[default]
    Ordered,
}

/// How a space's keys are dealt to partitions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Partitioning {
    /// By a hash of the key that never changes (XXH3).
    #[default]
    Hash,
    /// By ranges: partition `i` holds the keys from split `i - 1` (included) to split `i`
    /// (excluded). Splits ascend, and there are fewer of them than partitions.
    Range(Vec<SmallBytes>),
    /// By the unit that a key belongs to, as all spaces of the unit's domain.
    Unit(Units),
    /// Not at all: every repository has all of them. They are written by transactions of all
    /// repositories, and read at any.
    Everywhere,
}

impl Wire for Partitioning {
    const LEAST_BYTES: usize = 1;

    /// The first two are what they were before there were others.
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Partitioning::Hash => 0_u8.encode(out),
            Partitioning::Range(splits) => {
                1_u8.encode(out);
                splits.encode(out);
            }
            Partitioning::Unit(units) => {
                2_u8.encode(out);
                units.encode(out);
            }
            Partitioning::Everywhere => 3_u8.encode(out),
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<Partitioning, WireError> {
        let at = input.position();
        Ok(match u8::decode(input)? {
            0 => Partitioning::Hash,
            1 => Partitioning::Range(Wire::decode(input)?),
            2 => Partitioning::Unit(Wire::decode(input)?),
            3 => Partitioning::Everywhere,
            found => {
                let found = u64::from(found);
                return Err(WireError::Variant { what: "partitioning", at, found });
            }
        })
    }
}

/// What a space is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpaceOptions {
    /// Its index.
    pub index: Index,
    /// How its keys are dealt to partitions.
    pub partitioning: Partitioning,
}

impl SpaceOptions {
    /// Whether the space called `name` can be such a one under a protocol: everywhere only where
    /// the protocol [keeps such](crate::Protocol::KEEPS_EVERYWHERE).
    ///
    /// # Errors
    /// It cannot.
    pub fn judge_everywhere(&self, name: &str, keeps_everywhere: bool) -> Result<(), String> {
        if self.partitioning == Partitioning::Everywhere && !keeps_everywhere {
            return Err(format!("the protocol keeps no space everywhere, as `{name}` is"));
        }
        Ok(())
    }
}

/// A space: a name and its options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Space {
    /// Unique name.
    pub name: String,
    /// Index and placement.
    pub options: SpaceOptions,
}
