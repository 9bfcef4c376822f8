//! Members that are taken away.

use crate::call::{Answer, CommandCall};
use crate::commands::sorted::ranges::{By, RangeQuery};
use crate::keyspace::header::ValueKind;
use crate::keyspace::rows::ContentPart;
use crate::protocol::reply::RespReply;

pub(super) async fn zrem(call: &CommandCall<'_>) -> Answer {
    let mut entry = call.scope.entry(call.db, call.arg(1)).await?;
    let Some(id) = entry.rows(ValueKind::Sorted)? else { return Ok(RespReply::Integer(0)) };
    let mut gone = 0;
    for member in call.args(2) {
        gone += usize::from(call.scope.take_score(id, member).await?.is_some());
    }
    if gone > 0 {
        call.scope.changed(&entry).await?;
        call.scope.drop_if_empty(&mut entry, id, ContentPart::Member).await?;
    }
    Ok(RespReply::count(gone))
}

pub(super) async fn zremrangebyscore(call: &CommandCall<'_>) -> Answer {
    remove_range(call, By::Score).await
}

pub(super) async fn zremrangebyrank(call: &CommandCall<'_>) -> Answer {
    remove_range(call, By::Index).await
}

pub(super) async fn zremrangebylex(call: &CommandCall<'_>) -> Answer {
    remove_range(call, By::Text).await
}

async fn remove_range(call: &CommandCall<'_>, by: By) -> Answer {
    let Some((id, found)) = RangeQuery::all(by, false, 1).find(call).await? else {
        return Ok(RespReply::Integer(0));
    };
    let mut entry = call.scope.entry(call.db, call.arg(1)).await?;
    call.scope.take_scores(&mut entry, id, &found).await?;
    Ok(RespReply::count(found.len()))
}
