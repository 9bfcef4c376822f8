//! Words of the contract that are no plain numbers.

use super::{Reader, Wire, WireError};
use crate::outcome::{Abort, Decision};

impl Wire for Abort {
    const LEAST_BYTES: usize = 1;

    fn encode(&self, out: &mut Vec<u8>) {
        out.push(match self {
            Abort::StaleRead => 0,
            Abort::Phantom => 1,
            Abort::Locked => 2,
            Abort::SnapshotTooOld => 3,
            Abort::Abandoned => 4,
            Abort::Overloaded => 5,
            Abort::Rollback => 6,
            Abort::Strayed => 7,
            Abort::KeyTooLarge => 8,
            Abort::ValueTooLarge => 9,
            Abort::TransactionTooLarge => 10,
            Abort::Superseded => 11,
            Abort::OutOfMemory => 12,
            Abort::ActionsInThePast => 13,
            Abort::Forgotten => 14,
        });
    }

    fn decode(input: &mut Reader<'_>) -> Result<Abort, WireError> {
        let at = input.position();
        Ok(match u8::decode(input)? {
            0 => Abort::StaleRead,
            1 => Abort::Phantom,
            2 => Abort::Locked,
            3 => Abort::SnapshotTooOld,
            4 => Abort::Abandoned,
            5 => Abort::Overloaded,
            6 => Abort::Rollback,
            7 => Abort::Strayed,
            8 => Abort::KeyTooLarge,
            9 => Abort::ValueTooLarge,
            10 => Abort::TransactionTooLarge,
            11 => Abort::Superseded,
            12 => Abort::OutOfMemory,
            13 => Abort::ActionsInThePast,
            14 => Abort::Forgotten,
            other => return Err(WireError::no_variant("reason of an abort", at, other)),
        })
    }
}

impl<P: Wire> Wire for Decision<P> {
    const LEAST_BYTES: usize = 1;

    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Decision::Commit(at) => {
                out.push(0);
                at.encode(out);
            }
            Decision::Abort(reason) => {
                out.push(1);
                reason.encode(out);
            }
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<Decision<P>, WireError> {
        let at = input.position();
        match u8::decode(input)? {
            0 => P::decode(input).map(Decision::Commit),
            1 => Abort::decode(input).map(Decision::Abort),
            other => Err(WireError::no_variant("decision", at, other)),
        }
    }
}
