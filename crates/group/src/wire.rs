//! The bytes of what groups say and keep.

use muesli_core::wire::{Reader, Wire, WireError, encode_bytes};
use muesli_core::{Address, NodeId, SmallBytes, wire_struct};

use crate::agreement::ballot::Ballot;
use crate::agreement::configuration::Configuration;
use crate::agreement::entry::Entry;
use crate::agreement::ledger::Change;
use crate::agreement::summary::{Formed, Summary};
use crate::protocol::{Message, Record};

wire_struct!(Ballot { configuration: u32, number: u32, member: u64 });
wire_struct!(Summary {
    formed: Formed,
    since: u64,
    configuration: Configuration,
    promise: Ballot,
    accepted: Ballot,
    fetched: bool,
    decided: u64,
    length: u64,
    next: Option<Configuration>,
});

const FORMED: [Formed; 4] = [Formed::No, Formed::Met, Formed::Ready, Formed::Begun];

impl Wire for Formed {
    const LEAST_BYTES: usize = 1;

    fn encode(&self, out: &mut Vec<u8>) {
        out.push(*self as u8);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Formed, WireError> {
        let found = input.variant("step of a group's forming", FORMED.len() as u8)?;
        Ok(FORMED[usize::from(found)])
    }
}

impl Wire for Entry {
    const LEAST_BYTES: usize = SmallBytes::LEAST_BYTES;

    fn encode(&self, out: &mut Vec<u8>) {
        encode_bytes(&self.0, out);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Entry, WireError> {
        input.bytes().map(|bytes| Entry(bytes.into()))
    }
}

/// Appends the number of a variant and its first field.
fn put(variant: u8, field: &impl Wire, out: &mut Vec<u8>) {
    out.push(variant);
    field.encode(out);
}

impl Wire for Change {
    const LEAST_BYTES: usize = 9;

    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Change::Entries(from, entries) => {
                put(0, from, out);
                entries.encode(out);
            }
            Change::Fetched(from, entries) => {
                put(13, from, out);
                entries.encode(out);
            }
            Change::Promise(ballot) => put(1, ballot, out),
            Change::Accepted(ballot) => put(2, ballot, out),
            Change::Decided(upto) => put(3, upto, out),
            Change::Configured(upto, configuration) => {
                put(6, upto, out);
                configuration.encode(out);
            }
            Change::Adopted(summary) => put(7, &**summary, out),
            Change::Rebased { upto, bytes, configuration } => {
                put(8, upto, out);
                bytes.encode(out);
                configuration.encode(out);
            }
            Change::Install(covers) => put(9, covers, out),
            Change::Piece(number, piece) => {
                put(10, number, out);
                piece.encode(out);
            }
            Change::Installed(needs) => put(11, needs, out),
            Change::Restored { upto, bytes } => {
                put(12, upto, out);
                bytes.encode(out);
            }
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<Change, WireError> {
        let at = input.position();
        Ok(match u8::decode(input)? {
            0 => Change::Entries(Wire::decode(input)?, Wire::decode(input)?),
            1 => Change::Promise(Wire::decode(input)?),
            2 => Change::Accepted(Wire::decode(input)?),
            3 => Change::Decided(Wire::decode(input)?),
            6 => Change::Configured(Wire::decode(input)?, Wire::decode(input)?),
            7 => Change::Adopted(Box::new(Wire::decode(input)?)),
            8 => Change::Rebased {
                upto: Wire::decode(input)?,
                bytes: Wire::decode(input)?,
                configuration: Wire::decode(input)?,
            },
            9 => Change::Install(Wire::decode(input)?),
            10 => Change::Piece(Wire::decode(input)?, Wire::decode(input)?),
            11 => Change::Installed(Wire::decode(input)?),
            12 => Change::Restored { upto: Wire::decode(input)?, bytes: Wire::decode(input)? },
            13 => Change::Fetched(Wire::decode(input)?, Wire::decode(input)?),
            other => return Err(WireError::no_variant("change of a member", at, other)),
        })
    }
}

/// In place of the number of changes: a service's record follows.
const SERVICE: u32 = u32::MAX;

impl<R: Wire> Wire for Record<R> {
    const LEAST_BYTES: usize = 4;

    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Record::Changes(changes) => changes.encode(out),
            Record::Service(record) => {
                SERVICE.encode(out);
                record.encode(out);
            }
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<Record<R>, WireError> {
        if u32::decode(&mut input.clone())? == SERVICE {
            u32::decode(input)?;
            return R::decode(input).map(Record::Service);
        }
        Vec::decode(input).map(Record::Changes)
    }
}

impl<M: Wire> Wire for Message<M> {
    const LEAST_BYTES: usize = 1;

    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Message::Inside { from, hops, message } => {
                put(0, &from.node, out);
                from.role.encode(out);
                hops.encode(out);
                message.encode(out);
            }
            Message::Consensus(configuration, bytes) => {
                put(1, configuration, out);
                bytes.encode(out);
            }
            Message::Confirm { ballot, round } => {
                put(2, ballot, out);
                round.encode(out);
            }
            Message::Confirmed { ballot, round } => {
                put(3, ballot, out);
                round.encode(out);
            }
            Message::Leads { group, member, ballot, epoch } => {
                put(4, group, out);
                member.encode(out);
                ballot.encode(out);
                epoch.encode(out);
            }
            Message::Ask => out.push(5),
            Message::Knows(summary) => put(6, &**summary, out),
            Message::Resync(ballot) => put(7, ballot, out),
            Message::AskPlacement => out.push(8),
            Message::Stable(note) => put(10, note, out),
            Message::Placement { epoch, homes, leaving } => {
                put(9, epoch, out);
                homes.encode(out);
                leaving.encode(out);
            }
            Message::At(configuration) => put(11, configuration, out),
            Message::AskBegun(group) => put(12, group, out),
            Message::Begun(begun) => put(13, begun, out),
            Message::Behind(decided) => put(14, decided, out),
            Message::Reached { decided, bytes } => {
                put(15, decided, out);
                bytes.encode(out);
            }
            Message::Fetch(fetch) => put(16, fetch, out),
            Message::Entries(batch) => put(17, &**batch, out),
            Message::FetchState(fetch) => put(18, fetch, out),
            Message::State(piece) => put(19, &**piece, out),
            Message::NoState => out.push(20),
            Message::Long(bytes) => put(21, bytes, out),
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<Message<M>, WireError> {
        let at = input.position();
        Ok(match u8::decode(input)? {
            0 => Message::Inside {
                from: Address { node: NodeId::decode(input)?, role: Wire::decode(input)? },
                hops: Wire::decode(input)?,
                message: Wire::decode(input)?,
            },
            1 => Message::Consensus(Wire::decode(input)?, Wire::decode(input)?),
            2 => Message::Confirm { ballot: Wire::decode(input)?, round: Wire::decode(input)? },
            3 => Message::Confirmed { ballot: Wire::decode(input)?, round: Wire::decode(input)? },
            4 => Message::Leads {
                group: Wire::decode(input)?,
                member: Wire::decode(input)?,
                ballot: Wire::decode(input)?,
                epoch: Wire::decode(input)?,
            },
            5 => Message::Ask,
            6 => Message::Knows(Box::new(Wire::decode(input)?)),
            7 => Message::Resync(Wire::decode(input)?),
            8 => Message::AskPlacement,
            10 => Message::Stable(Wire::decode(input)?),
            9 => Message::Placement {
                epoch: Wire::decode(input)?,
                homes: Wire::decode(input)?,
                leaving: Wire::decode(input)?,
            },
            11 => Message::At(Wire::decode(input)?),
            12 => Message::AskBegun(Wire::decode(input)?),
            13 => Message::Begun(Wire::decode(input)?),
            14 => Message::Behind(Wire::decode(input)?),
            15 => Message::Reached { decided: Wire::decode(input)?, bytes: Wire::decode(input)? },
            16 => Message::Fetch(Wire::decode(input)?),
            17 => Message::Entries(Box::new(Wire::decode(input)?)),
            18 => Message::FetchState(Wire::decode(input)?),
            19 => Message::State(Box::new(Wire::decode(input)?)),
            20 => Message::NoState,
            21 => Message::Long(Wire::decode(input)?),
            other => return Err(WireError::no_variant("message of a group", at, other)),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_bytes_are_refused_or_read(bytes: Vec<u8>) {
            let _ = Record::<u64>::decode_all(&bytes);
            let _ = Message::<u64>::decode_all(&bytes);
        }

        #[test]
        fn changes_come_back(
            formed in prop::sample::select(&FORMED[..]),
            decided: u64, length: u64, entries in prop::collection::vec(any::<Vec<u8>>(), 1..5),
        ) {
            let entries: Vec<_> = entries.iter().map(|it| Entry::from(it.clone())).collect();
            let promise = Ballot { configuration: 2, number: 3, member: 2 };
            let (since, configuration) = (9, Configuration::first(vec![0, 2]).next(4, vec![2, 5]));
            let next = Some(configuration.clone());
            let piece = Change::Piece(length, entries[0].clone());
            let rebased =
                Change::Rebased { upto: decided, bytes: 8, configuration: configuration.clone() };
            let last = Change::Configured(9, configuration.clone());
            let accepted = promise;
            let summary = Summary {
                formed, since, configuration, promise, accepted, fetched: true, decided, length,
                next,
            };
            let changes = vec![
                Change::Adopted(Box::new(summary)), Change::Decided(4), rebased,
                Change::Install(7), piece, Change::Installed(8), Change::Entries(3, entries),
                Change::Fetched(8, Vec::new()),
                Change::Restored { upto: 4, bytes: 44 }, last,
            ];
            for record in [Record::Changes(changes), Record::Service(length)] {
                let mut bytes = Vec::new();
                record.encode(&mut bytes);
                prop_assert_eq!(Record::decode_all(&bytes), Ok(record));
            }
        }
    }
}
