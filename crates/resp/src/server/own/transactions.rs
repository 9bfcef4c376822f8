//! `MULTI`, `EXEC`, and what is watched.

use std::mem::take;
use std::time::Instant;

use super::ServerCall;
use crate::commands::spec::{Body, Spec};
use crate::keyspace::scope::KeyScope;
use crate::keyspace::stop::texts;
use crate::protocol::reply::RespReply;
use crate::protocol::request::RespCommand;
use crate::server::client::QueuedCommands;
use crate::server::execute::{CommandItem, RunResult, error_reply, stop_reply};
use crate::server::stats::{RanCommand, add};

pub(super) fn multi(asked: ServerCall<'_>) -> RespReply {
    let queued = &mut asked.client.state.borrow_mut().queued;
    if queued.is_some() {
        return RespReply::Error("ERR MULTI calls can not be nested".to_owned());
    }
    *queued = Some(QueuedCommands::default());
    RespReply::OK
}

pub(super) fn discard(asked: ServerCall<'_>) -> RespReply {
    let state = &mut *asked.client.state.borrow_mut();
    state.watched.clear();
    match state.queued.take() {
        Some(_) => RespReply::OK,
        None => RespReply::Error("ERR DISCARD without MULTI".to_owned()),
    }
}

pub(super) fn unwatch(asked: ServerCall<'_>) -> RespReply {
    asked.client.state.borrow_mut().watched.clear();
    RespReply::OK
}

pub(super) async fn watch(asked: ServerCall<'_>) -> RespReply {
    let (db, inside) = {
        let state = asked.client.state.borrow();
        (state.db, state.queued.is_some())
    };
    if inside {
        return RespReply::Error("ERR WATCH inside MULTI is not allowed".to_owned());
    }
    let known = {
        let state = asked.client.state.borrow();
        let known = state.watched.iter().filter(|it| it.db == db);
        known.map(|it| it.key.clone()).collect::<Vec<_>>()
    };
    let watch = async |scope: &KeyScope<'_>| {
        let mut watched = Vec::new();
        for key in asked.command.iter().skip(1) {
            if !known.iter().any(|it| it == key) {
                watched.push(scope.watch(db, key).await?);
            }
        }
        Ok(watched)
    };
    match asked.shared.transact(watch).await {
        Ok(watched) => {
            asked.client.state.borrow_mut().watched.extend(watched);
            RespReply::OK
        }
        Err(stop) => stop_reply(stop),
    }
}

/// A command that was run, or is left to the server.
pub(in crate::server) enum ExecutedCommand {
    Answered(RespReply),
    Left(RespCommand, &'static Spec),
}

/// Runs what was queued, if nothing has changed that is watched. What the server answers itself is
/// left until the rest has committed.
pub(in crate::server) async fn exec(
    asked: ServerCall<'_>,
) -> Result<Vec<ExecutedCommand>, RespReply> {
    let (queued, watched) = {
        let state = &mut *asked.client.state.borrow_mut();
        (state.queued.take(), take(&mut state.watched))
    };
    let Some(queued) = queued else {
        return Err(RespReply::Error("ERR EXEC without MULTI".to_owned()));
    };
    if queued.failed {
        let text = "EXECABORT Transaction discarded because of previous errors.";
        return Err(RespReply::Error(text.to_owned()));
    }
    let grows = |(_, spec): &(RespCommand, &Spec)| spec.has("denyoom");
    if asked.shared.is_over_memory.get() && queued.commands.iter().any(grows) {
        let why = texts::OUT_OF_MEMORY;
        let text = format!("EXECABORT Transaction discarded because of: {why}");
        return Err(RespReply::Error(text));
    }
    add(&asked.shared.stats.transactions, 1);
    let items: Vec<_> =
        queued.commands.into_iter().map(|(command, spec)| CommandItem(command, spec)).collect();
    let begun = Instant::now();
    let replies = match asked.shared.run(asked.client, &items, &watched).await {
        Ok(RunResult::Done(replies)) => replies,
        Ok(RunResult::Changed) => return Err(RespReply::NullArray),
        Ok(RunResult::Refused(why)) => return Err(RespReply::Error(why)),
        Err(error) => return Err(error_reply(&error)),
    };
    // What is left to the server is measured by itself.
    let of_data = |(item, _): &(&CommandItem, _)| matches!(item.1.body, Body::Data(_));
    let ran: Vec<_> = items
        .iter()
        .zip(&replies)
        .filter(of_data)
        .map(|(CommandItem(command, spec), reply)| {
            let has_failed = matches!(reply, Some(RespReply::Error(_)));
            RanCommand { command, spec, has_failed }
        })
        .collect();
    asked.shared.note_times(asked.client, ran.into_iter(), begun.elapsed());
    let executed = |(item, reply): (CommandItem, Option<RespReply>)| match (reply, item.1.body) {
        (Some(reply), _) => ExecutedCommand::Answered(reply),
        (None, Body::Server) => ExecutedCommand::Left(item.0, item.1),
        // It would wait, and does not within a transaction.
        (None, Body::Data(_)) if matches!(item.1.name, "blmove" | "brpoplpush") => {
            ExecutedCommand::Answered(RespReply::Null)
        }
        (None, Body::Data(_)) => ExecutedCommand::Answered(RespReply::NullArray),
    };
    Ok(items.into_iter().zip(replies).map(executed).collect())
}
