//! Whole databases.

use crate::call::{Answer, CommandCall, integer_or};
use crate::keyspace::rows::DATABASES;
use crate::keyspace::stop::{CommandStop, texts};
use crate::protocol::reply::RespReply;

pub(super) async fn dbsize(call: &CommandCall<'_>) -> Answer {
    Ok(RespReply::Integer(call.scope.keys(call.db).await?))
}

fn check_flush(call: &CommandCall<'_>) -> Result<(), CommandStop> {
    match call.len() {
        1 => Ok(()),
        2 if call.is(1, "SYNC") || call.is(1, "ASYNC") => Ok(()),
        _ => CommandStop::refused(texts::SYNTAX),
    }
}

pub(super) async fn flushdb(call: &CommandCall<'_>) -> Answer {
    check_flush(call)?;
    call.scope.flush(call.db).await?;
    Ok(RespReply::OK)
}

pub(super) async fn flushall(call: &CommandCall<'_>) -> Answer {
    check_flush(call)?;
    for db in 0..DATABASES as u8 {
        call.scope.flush(db).await?;
    }
    Ok(RespReply::OK)
}

pub(super) async fn swapdb(call: &CommandCall<'_>) -> Answer {
    let mut both = [0_u8; 2];
    for (at, which) in ["first", "second"].into_iter().enumerate() {
        let number = integer_or(call.arg(at + 1), &format!("ERR invalid {which} DB index"))?;
        if !(0..DATABASES as i64).contains(&number) {
            return CommandStop::refused("ERR DB index is out of range");
        }
        both[at] = number as u8;
    }
    let [left, right] = both;
    let generations = (call.scope.generation(left).await?, call.scope.generation(right).await?);
    call.scope.set_generation(left, generations.1).await?;
    call.scope.set_generation(right, generations.0).await?;
    call.scope.all_ready.set(true);
    Ok(RespReply::OK)
}
