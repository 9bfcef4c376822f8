//! What is answered of libraries and of what runs, and of subcommands that there are not.

use super::rows::libraries;
use crate::call::{Answer, CommandCall};
use crate::commands::pattern::matches;
use crate::engine::Library;
use crate::keyspace::stop::CommandStop;
use crate::protocol::reply::RespReply;

/// What is answered to a subcommand that is not known, or has too few or too many words.
pub(super) fn wrong_subcommand(call: &CommandCall<'_>) -> Answer {
    let name = String::from_utf8_lossy(call.arg(0)).to_ascii_uppercase();
    let word = String::from_utf8_lossy(call.arg(1)).into_owned();
    CommandStop::refused(format!(
        "ERR unknown subcommand or wrong number of arguments for '{word}'. Try {name} HELP."
    ))
}

/// Ends all scripts that run, or all functions.
pub(super) fn kill(call: &CommandCall<'_>, functions: bool) -> Answer {
    let running = &call.host.engine().running;
    if running.kill(functions) {
        return Ok(RespReply::OK);
    }
    match running.first() {
        Some(other) => CommandStop::refused(other.busy_text()),
        None => CommandStop::refused("NOTBUSY No scripts in execution right now."),
    }
}

pub(super) fn help(name: &str, lines: &[&'static str]) -> RespReply {
    let head = format!("{name} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:");
    let end = ["HELP", "    Print this help."];
    let lines = lines.iter().copied().chain(end).map(RespReply::Simple);
    RespReply::Array([RespReply::Status(head.into_bytes())].into_iter().chain(lines).collect())
}

fn pair(name: &str, value: RespReply) -> (RespReply, RespReply) {
    (RespReply::bulk(name), value)
}

fn described(library: &Library, with_code: bool) -> RespReply {
    let functions = library.functions.iter().map(|function| {
        RespReply::Map(vec![
            pair("name", RespReply::bulk(&function.name)),
            pair("description", RespReply::bulk_or_null(function.description.as_ref())),
            pair("flags", RespReply::Set(function.flags.iter().map(RespReply::bulk).collect())),
        ])
    });
    let mut pairs = vec![
        pair("library_name", RespReply::bulk(&library.code.name)),
        pair("engine", RespReply::bulk("LUA")),
        pair("functions", RespReply::Array(functions.collect())),
    ];
    if with_code {
        pairs.push(pair("library_code", RespReply::bulk(&library.payload)));
    }
    RespReply::Map(pairs)
}

pub(super) async fn list(call: &CommandCall<'_>) -> Answer {
    let (mut pattern, mut with_code, mut at) = (None, false, 2);
    while at < call.len() {
        if !with_code && call.is(at, "WITHCODE") {
            with_code = true;
        } else if pattern.is_none() && call.is(at, "LIBRARYNAME") {
            at += 1;
            if at == call.len() {
                return CommandStop::refused("ERR library name argument was not given");
            }
            pattern = Some(call.arg(at));
        } else {
            let argument = String::from_utf8_lossy(call.arg(at));
            return CommandStop::refused(format!("ERR Unknown argument {argument}"));
        }
        at += 1;
    }
    let set = libraries(call).await?;
    let chosen = set.libraries.iter().filter(|(name, _)| {
        let name = name.to_ascii_lowercase();
        pattern.is_none_or(|it| matches(&it.to_ascii_lowercase(), name.as_bytes()))
    });
    Ok(RespReply::Array(chosen.map(|(_, library)| described(library, with_code)).collect()))
}

pub(super) async fn stats(call: &CommandCall<'_>) -> Answer {
    let set = libraries(call).await?;
    let running = call.host.engine().running.first();
    let running = running.map_or(RespReply::Null, |script| {
        let since = script.since.elapsed().as_millis();
        RespReply::Map(vec![
            pair("name", RespReply::bulk(&script.name)),
            pair("command", RespReply::bulks(&script.command)),
            pair("duration_ms", RespReply::Integer(since as i64)),
        ])
    });
    let counts = RespReply::Map(vec![
        pair("libraries_count", RespReply::count(set.libraries.len())),
        pair("functions_count", RespReply::count(set.functions())),
    ]);
    Ok(RespReply::Map(vec![
        pair("running_script", running),
        pair("engines", RespReply::Map(vec![pair("LUA", counts)])),
    ]))
}
