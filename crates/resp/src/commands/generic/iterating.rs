//! Keys of a database, one after the other.

use muesli::{Range, SmallBytes};

use crate::call::{Answer, CommandCall};
use crate::commands::iterating::Iteration;
use crate::commands::pattern::matches;
use crate::keyspace::header::KeyHeader;
use crate::keyspace::rows::{RowKey, tag};
use crate::keyspace::stop::CommandStop;
use crate::protocol::reply::RespReply;

/// Keys that have expired are passed over, so many at a time, to find one that has not.
const LOOKED_AT: usize = 100;

async fn prefix(call: &CommandCall<'_>) -> Result<SmallBytes, CommandStop> {
    let generation = call.scope.generation(call.db).await?;
    Ok(RowKey::new(tag::HEADER).number(u64::from(generation)).done())
}

/// The key of a header's row, and what it has, if it has not expired.
fn alive(
    call: &CommandCall<'_>,
    before: usize,
    (row, header): &(SmallBytes, SmallBytes),
) -> Result<Option<(SmallBytes, KeyHeader)>, CommandStop> {
    let header = KeyHeader::of_row(header)?;
    if header.is_over(call.scope.now) {
        return Ok(None);
    }
    Ok(Some((SmallBytes::new(&row.as_slice()[before + size_of::<u32>()..]), header)))
}

pub(super) async fn keys(call: &CommandCall<'_>) -> Answer {
    let prefix = prefix(call).await?;
    let mut found = Vec::new();
    for row in call.scope.scan(Range::prefix(prefix.as_slice())).await? {
        if let Some((key, _)) = alive(call, prefix.len(), &row)?
            && matches(call.arg(1), key.as_slice())
        {
            found.push(RespReply::Bulk(key));
        }
    }
    Ok(RespReply::Array(found))
}

pub(super) async fn scan(call: &CommandCall<'_>) -> Answer {
    let iteration = Iteration::read(call, 1, true)?;
    let prefix = prefix(call).await?;
    let (rows, next) =
        call.scope.page(prefix.as_slice(), iteration.cursor, iteration.count).await?;
    let mut found = Vec::new();
    for row in rows {
        if let Some((key, header)) = alive(call, prefix.len(), &row)?
            && iteration.holds(key.as_slice())
            && iteration.kind.is_none_or(|it| it == Some(header.value.kind()))
        {
            found.push(RespReply::Bulk(key));
        }
    }
    Ok(Iteration::page(next, found))
}

pub(super) async fn randomkey(call: &CommandCall<'_>) -> Answer {
    let prefix = prefix(call).await?;
    let Some(end) = prefix.prefix_end() else { return Ok(RespReply::Null) };
    let middle = [prefix.as_slice(), &fastrand::u32(..).to_be_bytes()].concat();
    let middle = SmallBytes::from(middle);
    for (lo, hi) in [(&middle, &end), (&prefix, &middle)] {
        let mut from = lo.clone();
        loop {
            let range = Range::of(from.as_slice()..hi.as_slice());
            let rows = call.scope.scan(range.limit(LOOKED_AT)).await?;
            for row in &rows {
                if let Some((key, _)) = alive(call, prefix.len(), row)? {
                    return Ok(RespReply::Bulk(key));
                }
            }
            match rows.last() {
                Some((last, _)) if rows.len() == LOOKED_AT => from = last.successor(),
                _ => break,
            }
        }
    }
    Ok(RespReply::Null)
}
