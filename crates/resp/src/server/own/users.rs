//! Who a client is, and what it may do: `AUTH`, `ACL`, and what each command asks.

use std::future::poll_fn;
use std::task::Poll;

use futures_util::FutureExt;

use super::ServerCall;
use crate::commands::roles::{needed_role, no_permission};
use crate::commands::spec::Spec;
use crate::commands::table::all;
use crate::protocol::limits::RequestLimits;
use crate::protocol::reply::RespReply;
use crate::protocol::request::RespCommand;
use crate::server::client::RespClient;
use crate::server::shared::{DEFAULT_USER, Shared};
use crate::users::checking::CheckedPassword;
use crate::users::{RespUser, UserRole};

const NO_AUTH: &str = "NOAUTH Authentication required.";
const WRONG: &str = "WRONGPASS invalid username-password pair or user is disabled.";
const BUSY: &str = "ERR too many passwords are being checked, try again later";
const NO_USERS: &str = "ERR AUTH <password> called without any password configured for the \
    default user. Are you sure your configuration is correct?";

/// Why a client may not give a command, if it may not.
pub(in crate::server) fn not_allowed(
    shared: &Shared,
    client: &RespClient,
    spec: &Spec,
    command: &RespCommand,
) -> Option<String> {
    if shared.passwords.is_none() || spec.has("no_auth") {
        return None;
    }
    let state = client.state.borrow();
    let Some(user) = &state.user else { return Some(NO_AUTH.to_owned()) };
    let second = command.iter().nth(1);
    let is_allowed = user.role == UserRole::Admin || user.role.may(needed_role(spec, second));
    (!is_allowed).then(|| no_permission(&user.name, spec, second))
}

pub(super) async fn auth(asked: ServerCall<'_>) -> RespReply {
    let (name, password) = match asked.len() {
        2 if asked.shared.passwords.is_none() => return RespReply::Error(NO_USERS.to_owned()),
        2 => (DEFAULT_USER.as_bytes(), asked.arg(1)),
        3 => (asked.arg(1), asked.arg(2)),
        _ => return RespReply::Error("ERR syntax error".to_owned()),
    };
    authenticate(asked, name, password).await.map_or_else(|refused| refused, |()| RespReply::OK)
}

/// Has a client be this user from now on. It waits while its password is checked, and nobody else
/// does.
///
/// # Errors
/// What it is told where it is not that user: it stays who it was.
pub(super) async fn authenticate(
    asked: ServerCall<'_>,
    name: &[u8],
    password: &[u8],
) -> Result<(), RespReply> {
    let ServerCall { shared, client, .. } = asked;
    let refused = |text: &str| Err(RespReply::Error(text.to_owned()));
    let Some(passwords) = &shared.passwords else {
        // Nobody has a password here: the only user is let in with any.
        return if name == DEFAULT_USER.as_bytes() { Ok(()) } else { refused(WRONG) };
    };
    let user = match passwords.begin(name, password) {
        CheckedPassword::Right(user) => Some(user),
        CheckedPassword::Wrong => None,
        CheckedPassword::Busy => return refused(BUSY),
        CheckedPassword::Pending(mut check) => {
            let answer = poll_fn(|cx| {
                if client.is_closing() {
                    return Poll::Ready(None);
                }
                client.wait(cx);
                check.answer.poll_unpin(cx).map(Some)
            });
            let is_right = answer.await.is_some_and(|it| it.unwrap_or(false));
            passwords.end(is_right, check)
        }
    };
    let Some(user) = user else { return refused(WRONG) };
    client.state.borrow_mut().user = Some(user);
    client.set_stranger(false, shared.config.borrow().requests());
    Ok(())
}

/// A client is nobody again, where users are asked for.
pub(super) fn forget(asked: ServerCall<'_>) {
    if asked.shared.passwords.is_some() {
        asked.client.set_stranger(true, RequestLimits::of_strangers());
    }
}

pub(super) fn acl(asked: ServerCall<'_>) -> RespReply {
    let users = asked.shared.passwords.iter().flat_map(|it| it.users().all());
    match (&*asked.text(1).to_ascii_lowercase(), asked.len()) {
        ("whoami", 2) => RespReply::bulk(asked.shared.user_of(asked.client)),
        ("cat", 2) => RespReply::bulks(["read", "write", "admin"]),
        ("cat", 3) => category(&asked.text(2).to_ascii_lowercase()),
        ("users", 2) if asked.shared.passwords.is_none() => RespReply::bulks([DEFAULT_USER]),
        ("users", 2) => RespReply::bulks(users.map(|it| &it.name)),
        ("list", 2) if asked.shared.passwords.is_none() => {
            RespReply::bulks(["user default on nopass ~* &* +@all"])
        }
        ("list", 2) => RespReply::bulks(users.map(|it| described(it))),
        ("whoami" | "users" | "list", _) => asked.wrong_number(),
        ("deluser" | "load" | "log" | "save" | "setuser", _) => RespReply::Error(
            "ERR users are those of the file that the server was started with (`--users`)"
                .to_owned(),
        ),
        _ => asked.unknown(),
    }
}

/// A user as Redis shows one, without what its password is.
fn described(user: &RespUser) -> String {
    let commands = match user.role {
        UserRole::Admin => "+@all",
        UserRole::Write => "-@all +@read +@write",
        UserRole::Read => "-@all +@read",
    };
    format!("user {} on ~* &* {commands}", user.name)
}

/// The commands that need a role.
fn category(name: &str) -> RespReply {
    match UserRole::named(name) {
        Some(role) => {
            let needs = |spec: &&Spec| needed_role(spec, None) == role;
            RespReply::bulks(all().filter(needs).map(|it| it.name))
        }
        None => RespReply::Error(format!("ERR Unknown category '{name}'")),
    }
}
