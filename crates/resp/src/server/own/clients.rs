//! `CLIENT`: what clients say of themselves, and what is told of them.

use std::fmt::Write;

use super::ServerCall;
use super::connections::client_name;
use crate::protocol::numbers;
use crate::protocol::reply::{RespReply, RespVersion};
use crate::server::client::{RespClient, Unblocked};
use crate::server::shared::DEFAULT_USER;

const SYNTAX: &str = "ERR syntax error";

pub(super) fn client(asked: ServerCall<'_>) -> RespReply {
    let (word, len) = (asked.text(1).to_ascii_lowercase(), asked.len());
    match (&*word, len) {
        ("id", 2) => RespReply::Integer(asked.client.id as i64),
        ("getname", 2) => match &*asked.client.state.borrow().name {
            "" => RespReply::Null,
            name => RespReply::bulk(name),
        },
        ("setname", 3) => set_name(asked),
        ("setinfo", 4) => set_info(asked),
        ("info", 2) => RespReply::Verbatim(line(asked.client) + "\n"),
        ("list", _) => list(asked),
        ("kill", 3..) => kill(asked),
        ("unblock", 3 | 4) => unblock(asked),
        ("no-evict", 3) => no_evict(asked),
        ("reply", 3) => reply(asked),
        ("getredir", 2) => RespReply::Integer(-1),
        ("trackinginfo", 2) => RespReply::Map(vec![
            (RespReply::bulk("flags"), RespReply::Set(vec![RespReply::bulk("off")])),
            (RespReply::bulk("redirect"), RespReply::Integer(-1)),
            (RespReply::bulk("prefixes"), RespReply::Array(Vec::new())),
        ]),
        ("tracking", 3..) if asked.is(2, "OFF") => RespReply::OK,
        ("tracking" | "caching", 3..) => {
            RespReply::Error("ERR client tracking is not supported by this server".to_owned())
        }
        ("pause" | "unpause", _) => {
            RespReply::Error("ERR clients are not paused by this server".to_owned())
        }
        ("id" | "getname" | "setname" | "setinfo" | "info" | "no-evict" | "reply", _) => {
            asked.wrong_number()
        }
        _ => asked.unknown(),
    }
}

fn set_name(asked: ServerCall<'_>) -> RespReply {
    match client_name(asked.arg(2)) {
        Ok(name) => {
            asked.client.state.borrow_mut().name = name;
            RespReply::OK
        }
        Err(why) => RespReply::Error(why),
    }
}

fn set_info(asked: ServerCall<'_>) -> RespReply {
    let option = asked.text(2);
    let Ok(value) = client_name(asked.arg(3)) else {
        let text = format!("ERR {option} cannot contain spaces, newlines or special characters.");
        return RespReply::Error(text);
    };
    let library = &mut asked.client.state.borrow_mut().library;
    match &*option.to_ascii_lowercase() {
        "lib-name" => library.0 = value,
        "lib-ver" => library.1 = value,
        _ => return RespReply::Error(format!("ERR Unrecognized option '{option}'")),
    }
    RespReply::OK
}

fn no_evict(asked: ServerCall<'_>) -> RespReply {
    let on = asked.is(2, "ON");
    if !on && !asked.is(2, "OFF") {
        return RespReply::Error(SYNTAX.to_owned());
    }
    asked.client.state.borrow_mut().no_evict = on;
    RespReply::OK
}

fn reply(asked: ServerCall<'_>) -> RespReply {
    let mut state = asked.client.state.borrow_mut();
    match () {
        () if asked.is(2, "ON") => state.silent = false,
        () if asked.is(2, "OFF") => state.silent = true,
        () if asked.is(2, "SKIP") => {
            // Neither this is answered nor the next one.
            state.silent_once = true;
            return RespReply::Several(Vec::new());
        }
        () => return RespReply::Error(SYNTAX.to_owned()),
    }
    RespReply::OK
}

/// What is told of a client.
fn line(client: &RespClient) -> String {
    let state = client.state.borrow();
    let queued = state.queued.as_ref().map_or(-1, |it| it.commands.len() as i64);
    let mut flags = String::new();
    if state.is_subscribed() {
        flags.push('P');
    }
    if queued >= 0 {
        flags.push('x');
    }
    if client.blocked.get() {
        flags.push('b');
    }
    if state.no_evict {
        flags.push('e');
    }
    if flags.is_empty() {
        flags.push('N');
    }
    let mut line =
        format!("id={} addr={} laddr={} fd=0", client.id, client.address, client.own_address);
    let (age, idle) = (client.since.elapsed().as_secs(), client.active.get().elapsed().as_secs());
    let _ = write!(line, " name={} age={age} idle={idle} flags={flags}", state.name);
    let (channels, patterns) = (state.channels.len(), state.patterns.len());
    let shards = state.shard_channels.len();
    let _ = write!(line, " db={} sub={channels} psub={patterns} ssub={shards}", state.db);
    let (incoming, outgoing) = (client.incoming(), client.outgoing());
    let _ = write!(line, " multi={queued} qbuf={incoming} qbuf-free=0 argv-mem=0 multi-mem=0");
    let _ = write!(line, " rbs=0 rbp=0 obl={outgoing} oll=0 omem=0 tot-mem=0 events=r");
    let version = if state.version == RespVersion::Resp3 { 3 } else { 2 };
    let user = state.user.as_ref().map_or(DEFAULT_USER, |it| &it.name);
    let _ = write!(line, " cmd={} user={user} redir=-1 resp={version}", state.last_command);
    line
}

/// What clients are chosen by.
#[derive(Default)]
struct Filter {
    ids: Vec<u64>,
    address: Option<String>,
    own_address: Option<String>,
    kind: Option<String>,
    user: Option<String>,
    spares_self: bool,
}

impl Filter {
    /// Reads pairs of words from this place on.
    fn read(asked: ServerCall<'_>, from: usize) -> Result<Filter, RespReply> {
        let syntax = || RespReply::Error(SYNTAX.to_owned());
        let mut filter = Filter { spares_self: true, ..Filter::default() };
        let mut at = from;
        while at < asked.len() {
            if at + 1 == asked.len() {
                return Err(syntax());
            }
            let value = asked.text(at + 1);
            match &*asked.text(at).to_ascii_lowercase() {
                "id" => loop {
                    let id = numbers::integer(asked.arg(at + 1)).filter(|it| *it > 0);
                    let Some(id) = id else {
                        return Err(RespReply::Error("ERR Invalid client ID".to_owned()));
                    };
                    filter.ids.push(id as u64);
                    let more = asked.command.iter().nth(at + 2).and_then(numbers::integer);
                    if more.is_none() {
                        break;
                    }
                    at += 1;
                },
                "addr" => filter.address = Some(value),
                "laddr" => filter.own_address = Some(value),
                "type" => match &*value.to_ascii_lowercase() {
                    kind @ ("normal" | "pubsub" | "master" | "replica" | "slave") => {
                        filter.kind = Some(kind.to_owned());
                    }
                    _ => {
                        return Err(RespReply::Error(format!("ERR Unknown client type '{value}'")));
                    }
                },
                "user" if asked.shared.is_user(&value) => filter.user = Some(value),
                "user" => return Err(RespReply::Error(format!("ERR No such user '{value}'"))),
                "skipme" => match &*value.to_ascii_lowercase() {
                    "yes" => filter.spares_self = true,
                    "no" => filter.spares_self = false,
                    _ => return Err(syntax()),
                },
                _ => return Err(syntax()),
            }
            at += 2;
        }
        Ok(filter)
    }

    fn holds(&self, client: &RespClient) -> bool {
        let subscribed = client.state.borrow().is_subscribed();
        let of_kind = |kind: &String| match &**kind {
            "normal" => !subscribed,
            "pubsub" => subscribed,
            _ => false,
        };
        let is_user = |it: &String| {
            let state = client.state.borrow();
            *it == state.user.as_ref().map_or(DEFAULT_USER, |it| &it.name)
        };
        (self.ids.is_empty() || self.ids.contains(&client.id))
            && self.address.as_ref().is_none_or(|it| *it == client.address)
            && self.own_address.as_ref().is_none_or(|it| *it == client.own_address)
            && self.kind.as_ref().is_none_or(of_kind)
            && self.user.as_ref().is_none_or(is_user)
    }
}

fn list(asked: ServerCall<'_>) -> RespReply {
    let filter = match Filter::read(asked, 2) {
        Ok(filter) => filter,
        Err(refused) => return refused,
    };
    let clients = asked.shared.clients.borrow();
    let chosen = clients.values().filter(|it| filter.holds(it));
    RespReply::Verbatim(chosen.map(|it| line(it) + "\n").collect())
}

fn kill(asked: ServerCall<'_>) -> RespReply {
    let by_address = asked.len() == 3;
    let filter = match by_address {
        true => Ok(Filter { address: Some(asked.text(2)), ..Filter::default() }),
        false => Filter::read(asked, 2),
    };
    let filter = match filter {
        Ok(filter) => filter,
        Err(refused) => return refused,
    };
    let mut count = 0;
    for client in asked.shared.clients.borrow().values() {
        let is_self = client.id == asked.client.id;
        if !filter.holds(client) || is_self && filter.spares_self {
            continue;
        }
        count += 1;
        match is_self {
            true => client.close_after_replies(),
            false => client.close(),
        }
        asked.shared.list(client);
    }
    match (by_address, count) {
        (true, 0) => RespReply::Error("ERR No such client".to_owned()),
        (true, _) => RespReply::OK,
        (false, _) => RespReply::Integer(count),
    }
}

fn unblock(asked: ServerCall<'_>) -> RespReply {
    let how = match asked.len() {
        3 => Unblocked::Timeout,
        _ if asked.is(3, "TIMEOUT") => Unblocked::Timeout,
        _ if asked.is(3, "ERROR") => Unblocked::Error,
        _ => {
            let text = "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR";
            return RespReply::Error(text.to_owned());
        }
    };
    let Some(id) = numbers::integer(asked.arg(2)) else {
        return RespReply::Error("ERR value is not an integer or out of range".to_owned());
    };
    let clients = asked.shared.clients.borrow();
    match clients.get(&(id as u64)) {
        Some(client) if client.blocked.get() => {
            client.unblocked.set(Some(how));
            client.wake();
            RespReply::Integer(1)
        }
        _ => RespReply::Integer(0),
    }
}
