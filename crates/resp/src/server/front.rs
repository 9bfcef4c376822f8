//! The task that has the connections: it lives on the loop that has the data, looks at the network
//! whenever it is polled, and lets commands run in the same turn.

use std::collections::HashMap;
use std::future::Future;
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_util::stream::{FuturesUnordered, StreamExt};
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Token};

use super::client::{ReadNext, RespClient};
use super::serve::serve;
use super::shared::Shared;
use super::stats::add;
use super::waker_thread::WakerThread;
use crate::protocol::limits::RequestLimits;

const LISTENER: Token = Token(0);
const POKE: Token = Token(1);
/// Clients have the tokens from here on.
const FIRST_CLIENT: u64 = 16;

const EVENTS_AT_ONCE: usize = 1024;
const SCRATCH_BYTES: usize = 64 << 10;
/// So many tasks may go on in one turn before the network is looked at again.
const STEPS_AT_ONCE: usize = 256;
/// So long an idle task looks for more before it leaves that to the thread.
const LOOKS_FOR: Duration = Duration::from_micros(50);
/// Connections are looked after so often.
const HOUSEKEEPING: Duration = Duration::from_millis(100);
/// Who has to say who it is, and has not for so long, is closed.
const STRANGERS_WAIT: Duration = Duration::from_secs(60);

type Task = Pin<Box<dyn Future<Output = ()>>>;

/// The task.
pub(super) struct RespFront {
    shared: Rc<Shared>,
    /// It waits for the poller, and so comes before that.
    thread: WakerThread,
    poll: mio::Poll,
    events: Events,
    listener: TcpListener,
    clients: HashMap<Token, Rc<RespClient>>,
    tasks: FuturesUnordered<Task>,
    /// Clients that may have more to read.
    readable: Vec<Rc<RespClient>>,
    /// Those of which no more is read until they have read, or their commands were run.
    paused: Vec<Rc<RespClient>>,
    scratch: Vec<u8>,
    next_client: u64,
    busy_at: Instant,
    housekeeping_at: Instant,
    /// No more connections could be taken: the system has no more for now.
    accepts_again: bool,
    stop: Arc<AtomicBool>,
}

impl RespFront {
    /// A task that serves who connects, until it is told to stop.
    pub fn new(
        shared: Rc<Shared>,
        mut listener: TcpListener,
        stop: Arc<AtomicBool>,
        background: Task,
    ) -> io::Result<RespFront> {
        let poll = mio::Poll::new()?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        let poke = mio::Waker::new(poll.registry(), POKE)?;
        let thread = WakerThread::start(poll.as_raw_fd(), poke)?;
        let now = Instant::now();
        let tasks = FuturesUnordered::new();
        tasks.push(background);
        Ok(RespFront {
            shared,
            events: Events::with_capacity(EVENTS_AT_ONCE),
            poll,
            listener,
            thread,
            clients: HashMap::new(),
            tasks,
            readable: Vec::new(),
            paused: Vec::new(),
            scratch: vec![0; SCRATCH_BYTES],
            next_client: FIRST_CLIENT,
            busy_at: now,
            housekeeping_at: now,
            accepts_again: false,
            stop,
        })
    }

    /// One turn; whether anything was done.
    fn tick(&mut self, cx: &mut Context<'_>, now: Instant) -> bool {
        let mut busy = self.look();
        busy |= self.read();
        for _ in 0..STEPS_AT_ONCE {
            match self.tasks.poll_next_unpin(cx) {
                Poll::Ready(Some(())) => busy = true,
                Poll::Ready(None) | Poll::Pending => break,
            }
        }
        for client in self.shared.take_listed() {
            busy = true;
            client.flush();
            self.judge_output(&client);
            if client.is_closed() {
                self.part(&client);
            }
        }
        busy |= self.resume();
        if now >= self.housekeeping_at {
            self.housekeeping_at = now + HOUSEKEEPING;
            self.look_after();
        }
        busy
    }

    /// Looks at the network.
    fn look(&mut self) -> bool {
        if self.poll.poll(&mut self.events, Some(Duration::ZERO)).is_err() {
            return false; // Interrupted; the next turn looks again.
        }
        let (mut accepts, mut any) = (false, false);
        for event in &self.events {
            any = true;
            match event.token() {
                LISTENER => accepts = true,
                POKE => {}
                token => {
                    let Some(client) = self.clients.get(&token) else { continue };
                    if event.is_writable() && client.outgoing() > 0 {
                        self.shared.list(client);
                    }
                    if event.is_readable() && !client.is_readable.replace(true) {
                        self.readable.push(client.clone());
                    }
                    if event.is_read_closed() {
                        client.hang_up(); // Also of one of which no more is read for now.
                    }
                }
            }
        }
        if accepts {
            self.accept();
        }
        any
    }

    fn read(&mut self) -> bool {
        let readable = std::mem::take(&mut self.readable);
        let any = !readable.is_empty();
        for client in readable {
            let next = client.read(&mut self.scratch);
            client.is_readable.set(next != ReadNext::Nothing);
            match next {
                _ if client.is_closed() => self.part(&client),
                ReadNext::Nothing => {}
                ReadNext::More => self.readable.push(client),
                ReadNext::Paused => self.paused.push(client),
            }
        }
        any
    }

    /// Goes on with clients of which more can be read again; whether there are any.
    fn resume(&mut self) -> bool {
        let before = self.readable.len();
        self.paused.retain(|client| {
            let stays = !client.is_closed() && !client.takes_more();
            if !stays {
                self.readable.push(client.clone());
            }
            stays
        });
        self.readable.len() > before
    }

    fn accept(&mut self) {
        loop {
            match self.listener.accept() {
                Ok((socket, _)) => self.admit(socket),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                Err(_) => {
                    self.accepts_again = true; // Once some have gone, there are more again.
                    return;
                }
            }
        }
    }

    fn admit(&mut self, mut socket: TcpStream) {
        let config = self.shared.config.borrow();
        if self.clients.len() >= config.clients_max() {
            add(&self.shared.stats.refused, 1);
            // Whether it reads that is its own matter.
            let _ = socket.write(b"-ERR max number of clients reached\r\n");
            return;
        }
        add(&self.shared.stats.connections, 1);
        let _ = socket.set_nodelay(true);
        let id = self.next_client;
        self.next_client += 1;
        let token = Token(id as usize);
        let interest = Interest::READABLE | Interest::WRITABLE;
        if self.poll.registry().register(&mut socket, token, interest).is_err() {
            return;
        }
        let client = Rc::new(RespClient::new(id - FIRST_CLIENT + 1, socket, config.requests()));
        drop(config);
        if self.shared.passwords.is_some() {
            client.set_stranger(true, RequestLimits::of_strangers());
        }
        self.shared.clients.borrow_mut().insert(client.id, client.clone());
        self.clients.insert(token, client.clone());
        self.tasks.push(Box::pin(serve(self.shared.clone(), client)));
    }

    /// A client is gone.
    fn part(&mut self, client: &Rc<RespClient>) {
        let token = Token((client.id + FIRST_CLIENT - 1) as usize);
        if self.clients.remove(&token).is_none() {
            return;
        }
        client.with_socket(|socket| {
            let _ = self.poll.registry().deregister(socket);
            let _ = socket.shutdown(std::net::Shutdown::Both);
        });
        self.shared.clients.borrow_mut().remove(&client.id);
        self.shared.channels.remove_all(client);
        client.wake(); // Its task ends.
    }

    /// Closes a client that does not read what it is told.
    fn judge_output(&self, client: &RespClient) {
        let class = if client.state.borrow().is_subscribed() { "pubsub" } else { "normal" };
        if client.outgoing() > 0 && client.is_over(self.shared.config.borrow().output_limit(class))
        {
            client.close();
        }
    }

    /// Closes clients that say nothing, or do not read; takes those in that could not be before.
    fn look_after(&mut self) {
        self.shared.measure_memory();
        if std::mem::take(&mut self.accepts_again) {
            self.accept();
        }
        let timeout = self.shared.config.borrow().timeout();
        for client in self.clients.values().cloned().collect::<Vec<_>>() {
            self.judge_output(&client);
            let free = !client.blocked.get() && !client.state.borrow().is_subscribed();
            if timeout > 0 && free && client.active.get().elapsed().as_secs() >= timeout {
                client.close();
            }
            if client.is_stranger_for(STRANGERS_WAIT) {
                client.close();
            }
            if client.is_closed() {
                self.part(&client);
            }
        }
    }
}

impl Future for RespFront {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        if this.stop.load(Ordering::Acquire) {
            for client in this.clients.values().cloned().collect::<Vec<_>>() {
                client.flush();
                this.part(&client);
            }
            this.tasks.clear();
            return Poll::Ready(());
        }
        let now = Instant::now();
        if this.tick(cx, now) {
            this.busy_at = now;
            cx.waker().wake_by_ref();
        } else if now - this.busy_at < LOOKS_FOR {
            cx.waker().wake_by_ref();
        } else {
            this.thread.arm(cx.waker(), this.housekeeping_at.max(now));
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use muesli::blocking::block_on;
    use muesli::{Db, Options, SpaceOptions};

    use super::*;
    use crate::keyspace::scope::Ids;
    use crate::server::shared::Parts;

    const TICKS_MAX: usize = 1_000_000;

    /// Lets the task go on until this holds, while there may be something to do.
    async fn until(front: &mut RespFront, holds: impl Fn(&RespFront) -> bool) {
        let (mut ticks, mut idle) = (0, 0);
        poll_fn(|cx| {
            idle = if front.tick(cx, Instant::now()) { 0 } else { idle + 1 };
            ticks += 1;
            assert!(ticks < TICKS_MAX, "it is never idle, or does not come to that");
            if idle > 10 && holds(front) {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }

    #[test]
    fn a_client_of_which_no_more_is_read_does_not_keep_the_task_busy() {
        let db = Db::open(Options::default()).unwrap();
        let space = db.create_space("redis", SpaceOptions::default()).unwrap();
        let ids = Ids::of_instance(1);
        let served = db.clone();
        let ran = block_on(db.run_on(0, async move || {
            let (shared, durable, port, clients_max) = (false, false, 0, 9);
            let script_notice: fn(&str) = |_| {};
            let parts = Parts {
                db: served,
                space,
                ids,
                shared,
                durable,
                port,
                clients_max,
                passwords: None,
                script_notice,
            };
            let shared = Rc::new(Shared::new(parts));
            let listener = TcpListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
            let mut client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let background = Box::pin(std::future::pending());
            let stop = Arc::default();
            let mut front = RespFront::new(shared, listener, stop, background).unwrap();
            let sent = "BLPOP x 0\r\n".to_owned() + &"PING\r\n".repeat(1_100);
            client.write_all(sent.as_bytes()).unwrap();
            until(&mut front, |it| it.shared.blocked.count() == 1 && it.paused.len() == 1).await;
            drop(client);
            until(&mut front, |it| it.shared.blocked.count() == 0 && it.clients.is_empty()).await;
            assert!(front.paused.is_empty() && front.readable.is_empty());
        }));
        ran.unwrap();
        db.close();
    }
}
