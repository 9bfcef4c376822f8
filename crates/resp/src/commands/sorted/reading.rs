//! Scores and ranks of members.

use crate::call::{Answer, CommandCall};
use crate::keyspace::header::ValueKind;
use crate::protocol::reply::RespReply;

pub(super) async fn zcard(call: &CommandCall<'_>) -> Answer {
    match call.scope.rows(call.db, call.arg(1), ValueKind::Sorted).await? {
        Some(id) => Ok(RespReply::Integer(call.scope.members_count(id).await?)),
        None => Ok(RespReply::Integer(0)),
    }
}

pub(super) async fn zscore(call: &CommandCall<'_>) -> Answer {
    match call.scope.rows(call.db, call.arg(1), ValueKind::Sorted).await? {
        Some(id) => {
            let score = call.scope.score(id, call.arg(2)).await?;
            Ok(score.map_or(RespReply::Null, RespReply::Double))
        }
        None => Ok(RespReply::Null),
    }
}

pub(super) async fn zmscore(call: &CommandCall<'_>) -> Answer {
    let id = call.scope.rows(call.db, call.arg(1), ValueKind::Sorted).await?;
    let mut found = Vec::new();
    for member in call.args(2) {
        let score = match id {
            Some(id) => call.scope.score(id, member).await?,
            None => None,
        };
        found.push(score.map_or(RespReply::Null, RespReply::Double));
    }
    Ok(RespReply::Array(found))
}

pub(super) async fn zrank(call: &CommandCall<'_>) -> Answer {
    rank(call, false).await
}

pub(super) async fn zrevrank(call: &CommandCall<'_>) -> Answer {
    rank(call, true).await
}

async fn rank(call: &CommandCall<'_>, reverse: bool) -> Answer {
    match call.scope.rows(call.db, call.arg(1), ValueKind::Sorted).await? {
        Some(id) => {
            let rank = call.scope.rank(id, call.arg(2), reverse).await?;
            Ok(rank.map_or(RespReply::Null, RespReply::count))
        }
        None => Ok(RespReply::Null),
    }
}
