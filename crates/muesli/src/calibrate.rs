//! What a node's work costs on this machine: the figures that the simulator's cost model stands
//! on.
//!
//! Each figure is the median of several rounds of the real code, or of the real system call: the
//! protocol's node is called as a driver calls it, the socket is a loopback socket, the file a
//! file. Differences are taken where a figure cannot be had alone, and are never below a
//! nanosecond.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Instant;

use muesli_core::{
    Catalog, Effect, Effects, Envelope, Index, Node, NodeId, Settings, SmallBytes, SpaceId,
    SpaceOptions, Step, TxnOptions,
};
use muesli_protocols::score::Score;

/// Rounds of each measurement; the median counts.
const ROUNDS: usize = 9;
/// Repeats in a round of what is short.
const REPEATS: u64 = 20_000;
/// Keys in the store, so that look-ups miss caches as they do in life.
const KEYS: u64 = 100_000;
/// Keys of a transaction from which the cost of one is taken.
const BUNDLE: u64 = 16;
/// Syncs measured.
const SYNCS: usize = 50;

/// The figures, in nanoseconds, a byte's in picoseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// A turn of a loop: one read and one write of a socket.
    pub turn: f64,
    /// Taking in a message.
    pub receive: f64,
    /// Sending a message.
    pub send: f64,
    /// An operation of a client.
    pub operation: f64,
    /// Reading a key.
    pub read: f64,
    /// Locking and validating a key.
    pub validate: f64,
    /// Installing a version.
    pub install: f64,
    /// Appending a record to a file, unsynced.
    pub log: f64,
    /// A byte through a socket, in picoseconds.
    pub byte_picos: f64,
    /// Making a file's last bytes stable: smallest, median, largest.
    pub sync: [f64; 3],
}

impl fmt::Display for Figures {
    /// One `name = value` a line, as the simulator reads it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [low, median, high] = self.sync;
        writeln!(f, "# A sync took {low:.0} to {high:.0} ns; below is the median.")?;
        for (name, nanos) in [
            ("turn", self.turn),
            ("receive", self.receive),
            ("send", self.send),
            ("operation", self.operation),
            ("read", self.read),
            ("validate", self.validate),
            ("install", self.install),
            ("log", self.log),
            ("sync", median),
        ] {
            writeln!(f, "{name} = {nanos:.0}ns")?;
        }
        writeln!(f, "byte = {:.0}ps", self.byte_picos)
    }
}

/// Measures. `progress` is told what is measured next.
///
/// # Errors
/// The machine has no loopback socket or no temporary file for it.
pub fn measure(mut progress: impl FnMut(&str)) -> io::Result<Figures> {
    progress("a node's operations");
    let mut bench = Bench::new();
    let relaxed = TxnOptions::default();
    let strict = TxnOptions { strict: true, ..relaxed };
    let operation = bench.transactions(relaxed, 0, 0) / 2.0;
    let reads = bench.transactions(relaxed, BUNDLE, 0);
    let read = above(reads - 2.0 * operation) / BUNDLE as f64;
    // A strict reader validates what it read, and does nothing else.
    let validate = above(bench.transactions(strict, BUNDLE, 0) - reads) / BUNDLE as f64;
    let updates = bench.transactions(relaxed, BUNDLE, BUNDLE) - reads;
    let install = above(updates / BUNDLE as f64 - 2.0 * validate);
    progress("messages between nodes");
    let exchange = bench.read_elsewhere();
    let each = above(exchange - read - operation) / 4.0; // Two sent, two received.
    progress("a socket");
    let short = socket_turn(64)?;
    let long = socket_turn(64 << 10)?;
    let byte_picos = above(long - short) * 1000.0 / (64 << 10) as f64;
    progress("a file");
    let log = append(256)?;
    let sync = syncs()?;
    let (receive, send) = (each, each);
    Ok(Figures {
        turn: short,
        receive,
        send,
        operation,
        read,
        validate,
        install,
        log,
        byte_picos,
        sync,
    })
}

fn above(nanos: f64) -> f64 {
    nanos.max(1.0)
}

fn median(mut rounds: Vec<f64>) -> f64 {
    rounds.sort_by(f64::total_cmp);
    rounds[rounds.len() / 2]
}

/// The median over rounds of the nanoseconds that one of `repeats` takes.
fn timed(repeats: u64, mut once: impl FnMut()) -> f64 {
    let round = || {
        let start = Instant::now();
        (0..repeats).for_each(|_| once());
        start.elapsed().as_nanos() as f64 / repeats as f64
    };
    median(std::iter::repeat_with(round).take(ROUNDS).collect())
}

fn key(number: u64) -> SmallBytes {
    SmallBytes::new(format!("user{:016}", number % KEYS).as_bytes())
}

/// Two nodes: all keys on the first, the second only asks.
struct Bench {
    near: Node<Score>,
    far: Node<Score>,
    effects: Effects<Score>,
    keys: Vec<SmallBytes>,
    turn: usize,
}

const SPACE: SpaceId = SpaceId(0);

impl Bench {
    fn new() -> Bench {
        let nodes = [NodeId(0), NodeId(1)];
        let space = SpaceOptions { index: Index::Hash, ..SpaceOptions::default() };
        let catalog = Catalog::new(&nodes[..1], 1, &nodes[..1])
            .and_then(|catalog| catalog.with_space("keys", space))
            .expect("one repository and one space can be");
        let (catalog, settings) = (Arc::new(catalog), Arc::new(Settings::default()));
        let node = |id| Node::new(id, 1, catalog.clone(), settings.clone(), &Default::default());
        let (near, far) = (node(nodes[0]), node(nodes[1]));
        let keys = (0..KEYS).map(|number| key(number.wrapping_mul(7919))).collect();
        let mut bench = Bench { near, far, effects: Effects::default(), keys, turn: 0 };
        for _ in 0..KEYS / BUNDLE {
            bench.transaction(TxnOptions::default(), 0, BUNDLE);
        }
        bench
    }

    fn next_key(&mut self) -> SmallBytes {
        self.turn = (self.turn + 1) % self.keys.len();
        self.keys[self.turn].clone()
    }

    /// A transaction that reads so many keys and writes so many of them.
    fn transaction(&mut self, options: TxnOptions, reads: u64, writes: u64) {
        let txn = self.near.begin(options, &mut self.effects).expect("a slot");
        for place in 0..reads.max(writes) {
            let key = self.next_key();
            if place < reads {
                let read = self.near.get(txn, SPACE, &key, &mut self.effects);
                assert!(matches!(read, Step::Done(Ok(_))), "the key is here");
            }
            if place < writes {
                let put = self.near.put(txn, SPACE, key.clone(), Some(key), &mut self.effects);
                put.expect("within limits");
            }
        }
        let committed = self.near.commit(txn, &mut self.effects);
        assert!(matches!(committed, Step::Done(Ok(_))), "nobody is in the way");
        self.effects.list.clear();
    }

    fn transactions(&mut self, options: TxnOptions, reads: u64, writes: u64) -> f64 {
        timed(REPEATS / (1 + reads), || self.transaction(options, reads, writes))
    }

    /// A read from the node that does not hold the key: asked, answered, and completed.
    fn read_elsewhere(&mut self) -> f64 {
        let begun = self.far.begin(TxnOptions::default(), &mut self.effects);
        let mut txn = begun.expect("a slot");
        let mut reads = 0;
        timed(REPEATS, || {
            reads += 1;
            if reads % 64 == 0 {
                self.far.rollback(txn, &mut self.effects);
                let begun = self.far.begin(TxnOptions::default(), &mut self.effects);
                txn = begun.expect("a slot");
            }
            let key = self.next_key();
            let _ = self.far.get(txn, SPACE, &key, &mut self.effects);
            while let Some(envelope) = self.take_message() {
                let to = if envelope.to.node == NodeId(0) { &mut self.near } else { &mut self.far };
                to.deliver(envelope, &mut self.effects);
            }
        })
    }

    fn take_message(&mut self) -> Option<Envelope<muesli_protocols::score::Message>> {
        let mut messages = self.effects.list.drain(..).filter_map(|effect| match effect {
            Effect::Send { envelope, .. } => Some(envelope),
            _ => None,
        });
        messages.next_back()
    }
}

/// One write of so many bytes to a loopback socket, and the read of them.
fn socket_turn(bytes: usize) -> io::Result<f64> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut near = TcpStream::connect(listener.local_addr()?)?;
    let (mut far, _) = listener.accept()?;
    near.set_nodelay(true)?;
    let echo = std::thread::spawn(move || -> io::Result<()> {
        let mut buffer = vec![0; bytes];
        loop {
            if far.read(&mut buffer[..1])? == 0 {
                return Ok(());
            }
            far.read_exact(&mut buffer[1..])?;
        }
    });
    let buffer = vec![1; bytes];
    let mut failed = Ok(());
    let nanos = timed(2_000, || {
        if failed.is_ok() {
            failed = near.write_all(&buffer);
        }
    });
    drop(near);
    failed?;
    echo.join().map_err(|_| io::Error::other("the reader died"))??;
    Ok(2.0 * nanos) // The reader's half costs as much as the writer's.
}

struct Scratch(std::path::PathBuf);

impl Scratch {
    fn new(name: &str) -> io::Result<(Scratch, File)> {
        let file = format!("muesli-calibrate-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(file);
        Ok((Scratch(path.clone()), File::create(path)?))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0); // It is in the directory for such leftovers.
    }
}

fn append(bytes: usize) -> io::Result<f64> {
    let (_scratch, mut file) = Scratch::new("append")?;
    let record = vec![7; bytes];
    let mut failed = Ok(());
    let nanos = timed(2_000, || {
        if failed.is_ok() {
            failed = file.write_all(&record);
        }
    });
    failed.map(|()| nanos)
}

fn syncs() -> io::Result<[f64; 3]> {
    let (_scratch, mut file) = Scratch::new("sync")?;
    let mut times = Vec::new();
    for _ in 0..SYNCS {
        file.write_all(&[7; 256])?;
        let start = Instant::now();
        file.sync_data()?;
        times.push(start.elapsed().as_nanos() as f64);
    }
    times.sort_by(f64::total_cmp);
    Ok([times[0], times[SYNCS / 2], times[SYNCS - 1]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_is_measured_and_printed() {
        let mut steps = 0;
        let figures = measure(|_| steps += 1).expect("a socket and a file");
        assert_eq!(steps, 4);
        let [low, median, high] = figures.sync;
        assert!(0.0 < low && low <= median && median <= high);
        let text = figures.to_string();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        assert!(lines.clone().all(|line| line.contains(" = ")));
        assert_eq!(lines.count(), 10);
    }
}
