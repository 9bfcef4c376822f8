//! What a client waits for that begins at the end of a timestamp lease.
//!
//! Its sessions have seen the end of the lease, so what they ask for names that timestamp; and
//! members take a timestamp from a client only where one of them has issued it. So before anything
//! else every repository is asked to issue one, in a session that has seen nothing, until one has
//! issued the end of the lease or more. An idle repository issues that of its clock, or one above
//! all that it has issued: so the answers follow the fastest clock of the cluster, and no clock is
//! raised by what the client says. The proof that comes with the answer is shown with everything
//! from then on.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use muesli_core::{Nanos, RepositoryId, Timestamp, issuance};

use crate::database::handle::{Db, Job};
use crate::error::Error;
use crate::retry::Retry;

/// The pause between two questions to a repository.
const PAUSE: Duration = Duration::from_millis(5);

/// The end of a lease that servers have to come to.
pub(crate) struct CatchUp {
    /// The file, as messages name it.
    pub path: String,
    /// Where it ends.
    pub end: Timestamp,
    /// How long a step of timestamps is.
    pub step: Nanos,
    /// How many repositories there are.
    pub repositories: u16,
    /// How long to wait for them at most.
    pub within: Duration,
}

impl CatchUp {
    /// Waits until a repository has issued a timestamp at the end of the lease or above it, as
    /// asked by tasks on the loop of this database. Not from a task on that loop.
    ///
    /// # Errors
    /// [`Error::Lease`]: none has in time, or the lease was lost meanwhile.
    pub fn wait(&self, db: &Db) -> Result<(), Error> {
        if self.end == Timestamp::ZERO {
            return Ok(()); // The client has seen nothing.
        }
        let driver = db.inner.driver.as_deref().ok_or(Error::Closed)?;
        let (results, answers) = mpsc::channel();
        for repository in (0..self.repositories).map(RepositoryId) {
            // The tasks hold no handle of the database: it can be closed while they wait.
            let asker = Db::for_driver(db.inner.database, db.catalog(), Retry::default());
            let results = results.clone();
            let job: Job = Box::new(move || Box::pin(ask(asker, repository, results)));
            driver.submit(0, job).map_err(|_| db.closed())?;
        }
        drop(results);
        let deadline = Instant::now() + self.within;
        let mut newest = Timestamp::ZERO;
        while newest < self.end {
            let left = deadline.saturating_duration_since(Instant::now());
            match answers.recv_timeout(left) {
                Ok(at) => newest = newest.max(at),
                Err(RecvTimeoutError::Timeout) => return Err(self.behind(newest)),
                Err(RecvTimeoutError::Disconnected) => return Err(db.closed()),
            }
        }
        Ok(())
    }

    /// How far the end of the lease is ahead of this machine's clock, if it is. What servers issue
    /// may be ahead of their clocks, and then is no sign of how long it takes them.
    fn by_own_clock(&self) -> String {
        let end = u128::from(self.end.counter()) * u128::from(self.step.0);
        match end.saturating_sub(wall_nanos()) / 1_000_000 {
            0 => String::new(),
            ahead => format!(" (by the clock of this machine it is {ahead} ms ahead)"),
        }
    }

    fn behind(&self, newest: Timestamp) -> Error {
        let CatchUp { path, end, .. } = self;
        let waited = self.within.as_millis();
        if newest == Timestamp::ZERO {
            return Error::Lease(format!(
                "no repository answered within {waited} ms, and the timestamp lease {path} holds \
                 only once one has issued {end}: connect again when the servers answer"
            ));
        }
        let steps = end.counter().saturating_sub(newest.counter());
        let behind = u128::from(steps) * u128::from(self.step.0) / 1_000_000;
        Error::Lease(format!(
            "this client may have seen what lies at {end} (timestamp lease {path}), and within \
             {waited} ms no server has come there: the newest timestamp that one has issued is \
             {newest}, {behind} ms before{}. Their clocks are behind, or were set back, or the \
             server whose clock was ahead does not answer or leads no more: see to that, or \
             connect again when their clocks have come there; to go on without what this client \
             has seen before, remove the file",
            self.by_own_clock()
        ))
    }
}

/// The time since 1970, as servers reckon it.
fn wall_nanos() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos()
}

/// Asks a repository for its time, again and again, until nobody listens.
async fn ask(db: Db, repository: RepositoryId, results: Sender<Timestamp>) {
    loop {
        let asked = db.session_anew().invoke_here(issuance::issue(repository)).await.0;
        let at = asked.map_or(Timestamp::ZERO, |issued| issued.at);
        if results.send(at).is_err() || db.sleep(PAUSE).await.is_err() {
            return;
        }
    }
}
