//! When keys expire.

use crate::call::{Answer, CommandCall};
use crate::commands::times::Unit;
use crate::keyspace::header::KeyHeader;
use crate::keyspace::stop::CommandStop;
use crate::protocol::reply::RespReply;

pub(super) async fn expire(call: &CommandCall<'_>) -> Answer {
    expire_at(call, Unit::EX).await
}

pub(super) async fn pexpire(call: &CommandCall<'_>) -> Answer {
    expire_at(call, Unit::PX).await
}

pub(super) async fn expireat(call: &CommandCall<'_>) -> Answer {
    expire_at(call, Unit::EXAT).await
}

pub(super) async fn pexpireat(call: &CommandCall<'_>) -> Answer {
    expire_at(call, Unit::PXAT).await
}

/// In which case a key gets an expiry.
#[derive(Clone, Copy, Default)]
struct Condition {
    has_none: bool,
    has_one: bool,
    greater: bool,
    earlier: bool,
}

impl Condition {
    fn read(call: &CommandCall<'_>) -> Result<Condition, CommandStop> {
        let mut it = Condition::default();
        for (at, option) in call.args(3).enumerate() {
            match () {
                () if call.is(at + 3, "NX") => it.has_none = true,
                () if call.is(at + 3, "XX") => it.has_one = true,
                () if call.is(at + 3, "GT") => it.greater = true,
                () if call.is(at + 3, "LT") => it.earlier = true,
                () => {
                    let option = String::from_utf8_lossy(option);
                    return CommandStop::refused(format!("ERR Unsupported option {option}"));
                }
            }
        }
        if it.has_none && (it.has_one || it.greater || it.earlier) {
            return CommandStop::refused(
                "ERR NX and XX, GT or LT options at the same time are not compatible",
            );
        }
        if it.greater && it.earlier {
            return CommandStop::refused(
                "ERR GT and LT options at the same time are not compatible",
            );
        }
        Ok(it)
    }

    fn holds(self, before: Option<u64>, after: i64) -> bool {
        let before = before.map(|it| it as i64);
        !(self.has_none && before.is_some()
            || self.has_one && before.is_none()
            || self.greater && before.is_none_or(|it| after <= it)
            || self.earlier && before.is_some_and(|it| after >= it))
    }
}

async fn expire_at(call: &CommandCall<'_>, unit: Unit) -> Answer {
    let at = unit.any_moment(call, 2)?;
    let condition = Condition::read(call)?;
    let mut entry = call.scope.entry(call.db, call.arg(1)).await?;
    let Some(header) = entry.found.clone() else { return Ok(RespReply::Integer(0)) };
    if !condition.holds(header.expires, at) {
        return Ok(RespReply::Integer(0));
    }
    if at <= call.scope.now as i64 {
        call.scope.remove(&mut entry).await?;
    } else {
        call.scope.set(&mut entry, KeyHeader { expires: Some(at as u64), ..header }).await?;
    }
    Ok(RespReply::Integer(1))
}

pub(super) async fn persist(call: &CommandCall<'_>) -> Answer {
    let mut entry = call.scope.entry(call.db, call.arg(1)).await?;
    match entry.found.clone() {
        Some(header) if header.expires.is_some() => {
            call.scope.set(&mut entry, KeyHeader { expires: None, ..header }).await?;
            Ok(RespReply::Integer(1))
        }
        _ => Ok(RespReply::Integer(0)),
    }
}

pub(super) async fn ttl(call: &CommandCall<'_>) -> Answer {
    tell(call, |at, now| (at.saturating_sub(now) + 500) / 1000).await
}

pub(super) async fn pttl(call: &CommandCall<'_>) -> Answer {
    tell(call, |at, now| at.saturating_sub(now)).await
}

pub(super) async fn expiretime(call: &CommandCall<'_>) -> Answer {
    tell(call, |at, _| at.saturating_add(500) / 1000).await
}

pub(super) async fn pexpiretime(call: &CommandCall<'_>) -> Answer {
    tell(call, |at, _| at).await
}

async fn tell(call: &CommandCall<'_>, of: impl Fn(u64, u64) -> u64) -> Answer {
    let header = call.scope.header(call.db, call.arg(1)).await?;
    Ok(RespReply::Integer(match header.map(|it| it.expires) {
        None => -2,
        Some(None) => -1,
        Some(Some(at)) => of(at, call.scope.now) as i64,
    }))
}
