//! Commands that scripts call: those that work on data, and a few that the server answers itself.

use super::information::details;
use crate::call::{Answer, Answering, CommandCall, ScriptHost, ScriptedCommand};
use crate::clock::since_1970;
use crate::commands::roles::needed_role;
use crate::commands::spec::{Body, Spec};
use crate::commands::table::find;
use crate::engine::{ScriptEngine, ScriptsTaken};
use crate::keyspace::events::PublishedMessage;
use crate::keyspace::stop::{CommandStop, texts};
use crate::protocol::numbers;
use crate::protocol::reply::RespReply;
use crate::server::channels::ChannelKind;
use crate::server::execute::selected;
use crate::server::shared::Shared;
use crate::users::UserRole;

impl ScriptHost for Shared {
    fn command<'a>(&'a self, asked: ScriptedCommand<'a>) -> Answering<'a> {
        Box::pin(run(self, asked))
    }

    fn may_give(&self, role: UserRole, words: &[Vec<u8>]) -> Option<bool> {
        let spec = find(words.first()?)?;
        Some(role.may(needed_role(spec, words.get(1).map(Vec::as_slice))))
    }

    fn is_over_memory(&self) -> bool {
        self.is_over_memory.get()
    }

    fn engine(&self) -> &ScriptEngine {
        &self.engine
    }
}

/// The command, if a script may call it now.
fn admitted(shared: &Shared, asked: &ScriptedCommand<'_>) -> Result<&'static Spec, CommandStop> {
    let Some(spec) = find(asked.command.word(0)) else {
        return CommandStop::refused("ERR Unknown Redis command called from script");
    };
    if !spec.takes(asked.command.len()) {
        return CommandStop::refused("ERR Wrong number of args calling Redis command from script");
    }
    if spec.has("noscript") {
        return CommandStop::refused("ERR This Redis command is not allowed from script");
    }
    if !asked.role.may(needed_role(spec, asked.command.iter().nth(1))) {
        let text = "ERR The user executing the script can't run this command or subcommand";
        return CommandStop::refused(text);
    }
    let writes = spec.writes() || matches!(spec.name, "publish" | "spublish");
    if writes && !asked.may_write {
        let text = "ERR Write commands are not allowed from read-only scripts.";
        return CommandStop::refused(text);
    }
    let is_first = !asked.has_written.get();
    if is_first && !asked.may_grow && shared.is_over_memory.get() && spec.has("denyoom") {
        return CommandStop::refused(texts::OUT_OF_MEMORY);
    }
    if spec.writes() {
        asked.has_written.set(true);
    }
    Ok(spec)
}

async fn run(shared: &Shared, asked: ScriptedCommand<'_>) -> Answer {
    let spec = admitted(shared, &asked)?;
    asked.scope.check_effects()?;
    let Body::Data(handler) = spec.body else { return own(shared, &asked, spec) };
    asked.scope.events.begin(spec.name, spec.group);
    let call = CommandCall {
        scope: asked.scope,
        host: shared,
        taken: &ScriptsTaken::default(),
        role: asked.role,
        db: asked.db.get(),
        command: asked.command,
        version: asked.version,
        from_script: true,
        waited: false,
        reply_bytes_max: shared.reply_bytes_max.get(),
    };
    handler(&call).await
}

/// What the server answers itself.
fn own(shared: &Shared, asked: &ScriptedCommand<'_>, spec: &Spec) -> Answer {
    let arg = |at: usize| asked.command.word(at);
    match (spec.name, asked.command.len()) {
        ("ping", 1) => Ok(RespReply::Simple("PONG")),
        ("ping", 2) => Ok(RespReply::bulk(arg(1))),
        ("ping", _) => CommandStop::refused("ERR wrong number of arguments for 'ping' command"),
        ("echo", _) => Ok(RespReply::bulk(arg(1))),
        ("select", _) => match selected(asked.command) {
            Some(db) => {
                asked.db.set(db);
                Ok(RespReply::OK)
            }
            None if numbers::integer(arg(1)).is_none() => {
                CommandStop::refused("ERR value is not an integer or out of range")
            }
            None => CommandStop::refused("ERR DB index is out of range"),
        },
        ("time", _) => {
            let now = since_1970();
            Ok(RespReply::bulks([now.as_secs().to_string(), now.subsec_micros().to_string()]))
        }
        ("lastsave", _) => Ok(RespReply::Integer(shared.now_ms() as i64 / 1000)),
        ("info", _) => {
            let sections = asked.command.iter().skip(1);
            let names = sections.map(|it| String::from_utf8_lossy(it).to_ascii_lowercase());
            Ok(RespReply::Verbatim(details(shared, &names.collect::<Vec<_>>())))
        }
        (name @ ("publish" | "spublish"), _) => {
            let of_shards = name == "spublish";
            let kind = if of_shards { ChannelKind::Shard } else { ChannelKind::Channel };
            let reached = shared.channels.listeners(kind, arg(1));
            let (channel, message) = (arg(1).to_vec(), arg(2).to_vec());
            asked.scope.publish(PublishedMessage { of_shards, channel, message });
            Ok(RespReply::count(reached))
        }
        _ => CommandStop::refused("ERR This Redis command is not allowed from script"),
    }
}
