//! A client: its connection, what it has sent, and what it has said of itself.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, VecDeque};
use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use mio::net::TcpStream;

use crate::commands::spec::Spec;
use crate::keyspace::scope::Ready;
use crate::keyspace::watching::Watched;
use crate::protocol::limits::RequestLimits;
use crate::protocol::reply::{RespReply, RespVersion};
use crate::protocol::request::{Requests, RespCommand};
use crate::users::RespUser;

/// With so many bytes waiting for it to read, a client's further commands wait.
const OUTGOING_HIGH: usize = 1 << 20;
/// The same of one that has to say who it is.
const STRANGERS_OUTGOING_HIGH: usize = 16 << 10;
/// With so many commands waiting, or so many bytes of them, no more of a client are read.
const QUEUE_HIGH: usize = 1024;
const QUEUE_BYTES_HIGH: usize = 1 << 20;
/// So many bytes are read of a client at once, so often.
const READ_BYTES: usize = 64 << 10;
const READS_AT_ONCE: usize = 4;

/// What is to be read of a client after some of it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadNext {
    /// Nothing, until more comes.
    Nothing,
    /// There may be more.
    More,
    /// Nothing, until it has read more, or more of its commands were run.
    Paused,
}

/// Commands that are to run together.
#[derive(Default)]
pub(super) struct QueuedCommands {
    pub commands: Vec<(RespCommand, &'static Spec)>,
    /// How many bytes of memory they take.
    pub bytes: usize,
    /// One of them could not be: none will run.
    pub failed: bool,
}

/// What a client has chosen and said.
#[derive(Default)]
pub(super) struct State {
    /// Who it is, where users are asked for and it has said so.
    pub user: Option<Arc<RespUser>>,
    pub db: u8,
    pub version: RespVersion,
    pub name: String,
    pub library: (String, String),
    pub last_command: String,
    pub queued: Option<QueuedCommands>,
    pub watched: Vec<Watched>,
    pub channels: BTreeSet<Vec<u8>>,
    pub patterns: BTreeSet<Vec<u8>>,
    pub shard_channels: BTreeSet<Vec<u8>>,
    pub no_evict: bool,
    /// Whether it is answered: `CLIENT REPLY`.
    pub silent: bool,
    pub silent_once: bool,
}

impl State {
    /// How many channels and patterns it listens to.
    pub fn subscriptions(&self) -> usize {
        self.channels.len() + self.patterns.len()
    }

    pub fn is_subscribed(&self) -> bool {
        self.subscriptions() + self.shard_channels.len() > 0
    }
}

/// What is between a client and the system.
struct ClientSocket {
    socket: TcpStream,
    outgoing: Vec<u8>,
    /// So many of those bytes have left.
    left: usize,
    /// Since when there have been more than the soft limit allows.
    over_since: Option<Instant>,
}

/// A client.
pub(super) struct RespClient {
    pub id: u64,
    pub address: String,
    pub own_address: String,
    pub since: Instant,
    pub active: Cell<Instant>,
    pub state: RefCell<State>,
    /// What it waits for; how it was told to wait no longer, if it was.
    pub blocked: Cell<bool>,
    /// It has waited, and looks again.
    pub waited: Cell<bool>,
    pub unblocked: Cell<Option<Unblocked>>,
    /// Its last commands have made these keys ready, for which others wait.
    pub made_ready: RefCell<Vec<Ready>>,
    /// In the list of those that have something to be written.
    pub is_listed: Cell<bool>,
    /// In a list of those of which more may be read.
    pub is_readable: Cell<bool>,
    /// Most bytes of commands that may wait.
    pub buffer_bytes: usize,
    connection: RefCell<ClientSocket>,
    requests: RefCell<Requests>,
    queue: RefCell<VecDeque<RespCommand>>,
    /// How many bytes of memory the commands in the queue take.
    queue_bytes: Cell<usize>,
    waker: RefCell<Option<Waker>>,
    /// It has to say who it is: its commands are taken apart one by one, since what comes behind
    /// the one by which it does may be larger than what comes before.
    /// `None`: it has, or need not.
    stranger_since: Cell<Option<Instant>>,
    /// What has come is taken apart once the command before it has been run.
    holds_back: Cell<bool>,
    /// It will send nothing more; some of what it has sent may not have been read.
    has_hung_up: Cell<bool>,
    /// Nothing more is read: all was, or what came was no request.
    read_all: Cell<bool>,
    /// Nothing more is taken from it; it is closed once all has left.
    closing: Cell<bool>,
    closed: Cell<bool>,
}

/// How a client that waits is told to wait no longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unblocked {
    Timeout,
    Error,
}

impl RespClient {
    pub fn new(id: u64, socket: TcpStream, limits: RequestLimits) -> RespClient {
        let address = socket.peer_addr().map_or_else(|_| String::new(), |it| it.to_string());
        let own_address = socket.local_addr().map_or_else(|_| String::new(), |it| it.to_string());
        let now = Instant::now();
        let connection = ClientSocket { socket, outgoing: Vec::new(), left: 0, over_since: None };
        RespClient {
            id,
            address,
            own_address,
            since: now,
            active: Cell::new(now),
            state: RefCell::default(),
            blocked: Cell::new(false),
            waited: Cell::new(false),
            unblocked: Cell::new(None),
            made_ready: RefCell::default(),
            is_listed: Cell::new(false),
            is_readable: Cell::new(false),
            buffer_bytes: limits.buffer_bytes,
            connection: RefCell::new(connection),
            requests: RefCell::new(Requests::new(limits)),
            queue: RefCell::default(),
            queue_bytes: Cell::new(0),
            waker: RefCell::new(None),
            stranger_since: Cell::new(None),
            holds_back: Cell::new(false),
            has_hung_up: Cell::new(false),
            read_all: Cell::new(false),
            closing: Cell::new(false),
            closed: Cell::new(false),
        }
    }

    /// Whether more is read of it: its commands are run, and it reads the replies.
    pub fn takes_more(&self) -> bool {
        !self.holds_back.get()
            && self.queue.borrow().len() <= QUEUE_HIGH
            && self.queue_bytes.get() <= QUEUE_BYTES_HIGH
            && self.reads_replies()
    }

    /// Whether it reads what it is told. Who has to say who it is, is told little before that.
    fn reads_replies(&self) -> bool {
        let most = if self.is_stranger() { STRANGERS_OUTGOING_HIGH } else { OUTGOING_HIGH };
        self.outgoing() <= most
    }

    /// Reads what has come, and takes it apart.
    pub fn read(&self, scratch: &mut [u8]) -> ReadNext {
        for _ in 0..READS_AT_ONCE {
            if self.is_closing() || self.read_all.get() {
                return ReadNext::Nothing;
            }
            if !self.takes_more() {
                return ReadNext::Paused;
            }
            let read = self.connection.borrow_mut().socket.read(&mut scratch[..READ_BYTES]);
            match read {
                Ok(0) => {
                    // What has come before is run.
                    self.read_all.set(true);
                    self.hang_up();
                }
                Ok(count) => self.take_in(&scratch[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return ReadNext::Nothing,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => self.close(),
            }
        }
        ReadNext::More
    }

    /// Whether it has to say who it is, and how much it may ask for.
    pub fn set_stranger(&self, is_stranger: bool, limits: RequestLimits) {
        self.stranger_since.set(is_stranger.then(Instant::now));
        self.requests.borrow_mut().set_limits(limits);
    }

    pub fn is_stranger(&self) -> bool {
        self.stranger_since.get().is_some()
    }

    /// Whether it has had to say who it is for so long.
    pub fn is_stranger_for(&self, time: Duration) -> bool {
        self.stranger_since.get().is_some_and(|since| since.elapsed() >= time)
    }

    fn take_in(&self, bytes: &[u8]) {
        self.requests.borrow_mut().feed(bytes);
        self.take_apart();
        self.wake();
    }

    fn take_apart(&self) {
        let mut requests = self.requests.borrow_mut();
        self.holds_back.set(false);
        loop {
            if self.is_stranger() && !self.queue.borrow().is_empty() {
                self.holds_back.set(true);
                break;
            }
            match requests.next_command() {
                Ok(Some(command)) => self.queue_up(command),
                Ok(None) => break,
                Err(error) => {
                    // What came before it is run first: the error comes as a command of no words.
                    let refused = [Vec::new(), format!("ERR {error}").into_bytes()];
                    self.queue_up(RespCommand::of(refused));
                    self.read_all.set(true);
                    break;
                }
            }
        }
    }

    fn queue_up(&self, command: RespCommand) {
        self.queue_bytes.set(self.queue_bytes.get() + command.memory());
        self.queue.borrow_mut().push_back(command);
    }

    /// Puts commands back that were not run.
    pub fn put_back(&self, commands: impl DoubleEndedIterator<Item = RespCommand>) {
        for command in commands.rev() {
            self.queue_bytes.set(self.queue_bytes.get() + command.memory());
            self.queue.borrow_mut().push_front(command);
        }
    }

    fn take_next(&self) -> Option<RespCommand> {
        let command = self.queue.borrow_mut().pop_front()?;
        self.queue_bytes.set(self.queue_bytes.get() - command.memory());
        Some(command)
    }

    /// It sends nothing more.
    pub fn hang_up(&self) {
        self.has_hung_up.set(true);
        self.wake();
    }

    /// Whether it is of no use to wait for something that is to be sent to it.
    pub fn is_gone(&self) -> bool {
        self.is_closing() || self.has_hung_up.get()
    }

    /// Wakes whoever waits for something of the client.
    pub fn wake(&self) {
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
    }

    pub fn wait(&self, cx: &Context<'_>) {
        *self.waker.borrow_mut() = Some(cx.waker().clone());
    }

    /// The next command, once there is one and the client reads what it is told; `None`: no more.
    pub fn poll_command(&self, cx: &Context<'_>) -> Poll<Option<RespCommand>> {
        if self.closed.get() || self.closing.get() {
            return Poll::Ready(None);
        }
        if self.holds_back.get() && self.queue.borrow().is_empty() {
            self.take_apart();
        }
        if self.reads_replies()
            && let Some(command) = self.take_next()
        {
            return Poll::Ready(Some(command));
        }
        if self.read_all.get() && self.queue.borrow().is_empty() {
            return Poll::Ready(None);
        }
        self.wait(cx);
        Poll::Pending
    }

    /// The next command, if it has come and is as is asked for.
    pub fn next_if(&self, is_it: impl FnOnce(&RespCommand) -> bool) -> Option<RespCommand> {
        let is_it = is_it(self.queue.borrow().front()?);
        if is_it { self.take_next() } else { None }
    }

    /// Tells the client something.
    pub fn tell(&self, reply: &RespReply) {
        let version = self.state.borrow().version;
        reply.write(version, &mut self.connection.borrow_mut().outgoing);
    }

    /// How many bytes wait to be read by the client.
    pub fn outgoing(&self) -> usize {
        let connection = self.connection.borrow();
        connection.outgoing.len() - connection.left
    }

    pub fn incoming(&self) -> usize {
        self.requests.borrow().waiting()
    }

    /// Writes what it is told, as far as that goes.
    pub fn flush(&self) {
        if self.closed.get() {
            return;
        }
        let connection = &mut *self.connection.borrow_mut();
        while connection.left < connection.outgoing.len() {
            match connection.socket.write(&connection.outgoing[connection.left..]) {
                Ok(count) => connection.left += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => {
                    self.closed.set(true);
                    self.wake();
                    return;
                }
            }
        }
        if connection.left == connection.outgoing.len() {
            connection.outgoing.clear();
            connection.outgoing.shrink_to(READ_BYTES);
            connection.left = 0;
            self.closed.set(self.closing.get());
        } else if connection.left > OUTGOING_HIGH {
            connection.outgoing.drain(..connection.left);
            connection.left = 0;
        }
        self.wake();
    }

    /// Whether more waits for it than is allowed: `hard` bytes, or `soft` for so many seconds.
    pub fn is_over(&self, (hard, soft, seconds): (usize, usize, u64)) -> bool {
        let waiting = self.outgoing();
        let mut connection = self.connection.borrow_mut();
        if soft == 0 || waiting <= soft {
            connection.over_since = None;
        } else if connection.over_since.is_none() {
            connection.over_since = Some(Instant::now());
        }
        let long = connection.over_since.is_some_and(|it| it.elapsed().as_secs() >= seconds);
        hard > 0 && waiting > hard || long && soft > 0
    }

    /// Takes nothing more of it, and closes once all it was told has left.
    pub fn close_after_replies(&self) {
        self.closing.set(true);
        self.wake();
    }

    /// Closes at once.
    pub fn close(&self) {
        self.closed.set(true);
        self.wake();
    }

    pub fn is_closed(&self) -> bool {
        self.closed.get()
    }

    pub fn is_closing(&self) -> bool {
        self.closing.get() || self.closed.get()
    }

    /// Works on the socket, to register it or to take it out.
    pub fn with_socket<T>(&self, f: impl FnOnce(&mut TcpStream) -> T) -> T {
        f(&mut self.connection.borrow_mut().socket)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Shutdown;
    use std::thread;

    use super::*;

    /// A client of the server's, and the end of the connection that is the client's own.
    fn pair() -> (RespClient, std::net::TcpStream) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let own = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (socket, _) = listener.accept().unwrap();
        socket.set_nonblocking(true).unwrap();
        let socket = TcpStream::from_std(socket);
        (RespClient::new(1, socket, RequestLimits::default()), own)
    }

    /// Reads until that is of no use for now.
    fn read(client: &RespClient) -> ReadNext {
        let mut scratch = vec![0; READ_BYTES];
        let until = Instant::now() + std::time::Duration::from_secs(20);
        loop {
            match client.read(&mut scratch) {
                ReadNext::More => {}
                ReadNext::Nothing if !client.is_gone() => thread::yield_now(),
                next => return next,
            }
            assert!(Instant::now() < until, "nothing comes");
        }
    }

    #[test]
    fn of_a_client_whose_commands_wait_no_more_is_read() {
        for (command, count) in
            [("PING\r\n".to_owned(), 5_000), (format!("ECHO {}\r\n", "a".repeat(60_000)), 200)]
        {
            let (client, mut own) = pair();
            let sent = command.repeat(count);
            let sending = thread::spawn(move || own.write_all(sent.as_bytes()).map(|()| own));
            assert_eq!(read(&client), ReadNext::Paused);
            assert_eq!(client.read(&mut [0; READ_BYTES]), ReadNext::Paused);
            assert!(client.queue_bytes.get() < QUEUE_BYTES_HIGH + 4 * READ_BYTES);
            let mut found = 0;
            while found < count {
                found += usize::from(client.take_next().is_some());
                if client.takes_more() {
                    client.read(&mut [0; READ_BYTES]);
                }
            }
            assert_eq!(client.queue_bytes.get(), 0);
            drop(sending.join().unwrap().unwrap());
        }
    }

    #[test]
    fn what_came_before_the_end_of_a_connection_is_there_to_be_run() {
        let (client, mut own) = pair();
        own.write_all(b"SET a 1\r\nPING\r\n").unwrap();
        own.shutdown(Shutdown::Write).unwrap();
        assert_eq!(read(&client), ReadNext::Nothing);
        assert!(client.is_gone() && !client.is_closing());
        let cx = Context::from_waker(Waker::noop());
        for expected in [Some("SET"), Some("PING"), None] {
            let Poll::Ready(found) = client.poll_command(&cx) else { panic!("{expected:?}") };
            let found = found.map(|it| it.word(0).to_vec());
            assert_eq!(found, expected.map(|it| it.as_bytes().to_vec()));
        }
    }
}
