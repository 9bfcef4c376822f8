//! Programs that are servers: what a program with procedures or actions of its own needs to serve
//! them, and to stop cleanly.
//!
//! `muesli start` knows the procedures that are [always there](crate::procedures::builtin). A
//! server that also runs others is a program of a few lines: it begins with [`options`], adds its
//! procedures by [`with_procedure`], and calls [`serve`], which returns when the process is told to
//! stop by SIGTERM or SIGINT:
//!
//! ```no_run
//! use muesli::procedures::{Keys, StoredProcedure};
//! use muesli::server::{self, Durability, ServerOptions};
//! use muesli::{Refuses, Stop};
//!
//! /// Counts visits.
//! struct Visit;
//!
//! impl StoredProcedure for Visit {
//!     const NAME: &'static str = "visit";
//!     const REFUSES: Refuses = Refuses::Never;
//!     type Arguments = String;
//!     type Answer = u64;
//!
//!     fn run(keys: &mut Keys<'_>, page: String) -> Result<u64, Stop> {
//!         let visits = keys.space("visits")?.typed::<String, u64>();
//!         let count = keys.read(visits, &page)?.unwrap_or(0) + 1;
//!         keys.write(visits, &page, &count)?;
//!         Ok(count)
//!     }
//! }
//!
//! # fn main() -> Result<(), server::ServeError> {
//! let options = ServerOptions {
//!     protocol: "granola".to_owned(),
//!     durability: Durability::Log("data".into()),
//!     ..server::options()
//! };
//! server::serve(&server::with_procedure::<Visit>(options), 1, |address| {
//!     println!("listening on {address}");
//! })
//! # }
//! ```
//!
//! [`RunningServer`] is the same on threads of this process, for tests of one's own.

use std::fmt;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use thiserror::Error;

use crate::plans::{self, PlannedProcedure, PlannedProcedureError};
use crate::procedures::{self, StoredProcedure, builtin};

pub use muesli_cluster::{
    ClusterId, Durability, LoopFailure, Network, Process, ServerOptions, StartError, StopAll,
    read_secret,
};
pub use muesli_core::{NodeId, Settings};

/// Why a server could not serve.
#[derive(Debug, Error)]
pub enum ServeError {
    /// It could not be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// It could not go on.
    #[error(transparent)]
    Failed(#[from] LoopFailure),
    /// The system has no room for the handlers of signals, or for the program once more.
    #[error("the system refused: {0}")]
    System(#[from] std::io::Error),
}

/// The options of a lone server on the loopback interface, which keeps its data in memory and runs
/// the procedures that are [always there](builtin).
pub fn options() -> ServerOptions {
    let settings = Settings { procedures: builtin::all(), ..Settings::default() };
    ServerOptions { settings, ..ServerOptions::default() }
}

/// The options with one more procedure, which the server then runs for whoever calls it.
#[must_use]
pub fn with_procedure<P: StoredProcedure>(mut options: ServerOptions) -> ServerOptions {
    let known = std::mem::take(&mut options.settings.procedures);
    options.settings.procedures = procedures::with::<P>(known);
    options
}

/// The same options with one more procedure that is a [plan](crate::plans).
///
/// # Errors
/// It cannot be in one round.
pub fn with_plan<P: PlannedProcedure>(
    mut options: ServerOptions,
) -> Result<ServerOptions, PlannedProcedureError> {
    let known = std::mem::take(&mut options.settings.procedures);
    options.settings.procedures = plans::with::<P>(known)?;
    Ok(options)
}

/// Serves with so many loops on this thread (and one more thread for each further loop) until the
/// process is told to stop by SIGTERM or SIGINT; then what is under way ends, for a second at most,
/// and this returns. Tells `listening` where the first loop listens, once it does.
///
/// A member of a group that has to go by what its disk holds ([`LoopFailure::Restart`]) is started
/// again: the same program with the same arguments takes this process's place. SIGHUP does nothing;
/// a log that may not grow (SIGXFSZ) is an error.
///
/// # Errors
/// The options cannot be, the address cannot be listened on, or a loop cannot go on.
pub fn serve(
    options: &ServerOptions,
    loops: usize,
    listening: impl FnOnce(SocketAddr),
) -> Result<(), ServeError> {
    // Whoever stops the server does it by its process, so handlers are there before it listens.
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    for ignored in [SIGHUP, SIGXFSZ] {
        signal_hook::flag::register(ignored, Arc::default())?;
    }
    let process = Process::open(options, loops)?;
    let (stop, handle) = (process.stop(), signals.handle());
    let waiting = thread::Builder::new().name("muesli-signals".to_owned()).spawn(move || {
        if signals.forever().next().is_some() {
            stop.stop();
        }
    })?;
    listening(process.address());
    let ended = process.run();
    handle.close();
    let _ = waiting.join(); // It has nothing that can panic.
    match ended {
        Err(LoopFailure::Restart) => {
            (options.notice)("a member of a group goes by what its disk holds: starting again");
            Err(run_again().into())
        }
        ended => Ok(ended?),
    }
}

/// Runs this very command in this process's place; returns only where that cannot be done.
fn run_again() -> std::io::Error {
    match std::env::current_exe() {
        Ok(this) => std::process::Command::new(this).args(std::env::args_os().skip(1)).exec(),
        Err(error) => error,
    }
}

/// A server that runs on threads of this process, for programs that test themselves.
///
/// ```
/// use muesli::server::{self, RunningServer, ServerOptions};
/// use muesli::{Db, SpaceOptions};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let options = ServerOptions { listen: "127.0.0.1:0".to_owned(), ..server::options() };
/// let server = RunningServer::start(options, 1)?;
/// let db = Db::connect([server.address().to_string()])?;
/// let notes = db.create_space("notes", SpaceOptions::default())?;
/// db.blocking().transact(async move |tx| tx.put(notes, "a", "b").await)?;
/// drop(db);
/// server.stop()?;
/// # Ok(())
/// # }
/// ```
pub struct RunningServer {
    address: SocketAddr,
    stop: StopAll,
    thread: Option<JoinHandle<Result<(), LoopFailure>>>,
}

impl fmt::Debug for RunningServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunningServer").field("address", &self.address).finish_non_exhaustive()
    }
}

impl RunningServer {
    /// Starts a server with so many loops; it listens once this returns.
    ///
    /// # Errors
    /// The options cannot be, or the address cannot be listened on.
    pub fn start(options: ServerOptions, loops: usize) -> Result<RunningServer, StartError> {
        let (sender, receiver) = mpsc::channel();
        let serve = move || {
            let process = match Process::open(&options, loops) {
                Ok(process) => process,
                Err(error) => {
                    let _ = sender.send(Err(error)); // The starter waits for it.
                    return Ok(());
                }
            };
            let _ = sender.send(Ok((process.address(), process.stop())));
            process.run()
        };
        let named = thread::Builder::new().name("muesli-server".to_owned());
        let thread = named.spawn(serve).map_err(StartError::Poll)?;
        let started = receiver.recv();
        let gone = |gone| StartError::Poll(std::io::Error::other(gone));
        let (address, stop) = started.map_err(gone)??;
        Ok(RunningServer { address, stop, thread: Some(thread) })
    }

    /// Where its first loop listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops it, and waits until it has ended. Dropped, it is stopped too, and nobody waits.
    ///
    /// # Errors
    /// A loop could not go on, and ended before.
    pub fn stop(mut self) -> Result<(), LoopFailure> {
        self.stop.stop();
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(ended)) => ended,
            Some(Err(_)) => Err(LoopFailure::Panicked),
            None => Ok(()),
        }
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        self.stop.stop();
    }
}
