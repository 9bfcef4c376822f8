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
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use muesli_core::{SmallBytes, client};
use serde::{Deserialize, Serialize};

/// What a session has seen, to be carried to another handle or another process of the same cluster:
/// [`Db::token`](crate::Db::token) tells it, [`Db::after`](crate::Db::after) begins a session with
/// it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionToken {
    /// The largest timestamp that it was told of.
    pub(crate) seen: u64,
    /// The newest word of each coordinator, by its number.
    pub(crate) node_tokens: BTreeMap<u32, Vec<u8>>,
}

/// What one session, or several that share it, were told: their next transactions see it.
#[derive(Debug)]
pub(crate) struct CausalContext {
    /// The largest timestamp that they were told of.
    seen: AtomicU64,
    /// What a timestamp does not tell, where several coordinators run them.
    pub carried: Option<Carried>,
}

impl CausalContext {
    pub fn new(seen: u64, carried: Option<Carried>) -> CausalContext {
        CausalContext { seen: AtomicU64::new(seen), carried }
    }

    pub fn copy(&self) -> CausalContext {
        CausalContext::new(self.seen(), self.carried.as_ref().map(Carried::copy))
    }

    #[inline]
    pub fn seen(&self) -> u64 {
        self.seen.load(Ordering::Relaxed)
    }

    #[inline]
    pub fn see(&self, at: u64) {
        if at > self.seen() {
            self.seen.fetch_max(at, Ordering::Relaxed);
        }
    }
}

pub(crate) type NodeTokens = BTreeMap<u32, SmallBytes>;

/// The words that a session carries; without the slot, it stays with one coordinator.
#[derive(Debug, Default)]
pub(crate) struct Carried {
    node_tokens: Mutex<NodeTokens>,
    /// Whether there are words: under most protocols there never are, and nobody takes the lock.
    any: AtomicBool,
}

impl Carried {
    pub fn of(token: &SessionToken) -> Carried {
        let node_tokens =
            token.node_tokens.iter().map(|(node, node_token)| (*node, SmallBytes::new(node_token)));
        Carried::with(node_tokens.collect())
    }

    fn with(node_tokens: NodeTokens) -> Carried {
        Carried {
            any: AtomicBool::new(!node_tokens.is_empty()),
            node_tokens: Mutex::new(node_tokens),
        }
    }

    pub fn node_tokens(&self) -> MutexGuard<'_, NodeTokens> {
        self.node_tokens.lock().unwrap_or_else(|broken| broken.into_inner())
    }

    pub fn copy(&self) -> Carried {
        Carried::with(self.node_tokens().clone())
    }

    /// A transaction of the session is about to begin here.
    pub fn arrive(&self, database: u64) {
        if !self.any.load(Ordering::Acquire) {
            return;
        }
        for node_token in self.node_tokens().values() {
            client::with(database, |engine| engine.adopt(node_token));
        }
    }

    /// One has committed here.
    pub fn leave(&self, database: u64) {
        if let Some(Ok(Some((node, node_token)))) =
            client::with(database, |engine| engine.session_token())
        {
            self.node_tokens().insert(node.0, node_token);
            self.any.store(true, Ordering::Release);
        }
    }
}
