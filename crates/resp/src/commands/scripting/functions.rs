//! `FUNCTION`: libraries of functions. They are data: all servers have them, also after a restart.

use super::lists::{help, kill, list, stats, wrong_subcommand};
use super::loading::{refused_or, registered};
use super::restoring::restore;
use super::rows::{change, clear, libraries};
use crate::call::{Answer, CommandCall};
use crate::engine::{LibrarySet, dumped};
use crate::keyspace::stop::{CommandStop, texts};
use crate::protocol::reply::RespReply;

const HELP: &[&str] = &[
    "LOAD [REPLACE] <code>",
    "    Makes a library of functions.",
    "DELETE <name>",
    "    Takes a library away.",
    "LIST [LIBRARYNAME <pattern>] [WITHCODE]",
    "    What libraries there are, and their functions.",
    "STATS",
    "    What runs on this server, and how many libraries there are.",
    "KILL",
    "    Ends all functions that run; nothing of them is done.",
    "FLUSH [ASYNC|SYNC]",
    "    Takes all libraries away.",
    "DUMP",
    "    All libraries as bytes.",
    "RESTORE <bytes> [FLUSH|APPEND|REPLACE]",
    "    Makes the libraries of such bytes, instead of all that there are, or beside these.",
];

pub(super) async fn function(call: &CommandCall<'_>) -> Answer {
    let word = String::from_utf8_lossy(call.arg(1)).to_ascii_lowercase();
    match (&*word, call.len()) {
        ("help", 2) => Ok(help("FUNCTION", HELP)),
        ("load", 3..) => load(call).await,
        ("delete", 3) => delete(call).await,
        ("flush", 2) => flush(call).await,
        ("flush", 3) if call.is(2, "SYNC") || call.is(2, "ASYNC") => flush(call).await,
        ("flush", 3) => CommandStop::refused("ERR FUNCTION FLUSH only supports SYNC|ASYNC option"),
        ("list", _) => list(call).await,
        ("stats", 2) => stats(call).await,
        ("dump", 2) => Ok(RespReply::bulk(dumped(&*libraries(call).await?))),
        ("restore", 3 | 4) => {
            check_memory(call)?;
            restore(call).await
        }
        ("kill", 2) => kill(call, true),
        _ => wrong_subcommand(call),
    }
}

fn check_memory(call: &CommandCall<'_>) -> Result<(), CommandStop> {
    match call.host.is_over_memory() {
        true => CommandStop::refused(texts::OUT_OF_MEMORY),
        false => Ok(()),
    }
}

async fn load(call: &CommandCall<'_>) -> Answer {
    check_memory(call)?;
    let last = call.len() - 1;
    let mut replaces = false;
    for at in 2..last {
        if !call.is(at, "REPLACE") || replaces {
            let option = String::from_utf8_lossy(call.arg(at));
            return CommandStop::refused(format!("ERR Unknown option given: {option}"));
        }
        replaces = true;
    }
    let payload = call.arg(last);
    let name = refused_or(muesli_scripts::library(payload))?.0;
    let before = libraries(call).await?;
    let mut after = LibrarySet::clone(&before);
    if !after.remove(&name) || replaces {
        refused_or(after.add(registered(call, payload).await?))?;
        change(call, &before, &after).await?;
        return Ok(RespReply::bulk(name));
    }
    CommandStop::refused(format!("ERR Library '{name}' already exists"))
}

async fn delete(call: &CommandCall<'_>) -> Answer {
    let before = libraries(call).await?;
    let mut after = LibrarySet::clone(&before);
    if !after.remove(&String::from_utf8_lossy(call.arg(2))) {
        return CommandStop::refused("ERR Library not found");
    }
    change(call, &before, &after).await?;
    Ok(RespReply::OK)
}

async fn flush(call: &CommandCall<'_>) -> Answer {
    clear(call).await?;
    Ok(RespReply::OK)
}
