//! Items within lists.

use muesli::SmallBytes;

use crate::call::{Answer, CommandCall, index_range, integer_or};
use crate::keyspace::stop::{CommandStop, texts};
use crate::protocol::reply::RespReply;

pub(super) async fn llen(call: &CommandCall<'_>) -> Answer {
    let list = call.scope.list(call.db, call.arg(1)).await?;
    Ok(RespReply::Integer(list.map_or(0, |it| it.len())))
}

pub(super) async fn lindex(call: &CommandCall<'_>) -> Answer {
    let list = call.scope.list(call.db, call.arg(1)).await?;
    let Some(list) = list else { return Ok(RespReply::Null) };
    let Some(index) = list.index(call.integer(2)?) else { return Ok(RespReply::Null) };
    let found = call.scope.items(list, index, index + 1).await?;
    Ok(found.into_iter().next().map_or(RespReply::Null, RespReply::Bulk))
}

pub(super) async fn lrange(call: &CommandCall<'_>) -> Answer {
    let (start, stop) = (call.integer(2)?, call.integer(3)?);
    let list = call.scope.list(call.db, call.arg(1)).await?;
    let Some(list) = list else { return Ok(RespReply::Array(Vec::new())) };
    let Some((from, to)) = index_range(start, stop, list.len()) else {
        return Ok(RespReply::Array(Vec::new()));
    };
    let items = call.scope.items(list, from, to).await?;
    Ok(RespReply::Array(items.into_iter().map(RespReply::Bulk).collect()))
}

pub(super) async fn lset(call: &CommandCall<'_>) -> Answer {
    let entry = call.scope.entry(call.db, call.arg(1)).await?;
    let list = call.scope.entry_list(&entry).await?;
    let Some(list) = list else { return CommandStop::refused(texts::NO_KEY) };
    let Some(index) = list.index(call.integer(2)?) else {
        return CommandStop::refused(texts::OUT_OF_RANGE);
    };
    call.scope.set_item(list, index, call.arg(3)).await?;
    call.scope.changed(&entry).await?;
    Ok(RespReply::OK)
}

pub(super) async fn linsert(call: &CommandCall<'_>) -> Answer {
    let behind = match () {
        () if call.is(2, "BEFORE") => 0,
        () if call.is(2, "AFTER") => 1,
        () => return CommandStop::refused(texts::SYNTAX),
    };
    let entry = call.scope.entry(call.db, call.arg(1)).await?;
    let list = call.scope.entry_list(&entry).await?;
    let Some(list) = list else { return Ok(RespReply::Integer(0)) };
    let items = call.scope.items(list, 0, list.len()).await?;
    let found = items.iter().position(|it| it.as_slice() == call.arg(3));
    let Some(found) = found else { return Ok(RespReply::Integer(-1)) };
    let list = call.scope.insert(list, found as i64 + behind, call.arg(4)).await?;
    call.scope.changed(&entry).await?;
    Ok(RespReply::Integer(list.len()))
}

pub(super) async fn lrem(call: &CommandCall<'_>) -> Answer {
    let count = call.integer(2)?;
    let mut entry = call.scope.entry(call.db, call.arg(1)).await?;
    let list = call.scope.entry_list(&entry).await?;
    let Some(list) = list else { return Ok(RespReply::Integer(0)) };
    let items = call.scope.items(list, 0, list.len()).await?;
    let is_it =
        |(at, it): (usize, &SmallBytes)| (it.as_slice() == call.arg(3)).then_some(at as i64);
    let most = if count == 0 { usize::MAX } else { count.unsigned_abs() as usize };
    let mut gone: Vec<i64> = match count < 0 {
        false => items.iter().enumerate().filter_map(is_it).take(most).collect(),
        true => items.iter().enumerate().rev().filter_map(is_it).take(most).collect(),
    };
    gone.sort_unstable();
    if !gone.is_empty() {
        let list = call.scope.remove_items(list, &gone).await?;
        call.scope.shrunk(&mut entry, list).await?;
    }
    Ok(RespReply::count(gone.len()))
}

pub(super) async fn ltrim(call: &CommandCall<'_>) -> Answer {
    let (start, stop) = (call.integer(2)?, call.integer(3)?);
    let mut entry = call.scope.entry(call.db, call.arg(1)).await?;
    let list = call.scope.entry_list(&entry).await?;
    let Some(list) = list else { return Ok(RespReply::OK) };
    match index_range(start, stop, list.len()) {
        Some((from, to)) => {
            let shorter = call.scope.keep(&mut entry, list, from, to).await?;
            call.scope.shrunk(&mut entry, shorter).await?;
        }
        None => {
            call.scope.remove(&mut entry).await?;
        }
    }
    Ok(RespReply::OK)
}

/// The options of LPOS.
struct Places {
    rank: i64,
    count: Option<i64>,
    most: i64,
}

impl Places {
    fn read(call: &CommandCall<'_>) -> Result<Places, CommandStop> {
        let mut places = Places { rank: 1, count: None, most: 0 };
        for at in (3..call.len()).step_by(2) {
            if at + 1 == call.len() {
                return CommandStop::refused(texts::SYNTAX);
            }
            match () {
                () if call.is(at, "RANK") => {
                    places.rank = call.integer(at + 1)?;
                    if places.rank == 0 {
                        return CommandStop::refused(
                            "ERR RANK can't be zero: use 1 to start from the first match, 2 from \
                             the second ... or use negative to start from the end of the list",
                        );
                    }
                    if places.rank == i64::MIN {
                        return CommandStop::refused(
                            "ERR value is out of range, value must between \
                            -9223372036854775807 and 9223372036854775807",
                        );
                    }
                }
                () if call.is(at, "COUNT") => {
                    let count = integer_or(call.arg(at + 1), "ERR COUNT can't be negative")?;
                    if count < 0 {
                        return CommandStop::refused("ERR COUNT can't be negative");
                    }
                    places.count = Some(count);
                }
                () if call.is(at, "MAXLEN") => {
                    places.most = integer_or(call.arg(at + 1), "ERR MAXLEN can't be negative")?;
                    if places.most < 0 {
                        return CommandStop::refused("ERR MAXLEN can't be negative");
                    }
                }
                () => return CommandStop::refused(texts::SYNTAX),
            }
        }
        Ok(places)
    }
}

pub(super) async fn lpos(call: &CommandCall<'_>) -> Answer {
    let places = Places::read(call)?;
    let none = if places.count.is_some() { RespReply::Array(Vec::new()) } else { RespReply::Null };
    let list = call.scope.list(call.db, call.arg(1)).await?;
    let Some(list) = list else { return Ok(none) };
    let looked = if places.most == 0 { list.len() } else { places.most.min(list.len()) };
    let (from, to) = match places.rank > 0 {
        true => (0, looked),
        false => (list.len() - looked, list.len()),
    };
    let items = call.scope.items(list, from, to).await?;
    let is_it = |(at, it): (usize, &SmallBytes)| {
        (it.as_slice() == call.arg(2)).then_some(RespReply::Integer(from + at as i64))
    };
    let skipped = places.rank.unsigned_abs() as usize - 1;
    let most = places.count.map_or(1, |it| if it == 0 { usize::MAX } else { it as usize });
    let found: Vec<_> = match places.rank > 0 {
        true => items.iter().enumerate().filter_map(is_it).skip(skipped).take(most).collect(),
        false => {
            items.iter().enumerate().rev().filter_map(is_it).skip(skipped).take(most).collect()
        }
    };
    match places.count {
        Some(_) => Ok(RespReply::Array(found)),
        None => Ok(found.into_iter().next().unwrap_or(RespReply::Null)),
    }
}
