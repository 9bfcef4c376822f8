//! What a transaction leaves to be done in its turn: actions on keys, and procedures on several.
//!
//! An [action](crate::actions) sees one key. A [procedure](crate::procedure) that is delayed sees
//! all keys and ranges that it was declared to touch, as far as they live at its place; what was
//! declared may be more than what it touches in the end. A transaction may ask what they gave: it
//! is told along with the outcome of its commit.

use crate::actions::Action;
use crate::bytes::SmallBytes;
use crate::ids::SpaceId;
use crate::limits::ENTRY_BYTES;
use crate::procedure::{Footprint, Place, ProcedureId, Touched};
use crate::ranges::KeyRange;
use crate::wire::{Reader, Wire, WireError};
use crate::wire_struct;

/// Something that need not be done before the commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delay {
    /// An action on a key.
    Action(SpaceId, SmallBytes, Action),
    /// A procedure at a place, with its arguments.
    Call(ProcedureId, Place, SmallBytes),
}

/// A delayed procedure as the repositories that run it need to know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DelayedCall {
    /// What runs.
    pub procedure: ProcedureId,
    /// What it is given.
    pub arguments: SmallBytes,
    /// It sees the keys of this partition, and of those that the same repositories hold.
    pub partition: u16,
    /// The keys that it may read and write.
    pub keys: Vec<(SpaceId, SmallBytes)>,
    /// Ranges that it may read.
    pub ranges: Vec<KeyRange>,
    /// It may run beside other delayed actions on its keys: what it touches, and whether it comes
    /// to its end, does not depend on what it finds.
    pub steady: bool,
}

wire_struct!(DelayedCall {
    procedure: ProcedureId,
    arguments: SmallBytes,
    partition: u16,
    keys: Vec<(SpaceId, SmallBytes)>,
    ranges: Vec<KeyRange>,
    steady: bool,
});

impl DelayedCall {
    /// Whether it may change a key.
    pub fn has(&self, space: SpaceId, key: &SmallBytes) -> bool {
        self.keys.iter().any(|(of, it)| *of == space && it == key)
    }

    /// Whether it may look at a key.
    pub fn sees(&self, space: SpaceId, key: &SmallBytes) -> bool {
        self.has(space, key) || self.ranges.iter().any(|range| range.contains(space, key))
    }

    /// Whether one of two may change what the other may look at.
    pub fn meets(&self, other: &DelayedCall) -> bool {
        self.keys.iter().any(|(space, key)| other.sees(*space, key))
            || other.keys.iter().any(|(space, key)| self.sees(*space, key))
    }

    /// What it may touch.
    pub fn footprint(&self) -> Footprint {
        let key = |(space, key): &(SpaceId, SmallBytes)| Touched::Key(*space, key.clone());
        let range = |it: &KeyRange| Touched::Range(it.space, it.lo.clone(), it.hi.clone());
        let (reads, writes) = (self.ranges.iter().map(range), self.keys.iter().map(key));
        Footprint { reads: reads.collect(), writes: writes.collect() }
    }

    /// Its size on a wire, in bytes.
    pub fn bytes(&self) -> usize {
        let keys: usize = self.keys.iter().map(|(_, key)| 6 + key.len()).sum();
        let end = |range: &KeyRange| range.hi.as_ref().map_or(0, SmallBytes::len);
        let ranges: usize = self.ranges.iter().map(|it| 12 + it.lo.len() + end(it)).sum();
        24 + self.procedure.name.len() + self.arguments.len() + keys + ranges
    }
}

/// What a delayed action or procedure gave, as a transaction that asked for it is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gave {
    /// The value that an action left, or what a procedure answered.
    Value(Option<SmallBytes>),
    /// It refused or failed in its turn, for this reason, and changed nothing.
    Nothing(SmallBytes),
    /// It was done, and nobody told in time what came of it.
    Unknown,
    /// It was done, and what came of it is more than a transaction is told.
    TooMuch {
        /// How many bytes the answers would have had up to here.
        size: u64,
        /// How many they may have.
        limit: u64,
    },
}

impl Gave {
    /// It changed nothing, for this reason.
    pub fn nothing(reason: &str) -> Gave {
        Gave::Nothing(reason.into())
    }

    /// Counts an answer towards the limit of all that a transaction is told; where that is passed,
    /// it is told only so.
    pub fn limit(&mut self, total: &mut usize, limit: usize) {
        let size = *total + ENTRY_BYTES + self.bytes();
        match size > limit {
            true => *self = Gave::TooMuch { size: size as u64, limit: limit as u64 },
            false => *total = size,
        }
    }

    /// Its size on a wire, in bytes.
    pub fn bytes(&self) -> usize {
        match self {
            Gave::Value(Some(bytes)) | Gave::Nothing(bytes) => 8 + bytes.len(),
            Gave::Value(None) | Gave::Unknown | Gave::TooMuch { .. } => 8,
        }
    }
}

impl Wire for Gave {
    const LEAST_BYTES: usize = 1;

    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Gave::Value(value) => {
                out.push(0);
                value.encode(out);
            }
            Gave::Nothing(reason) => {
                out.push(1);
                reason.encode(out);
            }
            Gave::Unknown => out.push(2),
            Gave::TooMuch { size, limit } => {
                out.push(3);
                size.encode(out);
                limit.encode(out);
            }
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<Gave, WireError> {
        let at = input.position();
        match u8::decode(input)? {
            0 => Wire::decode(input).map(Gave::Value),
            1 => Wire::decode(input).map(Gave::Nothing),
            2 => Ok(Gave::Unknown),
            3 => Ok(Gave::TooMuch { size: u64::decode(input)?, limit: u64::decode(input)? }),
            other => Err(WireError::no_variant("answer of a delayed action", at, other)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn call(keys: &[u8], range: Option<(u8, u8)>) -> DelayedCall {
        let bytes = |byte: u8| SmallBytes::new(&[byte]);
        let range = range.map(|(lo, hi)| KeyRange {
            space: SpaceId(1),
            lo: bytes(lo),
            hi: Some(bytes(hi)),
        });
        DelayedCall {
            procedure: ProcedureId { name: "p".into(), version: 1 },
            arguments: SmallBytes::EMPTY,
            partition: 0,
            keys: keys.iter().map(|key| (SpaceId(1), bytes(*key))).collect(),
            ranges: range.into_iter().collect(),
            steady: false,
        }
    }

    proptest! {
        /// Against all keys that there are.
        #[test]
        fn two_meet_where_one_may_change_what_the_other_may_see(
            a: Vec<u8>, b: Vec<u8>, in_a: Option<(u8, u8)>, in_b: Option<(u8, u8)>,
        ) {
            let (a, b) = (call(&a, in_a), call(&b, in_b));
            let met = (0..=u8::MAX).any(|key| {
                let key = SmallBytes::new(&[key]);
                let has = |it: &DelayedCall| it.has(SpaceId(1), &key);
                let sees = |it: &DelayedCall| it.sees(SpaceId(1), &key);
                has(&a) && sees(&b) || has(&b) && sees(&a)
            });
            prop_assert_eq!(a.meets(&b), met);
            prop_assert_eq!(b.meets(&a), met);
        }

        #[test]
        fn calls_and_answers_come_back(
            keys: Vec<u8>, range: Option<(u8, u8)>, steady: bool, text: Vec<u8>, kind in 0..5,
        ) {
            let call = DelayedCall { steady, ..call(&keys, range) };
            let mut bytes = Vec::new();
            call.encode(&mut bytes);
            prop_assert_eq!(DelayedCall::decode_all(&bytes), Ok(call));
            let gave = match kind {
                0 => Gave::Value(None),
                1 => Gave::Value(Some(text.into())),
                2 => Gave::Nothing(text.into()),
                3 => Gave::TooMuch { size: text.len() as u64 + 1, limit: text.len() as u64 },
                _ => Gave::Unknown,
            };
            let mut bytes = Vec::new();
            gave.encode(&mut bytes);
            prop_assert_eq!(Gave::decode_all(&bytes), Ok(gave));
        }

        #[test]
        fn any_bytes_are_a_call_or_refused(bytes: Vec<u8>) {
            let _ = DelayedCall::decode_all(&bytes);
            let _ = Gave::decode_all(&bytes);
        }
    }
}
