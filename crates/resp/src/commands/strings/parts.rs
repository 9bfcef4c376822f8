//! Parts of strings.

use crate::call::{Answer, CommandCall};
use crate::keyspace::stop::CommandStop;
use crate::keyspace::strings::{check_length, length};
use crate::protocol::reply::RespReply;

pub(super) async fn strlen(call: &CommandCall<'_>) -> Answer {
    let header = call.scope.header(call.db, call.arg(1)).await?;
    Ok(RespReply::Integer(length(header.as_ref())? as i64))
}

pub(super) async fn append(call: &CommandCall<'_>) -> Answer {
    let mut entry = call.scope.entry(call.db, call.arg(1)).await?;
    let at = length(entry.found.as_ref())?;
    Ok(RespReply::Integer(call.scope.write_string(&mut entry, at, call.arg(2)).await? as i64))
}

pub(super) async fn setrange(call: &CommandCall<'_>) -> Answer {
    let (at, part) = (call.integer(2)?, call.arg(3));
    let Ok(at) = u64::try_from(at) else {
        return CommandStop::refused("ERR offset is out of range");
    };
    let mut entry = call.scope.entry(call.db, call.arg(1)).await?;
    let before = length(entry.found.as_ref())?;
    if part.is_empty() {
        return Ok(RespReply::Integer(before as i64));
    }
    check_length(at.saturating_add(part.len() as u64))?;
    Ok(RespReply::Integer(call.scope.write_string(&mut entry, at, part).await? as i64))
}

pub(super) async fn getrange(call: &CommandCall<'_>) -> Answer {
    let (start, end) = (call.integer(2)?, call.integer(3)?);
    let Some(header) = call.scope.header(call.db, call.arg(1)).await? else {
        length(None)?;
        return Ok(RespReply::bulk(""));
    };
    let length = length(Some(&header))? as i64;
    if length == 0 || start < 0 && end < 0 && start > end {
        return Ok(RespReply::bulk(""));
    }
    let from_end = |at: i64| if at < 0 { at.saturating_add(length).max(0) } else { at };
    let (start, end) = (from_end(start), from_end(end).min(length - 1));
    if start > end {
        return Ok(RespReply::bulk(""));
    }
    Ok(RespReply::bulk(call.scope.string_part(&header, start as u64, end as u64 + 1).await?))
}
