//! What this process started ends with it, also when it is interrupted.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread;

use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

/// Something that ends when it is dropped; it is taken by who is first to end it.
pub type Ending = Mutex<Option<Box<dyn Send>>>;

/// What is to end.
static STARTED: Mutex<Vec<Weak<Ending>>> = Mutex::new(Vec::new());
/// Whether signals are waited for.
static WAITING: OnceLock<()> = OnceLock::new();

/// From now on what is in `ending` is dropped when this process is told to end by a signal, before
/// it does. Who holds its lock, as it is being started, is waited for.
///
/// # Errors
/// The system does not let signals be waited for.
pub fn end_with_process(ending: &Arc<Ending>) -> anyhow::Result<()> {
    let mut all = locked(&STARTED);
    all.retain(|one| one.strong_count() > 0);
    all.push(Arc::downgrade(ending));
    if WAITING.set(()).is_ok() {
        let signals = Signals::new([SIGHUP, SIGINT, SIGTERM]).context("cannot wait for signals")?;
        let wait = thread::Builder::new().name("signals".to_owned());
        wait.spawn(|| end_all(signals)).context("cannot wait for signals")?;
    }
    Ok(())
}

fn end_all(mut signals: Signals) {
    for signal in &mut signals {
        let all: Vec<_> = locked(&STARTED).iter().filter_map(Weak::upgrade).collect();
        // Held until this process is over, so that nobody goes on where it has ended.
        let mut held: Vec<_> = all.iter().map(|one| locked(one)).collect();
        held.iter_mut().for_each(|one| drop(one.take()));
        let _ = emulate_default_handler(signal); // It does not come back.
    }
}

/// What is locked; who panicked with it has left it as it is.
pub fn locked<T>(it: &Mutex<T>) -> MutexGuard<'_, T> {
    it.lock().unwrap_or_else(PoisonError::into_inner)
}
