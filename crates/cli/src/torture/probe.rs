//! Whether the cluster serves: one small transaction over all repositories after the other.
//!
//! The probe has a native client of its own that gives up soon, and a space that no history
//! tells of. What it sees is what an application would: an answer, or none.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use muesli::{Db, SmallBytes, Space, SpaceOptions};

use crate::reach;

/// The space that is probed.
const SPACE: &str = "probe";
/// How long an answer is waited for.
const GIVE_UP_AFTER: Duration = Duration::from_millis(500);
/// The pause between two probes.
const PAUSE: Duration = Duration::from_millis(10);

/// Probes on a thread of its own, until it is dropped.
pub struct Probe {
    /// When the transactions that committed began, and when that was answered.
    served: Arc<Mutex<Vec<(Instant, Instant)>>>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Probe {
    /// Begins to probe.
    ///
    /// # Errors
    /// The cluster does not serve now.
    pub fn begin(addresses: &[String], protocol: &str) -> anyhow::Result<Probe> {
        let db = reach::connect(addresses, protocol, GIVE_UP_AFTER)?;
        let space = db.create_space(SPACE, SpaceOptions::default())?;
        let keys = one_key_each(&db, space);
        let (served, over) = (Arc::<Mutex<Vec<_>>>::default(), Arc::new(AtomicBool::new(false)));
        let (recorded, stop) = (served.clone(), over.clone());
        let run = move || {
            while !stop.load(Ordering::Relaxed) {
                let began = Instant::now();
                if touch(&db, space, keys.clone()) {
                    let served = (began, Instant::now());
                    recorded.lock().unwrap_or_else(|broken| broken.into_inner()).push(served);
                }
                std::thread::sleep(PAUSE);
            }
        };
        let thread = std::thread::Builder::new().name("probe".to_owned()).spawn(run)?;
        Ok(Probe { served, over, thread: Some(thread) })
    }

    /// When the first probe that began after `since` was answered, as time from then.
    pub fn served_after(&self, since: Instant) -> Option<Duration> {
        let served = self.served();
        let first = served.partition_point(|(began, _)| *began < since);
        served.get(first).map(|(_, answered)| *answered - since)
    }

    /// Waits for a probe that began after `since`, at most so long.
    pub fn wait_until_served(&self, since: Instant, at_most: Duration) -> Option<Duration> {
        while self.served_after(since).is_none() && since.elapsed() < at_most {
            std::thread::sleep(PAUSE);
        }
        self.served_after(since)
    }

    fn served(&self) -> MutexGuard<'_, Vec<(Instant, Instant)>> {
        self.served.lock().unwrap_or_else(|broken| broken.into_inner())
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A key for every partition.
fn one_key_each(db: &Db, space: Space) -> Vec<SmallBytes> {
    let catalog = db.catalog_of_keys();
    let keys = (0..u32::MAX).map(|number| SmallBytes::new(&number.to_be_bytes()));
    let mut found = std::collections::BTreeMap::new();
    for key in keys {
        if found.len() == catalog.repositories() {
            break;
        }
        found.entry(catalog.partition(space.id(), &key)).or_insert(key);
    }
    found.into_values().collect()
}

/// Reads and writes the keys; whether that was committed.
fn touch(db: &Db, space: Space, keys: Vec<SmallBytes>) -> bool {
    let done = db.blocking().transact(async move |tx| {
        tx.get_many(space, keys.iter().cloned()).await?;
        for key in &keys {
            tx.put(space, key.clone(), "probed").await?;
        }
        Ok::<_, muesli::Error>(())
    });
    done.is_ok()
}
