//! `FUNCTION RESTORE`.

use muesli::yield_now;

use super::loading::{refused_or, registered};
use super::rows::{change, libraries};
use crate::call::{Answer, CommandCall};
use crate::engine::{LibrarySet, parse_dump};
use crate::keyspace::stop::CommandStop;
use crate::protocol::reply::RespReply;

pub(super) async fn restore(call: &CommandCall<'_>) -> Answer {
    let (flushes, replaces) = match call.len() {
        3 => (false, false),
        _ if call.is(3, "APPEND") => (false, false),
        _ if call.is(3, "REPLACE") => (false, true),
        _ if call.is(3, "FLUSH") => (true, false),
        _ => {
            return CommandStop::refused(
                "ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.",
            );
        }
    };
    let Some(payloads) = parse_dump(call.arg(2)) else {
        return CommandStop::refused("ERR DUMP payload version or checksum are wrong");
    };
    let before = libraries(call).await?;
    let mut after = if flushes { LibrarySet::default() } else { LibrarySet::clone(&before) };
    let mut added = Vec::new();
    for payload in payloads {
        let library = registered(call, payload).await?;
        yield_now().await;
        if replaces {
            after.remove(&library.code.name);
        }
        added.push(library);
    }
    for library in added {
        refused_or(after.add(library))?;
    }
    change(call, &before, &after).await?;
    Ok(RespReply::OK)
}
