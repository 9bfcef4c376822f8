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

impl AheadState {
    /// Wakes this when nothing is being read any more.
    fn wait<T>(&mut self, waker: &Waker) -> Poll<T> {
        // A body may poll again and again, beside something else.
        if !self.waiting.iter().any(|waiting| waiting.will_wake(waker)) {
            self.waiting.push(waker.clone());
        }
        Poll::Pending
    }
}

/// Ends what is read ahead when it is dropped: nobody waits for what is not read any more.
pub(super) struct AheadEnd<'a>(pub &'a ReadAhead);

impl Drop for AheadEnd<'_> {
    fn drop(&mut self) {
        if !self.0.state().asked.is_empty() {
            self.0.answer(FoundRows::default());
        }
    }
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

    /// More was read, while nothing else was.
    pub fn add(&self, found: FoundRows) {
        let mut state = self.state();
        assert!(state.asked.is_empty(), "the body has ended, and with it what is read meanwhile");
        state.found.append(found);
    }

    /// Waits until nothing is being read.
    pub async fn idle(&self) {
        poll_fn(|cx| {
            let mut state = self.state();
            match state.asked.is_empty() {
                true => Poll::Ready(()),
                false => state.wait(cx.waker()),
            }
        })
        .await;
    }

    /// Takes out all that was found.
    pub fn take_all(&self) -> FoundRows {
        std::mem::take(&mut self.state().found)
    }

    /// Takes out what was found of a key, when it is known.
    ///
    /// # Errors
    /// [`Error::Codec`]: the layer did not write it.
    pub async fn take<T: DeserializeOwned>(&self, key: &SmallBytes) -> Result<KnownRow<T>, Error> {
        poll_fn(|cx| {
            let mut state = self.state();
            if state.asked.contains(key) {
                return state.wait(cx.waker());
            }
            Poll::Ready(state.found.take(key))
        })
        .await
    }
}
