//! What a session has seen, where its transactions are run by several coordinators.
//!
//! A session's next transaction must not see less than its last one. Where snapshots are
//! timestamps, the largest one that the session was told of is all that there is to carry. Where
//! they are vectors (`gmu`) it is not: the coordinator that ran the last transaction knows what
//! that saw, and the one that runs the next does not. So each coordinator gives its word of what
//! its transactions have seen, the session keeps the newest of each, and gives them to whoever runs
//! its next transaction. A word covers all sessions of its coordinator: it may be more than this
//! one saw, and never less. A commit whose future was dropped is in no word that the session has:
//! its coordinator may not know of it yet, and may be out of reach when it does.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use muesli_core::{NodeId, SmallBytes, client};
use serde::{Deserialize, Serialize};

use crate::database::handle::Db;
use crate::error::Error;

/// What a session has seen, to be carried to another handle or another process of the same cluster:
/// [`Db::past`] tells it, [`Db::after`] begins a session with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionPast {
    /// The largest timestamp that it was told of.
    pub(crate) seen: u64,
    /// The newest word of each coordinator, by its number.
    pub(crate) words: BTreeMap<u32, Vec<u8>>,
}

/// The words that a session carries; without the slot, it stays with one coordinator.
#[derive(Debug, Default)]
pub(crate) struct Carried(Mutex<BTreeMap<u32, SmallBytes>>);

impl Carried {
    pub fn of(past: &SessionPast) -> Carried {
        let words = past.words.iter().map(|(node, word)| (*node, SmallBytes::new(word)));
        Carried(Mutex::new(words.collect()))
    }

    fn words(&self) -> MutexGuard<'_, BTreeMap<u32, SmallBytes>> {
        self.0.lock().unwrap_or_else(|broken| broken.into_inner())
    }

    pub fn copy(&self) -> Carried {
        Carried(Mutex::new(self.words().clone()))
    }

    /// A transaction of the session is about to begin here.
    pub fn arrive(&self, database: u64) {
        for word in self.words().values() {
            client::with(database, |engine| engine.adopt(word));
        }
    }

    /// One has committed here.
    pub fn leave(&self, database: u64) {
        if let Some(Ok(Some((node, word)))) = client::with(database, |engine| engine.past()) {
            self.words().insert(node.0, word);
        }
    }
}

impl Db {
    /// What this session has seen so far, and perhaps more, for [`after`](Self::after).
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub async fn past(&self) -> Result<SessionPast, Error> {
        let mut past = SessionPast { seen: self.seen(), words: BTreeMap::new() };
        if let Some(carried) = self.carried() {
            let words = carried.words();
            past.words.extend(words.iter().map(|(node, word)| (*node, word.as_slice().to_vec())));
        }
        let database = self.inner.database;
        let ask = move || client::with(database, |engine| engine.past());
        for home in 0..self.loops() {
            let told = match self.inner.away {
                Some(_) => self.run_on(home, async move || ask()).await?,
                None => ask(),
            };
            if let Some((NodeId(node), word)) = told.ok_or(Error::Closed)?? {
                past.words.insert(node, word.as_slice().to_vec());
            }
        }
        Ok(past)
    }

    /// The same database in a new session that sees at least what another one has seen, of this
    /// handle, another one, or another process.
    pub fn after(&self, past: &SessionPast) -> Db {
        let seen = self.seen().max(past.seen);
        self.in_next_session(seen, Some(Carried::of(past)))
    }

    /// The same database in a new session whose transactions several nodes may run, where a driver
    /// of its own polls tasks of all of them. (The loops of a database need not be told.)
    pub fn roaming(&self) -> Db {
        self.after(&SessionPast::default())
    }
}
