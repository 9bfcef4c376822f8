//! Values as bytes, and back: a format of Muesli's own.
//!
//! The format's number, the type, how many parts there are, each with its length before it, and a
//! checksum. The parts are items, members, or fields and values; scores are members' second parts.
//! What comes back is put together part by part as by other commands, so that no bytes can make a
//! value that these could not.

use muesli::SmallBytes;
use xxhash_rust::xxh3::xxh3_64;

use crate::call::{Answer, CommandCall};
use crate::keyspace::header::{KeyHeader, KeyValue, ValueKind};
use crate::keyspace::lists::ListEnd;
use crate::keyspace::scope::KeyHandle;
use crate::keyspace::sorted::{ScoreRows, score_in};
use crate::keyspace::stop::{CommandStop, texts};
use crate::protocol::reply::RespReply;

const FORMAT: u8 = 1;
const WRONG: &str = "ERR DUMP payload version or checksum are wrong";
const BAD: &str = "ERR Bad data format";

pub(super) async fn dump(call: &CommandCall<'_>) -> Answer {
    let Some(header) = call.scope.header(call.db, call.arg(1)).await? else {
        return Ok(RespReply::Null);
    };
    let parts = parts(call, &header).await?;
    let mut bytes = vec![FORMAT, header.value.kind() as u8];
    bytes.extend((parts.len() as u32).to_le_bytes());
    for part in parts {
        bytes.extend((part.len() as u32).to_le_bytes());
        bytes.extend_from_slice(part.as_slice());
    }
    bytes.extend(xxh3_64(&bytes).to_le_bytes());
    Ok(RespReply::bulk(bytes))
}

async fn parts(call: &CommandCall<'_>, header: &KeyHeader) -> Result<Vec<SmallBytes>, CommandStop> {
    let pairs = |all: Vec<(SmallBytes, SmallBytes)>| all.into_iter().flat_map(|it| [it.0, it.1]);
    match header.value {
        KeyValue::Text(_) | KeyValue::Pieces(..) => {
            Ok(call.scope.string_of(Some(header)).await?.into_iter().collect())
        }
        KeyValue::Rows(ValueKind::List, _) => match call.scope.list(call.db, call.arg(1)).await? {
            Some(list) => call.scope.items(list, 0, list.len()).await,
            None => Ok(Vec::new()),
        },
        KeyValue::Rows(ValueKind::Sorted, id) => {
            let all = ScoreRows::all(id);
            let scored = call.scope.scored(id, &all, false, 0, usize::MAX).await?;
            let bytes = |score: f64| SmallBytes::new(&score.to_be_bytes());
            Ok(scored.into_iter().flat_map(|it| [it.0, bytes(it.1)]).collect())
        }
        KeyValue::Rows(ValueKind::Hash, id) => Ok(pairs(call.scope.members(id).await?).collect()),
        KeyValue::Rows(_, id) => {
            Ok(call.scope.members(id).await?.into_iter().map(|it| it.0).collect())
        }
    }
}

/// The type and the parts of such bytes.
fn read(bytes: &[u8]) -> Result<(ValueKind, Vec<&[u8]>), CommandStop> {
    let Some((body, sum)) = bytes.split_last_chunk() else { return CommandStop::refused(WRONG) };
    if u64::from_le_bytes(*sum) != xxh3_64(body) || body.first() != Some(&FORMAT) {
        return CommandStop::refused(WRONG);
    }
    decoded(body).map_or_else(|| CommandStop::refused(BAD), Ok)
}

fn decoded(body: &[u8]) -> Option<(ValueKind, Vec<&[u8]>)> {
    let kind = *ValueKind::ALL.get(usize::from(*body.get(1)?))?;
    let (count, mut rest) = body.get(2..)?.split_first_chunk()?;
    let mut parts = Vec::new();
    for _ in 0..u32::from_le_bytes(*count) {
        let (length, after) = rest.split_first_chunk()?;
        let length = u32::from_le_bytes(*length) as usize;
        parts.push(after.get(..length)?);
        rest = &after[length..];
    }
    let is_whole = match kind {
        ValueKind::String => parts.len() == 1,
        ValueKind::List | ValueKind::Set => !parts.is_empty(),
        ValueKind::Sorted | ValueKind::Hash => !parts.is_empty() && parts.len().is_multiple_of(2),
    };
    let is_score = |it: &[&[u8]]| {
        it[1].len() == size_of::<f64>() && !score_in(&SmallBytes::new(it[1])).is_nan()
    };
    let scored = kind != ValueKind::Sorted || is_whole && parts.chunks(2).all(is_score);
    (rest.is_empty() && is_whole && scored).then_some((kind, parts))
}

pub(super) async fn restore(call: &CommandCall<'_>) -> Answer {
    let (mut replaces, mut absolute, mut at) = (false, false, 4);
    while at < call.len() {
        match () {
            () if call.is(at, "REPLACE") => replaces = true,
            () if call.is(at, "ABSTTL") => absolute = true,
            () if call.is(at, "IDLETIME") && at + 1 < call.len() => {
                at += 1;
                if call.integer(at)? < 0 {
                    return CommandStop::refused("ERR Invalid IDLETIME value, must be >= 0");
                }
            }
            () if call.is(at, "FREQ") && at + 1 < call.len() => {
                at += 1;
                if !(0..=255).contains(&call.integer(at)?) {
                    return CommandStop::refused("ERR Invalid FREQ value, must be >= 0 and <= 255");
                }
            }
            () => return CommandStop::refused(texts::SYNTAX),
        }
        at += 1;
    }
    let mut entry = call.scope.entry(call.db, call.arg(1)).await?;
    if entry.found.is_some() && !replaces {
        return CommandStop::refused("BUSYKEY Target key name already exists.");
    }
    let Ok(ttl) = u64::try_from(call.integer(2)?) else {
        return CommandStop::refused("ERR Invalid TTL value, must be >= 0");
    };
    let (kind, parts) = read(call.arg(3))?;
    let expires = match (ttl, absolute) {
        (0, _) => None,
        (at, true) => Some(at),
        (ttl, false) => Some(call.scope.now.saturating_add(ttl)),
    };
    call.scope.remove(&mut entry).await?;
    if expires.is_some_and(|it| it <= call.scope.now) {
        return Ok(RespReply::OK);
    }
    rebuild(call, &mut entry, kind, &parts).await?;
    if let (Some(_), Some(header)) = (expires, entry.found.clone()) {
        call.scope.set(&mut entry, KeyHeader { expires, ..header }).await?;
    }
    call.scope.is_ready(&entry);
    Ok(RespReply::OK)
}

async fn rebuild(
    call: &CommandCall<'_>,
    entry: &mut KeyHandle,
    kind: ValueKind,
    parts: &[&[u8]],
) -> Result<(), CommandStop> {
    let scope = call.scope;
    match kind {
        ValueKind::String => scope.set_string(entry, parts[0], None).await,
        ValueKind::List => {
            let list = scope.list_to_grow(entry).await?;
            scope.push(list, ListEnd::Right, parts.iter().copied()).await.map(drop)
        }
        ValueKind::Set => {
            let id = scope.collection(entry, kind).await?;
            for member in parts {
                scope.put_member(id, member, SmallBytes::EMPTY).await?;
            }
            Ok(())
        }
        ValueKind::Hash => {
            let id = scope.collection(entry, kind).await?;
            for pair in parts.chunks(2) {
                scope.put_member(id, pair[0], SmallBytes::new(pair[1])).await?;
            }
            Ok(())
        }
        ValueKind::Sorted => {
            let id = scope.collection(entry, kind).await?;
            for pair in parts.chunks(2) {
                scope.put_score(id, pair[0], score_in(&SmallBytes::new(pair[1]))).await?;
            }
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sealed(body: &[u8]) -> Vec<u8> {
        [body, &xxh3_64(body).to_le_bytes()].concat()
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(
            body in prop::collection::vec(prop_oneof![0..6_u8, any::<u8>()], 0..80),
        ) {
            let _ = read(&body);
            let _ = read(&sealed(&[&[FORMAT], &body[..]].concat()));
        }
    }

    #[test]
    fn what_makes_no_value_is_refused() {
        let none = [FORMAT, ValueKind::Set as u8, 0, 0, 0, 0];
        let odd = [FORMAT, ValueKind::Hash as u8, 1, 0, 0, 0, 1, 0, 0, 0, b'a'];
        let score = [
            &[FORMAT, ValueKind::Sorted as u8, 2, 0, 0, 0, 1, 0, 0, 0, b'a', 8, 0, 0, 0][..],
            &f64::NAN.to_be_bytes(),
        ]
        .concat();
        for body in [&none[..], &odd, &score] {
            assert!(matches!(read(&sealed(body)), Err(CommandStop::Refused(why)) if why == BAD));
            assert!(matches!(read(body), Err(CommandStop::Refused(why)) if why == WRONG));
        }
        let one = sealed(&[FORMAT, ValueKind::Set as u8, 1, 0, 0, 0, 1, 0, 0, 0, b'a']);
        assert!(matches!(read(&one), Ok((ValueKind::Set, parts)) if parts == [b"a"]));
    }
}
