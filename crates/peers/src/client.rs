//! Clients of Redis that move money between accounts, all on one thread.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use crate::reply::{self, ServerReply};

/// What each account holds at first.
pub const INITIAL: i64 = 10_000;
/// The most that a transfer moves.
const AMOUNT: i64 = 100;
/// One call that does all of a transfer; 1 if it was made.
const SCRIPT: &str = "local a = tonumber(redis.call('GET', KEYS[1])) \
    if a < tonumber(ARGV[1]) then return 0 end \
    redis.call('SET', KEYS[1], a - ARGV[1]) \
    redis.call('SET', KEYS[2], redis.call('GET', KEYS[2]) + ARGV[1]) return 1";

/// How a transfer is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// WATCH and MGET in one round trip, MULTI to EXEC in another.
    Watch,
    /// One call of a script.
    Lua,
}

/// What is to be run.
#[derive(Clone, Debug)]
pub struct PeerWorkload {
    pub clients: usize,
    pub keys: u32,
    pub length: Duration,
    pub seed: u64,
    pub mode: Mode,
}

/// What was measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeasuredClients {
    pub committed: u64,
    pub conflicts: u64,
    pub rolled_back: u64,
    pub seconds: f64,
    /// What all accounts hold in the end.
    pub sum: i64,
}

struct LoadClient {
    stream: TcpStream,
    input: Vec<u8>,
    from: u32,
    to: u32,
    amount: i64,
    /// Replies that are still to come, the last of which decides what is next.
    awaited: usize,
    /// For [`Mode::Watch`]: the balances were asked for, and not the transfer.
    reading: bool,
}

/// Loads the accounts, runs the clients, and sums the accounts up.
///
/// # Errors
/// Redis says something unexpected, or is gone.
pub fn run(address: SocketAddr, workload: &PeerWorkload) -> anyhow::Result<MeasuredClients> {
    let script = load(address, workload.keys)?;
    let mut poll = Poll::new()?;
    let mut clients = Vec::new();
    for number in 0..workload.clients {
        let std = std::net::TcpStream::connect(address)?;
        std.set_nodelay(true)?;
        std.set_nonblocking(true)?;
        let mut stream = TcpStream::from_std(std);
        poll.registry().register(&mut stream, Token(number), Interest::READABLE)?;
        clients.push(LoadClient {
            stream,
            input: Vec::new(),
            from: 0,
            to: 0,
            amount: 0,
            awaited: 0,
            reading: false,
        });
    }
    let mut running = RunningClients {
        workload,
        script,
        random: fastrand::Rng::with_seed(workload.seed),
        measured: MeasuredClients::default(),
    };
    let begun = Instant::now();
    for client in &mut clients {
        running.begin(client)?;
    }
    let mut events = Events::with_capacity(1024);
    while begun.elapsed() < workload.length {
        poll.poll(&mut events, Some(workload.length.saturating_sub(begun.elapsed())))?;
        for event in &events {
            running.receive(&mut clients[event.token().0])?;
        }
    }
    running.measured.seconds = begun.elapsed().as_secs_f64();
    drop(clients); // What is under way takes effect in whole or not at all.
    running.measured.sum = sum(address, workload.keys)?;
    Ok(running.measured)
}

struct RunningClients<'a> {
    workload: &'a PeerWorkload,
    script: String,
    random: fastrand::Rng,
    measured: MeasuredClients,
}

impl RunningClients<'_> {
    /// Draws a transfer and sets it out.
    fn begin(&mut self, client: &mut LoadClient) -> anyhow::Result<()> {
        let keys = self.workload.keys;
        client.from = self.random.u32(..keys);
        client.to = (client.from + 1 + self.random.u32(..keys - 1)) % keys;
        client.amount = self.random.i64(1..=AMOUNT);
        self.attempt(client)
    }

    fn attempt(&mut self, client: &mut LoadClient) -> anyhow::Result<()> {
        let (from, to) = (client.from.to_string(), client.to.to_string());
        let mut out = Vec::new();
        match self.workload.mode {
            Mode::Watch => {
                command(&["WATCH", &from, &to], &mut out);
                command(&["MGET", &from, &to], &mut out);
                (client.awaited, client.reading) = (2, true);
            }
            Mode::Lua => {
                let amount = client.amount.to_string();
                command(&["EVALSHA", &self.script, "2", &from, &to, &amount], &mut out);
                (client.awaited, client.reading) = (1, false);
            }
        }
        send(client, &out)
    }

    fn receive(&mut self, client: &mut LoadClient) -> anyhow::Result<()> {
        let mut bytes = [0; 4096];
        loop {
            match client.stream.read(&mut bytes) {
                Ok(0) => bail!("redis has closed a connection"),
                Ok(count) => client.input.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error.into()),
            }
        }
        while let Some((reply, count)) = reply::next(&client.input)? {
            client.input.drain(..count);
            client.awaited = client.awaited.checked_sub(1).context("a reply too many")?;
            if let ServerReply::Error(error) = reply {
                bail!("redis said: {error}");
            }
            if client.awaited == 0 {
                self.go_on(client, &reply)?;
            }
        }
        Ok(())
    }

    /// The last reply of a round trip has come.
    fn go_on(&mut self, client: &mut LoadClient, reply: &ServerReply) -> anyhow::Result<()> {
        match (self.workload.mode, client.reading, reply) {
            (Mode::Watch, true, ServerReply::List(Some(balances))) => {
                let (from, to) = (balances[0].number()?, balances[1].number()?);
                if from >= client.amount {
                    return transfer(client, from - client.amount, to + client.amount);
                }
                self.measured.rolled_back += 1;
                self.begin(client) // The next WATCH comes on top of this one, which is harmless.
            }
            (Mode::Watch, false, ServerReply::List(None)) => {
                self.measured.conflicts += 1;
                self.attempt(client)
            }
            (Mode::Watch, false, ServerReply::List(Some(_))) => {
                self.measured.committed += 1;
                self.begin(client)
            }
            (Mode::Lua, _, ServerReply::Number(made)) => {
                self.measured.committed += u64::from(*made == 1);
                self.measured.rolled_back += u64::from(*made == 0);
                self.begin(client)
            }
            other => bail!("an unexpected reply: {other:?}"),
        }
    }
}

fn transfer(client: &mut LoadClient, from: i64, to: i64) -> anyhow::Result<()> {
    let mut out = Vec::new();
    command(&["MULTI"], &mut out);
    command(&["SET", &client.from.to_string(), &from.to_string()], &mut out);
    command(&["SET", &client.to.to_string(), &to.to_string()], &mut out);
    command(&["EXEC"], &mut out);
    (client.awaited, client.reading) = (4, false);
    send(client, &out)
}

/// Appends a command.
pub fn command(words: &[&str], out: &mut Vec<u8>) {
    out.extend(format!("*{}\r\n", words.len()).bytes());
    for word in words {
        out.extend(format!("${}\r\n{word}\r\n", word.len()).bytes());
    }
}

fn send(client: &mut LoadClient, bytes: &[u8]) -> anyhow::Result<()> {
    client.stream.write_all(bytes).context("a command does not fit into a socket")
}

/// Writes the accounts; the name of the script.
fn load(address: SocketAddr, keys: u32) -> anyhow::Result<String> {
    let mut out = Vec::new();
    command(&["FLUSHALL"], &mut out);
    for key in 0..keys {
        command(&["SET", &key.to_string(), &INITIAL.to_string()], &mut out);
    }
    command(&["SCRIPT", "LOAD", SCRIPT], &mut out);
    match converse(address, &out, keys as usize + 2)?.pop() {
        Some(ServerReply::Bytes(Some(name))) => Ok(String::from_utf8(name)?),
        other => bail!("an unexpected reply: {other:?}"),
    }
}

fn sum(address: SocketAddr, keys: u32) -> anyhow::Result<i64> {
    let mut out = Vec::new();
    let names: Vec<_> = (0..keys).map(|key| key.to_string()).collect();
    let words: Vec<_> = std::iter::once("MGET").chain(names.iter().map(String::as_str)).collect();
    command(&words, &mut out);
    match converse(address, &out, 1)?.pop() {
        Some(ServerReply::List(Some(balances))) => balances.iter().map(ServerReply::number).sum(),
        other => bail!("an unexpected reply: {other:?}"),
    }
}

/// Says everything, and answers so many replies.
pub fn converse(
    address: SocketAddr,
    bytes: &[u8],
    many: usize,
) -> anyhow::Result<Vec<ServerReply>> {
    let mut stream = std::net::TcpStream::connect(address)?;
    let mut writing = stream.try_clone()?;
    std::thread::scope(|scope| {
        scope.spawn(move || writing.write_all(bytes));
        let (mut input, mut replies, mut piece) = (Vec::new(), Vec::new(), vec![0; 1 << 16]);
        while replies.len() < many {
            let count = stream.read(&mut piece)?;
            anyhow::ensure!(count > 0, "redis has closed a connection");
            input.extend_from_slice(&piece[..count]);
            let mut at = 0;
            while let Some((reply, bytes)) = reply::next(&input[at..])? {
                replies.push(reply);
                at += bytes;
            }
            input.drain(..at);
        }
        Ok(replies)
    })
}
