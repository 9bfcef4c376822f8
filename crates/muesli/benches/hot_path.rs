//! What a transaction costs where its data lives: bank transfers on one loop, against the same
//! transfers on a bare hash map.
//!
//! `cargo bench -p muesli --bench hot_path` prints the table; `-- MODE COUNT` runs one row alone,
//! for a profiler that counts instructions.

mod bank;

use cpu_time::ThreadTime;
use muesli::{Db, Error, Index, Options, Sampling, SmallBytes, Space, SpaceOptions};

use bank::{amount, key, value};

const ACCOUNTS: u64 = 10_000;
const BATCH: u64 = 200_000;
const ROUNDS: usize = 15;
/// The share of transactions that a sampled history keeps whole.
const SAMPLED: Sampling = Sampling::one_in(16);

/// Two different accounts and an amount, drawn outside of what is measured.
struct Draws {
    keys: Vec<SmallBytes>,
    state: u64,
}

impl Draws {
    fn new() -> Draws {
        Draws { keys: (0..ACCOUNTS).map(key).collect(), state: 7 }
    }

    #[inline]
    fn next(&mut self) -> (SmallBytes, SmallBytes, i64) {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let from = (self.state >> 33) % ACCOUNTS;
        let to = (from + 1 + (self.state >> 13) % (ACCOUNTS - 1)) % ACCOUNTS;
        (self.keys[from as usize].clone(), self.keys[to as usize].clone(), (from % 7) as i64)
    }
}

type Bare = hashbrown::HashMap<SmallBytes, SmallBytes, foldhash::fast::FixedState>;

fn bare_map() -> Bare {
    let mut map = Bare::with_hasher(foldhash::fast::FixedState::with_seed(1));
    map.extend((0..ACCOUNTS).map(|account| (key(account), value(1_000))));
    map
}

fn bare(map: &mut Bare, draws: &mut Draws, count: u64) {
    for _ in 0..count {
        let (from, to, by) = draws.next();
        let payer = amount(map.get(&from).expect("loaded"));
        let payee = amount(map.get(&to).expect("loaded"));
        *map.get_mut(&from).expect("loaded") = value(payer - by);
        *map.get_mut(&to).expect("loaded") = value(payee + by);
    }
}

fn bare_reads(map: &mut Bare, draws: &mut Draws, count: u64) {
    let mut sum = 0;
    for _ in 0..count {
        for _ in 0..4 {
            let (a, b, _) = draws.next();
            sum += amount(map.get(&a).expect("loaded")) + amount(map.get(&b).expect("loaded"));
        }
    }
    std::hint::black_box(sum);
}

fn open(history: Option<Sampling>) -> (Db, Space) {
    let index = SpaceOptions { index: Index::Hash, ..SpaceOptions::default() };
    let sampling = history.unwrap_or_default();
    let options = Options { history: history.is_some(), sampling, ..Options::default() };
    let options = options.space("accounts", index);
    let db = Db::open(options).expect("the options are good");
    let accounts = db.space("accounts").expect("just made");
    let load = async move |tx: &muesli::Tx| {
        for account in 0..ACCOUNTS {
            tx.put(accounts, key(account), value(1_000)).await?;
        }
        Ok::<_, Error>(())
    };
    db.blocking().transact(load).expect("nothing is in the way");
    (db, accounts)
}

async fn bodies_async(db: &Db, accounts: Space, draws: &mut Draws, count: u64) {
    for _ in 0..count {
        let (from, to, by) = draws.next();
        let body = async |tx: &muesli::Tx| {
            let payer = tx.get(accounts, from.clone()).await?.expect("loaded");
            let payee = tx.get(accounts, to.clone()).await?.expect("loaded");
            tx.put(accounts, from.clone(), value(amount(&payer) - by)).await?;
            tx.put(accounts, to.clone(), value(amount(&payee) + by)).await?;
            Ok::<_, Error>(())
        };
        db.transact_here(body).await.expect("alone");
    }
}

async fn bodies_plain(db: &Db, accounts: Space, draws: &mut Draws, count: u64) {
    for _ in 0..count {
        let (from, to, by) = draws.next();
        let done: Result<(), Error> = db
            .call_here(|tx| {
                let keys = [from.clone(), to.clone()];
                let [payer, payee] = tx.get_array(accounts, &keys)?;
                let payer = amount(&payer.expect("loaded"));
                let payee = amount(&payee.expect("loaded"));
                let [from, to] = keys;
                tx.put(accounts, from, value(payer - by))?;
                tx.put(accounts, to, value(payee + by))
            })
            .await;
        done.expect("alone");
    }
}

async fn reads(db: &Db, accounts: Space, draws: &mut Draws, count: u64) {
    let db = db.read_only();
    let mut sum = 0;
    for _ in 0..count {
        sum += db
            .call_here(|tx| {
                let mut keys = [const { SmallBytes::EMPTY }; 8];
                for pair in keys.chunks_exact_mut(2) {
                    (pair[0], pair[1], _) = draws.next();
                }
                let values = tx.get_array(accounts, &keys)?;
                Ok::<_, Error>(values.iter().flatten().map(amount).sum::<i64>())
            })
            .await
            .expect("read-only");
    }
    std::hint::black_box(sum);
}

#[derive(Clone, Copy)]
enum Mode {
    Async,
    Plain,
    Reads,
}

/// Nanoseconds of processor time per transaction of each round.
fn measure_db(mode: Mode, history: Option<Sampling>, rounds: usize, batch: u64) -> Vec<f64> {
    let (db, accounts) = open(history);
    let here = db.clone();
    let task = async move || {
        let mut draws = Draws::new();
        let mut times = Vec::new();
        for _ in 0..rounds {
            let start = ThreadTime::now();
            match mode {
                Mode::Async => bodies_async(&here, accounts, &mut draws, batch).await,
                Mode::Plain => bodies_plain(&here, accounts, &mut draws, batch).await,
                Mode::Reads => reads(&here, accounts, &mut draws, batch).await,
            }
            times.push(start.elapsed().as_nanos() as f64 / batch as f64);
        }
        times
    };
    let times = muesli::blocking::block_on(db.run_on(0, task)).expect("open");
    db.close();
    times
}

fn measure_bare(run: fn(&mut Bare, &mut Draws, u64), rounds: usize, batch: u64) -> Vec<f64> {
    let (mut map, mut draws) = (bare_map(), Draws::new());
    (0..rounds)
        .map(|_| {
            let start = ThreadTime::now();
            run(&mut map, &mut draws, batch);
            start.elapsed().as_nanos() as f64 / batch as f64
        })
        .collect()
}

fn row(name: &str, times: &mut [f64], reference: f64) -> f64 {
    times.sort_by(f64::total_cmp);
    let (low, median, high) = (times[0], times[times.len() / 2], times[times.len() - 1]);
    let ratio = if reference > 0.0 { reference / median } else { 1.0 };
    println!("{name:<34} {median:>8.0} {low:>8.0} {high:>8.0} {ratio:>8.3}");
    median
}

fn table() {
    println!(
        "{:<34} {:>8} {:>8} {:>8} {:>8}",
        "ns a transaction", "median", "min", "max", "of bare"
    );
    let bare_transfer = row("bare: transfer", &mut measure_bare(bare, ROUNDS, BATCH), 0.0);
    let of = |name, mode, history| {
        row(name, &mut measure_db(mode, history, ROUNDS, BATCH), bare_transfer)
    };
    of("transfer, plain closure", Mode::Plain, None);
    of("transfer, async closure", Mode::Async, None);
    of("transfer, async, history recorded", Mode::Async, Some(Sampling::ALL));
    of("transfer, async, one in 16 recorded", Mode::Async, Some(SAMPLED));
    let bare_lookup = row("bare: 8 look-ups", &mut measure_bare(bare_reads, ROUNDS, BATCH), 0.0);
    row("read-only, 8 keys", &mut measure_db(Mode::Reads, None, ROUNDS, BATCH), bare_lookup);
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let count = arguments.get(1).map_or(20_000, |count| count.parse().expect("a count"));
    match arguments.first().map(String::as_str) {
        None => table(),
        Some("bare") => drop(measure_bare(bare, 1, count)),
        Some("bare-reads") => drop(measure_bare(bare_reads, 1, count)),
        Some("plain") => drop(measure_db(Mode::Plain, None, 1, count)),
        Some("async") => drop(measure_db(Mode::Async, None, 1, count)),
        Some("history") => drop(measure_db(Mode::Async, Some(Sampling::ALL), 1, count)),
        Some("sampled") => drop(measure_db(Mode::Async, Some(SAMPLED), 1, count)),
        Some("reads") => drop(measure_db(Mode::Reads, None, 1, count)),
        Some(other) => {
            panic!("no mode {other}: bare, bare-reads, plain, async, history, sampled, reads")
        }
    }
}
