//! What all clients of a server share. It lives on one thread, that of the database's loop.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Instant;

use muesli::{Db, Space};

use super::blocked::WaitingClients;
use super::channels::Channels;
use super::client::RespClient;
use super::config::RespConfig;
use super::stats::ServerStats;
use crate::clock;
#[cfg(feature = "scripts")]
use crate::engine::ScriptEngine;
use crate::keyspace::scope::Ids;
#[cfg(feature = "scripts")]
use crate::users::UserRole;
use crate::users::checking::PasswordChecks;

/// What all clients share.
pub(super) struct Shared {
    /// For transactions that write, and those that only read.
    pub writers: Db,
    pub readers: Db,
    /// For scripts, which may write and may only read: then they see what `readers` do.
    pub script_writers: Db,
    pub space: Space,
    pub ids: Ids,
    /// Over so many rows a count is spread.
    pub stripes: u8,
    /// Other processes serve the same data.
    pub is_one_of_several: bool,
    /// What is acknowledged is on the disk.
    pub durable: bool,
    pub port: u16,
    pub since: Instant,
    /// Of this server, for `INFO`.
    pub run_id: String,
    pub config: RefCell<RespConfig>,
    pub stats: ServerStats,
    /// The passwords of users; `None`: nobody is asked who it is, and may do everything.
    pub passwords: Option<PasswordChecks>,
    pub clients: RefCell<BTreeMap<u64, Rc<RespClient>>>,
    pub blocked: WaitingClients,
    pub channels: Channels,
    /// Somebody may want to know what happens to keys.
    pub has_event_classes: Cell<bool>,
    /// Most bytes of replies, after which nothing is added to them.
    pub reply_bytes_max: Cell<usize>,
    /// The process has more memory than it may: nothing is to make it grow.
    pub is_over_memory: Cell<bool>,
    /// Scripts, and what they need.
    #[cfg(feature = "scripts")]
    pub engine: ScriptEngine,
    /// Clients that have something to be written.
    listed: RefCell<Vec<Rc<RespClient>>>,
}

/// Where the parts come from that a server has from its start.
pub(super) struct Parts {
    pub db: Db,
    pub space: Space,
    pub ids: Ids,
    pub shared: bool,
    pub durable: bool,
    pub port: u16,
    pub clients_max: usize,
    pub passwords: Option<PasswordChecks>,
    #[cfg_attr(not(feature = "scripts"), allow(dead_code))]
    pub script_notice: fn(&str),
}

/// Who clients are that have not said so, and where nobody has to.
pub(super) const DEFAULT_USER: &str = "default";

/// How many bytes of memory the process has, where the system tells.
pub(super) fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = status.split(' ').nth(1).and_then(|it| it.parse::<u64>().ok()).unwrap_or(0);
    pages * 4096
}

/// A count has so many rows where several processes add to it.
const STRIPES: u8 = 8;

impl Shared {
    pub fn new(parts: Parts) -> Shared {
        let Parts { db, space, ids, durable, port, clients_max, passwords, .. } = parts;
        let is_one_of_several = parts.shared;
        // What another member has answered before is to be seen by who asks this one afterwards.
        let script_writers = if is_one_of_several { db.strict() } else { db.clone() };
        let readers = script_writers.read_only();
        let shared = Shared {
            readers,
            script_writers,
            writers: db,
            space,
            ids,
            stripes: if is_one_of_several { STRIPES } else { 1 },
            is_one_of_several,
            durable,
            port,
            since: Instant::now(),
            run_id: (0..40).map(|_| fastrand::digit(16)).collect(),
            config: RefCell::new(RespConfig::new(clients_max, port, durable)),
            stats: ServerStats::default(),
            passwords,
            clients: RefCell::default(),
            blocked: WaitingClients::default(),
            channels: Channels::default(),
            has_event_classes: Cell::new(false),
            reply_bytes_max: Cell::new(0),
            is_over_memory: Cell::new(false),
            #[cfg(feature = "scripts")]
            engine: ScriptEngine::new(parts.script_notice),
            listed: RefCell::default(),
        };
        shared.reconfigure();
        shared
    }

    /// The name of the user that a client is.
    pub fn user_of(&self, client: &RespClient) -> String {
        let state = client.state.borrow();
        state.user.as_ref().map_or(DEFAULT_USER, |it| &it.name).to_owned()
    }

    /// Whether clients can be this user.
    pub fn is_user(&self, name: &str) -> bool {
        let users = self.passwords.as_ref().map(PasswordChecks::users);
        name == DEFAULT_USER || users.is_some_and(|it| it.find(name.as_bytes()).is_some())
    }

    /// What a client may do that has said who it is, where that is asked for.
    #[cfg(feature = "scripts")]
    pub fn role_of(&self, client: &RespClient) -> UserRole {
        match (&self.passwords, &client.state.borrow().user) {
            (None, _) => UserRole::Admin,
            (Some(_), Some(user)) => user.role,
            (Some(_), None) => UserRole::Read, // Such a client gives no commands.
        }
    }

    /// Goes by what was set.
    pub fn reconfigure(&self) {
        let events = !self.config.borrow().get("notify-keyspace-events").is_empty();
        self.has_event_classes.set(events);
        self.reply_bytes_max.set(self.config.borrow().reply_bytes_max());
        self.stats.slow.limit(self.config.borrow().slow_log());
        #[cfg(feature = "scripts")]
        {
            let config = self.config.borrow();
            self.engine.limits.set(config.script_limits());
            self.engine.log_level.set(config.log_level());
        }
        self.measure_memory();
    }

    /// Looks how much memory the process has.
    pub fn measure_memory(&self) {
        let most = self.config.borrow().memory_max();
        self.is_over_memory.set(most > 0 && resident_bytes() > most);
    }

    /// What clients are answered while a script has run for too long, if they are to be.
    #[cfg(feature = "scripts")]
    pub fn busy_text(&self) -> Option<&'static str> {
        let script = self.engine.running.first()?;
        let most = self.config.borrow().busy_threshold();
        let is_busy = most > 0 && script.since.elapsed().as_millis() >= u128::from(most);
        is_busy.then(|| script.busy_text())
    }

    /// The time, in milliseconds since 1970.
    pub fn now_ms(&self) -> u64 {
        clock::now_ms()
    }

    /// A client has something to be written.
    pub fn list(&self, client: &Rc<RespClient>) {
        if !client.is_listed.replace(true) {
            self.listed.borrow_mut().push(client.clone());
        }
    }

    /// Those that have something to be written; none has from then on.
    pub fn take_listed(&self) -> Vec<Rc<RespClient>> {
        let listed = std::mem::take(&mut *self.listed.borrow_mut());
        listed.iter().for_each(|client| client.is_listed.set(false));
        listed
    }
}
