//! Ctrl-C at a prompt.

use std::future::{pending, poll_fn};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use anyhow::Context;
use signal_hook::consts::SIGINT;
use signal_hook::flag;

/// It is looked for so often.
const LOOKS_EVERY: Duration = Duration::from_millis(100);

/// Whether Ctrl-C was typed while something waited. At all other times it ends the process.
#[derive(Debug)]
pub struct TypedInterrupt {
    was_typed: Arc<AtomicBool>,
    /// Nothing waits.
    ends_process: Arc<AtomicBool>,
}

impl TypedInterrupt {
    /// Takes the signal over.
    ///
    /// # Errors
    /// The system does not let it.
    pub fn begin() -> anyhow::Result<TypedInterrupt> {
        let (was_typed, ends_process) = (Arc::default(), Arc::new(AtomicBool::new(true)));
        flag::register_conditional_default(SIGINT, Arc::clone(&ends_process))
            .and_then(|_| flag::register(SIGINT, Arc::clone(&was_typed)))
            .context("cannot wait for Ctrl-C")?;
        Ok(TypedInterrupt { was_typed, ends_process })
    }

    /// Waits until it is typed; for ever where it ends the process.
    pub async fn typed(interrupt: Option<&TypedInterrupt>) {
        let Some(interrupt) = interrupt else { return pending().await };
        let _waits = interrupt.wait();
        let (was_typed, is_over) = (&interrupt.was_typed, &interrupt.ends_process);
        let mut flags = Some((Arc::clone(was_typed), Arc::clone(is_over)));
        poll_fn(|cx| {
            if let Some((was_typed, is_over)) = flags.take() {
                let waker = cx.waker().clone();
                thread::spawn(move || {
                    while !was_typed.load(Ordering::Relaxed) && !is_over.load(Ordering::Relaxed) {
                        thread::sleep(LOOKS_EVERY);
                    }
                    waker.wake();
                });
            }
            match was_typed.load(Ordering::Relaxed) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
    }

    fn wait(&self) -> WaitingForInterrupt<'_> {
        self.was_typed.store(false, Ordering::Relaxed);
        self.ends_process.store(false, Ordering::Relaxed);
        WaitingForInterrupt(self)
    }

    /// For tests: what the signal sets.
    #[cfg(test)]
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.was_typed)
    }
}

/// Dropped, nothing waits any more.
struct WaitingForInterrupt<'a>(&'a TypedInterrupt);

impl Drop for WaitingForInterrupt<'_> {
    fn drop(&mut self) {
        self.0.ends_process.store(true, Ordering::Relaxed);
    }
}
