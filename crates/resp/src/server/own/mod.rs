//! Commands that the server carries out itself: of connections, of clients, of the server.

mod clients;
mod connections;
mod information;
mod introspection;
mod measured;
#[cfg(feature = "scripts")]
mod scripted;
mod servers;
mod subscriptions;
pub(super) mod transactions;
pub(super) mod users;

use std::rc::Rc;

use crate::commands::spec::Spec;
use crate::protocol::reply::RespReply;
use crate::protocol::request::RespCommand;
use crate::server::client::RespClient;
use crate::server::shared::Shared;

/// A command, who gave it, and where.
#[derive(Clone, Copy)]
pub(in crate::server) struct ServerCall<'a> {
    pub shared: &'a Rc<Shared>,
    pub client: &'a Rc<RespClient>,
    pub command: &'a RespCommand,
}

impl<'a> ServerCall<'a> {
    fn len(self) -> usize {
        self.command.len()
    }

    fn arg(self, at: usize) -> &'a [u8] {
        self.command.word(at)
    }

    fn text(self, at: usize) -> String {
        String::from_utf8_lossy(self.arg(at)).into_owned()
    }

    fn is(self, at: usize, word: &str) -> bool {
        at < self.len() && self.arg(at).eq_ignore_ascii_case(word.as_bytes())
    }

    /// What is said of a subcommand that is not known.
    fn unknown(self) -> RespReply {
        let (name, word) = (self.text(0).to_ascii_uppercase(), self.text(1));
        RespReply::Error(format!("ERR unknown subcommand '{word}'. Try {name} HELP."))
    }

    /// What is said of a subcommand with too few or too many words.
    fn wrong_number(self) -> RespReply {
        let (name, word) = (self.text(0).to_ascii_lowercase(), self.text(1).to_ascii_lowercase());
        RespReply::Error(format!("ERR wrong number of arguments for '{name}|{word}' command"))
    }
}

/// Carries a command out.
pub(super) async fn run(asked: ServerCall<'_>, spec: &'static Spec) -> RespReply {
    match spec.name {
        "acl" => users::acl(asked),
        "auth" => users::auth(asked).await,
        "echo" => RespReply::bulk(asked.arg(1)),
        "hello" => connections::hello(asked).await,
        "ping" => connections::ping(asked),
        "quit" => connections::quit(asked),
        "reset" => connections::reset(asked),
        "select" => connections::select(asked),
        "client" => clients::client(asked),
        "command" => introspection::command(asked),
        "config" => introspection::config(asked),
        "info" => information::info(asked).await,
        "latency" => measured::latency(asked),
        "slowlog" => measured::slow_log(asked),
        "multi" => transactions::multi(asked),
        "discard" => transactions::discard(asked),
        "watch" => transactions::watch(asked).await,
        "unwatch" => transactions::unwatch(asked),
        "subscribe" | "psubscribe" | "ssubscribe" => subscriptions::subscribe(asked, spec.name),
        "unsubscribe" | "punsubscribe" | "sunsubscribe" => {
            subscriptions::unsubscribe(asked, spec.name)
        }
        "publish" | "spublish" => subscriptions::publish(asked, spec.name),
        "pubsub" => subscriptions::pubsub(asked),
        other => servers::run(asked, other),
    }
}
