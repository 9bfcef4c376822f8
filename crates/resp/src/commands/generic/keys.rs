//! Keys alone.

use crate::call::{Answer, CommandCall};
use crate::protocol::reply::RespReply;

pub(super) async fn del(call: &CommandCall<'_>) -> Answer {
    let mut gone = 0;
    for key in call.args(1) {
        let mut entry = call.scope.entry(call.db, key).await?;
        gone += usize::from(call.scope.remove(&mut entry).await?);
    }
    Ok(RespReply::count(gone))
}

pub(super) async fn exists(call: &CommandCall<'_>) -> Answer {
    let mut found = 0;
    for key in call.args(1) {
        found += usize::from(call.scope.header(call.db, key).await?.is_some());
    }
    Ok(RespReply::count(found))
}

pub(super) async fn type_of(call: &CommandCall<'_>) -> Answer {
    let header = call.scope.header(call.db, call.arg(1)).await?;
    Ok(RespReply::Simple(header.map_or("none", |it| it.value.kind().name())))
}
