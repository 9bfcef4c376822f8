//! A server that runs, and its end.

use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use mio::net::TcpListener;
use muesli::blocking::block_on;
use muesli::{Db, Error, Space, SpaceOptions, yield_now};
use thiserror::Error;

use super::front::RespFront;
use super::options::RespOptions;
use super::shared::{Parts, Shared};
use super::stats::add;
use crate::keyspace::scope::{Ids, KeyScope};
use crate::keyspace::stop::CommandStop;
use crate::users::checking::PasswordChecks;

/// So many may wait to be accepted, if the system lets them.
const WAITING_MAX: i32 = 4_096;

/// What is of no use any more is looked for so often.
const SWEEP_EVERY: Duration = Duration::from_millis(100);

/// Why the server could not be started.
#[derive(Debug, Error)]
pub enum RespStartError {
    /// Other machines could connect, and nobody is asked who it is.
    #[error(
        "`{0}` is not on the loopback interface, and there are no users: whoever can connect could \
         do everything; name users (`--users FILE`), listen on 127.0.0.1 or ::1, or, on a network \
         that only trusted machines are on, say `--insecure`"
    )]
    NotLoopback(String),
    /// The address is none, or is taken.
    #[error("cannot listen for Redis clients on `{address}`: {why}")]
    Listen {
        /// What was asked for.
        address: String,
        /// What the system says.
        why: io::Error,
    },
    /// The system has no thread or poller left.
    #[error("the system refused: {0}")]
    System(#[from] io::Error),
    /// The database cannot be used.
    #[error(transparent)]
    Database(#[from] Error),
}

/// A server for Redis clients, on a loop of a database. Dropped, it stops.
pub struct RespServer {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), Error>>>,
}

impl fmt::Debug for RespServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RespServer").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Where Redis clients will be served: they can connect already, and wait.
#[derive(Debug)]
pub struct RespListener {
    socket: std::net::TcpListener,
    address: SocketAddr,
    /// What the operator is to know of who can connect.
    warning: Option<&'static str>,
}

const NOBODY_IS_ASKED: &str = "warning: other machines can connect, and nobody is asked for a \
    password: whoever can connect can do everything";
const IN_THE_CLEAR: &str = "warning: other machines can connect, and passwords and data go over \
    the network in the clear";

impl RespListener {
    /// Listens on an address; port 0 takes one that is free.
    ///
    /// # Errors
    /// The address cannot be listened on; or it is not of the loopback interface, and by these
    /// options there are no users and nobody has said that it is all the same.
    pub fn bind(address: &str, options: &RespOptions) -> Result<RespListener, RespStartError> {
        let failed = |why: io::Error| RespStartError::Listen { address: address.to_owned(), why };
        let found: Vec<_> = address.to_socket_addrs().map_err(failed)?.collect();
        let is_open = found.iter().any(|it| !it.ip().is_loopback());
        let warning = match (is_open, options.users.is_some(), options.insecure) {
            (false, _, _) | (true, true, true) => None,
            (true, true, false) => Some(IN_THE_CLEAR),
            (true, false, true) => Some(NOBODY_IS_ASKED),
            (true, false, false) => {
                return Err(RespStartError::NotLoopback(address.to_owned()));
            }
        };
        let socket = std::net::TcpListener::bind(&found[..]).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        // Whoever finds no place waits for a second, and the library asks for 128 places.
        rustix::net::listen(&socket, WAITING_MAX).map_err(|error| failed(error.into()))?;
        let address = socket.local_addr().map_err(failed)?;
        Ok(RespListener { socket, address, warning })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What the operator is to know, if other machines can connect.
    pub fn warning(&self) -> Option<&'static str> {
        self.warning
    }
}

impl RespServer {
    /// Starts to serve what is in a database. Not from a task of the database's.
    ///
    /// # Errors
    /// The database cannot be used, or the system has no thread left; then the listener comes back,
    /// if it is still there.
    pub fn start(
        db: &Db,
        listener: RespListener,
        options: &RespOptions,
    ) -> Result<RespServer, (RespStartError, Option<RespListener>)> {
        let (space, instance) = match prepare(db, &options.space) {
            Ok(prepared) => prepared,
            Err(error) => return Err((error.into(), Some(listener))),
        };
        let address = listener.address;
        let passwords = match options.users.clone().map(PasswordChecks::start).transpose() {
            Ok(passwords) => passwords,
            Err(error) => return Err((error.into(), Some(listener))),
        };
        let stop = Arc::new(AtomicBool::new(false));
        let (for_task, served, options) = (stop.clone(), db.clone(), options.clone());
        let serve = async move || {
            let shared = Rc::new(Shared::new(Parts {
                db: served,
                space,
                ids: Ids::of_instance(instance),
                shared: options.shared,
                durable: options.durable,
                port: address.port(),
                clients_max: options.clients_max,
                passwords,
                script_notice: options.script_notice,
            }));
            let sweeps = Box::pin(sweep(shared.clone()));
            let listener = TcpListener::from_std(listener.socket);
            RespFront::new(shared, listener, for_task, sweeps)?.await;
            Ok::<_, io::Error>(())
        };
        let db = db.clone();
        let run = move || {
            let ran = block_on(db.run_on(0, serve))?;
            ran.map_err(|error| Error::Options(format!("the system refused: {error}")))
        };
        let thread = thread::Builder::new().name("muesli-resp".to_owned()).spawn(run);
        let thread = Some(thread.map_err(|error| (RespStartError::System(error), None))?);
        Ok(RespServer { address, stop, thread })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether it has not ended.
    pub fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Stops it, and waits until it has ended: what was answered is done, and clients are cut off.
    ///
    /// # Errors
    /// Why it had ended before.
    pub fn stop(mut self) -> Result<(), Error> {
        self.end().unwrap_or(Ok(()))
    }

    fn end(&mut self) -> Option<Result<(), Error>> {
        self.stop.store(true, Ordering::Release);
        Some(ended(self.thread.take()?.join()))
    }
}

impl Drop for RespServer {
    fn drop(&mut self) {
        self.end();
    }
}

/// How the thread has ended: a panic of the task is an error as well.
fn ended(joined: thread::Result<Result<(), Error>>) -> Result<(), Error> {
    joined.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("unknown");
        Err(Error::Options(format!("the server for Redis clients has failed: {text}")))
    })
}

/// The space, and a number that no other server has that ever used it.
pub(crate) fn prepare(db: &Db, space: &str) -> Result<(Space, u64), Error> {
    let space = db.create_space(space, SpaceOptions::default())?;
    let instance = db.blocking().transact(async move |tx| {
        let ids = Ids::of_instance(0);
        let scope = KeyScope::new(tx, space, &ids, 0, 1);
        scope.new_instance().await.map_err(|stop| match stop {
            CommandStop::Database(error) => error,
            CommandStop::Refused(why) => Error::Rollback(why),
            CommandStop::Waits => Error::Retry,
        })
    })?;
    Ok((space, instance))
}

/// Takes away what is of no use any more, a little at a time.
async fn sweep(shared: Rc<Shared>) {
    let mut marks = Vec::new();
    while shared.writers.sleep(SWEEP_EVERY).await.is_ok() {
        sweep_all(&shared, &mut marks).await;
    }
}

/// Sweeps for as long as transactions have enough to do; those of clients come between them. What
/// others have in use is taken another time.
async fn sweep_all(shared: &Shared, marks: &mut Vec<u8>) {
    loop {
        let Ok(step) = shared.transact(async |scope| scope.sweep_expired().await).await else {
            break;
        };
        add(&shared.stats.expired, step.count as u64);
        if !step.is_full {
            break;
        }
        yield_now().await;
    }
    loop {
        let swept = shared.transact(async |scope| {
            let (databases, rows) = (scope.sweep_flushed().await?, scope.sweep_rows().await?);
            Ok(databases.is_full || rows.is_full)
        });
        if !swept.await.unwrap_or(false) {
            break;
        }
        yield_now().await;
    }
    loop {
        let from = std::mem::take(marks);
        let swept = shared.transact(async |scope| scope.sweep_marks(&from).await).await;
        let Ok((next, step)) = swept else { break };
        *marks = next;
        if !step.is_full {
            break;
        }
        yield_now().await;
    }
}

#[cfg(test)]
mod tests {
    use muesli::{Options, Range, SmallBytes};

    use super::*;
    use crate::keyspace::header::{KeyHeader, KeyValue};
    use crate::keyspace::rows::{RowKey, tag};

    #[test]
    fn a_panic_of_the_task_is_an_error_of_the_server() {
        let panicked = thread::spawn(|| panic!("in the midst of it")).join();
        let error = ended(panicked).unwrap_err().to_string();
        assert!(error.ends_with("failed: in the midst of it"), "{error}");
        assert_eq!(ended(Ok(Ok(()))), Ok(()));
    }

    #[test]
    fn one_sweep_takes_all_that_has_expired_and_its_rows() {
        let db = Db::open(Options::default()).unwrap();
        let (space, instance) = prepare(&db, &RespOptions::default().space).unwrap();
        let served = db.clone();
        let swept = block_on(db.run_on(0, async move || {
            let shared = Shared::new(Parts {
                db: served,
                space,
                ids: Ids::of_instance(instance),
                shared: false,
                durable: false,
                port: 0,
                clients_max: 1,
                passwords: None,
                script_notice: |_| {},
            });
            for batch in 0..30_u32 {
                let written = shared.transact(async |scope| {
                    for at in 0..100_u32 {
                        let key = [batch.to_be_bytes(), at.to_be_bytes()].concat();
                        let mut entry = scope.entry(0, &key).await?;
                        let value = KeyValue::Pieces(scope.new_id(), 0);
                        scope.set(&mut entry, KeyHeader { value, expires: Some(1) }).await?;
                    }
                    Ok(())
                });
                written.await.unwrap();
            }
            sweep_all(&shared, &mut Vec::new()).await;
            let left = shared.transact(async |scope| {
                let marks = scope.scan(Range::prefix([tag::UNUSED_CONTENT])).await?;
                let header = RowKey::new(tag::HEADER).done();
                let headers = scope.scan(Range::prefix(SmallBytes::as_slice(&header))).await?;
                Ok((marks.len(), headers.len(), scope.keys(0).await?))
            });
            (shared.stats.expired.get(), left.await.unwrap())
        }));
        assert_eq!(swept.unwrap(), (3_000, (0, 0, 0)));
        db.close();
    }
}
