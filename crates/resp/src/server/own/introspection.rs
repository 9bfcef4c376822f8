//! `COMMAND` and `CONFIG`.

use super::ServerCall;
use crate::call::wrong_number;
use crate::commands::pattern::matches;
use crate::commands::spec::Spec;
use crate::commands::table::{all, find, keys_of};
use crate::protocol::reply::RespReply;

pub(super) fn command(asked: ServerCall<'_>) -> RespReply {
    if asked.len() == 1 {
        return RespReply::Array(all().map(details).collect());
    }
    let named = || (2..asked.len()).map(|at| find(asked.arg(at)));
    match &*asked.text(1).to_ascii_lowercase() {
        "count" if asked.len() == 2 => RespReply::count(all().count()),
        "info" if asked.len() == 2 => RespReply::Array(all().map(details).collect()),
        "info" => {
            RespReply::Array(named().map(|it| it.map_or(RespReply::NullArray, details)).collect())
        }
        "docs" if asked.len() == 2 => RespReply::Map(all().map(documents).collect()),
        "docs" => RespReply::Map(named().flatten().map(documents).collect()),
        "list" if asked.len() == 2 => RespReply::bulks(all().map(|it| it.name)),
        "list" if asked.len() == 5 && asked.is(2, "FILTERBY") => list(asked),
        "getkeys" if asked.len() > 2 => keys(asked),
        "count" | "getkeys" => asked.wrong_number(),
        "list" => RespReply::Error("ERR syntax error".to_owned()),
        _ => asked.unknown(),
    }
}

fn list(asked: ServerCall<'_>) -> RespReply {
    let (by, value) = (asked.text(3).to_ascii_lowercase(), asked.arg(4));
    match &*by {
        "pattern" => {
            RespReply::bulks(all().map(|it| it.name).filter(|it| matches(value, it.as_bytes())))
        }
        "aclcat" => {
            let category = String::from_utf8_lossy(value).into_owned();
            RespReply::bulks(all().filter(|it| it.has(&category)).map(|it| it.name))
        }
        "module" => RespReply::Array(Vec::new()),
        _ => RespReply::Error("ERR syntax error".to_owned()),
    }
}

fn keys(asked: ServerCall<'_>) -> RespReply {
    let Some(spec) = find(asked.arg(2)) else {
        return RespReply::Error("ERR Invalid command specified".to_owned());
    };
    let words: Vec<_> = asked.command.iter().skip(2).collect();
    if !spec.takes(words.len()) {
        let text = "ERR Invalid number of arguments specified for command";
        return RespReply::Error(text.to_owned());
    }
    match keys_of(spec, &words) {
        keys if keys.is_empty() => {
            RespReply::Error("ERR The command has no key arguments".to_owned())
        }
        keys => RespReply::bulks(keys),
    }
}

fn details(spec: &Spec) -> RespReply {
    let flags = spec.flags.split(' ').filter(|it| !it.is_empty());
    let (keys, access) = (spec.keys, if spec.writes() { "@write" } else { "@read" });
    RespReply::Array(vec![
        RespReply::bulk(spec.name),
        RespReply::Integer(i64::from(spec.arity)),
        RespReply::Set(flags.map(RespReply::Simple).collect()),
        RespReply::Integer(i64::from(keys.0)),
        RespReply::Integer(i64::from(keys.1)),
        RespReply::Integer(i64::from(keys.2)),
        RespReply::Set(vec![RespReply::Simple(access)]),
        RespReply::Array(Vec::new()),
        RespReply::Array(Vec::new()),
        RespReply::Array(Vec::new()),
    ])
}

fn documents(spec: &Spec) -> (RespReply, RespReply) {
    let pair = |name: &str, value: &str| (RespReply::bulk(name), RespReply::bulk(value));
    let mut about = vec![
        pair("summary", spec.differs),
        pair("since", spec.since),
        pair("group", spec.group),
        pair("complexity", spec.complexity),
    ];
    about.retain(|(_, value)| *value != RespReply::bulk(""));
    (RespReply::bulk(spec.name), RespReply::Map(about))
}

pub(super) fn config(asked: ServerCall<'_>) -> RespReply {
    match &*asked.text(1).to_ascii_lowercase() {
        "get" if asked.len() > 2 => {
            let config = asked.shared.config.borrow();
            let patterns: Vec<_> =
                (2..asked.len()).map(|at| asked.arg(at).to_ascii_lowercase()).collect();
            let chosen = config
                .all()
                .filter(|(name, _)| patterns.iter().any(|it| matches(it, name.as_bytes())));
            RespReply::Map(
                chosen.map(|(name, it)| (RespReply::bulk(name), RespReply::bulk(it))).collect(),
            )
        }
        "set" if asked.len() > 3 && asked.len().is_multiple_of(2) => {
            let pairs: Vec<_> = (2..asked.len())
                .step_by(2)
                .map(|at| (asked.text(at), asked.text(at + 1)))
                .collect();
            let set = asked.shared.config.borrow_mut().set(&pairs);
            asked.shared.reconfigure();
            set.map_or_else(RespReply::Error, |()| RespReply::OK)
        }
        "resetstat" if asked.len() == 2 => {
            asked.shared.stats.reset();
            RespReply::OK
        }
        "rewrite" if asked.len() == 2 => {
            RespReply::Error("ERR The server is running without a config file".to_owned())
        }
        "get" => RespReply::Error(wrong_number("config|get")),
        "set" => RespReply::Error(wrong_number("config|set")),
        _ => asked.unknown(),
    }
}
