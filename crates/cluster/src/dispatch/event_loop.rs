//! A loop as a value: what its turns go by.

use std::rc::Rc;
use std::sync::Arc;

use mio::{Interest, Poll, Token};
use muesli_core::{Nanos, RepositoryId};

use crate::connections::connection::Connection;
use crate::connections::peers::Peers;
use crate::connections::stream::Stream;
use crate::dispatch::failure::LoopFailure;
use crate::mailbox::entry_point::EntryPoint;
use crate::mailbox::tasks::Tasks;
use crate::network::Network;
use crate::node::engine::LoopEngine;

/// The token of the listener; connections have the numbers of their places.
pub(crate) const LISTENER: Token = Token(usize::MAX - 1);
/// The token of the waker.
pub(crate) const WAKER: Token = Token(usize::MAX - 2);
/// So many bytes are read from a connection at once.
const READ_BYTES: usize = 256 << 10;

/// How long a stopping process waits, at each stage, for transactions to be decided and for its
/// last words to leave.
pub(super) const STOPPING_AT_MOST: Nanos = Nanos::from_millis(1_000);

/// How far a loop is on its way to its end, and since when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stopping {
    No,
    /// No transaction begins any more, and open ones may end.
    Ending(Nanos),
    /// Commits under way here are decided, and its participants learn of decisions.
    Settling(Nanos),
    /// Nothing more is taken in; what was is answered when the log is stable.
    Answering(Nanos),
    /// Everybody was told; the last words leave.
    Leaving(Nanos),
}

/// A loop, on its own thread.
pub(crate) struct Loop {
    pub loop_engine: Rc<LoopEngine>,
    pub peers: Peers,
    pub(super) tasks: Tasks,
    pub(super) poll: Poll,
    pub entry_point: Arc<EntryPoint>,
    pub network: Network,
    pub(super) scratch: Vec<u8>,
    /// Until then it looks for more instead of sleeping.
    pub(super) watches_until: Nanos,
    pub(super) housekeeping_due: Nanos,
    /// More may wait to be accepted.
    pub accept_again: bool,
    pub(super) stopping: Stopping,
    /// How long open transactions may take to end when it is told to stop.
    pub close_within: Nanos,
    pub failed: Option<LoopFailure>,
    /// Where what those who look after this process should know is told.
    pub notice: fn(&str),
    /// The members of which was told that they are lost.
    pub reported_lost: Vec<RepositoryId>,
    /// Since when all servers have said that they lost their disks.
    pub all_lost_since: Option<Nanos>,
    /// Whether that was told.
    pub reported_all_lost: bool,
}

impl Loop {
    pub fn new(
        loop_engine: LoopEngine,
        peers: Peers,
        poll: Poll,
        entry_point: Arc<EntryPoint>,
        network: Network,
    ) -> Loop {
        Loop {
            loop_engine: Rc::new(loop_engine),
            peers,
            tasks: Tasks::new(entry_point.signal.clone()),
            poll,
            entry_point,
            network,
            scratch: vec![0; READ_BYTES],
            watches_until: Nanos(0),
            housekeeping_due: Nanos(0),
            accept_again: false,
            stopping: Stopping::No,
            close_within: STOPPING_AT_MOST,
            failed: None,
            notice: |_| {},
            reported_lost: Vec::new(),
            all_lost_since: None,
            reported_all_lost: false,
        }
    }

    /// Gives a connection a place.
    pub(crate) fn open(&mut self, mut connection: Connection) -> Option<usize> {
        let place = self.peers.free_place();
        if let Stream::Tcp(socket) = &mut connection.stream {
            let interest = Interest::READABLE | Interest::WRITABLE;
            self.poll.registry().register(socket, Token(place), interest).ok()?;
            // Messages of a turn leave together already; waiting for more would only delay them.
            let _ = socket.set_nodelay(true);
        }
        self.loop_engine.inner.borrow_mut().outside.outbox.open(place);
        self.peers.put(place, connection);
        Some(place)
    }

    /// Takes in a task of the driver's own.
    pub(crate) fn spawn(&mut self, task: muesli_core::client::Task) {
        self.tasks.spawn(task);
        self.entry_point.signal.raise();
    }

    /// How many tasks run.
    pub(crate) fn tasks(&self) -> usize {
        self.tasks.count()
    }
}
