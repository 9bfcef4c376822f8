//! Software transactional memories of one process beside Muesli embedded: the same work on two
//! threads.
//!
//! `cargo bench -p muesli-peers --bench stm`; with `-- ROW SECONDS`, a part of a row's name, those
//! rows alone, for a profiler. A transfer moves money between two of 1,000 accounts, a read sums
//! ten of them. Each round runs every row once, in turn, so that what the machine does meanwhile
//! meets all of them; told are medians over the rounds with the least and the most, and the ratio
//! to `fast-stm` in the same round.
//!
//! The other two keep an account in a variable of its own, which the transaction names by a
//! reference; Muesli keeps it in a row that the transaction names by its key, on one of two loops,
//! each of which has half of the accounts. Three in four transfers need something of the loop where
//! their client is not, so each loop has several clients. Rows of one loop have that loop's thread
//! alone, but for closures of two threads, which run them in the loop's state themselves.

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[path = "stm/embedded.rs"]
mod embedded;
#[path = "stm/variables.rs"]
mod variables;

use std::io::Write;
use std::time::Duration;

use embedded::{Embedded, Interface};
use variables::{FastVariables, PlainVariables};

/// How many accounts there are, and how much each holds at first.
const ACCOUNTS: u64 = 1_000;
const INITIAL: i64 = 1_000;
/// So many accounts a read sums.
const READ: usize = 10;
const THREADS: usize = 2;
const ROUNDS: usize = 9;
const ROUND: Duration = Duration::from_millis(300);
/// The row that all others are compared with.
const REFERENCE: &str = "fast-stm";

/// What is done over and over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    /// Money moves between two accounts.
    Transfers,
    /// Ten accounts are summed.
    Reads,
}

/// Accounts somewhere, and two threads that work on them.
trait Subject {
    /// Does it for so long; transactions a second of both threads together.
    fn run(&self, work: Work, length: Duration) -> f64;
    /// What all accounts hold together.
    fn sum(&self) -> i64;
}

/// Draws of accounts, of one thread's or one client's own.
struct Draws(u64);

impl Draws {
    fn new(client: usize) -> Draws {
        Draws(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(client as u64 + 1))
    }

    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % end
    }

    /// Two different accounts, and how much moves from the first to the second.
    fn transfer(&mut self) -> (u64, u64, i64) {
        let from = self.below(ACCOUNTS);
        let to = (from + 1 + self.below(ACCOUNTS - 1)) % ACCOUNTS;
        (from, to, self.below(7) as i64)
    }

    /// Ten accounts.
    fn accounts(&mut self) -> [u64; READ] {
        std::array::from_fn(|_| self.below(ACCOUNTS))
    }
}

type Row = (String, Box<dyn Subject>);

fn rows() -> Vec<Row> {
    let mut rows: Vec<Row> = vec![
        (REFERENCE.to_owned(), Box::new(FastVariables::new())),
        ("stm-core".to_owned(), Box::new(PlainVariables::new())),
    ];
    for protocol in ["tfa", "score"] {
        for (name, interface) in
            [("transactions", Interface::Transactions), ("objects", Interface::Objects)]
        {
            let subject = Embedded::new(protocol, 2, interface);
            rows.push((format!("muesli {protocol}, {name}"), Box::new(subject)));
        }
    }
    for (name, interface) in [
        ("closures of two threads", Interface::Threads),
        ("plain closures", Interface::Closures),
        ("transactions", Interface::Transactions),
    ] {
        let subject = Embedded::new("score", 1, interface);
        rows.push((format!("muesli score, {name}, one loop"), Box::new(subject)));
    }
    rows
}

/// The middle of some numbers, the least, and the most.
fn median_and_ends(mut numbers: Vec<f64>) -> (f64, f64, f64) {
    numbers.sort_by(f64::total_cmp);
    (numbers[numbers.len() / 2], numbers[0], numbers[numbers.len() - 1])
}

fn measure(rows: &[Row], work: Work) {
    let mut rates = vec![Vec::new(); rows.len()];
    for _ in 0..ROUNDS {
        for ((_, subject), rates) in rows.iter().zip(&mut rates) {
            rates.push(subject.run(work, ROUND));
        }
    }
    let mut out = std::io::stdout();
    let _ = writeln!(out, "{work:?}, {THREADS} threads: thousands a second; over {REFERENCE}");
    for ((name, subject), own) in rows.iter().zip(&rates) {
        assert_eq!(subject.sum(), INITIAL * ACCOUNTS as i64, "{name} lost money");
        let ratios = own.iter().zip(&rates[0]).map(|(own, of)| own / of).collect();
        let (rate, least, most) = median_and_ends(own.clone());
        let (ratio, lowest, highest) = median_and_ends(ratios);
        let _ = writeln!(
            out,
            "  {name:38} {:>7.0} ({:.0} to {:.0}); {ratio:.3} ({lowest:.3} to {highest:.3})",
            rate / 1e3,
            least / 1e3,
            most / 1e3,
        );
    }
}

fn main() {
    let given: Vec<String> = std::env::args().skip(1).filter(|it| it != "--bench").collect();
    let rows = rows();
    let Some(wanted) = given.first() else {
        return [Work::Transfers, Work::Reads].into_iter().for_each(|work| measure(&rows, work));
    };
    let seconds = given.get(1).and_then(|text| text.parse().ok()).unwrap_or(3.0);
    for (name, subject) in rows.iter().filter(|(name, _)| name.contains(wanted.as_str())) {
        for work in [Work::Transfers, Work::Reads] {
            let rate = subject.run(work, Duration::from_secs_f64(seconds));
            let _ = writeln!(std::io::stdout(), "{name}, {work:?}: {rate:.0} a second");
        }
    }
}
