//! Procedures that compute for long or not, on one loop: with one thread for them, and with more.
//!
//! `cargo bench -p muesli --bench procedures`, or with `-- THREADS` another number than 2. Rates
//! are wall-clock calls a second of 64 clients on the loop, medians of several rounds in turn with
//! one thread and with more, with the smallest and the largest; the ratio is that of the medians,
//! and beside it stand the smallest and the largest ratio of two rounds that followed each other.
//! Last comes what a call takes of the loop's own thread, in microseconds of processor, with one
//! thread and with more; other programs change that least, and what is less was done by other
//! threads. Each call counts at its key, and the counts are checked.

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod bank;

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cpu_time::ThreadTime;
use muesli::procedures::{Keys, Spaces, StoredProcedure, TouchesFn};
use muesli::{Db, Footprint, Index, Options, Refuses, Space, SpaceOptions, Stop, Touched, Tx};

use bank::{AllOf, Running, amount, key, value};

const KEYS: u64 = 10_000;
const CLIENTS: usize = 64;
const ROUNDS: usize = 9;
const ROUND: Duration = Duration::from_millis(300);

/// Adds one to a key, after some computing.
struct Count;

/// The space, the key's number, and how often something is computed.
type Counted = (Space, u64, u64);

impl StoredProcedure for Count {
    const NAME: &'static str = "count";
    const REFUSES: Refuses = Refuses::Never;
    const TOUCHES: Option<TouchesFn<Counted>> = Some(|_: &Spaces<'_>, it: &Counted| {
        Ok(Footprint { reads: Vec::new(), writes: vec![Touched::Key(it.0.id(), key(it.1))] })
    });
    type Arguments = Counted;
    type Answer = ();

    fn run(keys: &mut Keys<'_>, (space, number, rounds): Counted) -> Result<(), Stop> {
        let before = keys.get(space, &key(number))?.as_ref().map_or(0, amount);
        compute(rounds);
        keys.put(space, key(number), value(before + 1))
    }
}

/// Something that takes as long as it is often done.
fn compute(rounds: u64) {
    let mut state = black_box(1_u64);
    for _ in 0..rounds {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state ^= state >> 29;
    }
    black_box(state);
}

/// How often it is computed in a microsecond, at best.
fn rounds_per_micro() -> f64 {
    const MANY: u64 = 2_000_000;
    let rate = |_| {
        let start = Instant::now();
        compute(MANY);
        MANY as f64 / start.elapsed().as_secs_f64() / 1e6
    };
    (0..9).map(rate).fold(0.0, f64::max)
}

/// What is measured.
#[derive(Clone, Copy)]
struct Row {
    protocol: &'static str,
    /// How long a procedure computes, in microseconds.
    micros: u64,
    /// Of a hundred calls, so many are of one key.
    hot: u64,
}

struct Measured {
    db: Db,
    space: Space,
    done: u64,
    rates: Vec<f64>,
    /// What each call took of the loop's own thread, in microseconds of processor.
    own: Vec<f64>,
}

/// What the clients of a round have done, and what the loop's thread took for it.
#[derive(Default)]
struct Counts {
    done: AtomicU64,
    nanos: AtomicU64,
}

fn open(protocol: &str, procedure_threads: usize) -> Measured {
    let index = SpaceOptions { index: Index::Hash, ..SpaceOptions::default() };
    let options =
        Options { protocol: protocol.to_owned(), procedure_threads, ..Options::default() };
    let db = Db::open(options.space("counts", index).procedure::<Count>());
    let db = db.expect("the options are good");
    let space = db.space("counts").expect("just made");
    Measured { db, space, done: 0, rates: Vec::new(), own: Vec::new() }
}

impl Measured {
    /// One round; counts only if it is to be measured.
    fn round(&mut self, row: Row, rounds: u64, counts: bool) {
        let (start, all) = (Instant::now(), Arc::new(Counts::default()));
        let running = (0..CLIENTS as u64).map(|number| {
            let (db, all, space) = (self.db.clone(), all.clone(), self.space);
            let session = db.independent();
            let client = async move || {
                let (mut draws, mut done) = (number * 7_919 + 1, 0);
                let processor = ThreadTime::now();
                while start.elapsed() < ROUND {
                    draws = draws.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let is_hot = (draws >> 20) % 100 < row.hot;
                    let at = if is_hot { 0 } else { (draws >> 33) % KEYS };
                    let counted = (space, at, rounds);
                    session.execute::<Count>(space.place(key(at)), &counted).await.expect("done");
                    done += 1;
                }
                all.done.fetch_add(done, Ordering::Relaxed);
                let nanos = processor.elapsed().as_nanos() as u64;
                all.nanos.fetch_max(nanos, Ordering::Relaxed);
            };
            Box::pin(async move { db.run_on(0, client).await }) as Running
        });
        muesli::blocking::block_on(AllOf(running.collect()));
        let done = all.done.load(Ordering::Relaxed);
        self.done += done;
        if counts {
            self.rates.push(done as f64 / start.elapsed().as_secs_f64());
            let nanos = all.nanos.load(Ordering::Relaxed);
            self.own.push(nanos as f64 / 1e3 / done as f64);
        }
    }

    /// Every call has counted once.
    fn check(self) -> (Vec<f64>, f64) {
        let space = self.space;
        let sum = async move |tx: &Tx| {
            let mut sum = 0;
            for number in 0..KEYS {
                sum += tx.get(space, key(number)).await?.as_ref().map_or(0, amount);
            }
            Ok::<_, muesli::Error>(sum)
        };
        let sum: i64 = self.db.read_only().blocking().transact(sum).expect("a reader");
        assert_eq!(sum, self.done as i64, "calls were lost, or counted twice");
        self.db.close();
        (self.rates, partitions_per_repository(self.own)[1])
    }
}

/// Smallest, median and largest.
fn partitions_per_repository(mut all: Vec<f64>) -> [f64; 3] {
    all.sort_by(f64::total_cmp);
    [all[0], all[all.len() / 2], all[all.len() - 1]]
}

fn measure(row: Row, threads: usize, per_micro: f64) {
    let rounds = (row.micros as f64 * per_micro) as u64;
    let (mut one, mut more) = (open(row.protocol, 1), open(row.protocol, threads));
    for round in 0..=ROUNDS {
        one.round(row, rounds, round > 0);
        more.round(row, rounds, round > 0);
    }
    let ((one, alone), (more, helped)) = (one.check(), more.check());
    let ratios =
        partitions_per_repository(more.iter().zip(&one).map(|(more, one)| more / one).collect());
    let ([least, median, most], [low, middle, high]) =
        (partitions_per_repository(one), partitions_per_repository(more));
    let name = match row.hot {
        0 => format!("{}, {} us", row.protocol, row.micros),
        hot => format!("{}, {} us, {hot} % of one key", row.protocol, row.micros),
    };
    println!(
        "{name:<38} {median:>9.0} ({least:.0} to {most:.0}) {middle:>9.0} ({low:.0} to {high:.0}) \
         {:>6.2} ({:.2} to {:.2}) {alone:>8.1} {helped:>6.1}",
        middle / median,
        ratios[0],
        ratios[2],
    );
}

fn main() {
    let threads = std::env::args().filter_map(|argument| argument.parse().ok()).next();
    let threads: usize = threads.unwrap_or(2);
    let per_micro = rounds_per_micro();
    println!(
        "calls a second with 1 thread and with {threads}; the ratio; own processor time of a call"
    );
    for micros in [0, 2, 5, 10, 20, 50, 100, 200, 500] {
        measure(Row { protocol: "granola", micros, hot: 0 }, threads, per_micro);
    }
    for protocol in ["granola", "granola-passing"] {
        measure(Row { protocol, micros: 100, hot: 10 }, threads, per_micro);
    }
    measure(Row { protocol: "granola-passing", micros: 100, hot: 0 }, threads, per_micro);
}
