//! What is done for a client, from its first command to its last.

use std::future::{Future, poll_fn};
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::{Duration, Instant};

use futures_util::FutureExt;

use super::blocked::Waiter;
use super::client::{RespClient, Unblocked};
use super::execute::{CommandItem, RunResult, error_reply};
use super::own::transactions::{ExecutedCommand, exec};
use super::own::users::not_allowed;
use super::own::{ServerCall, run};
use super::shared::Shared;
use super::stats::{RanCommand, add};
use crate::call::wrong_number;
use crate::commands::many_keys::waits_for;
use crate::commands::spec::{Body, Spec};
use crate::commands::table::find;
use crate::keyspace::header::ValueKind;
use crate::keyspace::stop::{CommandStop, texts};
use crate::protocol::reply::{RespReply, RespVersion};
use crate::protocol::request::{ProtocolError, RespCommand};

/// So many commands of a client are one transaction, at most, and so many bytes.
const BATCH_MAX: usize = 128;
const BATCH_BYTES: usize = 1 << 20;
/// Where other processes serve the same data, who waits looks again after so long.
const LOOKS_AGAIN: Duration = Duration::from_millis(50);

/// Serves a client until it is gone.
pub(super) async fn serve(shared: Rc<Shared>, client: Rc<RespClient>) {
    contained(&shared, &client, commands(&shared, &client)).await;
    client.close_after_replies();
    shared.list(&client);
}

/// Does something for a client. Where that panics, its connection ends, and no other one does: the
/// transaction is aborted, and nothing else of what it has left is anybody else's.
async fn contained(shared: &Shared, client: &Rc<RespClient>, served: impl Future<Output = ()>) {
    if AssertUnwindSafe(served).catch_unwind().await.is_err() {
        shared.blocked.forget(client);
        let text = "ERR the server has failed at this command, and ends the connection";
        client.tell(&RespReply::Error(text.to_owned()));
    }
}

/// Answers the commands of a client until there are no more.
async fn commands(shared: &Rc<Shared>, client: &Rc<RespClient>) {
    loop {
        // Who waits for what it has pushed is served before its next command.
        let ready = client.made_ready.take();
        shared.blocked.until_looked(&ready).await;
        let Some(command) = poll_fn(|cx| client.poll_command(cx)).await else { return };
        client.active.set(Instant::now());
        step(shared, client, command).await;
        shared.list(client);
    }
}

/// Answers a command, and those behind it that can be run together with it.
async fn step(shared: &Rc<Shared>, client: &Rc<RespClient>, command: RespCommand) {
    add(&shared.stats.commands, 1);
    if is_of_a_web_page(&command) {
        return client.close();
    }
    let spec = match admitted(shared, client, &command) {
        Ok(spec) => spec,
        Err(refused) => {
            find(command.word(0)).into_iter().for_each(|it| shared.stats.times.note_rejected(it));
            return answer(shared, client, &refused);
        }
    };
    client.state.borrow_mut().last_command = spec.name.to_owned();
    if is_queued(client, spec) {
        return answer(shared, client, &queue(client, command, spec));
    }
    let reply = match spec.body {
        Body::Data(_) if spec.has("blocking") => wait_for(shared, client, command, spec).await,
        Body::Data(_) => return run_batch(shared, client, command, spec).await,
        Body::Server => {
            let (asked, begun) = (ServerCall { shared, client, command: &command }, Instant::now());
            let reply = match spec.name {
                "exec" => executed(asked).await,
                _ => run(asked, spec).await,
            };
            note(shared, client, (&command, spec), &reply, begun.elapsed());
            reply
        }
    };
    answer(shared, client, &reply);
}

/// A command has been run by itself.
fn note(
    shared: &Shared,
    client: &RespClient,
    (command, spec): (&RespCommand, &'static Spec),
    reply: &RespReply,
    took: Duration,
) {
    let has_failed = matches!(reply, RespReply::Error(_));
    let ran = RanCommand { command, spec, has_failed };
    shared.note_times(client, std::iter::once(ran), took);
}

/// Whether what comes is a request of HTTP. A browser sends those to this machine for any page that
/// asks for it, and commands of the page's choice behind these words.
fn is_of_a_web_page(command: &RespCommand) -> bool {
    let name = command.word(0);
    name.eq_ignore_ascii_case(b"POST") || name.eq_ignore_ascii_case(b"Host:")
}

/// Has a command wait for EXEC; where too much waits, the connection ends.
fn queue(client: &RespClient, command: RespCommand, spec: &'static Spec) -> RespReply {
    if let Some(queued) = &mut client.state.borrow_mut().queued {
        queued.bytes += command.memory();
        if queued.bytes > client.buffer_bytes {
            client.close_after_replies();
            return RespReply::Error(format!("ERR {}", ProtocolError::Full));
        }
        queued.commands.push((command, spec));
    }
    RespReply::Simple("QUEUED")
}

/// The command, if it can be given now.
fn admitted(
    shared: &Shared,
    client: &RespClient,
    command: &RespCommand,
) -> Result<&'static Spec, RespReply> {
    let refused = |text: String| {
        if let Some(queued) = &mut client.state.borrow_mut().queued {
            queued.failed = true;
        }
        Err(RespReply::Error(text))
    };
    if command.word(0).is_empty() && command.len() == 2 {
        // What was sent was no request, as `RespClient::take_in` says.
        client.close_after_replies();
        return Err(RespReply::Error(String::from_utf8_lossy(command.word(1)).into_owned()));
    }
    let Some(spec) = find(command.word(0)) else { return refused(unknown(command)) };
    if !spec.takes(command.len()) {
        return refused(wrong_number(spec.name));
    }
    if let Some(why) = not_allowed(shared, client, spec, command) {
        return refused(why);
    }
    #[cfg(feature = "scripts")]
    if let Some(busy) = shared.busy_text().filter(|_| !may_while_busy(spec, command)) {
        let state = &mut *client.state.borrow_mut();
        if spec.name == "exec" && state.queued.take().is_some() {
            state.watched.clear();
            let text = format!("EXECABORT Transaction discarded because of: {busy}");
            return Err(RespReply::Error(text));
        }
        if let Some(queued) = &mut state.queued {
            queued.failed = true;
        }
        return Err(RespReply::Error(busy.to_owned()));
    }
    if shared.is_over_memory.get() && spec.has("denyoom") {
        return refused(texts::OUT_OF_MEMORY.to_owned());
    }
    let state = client.state.borrow();
    if state.version == RespVersion::Resp2 && state.is_subscribed() && !may_subscriber(spec) {
        let name = spec.name;
        return Err(RespReply::Error(format!(
            "ERR Can't execute '{name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / \
             RESET are allowed in this context"
        )));
    }
    let inside = state.queued.is_some();
    drop(state);
    if inside && spec.has("no_multi") {
        return refused("ERR Command not allowed inside a transaction".to_owned());
    }
    Ok(spec)
}

/// Whether a command is run while a script has run for too long, if others are to be refused then.
#[cfg(feature = "scripts")]
fn may_while_busy(spec: &Spec, command: &RespCommand) -> bool {
    let is = |word: &[u8]| command.iter().nth(1).is_some_and(|it| it.eq_ignore_ascii_case(word));
    match spec.name {
        "auth" | "discard" | "hello" | "multi" | "quit" | "reset" | "unwatch" | "watch" => true,
        "script" => is(b"kill"),
        "function" => is(b"kill") || is(b"stats"),
        _ => false,
    }
}

fn may_subscriber(spec: &Spec) -> bool {
    spec.has("pubsub") && spec.name.ends_with("subscribe")
        || matches!(spec.name, "ping" | "quit" | "reset")
}

/// Redis's text for a command that is not known.
fn unknown(command: &RespCommand) -> String {
    let short = |word: &[u8]| String::from_utf8_lossy(&word[..word.len().min(128)]).into_owned();
    let mut arguments = String::new();
    for word in command.iter().skip(1) {
        if arguments.len() >= 128 {
            break;
        }
        arguments += &format!("'{}' ", short(word));
    }
    let name = short(command.word(0));
    format!("ERR unknown command '{name}', with args beginning with: {arguments}")
}

/// Whether a command waits for EXEC.
fn is_queued(client: &RespClient, spec: &Spec) -> bool {
    let inside = client.state.borrow().queued.is_some();
    inside && !matches!(spec.name, "exec" | "discard" | "multi" | "watch" | "quit" | "reset")
}

/// Tells a client a reply, unless it wants none.
fn answer(shared: &Shared, client: &RespClient, reply: &RespReply) {
    if let RespReply::Error(text) = reply {
        shared.stats.count_error(text);
    }
    let silent = {
        let state = &mut *client.state.borrow_mut();
        let skipped = matches!(reply, RespReply::Several(all) if all.is_empty());
        let once = state.silent_once && !skipped;
        state.silent_once &= !once;
        state.silent || once
    };
    // What is no reply of its own is told to those as well who want none.
    let is_push = match reply {
        RespReply::Push(_) => true,
        RespReply::Several(all) => !all.is_empty(),
        _ => false,
    };
    if !silent || is_push {
        client.tell(reply);
    }
}

/// Runs a command, and those behind it that have come already, in one transaction.
async fn run_batch(
    shared: &Rc<Shared>,
    client: &Rc<RespClient>,
    command: RespCommand,
    spec: &'static Spec,
) {
    let mut bytes = command.size();
    let mut items = vec![CommandItem(command, spec)];
    // Who waits for a key is to be served before the pusher's next command; and a script has limits
    // of its own, and is run again for nothing that others have met.
    let is_alone = shared.blocked.count() > 0 || spec.is_script();
    let most = if is_alone { 1 } else { BATCH_MAX };
    let over = shared.is_over_memory.get();
    while items.len() < most && bytes < BATCH_BYTES {
        let mut next_spec = None;
        let next = client.next_if(|command| {
            next_spec = find(command.word(0)).filter(|spec| {
                let is_data = matches!(spec.body, Body::Data(_)) && !spec.has("blocking");
                is_data
                    && !spec.is_script()
                    && spec.takes(command.len())
                    && !(over && spec.has("denyoom"))
                    && not_allowed(shared, client, spec, command).is_none()
            });
            next_spec.is_some()
        });
        let (Some(next), Some(spec)) = (next, next_spec) else { break };
        bytes += next.size();
        items.push(CommandItem(next, spec));
    }
    let begun = Instant::now();
    let replies = shared.run_each(client, &items).await;
    let took = begun.elapsed();
    let left = items.split_off(replies.len());
    let ran = items.iter().zip(&replies).map(|(CommandItem(command, spec), reply)| {
        let has_failed = matches!(reply, Some(RespReply::Error(_)));
        RanCommand { command, spec, has_failed }
    });
    shared.note_times(client, ran, took);
    add(&shared.stats.commands, replies.len() as u64 - 1);
    client.put_back(left.into_iter().map(|item| item.0));
    for reply in replies {
        answer(shared, client, &reply.unwrap_or(RespReply::Null));
    }
}

/// Runs what was queued.
async fn executed(asked: ServerCall<'_>) -> RespReply {
    let all = match exec(asked).await {
        Ok(all) => all,
        Err(reply) => return reply,
    };
    let mut replies = Vec::with_capacity(all.len());
    for one in all {
        replies.push(match one {
            ExecutedCommand::Answered(reply) => reply,
            ExecutedCommand::Left(command, spec) => {
                let begun = Instant::now();
                let reply = run(ServerCall { command: &command, ..asked }, spec).await;
                note(asked.shared, asked.client, (&command, spec), &reply, begun.elapsed());
                reply
            }
        });
    }
    RespReply::Array(replies)
}

/// How a wait ended.
enum WaitEnd {
    Ready,
    Over,
    Unblocked(Unblocked),
    Gone,
}

/// Runs a command that waits until there is something for it.
async fn wait_for(
    shared: &Rc<Shared>,
    client: &Rc<RespClient>,
    command: RespCommand,
    spec: &'static Spec,
) -> RespReply {
    let (keys, timeout) = match waits_for(spec.name, &command) {
        Ok(waits) => waits,
        Err(CommandStop::Refused(_)) => (Vec::new(), 0), // The command itself says why.
        Err(_) => return RespReply::Null,
    };
    let db = client.state.borrow().db;
    let keys = keys.into_iter().map(|key| (db, key)).collect();
    let until = (timeout > 0).then(|| Instant::now() + Duration::from_millis(timeout));
    let kind = if spec.group == "list" { ValueKind::List } else { ValueKind::Sorted };
    let waiter = shared.blocked.enter(client, kind, keys);
    client.unblocked.set(None);
    if shared.is_one_of_several {
        shared.blocked.let_others_look(&waiter);
    }
    let item = CommandItem(command, spec);
    // What it waits for is not its own time.
    let mut took = Duration::ZERO;
    let (reply, passes_on) = loop {
        if !shared.blocked.look(&waiter).await {
            break (RespReply::Null, false);
        }
        let begun = Instant::now();
        let looked = look_for_it(shared, client, &waiter, &item).await;
        took = begun.elapsed();
        shared.blocked.has_looked(&waiter);
        if let Some(reply) = looked {
            break (reply, true);
        }
        client.blocked.set(true);
        let woken = wait(shared, client, &waiter, until).await;
        client.blocked.set(false);
        client.waited.set(true);
        match woken {
            WaitEnd::Ready => {}
            WaitEnd::Over | WaitEnd::Unblocked(Unblocked::Timeout) => {
                let is_item = matches!(spec.name, "blmove" | "brpoplpush");
                break (if is_item { RespReply::Null } else { RespReply::NullArray }, false);
            }
            WaitEnd::Unblocked(Unblocked::Error) => {
                let text = "UNBLOCKED client unblocked via CLIENT UNBLOCK";
                break (RespReply::Error(text.to_owned()), false);
            }
            WaitEnd::Gone => {
                client.close();
                break (RespReply::Null, false);
            }
        }
    };
    client.waited.set(false);
    shared.blocked.leave(&waiter, passes_on);
    note(shared, client, (&item.0, spec), &reply, took);
    reply
}

/// Looks whether something is there for a client that waits; what it is answered then.
async fn look_for_it(
    shared: &Shared,
    client: &RespClient,
    waiter: &Rc<Waiter>,
    item: &CommandItem,
) -> Option<RespReply> {
    // By another server something may come after those have looked who have waited longer: it is
    // for them.
    if shared.is_one_of_several && shared.blocked.is_behind(waiter) {
        return None;
    }
    match shared.run(client, std::slice::from_ref(item), &[]).await {
        Ok(RunResult::Done(mut one)) => one.pop().flatten(),
        Ok(RunResult::Changed) => unreachable!("nothing is watched"),
        Ok(RunResult::Refused(why)) => Some(RespReply::Error(why)),
        Err(error) => Some(error_reply(&error)),
    }
}

/// Waits until a key may have something, or the client waits no longer.
async fn wait(
    shared: &Rc<Shared>,
    client: &Rc<RespClient>,
    waiter: &Rc<Waiter>,
    until: Option<Instant>,
) -> WaitEnd {
    loop {
        let left = until.map(|it| it.saturating_duration_since(Instant::now()));
        if left.is_some_and(|it| it.is_zero()) {
            return WaitEnd::Over;
        }
        let nap = match (left, shared.is_one_of_several) {
            (Some(left), true) => Some(left.min(LOOKS_AGAIN)),
            (None, true) => Some(LOOKS_AGAIN),
            (left, false) => left,
        };
        let mut nap = pin!(async {
            match nap {
                Some(nap) => drop(shared.writers.sleep(nap).await),
                None => std::future::pending().await,
            }
        });
        let woken = poll_fn(|cx| {
            if client.is_gone() {
                return Poll::Ready(Some(WaitEnd::Gone));
            }
            if let Some(how) = client.unblocked.take() {
                return Poll::Ready(Some(WaitEnd::Unblocked(how)));
            }
            if waiter.ready.get() {
                return Poll::Ready(Some(WaitEnd::Ready));
            }
            client.wait(cx);
            nap.as_mut().poll(cx).map(|()| None)
        });
        match woken.await {
            Some(woken) => return woken,
            // Who has waited the longest looks for all who wait for the same.
            None if shared.is_one_of_several && shared.blocked.is_first(waiter) => {
                let over = until.is_some_and(|it| it <= Instant::now());
                shared.blocked.let_others_look(waiter);
                return if over { WaitEnd::Over } else { WaitEnd::Ready };
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use muesli::blocking::block_on;
    use muesli::{Db, Options, SpaceOptions};

    use super::*;
    use crate::keyspace::scope::Ids;
    use crate::protocol::limits::RequestLimits;
    use crate::server::shared::Parts;

    #[test]
    fn a_panic_ends_the_connection_of_its_client_and_its_wait() {
        let db = Db::open(Options::default()).unwrap();
        let space = db.create_space("redis", SpaceOptions::default()).unwrap();
        let ids = Ids::of_instance(1);
        let (shared, durable, port, clients_max) = (false, false, 0, 1);
        let script_notice: fn(&str) = |_| {};
        let parts = Parts {
            db: db.clone(),
            space,
            ids,
            shared,
            durable,
            port,
            clients_max,
            passwords: None,
            script_notice,
        };
        let shared = Shared::new(parts);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let socket = mio::net::TcpStream::from_std(socket);
        let client = Rc::new(RespClient::new(1, socket, RequestLimits::default()));
        block_on(contained(&shared, &client, async {
            shared.blocked.enter(&client, ValueKind::List, vec![(0, b"key".to_vec())]);
            panic!("in the midst of a command");
        }));
        assert_eq!(shared.blocked.count(), 0);
        assert!(client.outgoing() > 0);
        db.close();
    }
}
