//! Commands of connections.

use super::ServerCall;
use crate::call::wrong_number;
use crate::protocol::numbers;
use crate::protocol::reply::{RespReply, RespVersion};
use crate::server::client::State;
use crate::server::execute::selected;
use crate::server::own::transactions::unwatch;
use crate::server::own::users::{authenticate, forget};

/// What a server says that it is: clients go by the version.
pub(super) const REDIS_VERSION: &str = "7.0.15";
const NO_AUTH_HELLO: &str = "NOAUTH HELLO must be called with the client already authenticated, \
    otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client \
    and select the RESP protocol version at the same time";

pub(super) fn ping(asked: ServerCall<'_>) -> RespReply {
    if asked.len() > 2 {
        return RespReply::Error(wrong_number("ping"));
    }
    let state = asked.client.state.borrow();
    let is_push = state.version == RespVersion::Resp2 && state.is_subscribed();
    match (is_push, asked.len()) {
        (false, 1) => RespReply::Simple("PONG"),
        (false, _) => RespReply::bulk(asked.arg(1)),
        (true, 1) => RespReply::bulks(["pong", ""]),
        (true, _) => RespReply::bulks([&b"pong"[..], asked.arg(1)]),
    }
}

pub(super) fn quit(asked: ServerCall<'_>) -> RespReply {
    asked.client.close_after_replies();
    RespReply::OK
}

pub(super) fn select(asked: ServerCall<'_>) -> RespReply {
    match selected(asked.command) {
        Some(db) => {
            asked.client.state.borrow_mut().db = db;
            RespReply::OK
        }
        None if numbers::integer(asked.arg(1)).is_none() => {
            RespReply::Error("ERR value is not an integer or out of range".to_owned())
        }
        None => RespReply::Error("ERR DB index is out of range".to_owned()),
    }
}

pub(super) fn reset(asked: ServerCall<'_>) -> RespReply {
    unwatch(asked);
    asked.shared.channels.remove_all(asked.client);
    *asked.client.state.borrow_mut() = State::default();
    forget(asked);
    RespReply::Simple("RESET")
}

pub(super) async fn hello(asked: ServerCall<'_>) -> RespReply {
    let version = match asked.len() {
        1 => asked.client.state.borrow().version,
        _ => match numbers::integer(asked.arg(1)) {
            Some(2) => RespVersion::Resp2,
            Some(3) => RespVersion::Resp3,
            Some(_) => return RespReply::Error("NOPROTO unsupported protocol version".to_owned()),
            None => {
                let text = "ERR Protocol version is not an integer or out of range";
                return RespReply::Error(text.to_owned());
            }
        },
    };
    let (mut at, mut name, mut user) = (2, None, None);
    while at < asked.len() {
        let left = asked.len() - at - 1;
        if asked.is(at, "AUTH") && left >= 2 {
            user = Some((asked.arg(at + 1), asked.arg(at + 2)));
            at += 3;
        } else if asked.is(at, "SETNAME") && left >= 1 {
            match client_name(asked.arg(at + 1)) {
                Ok(given) => name = Some(given),
                Err(why) => return RespReply::Error(why),
            }
            at += 2;
        } else {
            let option = asked.text(at);
            return RespReply::Error(format!("ERR Syntax error in HELLO option '{option}'"));
        }
    }
    if let Some((user, password)) = user
        && let Err(refused) = authenticate(asked, user, password).await
    {
        return refused;
    }
    if asked.client.is_stranger() {
        return RespReply::Error(NO_AUTH_HELLO.to_owned());
    }
    let mut state = asked.client.state.borrow_mut();
    state.version = version;
    state.name = name.unwrap_or_else(|| state.name.clone());
    let number = if version == RespVersion::Resp3 { 3 } else { 2 };
    let pair = |name: &str, value: RespReply| (RespReply::bulk(name), value);
    RespReply::Map(vec![
        pair("server", RespReply::bulk("redis")),
        pair("version", RespReply::bulk(REDIS_VERSION)),
        pair("proto", RespReply::Integer(number)),
        pair("id", RespReply::Integer(asked.client.id as i64)),
        pair("mode", RespReply::bulk("standalone")),
        pair("role", RespReply::bulk("master")),
        pair("modules", RespReply::Array(Vec::new())),
    ])
}

/// A name that a client may have.
///
/// # Errors
/// It has blanks, or other bytes than can be shown.
pub(super) fn client_name(name: &[u8]) -> Result<String, String> {
    match name.iter().all(|it| (b'!'..=b'~').contains(it)) {
        true => Ok(String::from_utf8_lossy(name).into_owned()),
        false => {
            Err("ERR Client names cannot contain spaces, newlines or special characters."
                .to_owned())
        }
    }
}
