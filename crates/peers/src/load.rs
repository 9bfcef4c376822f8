//! Many connections that each keep so many calls in flight, all driven by one thread.
//!
//! The call is the smallest there is: an amount is added to one of some counters, on the other
//! side, and what the counter shows then comes back. How that is said, a [`Dialect`] knows. The
//! thread waits for no connection in particular and writes once for all that it asks of one, so
//! that the load costs as little as it can, and the same for every system.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

/// The most that is added to a counter.
const AMOUNT_MOST: u64 = 9;

/// So long answers are looked for without sleeping.
const WATCHED: Duration = Duration::from_micros(50);

/// One connection's way of asking.
pub trait Dialect {
    /// Appends a call that adds `amount` to a counter.
    fn ask(&mut self, counter: u32, amount: u64, out: &mut Vec<u8>);
    /// Ends what was asked since the last time: it is about to be written.
    fn end(&mut self, out: &mut Vec<u8>);
    /// Takes whole answers from the front of `input`: appends what the counters show, in the order
    /// of the calls, and says how many bytes that were.
    fn receive(&mut self, input: &[u8], shown: &mut Vec<u64>) -> anyhow::Result<usize>;
}

/// What is to be run.
#[derive(Clone, Copy, Debug)]
pub struct LoadOptions {
    /// Calls that each connection has under way.
    pub in_flight: usize,
    /// Counters.
    pub keys: u32,
    pub length: Duration,
    pub seed: u64,
}

/// What was measured.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// Calls answered within the time.
    pub done: u64,
    pub seconds: f64,
    /// Each counter shows in the end what was added to it.
    pub is_exact: bool,
}

impl Measured {
    pub fn rate(&self) -> f64 {
        self.done as f64 / self.seconds
    }
}

struct LoadConnection<D> {
    stream: TcpStream,
    dialect: D,
    input: Vec<u8>,
    /// The counters of calls under way.
    asked: VecDeque<u32>,
}

/// Runs a load over connections that are up. Counters begin at zero.
///
/// # Errors
/// The other side says something unexpected, or is gone.
pub fn run<D: Dialect>(
    streams: Vec<(std::net::TcpStream, D)>,
    load: &LoadOptions,
) -> anyhow::Result<Measured> {
    let mut poll = Poll::new()?;
    let mut connections = Vec::new();
    for (number, (stream, dialect)) in streams.into_iter().enumerate() {
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let mut stream = TcpStream::from_std(stream);
        poll.registry().register(&mut stream, Token(number), Interest::READABLE)?;
        connections.push(LoadConnection {
            stream,
            dialect,
            input: Vec::new(),
            asked: VecDeque::new(),
        });
    }
    let mut running = Running::new(load);
    for connection in &mut connections {
        running.ask(connection, load.in_flight)?;
    }
    let mut events = Events::with_capacity(1024);
    let (begun, mut measured) = (Instant::now(), None);
    while measured.is_none() || connections.iter().any(|it| !it.asked.is_empty()) {
        wait(&mut poll, &mut events)?;
        if measured.is_none() && begun.elapsed() >= load.length {
            measured = Some((running.done, begun.elapsed().as_secs_f64()));
        }
        for event in &events {
            running.receive(&mut connections[event.token().0], measured.is_none())?;
        }
    }
    let (done, seconds) = measured.context("the loop ends after it was measured")?;
    Ok(Measured { done, seconds, is_exact: running.is_exact() })
}

/// Waits for answers: looks for them for a while before it sleeps, as the database's own clients
/// do. A thread that sleeps has to be woken by the server, which costs that one more than an
/// answer.
fn wait(poll: &mut Poll, events: &mut Events) -> std::io::Result<()> {
    let begun = Instant::now();
    while begun.elapsed() < WATCHED {
        poll.poll(events, Some(Duration::ZERO))?;
        if !events.is_empty() {
            return Ok(());
        }
        std::thread::yield_now();
    }
    poll.poll(events, Some(Duration::from_millis(10)))
}

struct Running {
    random: fastrand::Rng,
    keys: u32,
    done: u64,
    /// What was added to each counter, and the most that it has shown.
    added: Vec<u64>,
    shown: Vec<u64>,
    scratch: Vec<u8>,
    answers: Vec<u64>,
    out: Vec<u8>,
}

impl Running {
    fn new(load: &LoadOptions) -> Running {
        let zeros = vec![0; load.keys as usize];
        Running {
            random: fastrand::Rng::with_seed(load.seed),
            keys: load.keys,
            done: 0,
            added: zeros.clone(),
            shown: zeros,
            scratch: vec![0; 64 << 10],
            answers: Vec::new(),
            out: Vec::new(),
        }
    }

    fn ask<D: Dialect>(
        &mut self,
        connection: &mut LoadConnection<D>,
        calls: usize,
    ) -> anyhow::Result<()> {
        self.out.clear();
        for _ in 0..calls {
            let (counter, amount) =
                (self.random.u32(..self.keys), self.random.u64(1..=AMOUNT_MOST));
            self.added[counter as usize] += amount;
            connection.asked.push_back(counter);
            connection.dialect.ask(counter, amount, &mut self.out);
        }
        connection.dialect.end(&mut self.out);
        connection.stream.write_all(&self.out).context("calls do not fit into a socket")
    }

    fn receive<D: Dialect>(
        &mut self,
        connection: &mut LoadConnection<D>,
        goes_on: bool,
    ) -> anyhow::Result<()> {
        loop {
            match connection.stream.read(&mut self.scratch) {
                Ok(0) => bail!("the other side has closed a connection"),
                Ok(count) => {
                    connection.input.extend_from_slice(&self.scratch[..count]);
                    if count < self.scratch.len() {
                        break; // There is no more, or the poller says so again.
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error.into()),
            }
        }
        self.answers.clear();
        let taken = connection.dialect.receive(&connection.input, &mut self.answers)?;
        connection.input.drain(..taken);
        for shown in &self.answers {
            let counter = connection.asked.pop_front().context("an answer too many")? as usize;
            self.shown[counter] = self.shown[counter].max(*shown);
        }
        self.done += self.answers.len() as u64;
        match goes_on && !self.answers.is_empty() {
            true => self.ask(connection, self.answers.len()),
            false => Ok(()),
        }
    }

    fn is_exact(&self) -> bool {
        self.added == self.shown
    }
}

/// Connects to whoever listens at `address`.
///
/// # Errors
/// Nobody does, within a while.
pub fn connect(address: std::net::SocketAddr) -> anyhow::Result<std::net::TcpStream> {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        match std::net::TcpStream::connect(address) {
            Ok(stream) => return Ok(stream),
            Err(error) => ensure!(Instant::now() < deadline, "nobody answers: {error}"),
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}
