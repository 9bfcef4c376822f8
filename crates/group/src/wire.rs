//! The bytes of what groups say and keep.

use muesli_core::wire::{Reader, Wire, WireError, encode_bytes};
use muesli_core::{Address, NodeId, SmallBytes, wire_struct};

use crate::configuration::Configuration;
use crate::join::Formed;
use crate::ledger::{Change, Entry, Image, Standing};
use crate::protocol::{Ballot, Message, Record};

wire_struct!(Ballot { configuration: u32, number: u32, member: u64 });
wire_struct!(Image { covers: u64, pieces: Vec<Entry>, then: Vec<Entry> });
wire_struct!(Standing {
    formed: Formed,
    since: u64,
    configuration: Configuration,
    promise: Ballot,
    accepted: Ballot,
    decided: u64,
    compacted: u64,
    image: Image,
    entries: Vec<Entry>,
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
            Change::Promise(ballot) => put(1, ballot, out),
            Change::Accepted(ballot) => put(2, ballot, out),
            Change::Decided(upto) => put(3, upto, out),
            Change::Compacted(upto, image) => {
                put(4, upto, out);
                image.encode(out);
            }
            Change::Adopted(standing) => put(5, standing, out),
            Change::Configured(upto, configuration) => {
                put(6, upto, out);
                configuration.encode(out);
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
            4 => Change::Compacted(Wire::decode(input)?, Wire::decode(input)?),
            5 => Change::Adopted(Wire::decode(input)?),
            6 => Change::Configured(Wire::decode(input)?, Wire::decode(input)?),
            other => return Err(WireError::no_variant("change of a member", at, other)),
        })
    }
}

impl Wire for Record {
    const LEAST_BYTES: usize = 4;

    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Record, WireError> {
        Vec::decode(input).map(Record)
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
            Message::Standing(standing) => put(6, &**standing, out),
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
            6 => Message::Standing(Box::new(Wire::decode(input)?)),
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
            other => return Err(WireError::no_variant("message of a group", at, other)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_are_refused_or_read(bytes: Vec<u8>) {
            let _ = Record::decode_all(&bytes);
            let _ = Message::<u64>::decode_all(&bytes);
        }

        #[test]
        fn standings_come_back(
            formed in prop::sample::select(&FORMED[..]),
            decided: u64, compacted: u64, entries in prop::collection::vec(any::<Vec<u8>>(), 0..5),
        ) {
            let entries: Vec<_> = entries.iter().map(|it| Entry::from(it.clone())).collect();
            let image = Image { covers: 7, pieces: entries.clone(), then: Vec::new() };
            let promise = Ballot { configuration: 2, number: 3, member: 2 };
            let (since, configuration) = (9, Configuration::first(vec![0, 2]).next(4, vec![2, 5]));
            let accepted = promise;
            let last = Change::Configured(9, configuration.clone());
            let standing = Standing {
                formed, since, configuration, promise, accepted, decided, compacted, image, entries,
            };
            let record = Record(vec![Change::Adopted(standing), Change::Decided(4), last]);
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            prop_assert_eq!(Record::decode_all(&bytes), Ok(record));
        }
    }
}
