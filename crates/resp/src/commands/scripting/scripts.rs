//! `SCRIPT`: the scripts that a server knows.

use muesli_scripts::{ScriptEnd, ScriptTask, sha1_hex};

use super::drive::examine;
use super::lists::{help, kill, wrong_subcommand};
use crate::call::{Answer, CommandCall};
use crate::keyspace::stop::CommandStop;
use crate::protocol::reply::RespReply;

const HELP: &[&str] = &[
    "DEBUG (YES|SYNC|NO)",
    "    Refused: scripts are not debugged by this server.",
    "EXISTS <sha1> [<sha1> ...]",
    "    Which of these scripts the server knows.",
    "FLUSH [ASYNC|SYNC]",
    "    Forgets all scripts.",
    "KILL",
    "    Ends all scripts that run; nothing of them is done.",
    "LOAD <script>",
    "    Has the server know a script, without running it.",
];

pub(super) async fn script(call: &CommandCall<'_>) -> Answer {
    let engine = call.host.engine();
    let word = String::from_utf8_lossy(call.arg(1)).to_ascii_lowercase();
    match (&*word, call.len()) {
        ("help", 2) => Ok(help("SCRIPT", HELP)),
        ("flush", 2) => flush(call),
        ("flush", 3) if call.is(2, "SYNC") || call.is(2, "ASYNC") => flush(call),
        ("flush", _) => CommandStop::refused("ERR SCRIPT FLUSH only support SYNC|ASYNC option"),
        ("exists", 3..) => {
            let small = |sha: &[u8]| String::from_utf8_lossy(sha).to_ascii_lowercase();
            let is_known = |sha: &[u8]| engine.cache.contains(&small(sha));
            Ok(RespReply::Array(call.args(2).map(|it| RespReply::flag(is_known(it))).collect()))
        }
        ("load", 3) => load(call).await,
        ("kill", 2) => kill(call, false),
        ("debug", 3) => CommandStop::refused("ERR scripts are not debugged by this server"),
        _ => wrong_subcommand(call),
    }
}

fn flush(call: &CommandCall<'_>) -> Answer {
    let engine = call.host.engine();
    engine.cache.clear();
    engine.interpreters.clear();
    Ok(RespReply::OK)
}

async fn load(call: &CommandCall<'_>) -> Answer {
    let engine = call.host.engine();
    let sha = sha1_hex(call.arg(2));
    if engine.cache.contains(&sha) {
        return Ok(RespReply::bulk(sha));
    }
    let (flags, code) = match muesli_scripts::script(call.arg(2)) {
        Ok(read) => read,
        Err(why) => return CommandStop::refused(format!("ERR {why}")),
    };
    let task = ScriptTask::Compile { code: code.into() };
    match examine(call, task, engine.limits.get()).await? {
        ScriptEnd::Compiled => {
            engine.cache.insert(sha.clone(), code.into(), flags);
            Ok(RespReply::bulk(sha))
        }
        ScriptEnd::Invalid(why) | ScriptEnd::Failed(why) => {
            CommandStop::refused(String::from_utf8_lossy(&why))
        }
        ScriptEnd::Stopped(why) => CommandStop::refused(why),
        _ => Ok(RespReply::Null),
    }
}
