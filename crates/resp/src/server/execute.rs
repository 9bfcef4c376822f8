//! Commands as transactions: several of one client together, so that a pipeline costs one commit.

use std::collections::BTreeSet;
use std::time::Duration;

use muesli::{Error, ErrorKind, Tx};

use super::channels::ChannelKind;
use super::client::RespClient;
use super::shared::Shared;
use super::stats::{RanCommand, add};
use crate::call::{CommandCall, check_reply_bytes};
use crate::commands::spec::{Body, Spec};
use crate::commands::table::keys_of;
#[cfg(feature = "scripts")]
use crate::engine::ScriptsTaken;
use crate::keyspace::events::{KeyEvent, PublishedMessage};
use crate::keyspace::rows::DATABASES;
use crate::keyspace::scope::{KeyScope, Ready};
use crate::keyspace::stop::CommandStop;
use crate::keyspace::watching::Watched;
use crate::protocol::numbers;
use crate::protocol::reply::RespReply;
use crate::protocol::request::RespCommand;

/// A command that is to be run.
pub(super) struct CommandItem(pub RespCommand, pub &'static Spec);

/// What came of commands.
pub(super) enum RunResult {
    /// The reply of each; `None`: it waits for something, or the server answers.
    Done(Vec<Option<RespReply>>),
    /// A key that is watched has changed: nothing was run.
    Changed,
    /// It was too much, as this text says: nothing was changed.
    Refused(String),
}

/// What is done where the replies to commands have many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LongReplies {
    /// The commands belong to one transaction of the client's: all are refused.
    Refuse,
    /// The others can be run another time.
    Stop,
}

/// What takes something that clients may have waited for.
const POPS: [&str; 8] =
    ["lmove", "lmpop", "lpop", "rpop", "rpoplpush", "zmpop", "zpopmax", "zpopmin"];

/// Of commands that can be run one by one, no more are run after so many bytes of replies.
const REPLY_BYTES: usize = 1 << 20;

/// What a transaction has done, told once it has committed.
struct Done {
    ran: RunResult,
    ready: BTreeSet<Ready>,
    all_ready: bool,
    changes: u64,
    events: Vec<KeyEvent>,
    published: Vec<PublishedMessage>,
}

/// Commands that are one transaction.
struct TransactionItems<'a> {
    items: &'a [CommandItem],
    watched: &'a [Watched],
    long: LongReplies,
    #[cfg(feature = "scripts")]
    taken: &'a ScriptsTaken,
}

impl Shared {
    /// Runs commands of a client in one transaction, unless a key has changed that it watches.
    pub async fn run(
        &self,
        client: &RespClient,
        items: &[CommandItem],
        watched: &[Watched],
    ) -> Result<RunResult, Error> {
        self.run_as(client, items, watched, LongReplies::Refuse).await
    }

    async fn run_as(
        &self,
        client: &RespClient,
        items: &[CommandItem],
        watched: &[Watched],
        long: LongReplies,
    ) -> Result<RunResult, Error> {
        if self.blocked.count() > 0 {
            self.let_waiters_look(client, items).await;
        }
        let any = |is_so: fn(&Spec) -> bool| items.iter().any(|item| is_so(item.1));
        let db = match () {
            () if any(Spec::is_script) && any(Spec::may_write) => &self.script_writers,
            () if any(Spec::may_write) => &self.writers,
            () => &self.readers,
        };
        #[cfg(feature = "scripts")]
        let taken = ScriptsTaken::default();
        let batch = TransactionItems {
            items,
            watched,
            long,
            #[cfg(feature = "scripts")]
            taken: &taken,
        };
        let body = async |tx: &Tx| self.run_in(tx, client, &batch).await;
        let done: Done = match db.transact_here(body).await {
            Ok(done) => done,
            Err(CommandStop::Database(error)) => return Err(error),
            Err(CommandStop::Refused(why)) => return Ok(RunResult::Refused(why)),
            Err(CommandStop::Waits) => return Err(Error::Rollback("it waits".to_owned())),
        };
        add(&self.stats.changes, done.changes);
        done.ready.iter().for_each(|key| self.blocked.is_ready(key));
        if self.blocked.count() > 0 {
            client.made_ready.borrow_mut().extend(done.ready);
        }
        self.tell_events(&done.events);
        for PublishedMessage { of_shards, channel, message } in &done.published {
            let kind = if *of_shards { ChannelKind::Shard } else { ChannelKind::Channel };
            let reached = self.channels.publish(kind, channel, message);
            reached.iter().for_each(|client| self.list(client));
        }
        if done.all_ready {
            client.made_ready.borrow_mut().extend(self.blocked.all_are_ready());
        }
        Ok(done.ran)
    }

    /// Waits until those have looked who have waited for what these commands would take.
    async fn let_waiters_look(&self, client: &RespClient, items: &[CommandItem]) {
        let db = client.state.borrow().db;
        let mut keys: Vec<Ready> = Vec::new();
        let pops = |item: &&CommandItem| POPS.contains(&item.1.name) || item.1.is_script();
        for CommandItem(command, spec) in items.iter().filter(pops) {
            let all: Vec<_> = command.iter().collect();
            keys.extend(keys_of(spec, &all).into_iter().map(|key| (db, key.to_vec())));
        }
        self.blocked.until_looked(&keys).await;
    }

    /// A transaction as commands see it.
    fn scope<'a>(&'a self, tx: &'a Tx) -> KeyScope<'a> {
        let scope = KeyScope::new(tx, self.space, &self.ids, self.now_ms(), self.stripes);
        scope.with_events(self.has_event_classes.get())
    }

    /// Tells those who listen what has happened to keys.
    fn tell_events(&self, events: &[KeyEvent]) {
        if events.is_empty() {
            return;
        }
        let classes = self.config.borrow().get("notify-keyspace-events").to_owned();
        let all = |class: char| classes.contains('A') && !matches!(class, 'm' | 'n');
        for KeyEvent { class, name, db, key } in events {
            if !classes.contains(*class) && !all(*class) {
                continue;
            }
            let mut reached = Vec::new();
            if classes.contains('K') {
                let channel = [format!("__keyspace@{db}__:").as_bytes(), key].concat();
                reached.extend(self.channels.publish(
                    ChannelKind::Channel,
                    &channel,
                    name.as_bytes(),
                ));
            }
            if classes.contains('E') {
                let channel = format!("__keyevent@{db}__:{name}");
                reached.extend(self.channels.publish(
                    ChannelKind::Channel,
                    channel.as_bytes(),
                    key,
                ));
            }
            reached.iter().for_each(|client| self.list(client));
        }
    }

    async fn run_in(
        &self,
        tx: &Tx,
        client: &RespClient,
        batch: &TransactionItems<'_>,
    ) -> Result<Done, CommandStop> {
        let TransactionItems { items, watched, long, .. } = *batch;
        #[cfg(feature = "scripts")]
        batch.taken.begin_attempt();
        let scope = self.scope(tx);
        let done = |ran, scope: KeyScope<'_>| Done {
            ran,
            ready: scope.ready.take(),
            all_ready: scope.all_ready.get(),
            changes: scope.changes.get(),
            events: scope.events.take(),
            published: scope.published.take(),
        };
        for key in watched {
            if !scope.is_unchanged(key).await? {
                return Ok(done(RunResult::Changed, scope));
            }
        }
        let (mut db, version) = {
            let state = client.state.borrow();
            (state.db, state.version)
        };
        let reply_bytes_max = self.reply_bytes_max.get();
        let (mut replies, mut bytes) = (Vec::with_capacity(items.len()), 0);
        for CommandItem(command, spec) in items {
            match long {
                LongReplies::Stop if bytes > REPLY_BYTES => break,
                LongReplies::Stop => {}
                LongReplies::Refuse => check_reply_bytes(bytes, reply_bytes_max)?,
            }
            let Body::Data(handler) = spec.body else {
                // Commands behind it go to the database that it will have chosen.
                if let ("select", Some(chosen)) = (spec.name, selected(command)) {
                    db = chosen;
                }
                replies.push(None);
                continue;
            };
            scope.events.begin(spec.name, spec.group);
            let call = CommandCall {
                scope: &scope,
                #[cfg(feature = "scripts")]
                host: self,
                #[cfg(feature = "scripts")]
                taken: batch.taken,
                #[cfg(feature = "scripts")]
                role: self.role_of(client),
                db,
                command,
                version,
                from_script: false,
                waited: client.waited.get(),
                reply_bytes_max,
            };
            let reply = match handler(&call).await {
                Ok(reply) => Some(reply),
                Err(CommandStop::Refused(why)) => Some(RespReply::Error(why)),
                Err(CommandStop::Waits) => None,
                Err(error @ CommandStop::Database(_)) => return Err(error),
            };
            bytes += reply.as_ref().map_or(0, RespReply::size);
            replies.push(reply);
        }
        Ok(done(RunResult::Done(replies), scope))
    }

    /// Runs commands that have nothing to do with each other, and are answered one by one: the
    /// replies of the first of them; those behind were not run because these have many bytes.
    pub async fn run_each(
        &self,
        client: &RespClient,
        items: &[CommandItem],
    ) -> Vec<Option<RespReply>> {
        let error = match self.run_as(client, items, &[], LongReplies::Stop).await {
            Ok(result) => return replies_of(result),
            Err(error) => error,
        };
        if items.len() == 1 || error.kind() != ErrorKind::Limit {
            return items.iter().map(|_| Some(error_reply(&error))).collect();
        }
        // Too much at once; and one of them may be too much alone.
        let (mut replies, mut bytes) = (Vec::new(), 0);
        for item in items.chunks(1) {
            if bytes > REPLY_BYTES {
                break;
            }
            let reply = match self.run_as(client, item, &[], LongReplies::Stop).await {
                Ok(result) => replies_of(result).pop().flatten(),
                Err(error) => Some(error_reply(&error)),
            };
            bytes += reply.as_ref().map_or(0, RespReply::size);
            replies.push(reply);
        }
        replies
    }

    /// Commands of a client were one transaction, which took so long: each has its share of that,
    /// and the slow log the first of them for all.
    pub fn note_times<'a>(
        &self,
        client: &RespClient,
        ran: impl ExactSizeIterator<Item = RanCommand<'a>>,
        took: Duration,
    ) {
        let count = ran.len();
        let share = took / count.max(1) as u32;
        for (at, RanCommand { command, spec, has_failed }) in ran.enumerate() {
            self.stats.times.note(spec, share, has_failed);
            if at == 0 && self.stats.slow.takes(took) {
                let name = &client.state.borrow().name;
                let when = (took, self.now_ms() / 1_000);
                self.stats.slow.note((command, spec, count - 1), when, (&client.address, name));
            }
        }
    }

    /// Runs something in a transaction of the server's own.
    pub async fn transact<T>(
        &self,
        body: impl AsyncFn(&KeyScope<'_>) -> Result<T, CommandStop>,
    ) -> Result<T, CommandStop> {
        let run = async |tx: &Tx| {
            let scope = self.scope(tx);
            Ok::<_, CommandStop>((body(&scope).await?, scope.events.take()))
        };
        let (answer, events) = self.writers.transact_here(run).await?;
        self.tell_events(&events);
        Ok(answer)
    }
}

/// The replies to commands that nothing is watched for.
fn replies_of(result: RunResult) -> Vec<Option<RespReply>> {
    match result {
        RunResult::Done(replies) => replies,
        RunResult::Changed => unreachable!("nothing is watched"),
        RunResult::Refused(why) => vec![Some(RespReply::Error(why))],
    }
}

/// The database that a SELECT chooses, if that can be.
pub(super) fn selected(command: &RespCommand) -> Option<u8> {
    let number = numbers::integer(command.iter().nth(1)?)?;
    u8::try_from(number).ok().filter(|it| usize::from(*it) < DATABASES)
}

/// What a client is told of an error of the database.
pub(super) fn error_reply(error: &Error) -> RespReply {
    let code = match error.kind() {
        ErrorKind::Conflict => "TRYAGAIN",
        ErrorKind::Unknown => "UNKNOWN",
        ErrorKind::Limit => "LIMIT",
        _ => "ERR",
    };
    RespReply::Error(format!("{code} {error}"))
}

/// What a client is told that the server stopped for it.
pub(super) fn stop_reply(stop: CommandStop) -> RespReply {
    match stop {
        CommandStop::Refused(why) => RespReply::Error(why),
        CommandStop::Database(error) => error_reply(&error),
        CommandStop::Waits => RespReply::Null,
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use muesli::blocking::block_on;
    use muesli::{Db, Options, SpaceOptions};

    use super::*;
    use crate::commands::table::find;
    use crate::keyspace::scope::Ids;
    use crate::protocol::limits::RequestLimits;
    use crate::server::shared::Parts;

    fn item(words: &[&[u8]]) -> CommandItem {
        CommandItem(RespCommand::of(words), find(words[0]).unwrap())
    }

    /// Runs commands one after the other, as often as some are left; how many each time.
    async fn run_all(shared: &Shared, client: &RespClient, items: Vec<CommandItem>) -> Vec<usize> {
        let (mut left, mut counts) = (items, Vec::new());
        while !left.is_empty() {
            let replies = shared.run_each(client, &left).await;
            counts.push(replies.len());
            left = left.split_off(replies.len());
        }
        counts
    }

    #[test]
    fn commands_behind_long_replies_are_run_another_time() {
        let db = Db::open(Options::default()).unwrap();
        let space = db.create_space("redis", SpaceOptions::default()).unwrap();
        let ids = Ids::of_instance(1);
        let served = db.clone();
        let counts = block_on(db.run_on(0, async move || {
            let (shared, durable, port, clients_max) = (false, false, 0, 1);
            let script_notice: fn(&str) = |_| {};
            let parts = Parts {
                db: served,
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
            let value = vec![b'v'; 600 << 10];
            run_all(&shared, &client, vec![item(&[b"set", b"a", &value])]).await;
            let items = (0..5).map(|_| item(&[b"get", b"a"])).collect();
            run_all(&shared, &client, items).await
        }));
        assert_eq!(counts.unwrap(), [2, 2, 1]);
        db.close();
    }
}
