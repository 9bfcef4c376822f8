//! Rows of the layer that are read while an open child's body runs, so that its end need not wait
//! for them.
//!
//! What the body asks for meanwhile of what is being read it waits for: a row that it then writes
//! must not be read again behind its back.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard};
use std::task::{Poll, Waker};

use muesli_core::SmallBytes;
use serde::de::DeserializeOwned;

use super::rows::{FoundRows, KnownRow};
use crate::error::Error;

/// The rows of one child.
#[derive(Debug, Default)]
pub(super) struct ReadAhead(Mutex<AheadState>);

/// Invariant: nobody waits where nothing is being read.
#[derive(Debug, Default)]
struct AheadState {
    /// Keys that are being read.
    asked: BTreeSet<SmallBytes>,
    /// What was found, until it is taken.
    found: FoundRows,
    waiting: Vec<Waker>,
}

impl ReadAhead {
    fn state(&self) -> MutexGuard<'_, AheadState> {
        self.0.lock().unwrap_or_else(|broken| broken.into_inner())
    }

    /// These are about to be read.
    pub fn ask(&self, keys: &[SmallBytes]) {
        self.state().asked.extend(keys.iter().cloned());
    }

    /// They were, and are these; none, where that failed.
    pub fn answer(&self, found: FoundRows) {
        let mut state = self.state();
        state.asked.clear();
        state.found = found;
        assert!(state.asked.is_empty(), "who waits looks again, and finds nothing being read");
        std::mem::take(&mut state.waiting).into_iter().for_each(Waker::wake);
    }

    /// Takes out what was found of a key, when it is known.
    ///
    /// # Errors
    /// [`Error::Codec`]: the layer did not write it.
    pub async fn take<T: DeserializeOwned>(&self, key: &SmallBytes) -> Result<KnownRow<T>, Error> {
        poll_fn(|cx| {
            let mut state = self.state();
            if state.asked.contains(key) {
                // A body may poll it again and again, beside something else.
                if !state.waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
                    state.waiting.push(cx.waker().clone());
                }
                return Poll::Pending;
            }
            Poll::Ready(state.found.take(key))
        })
        .await
    }
}
