//! A cluster of three processes that survives a kill, before the user's eyes.
//!
//! Each line is a moment: how many transactions committed, and which nodes live. One node is
//! killed as by `kill -9` and started again; what was committed must be there in the end.

use std::io::{Write, stdout};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use muesli::{Connect, Db};
use muesli_workloads::connected::Clients;
use muesli_workloads::history::by_versions;
use muesli_workloads::registry::find;
use muesli_workloads::simulated::promise;
use muesli_workloads::tally::Tallies;

use crate::local::{Plan, Temporary};
use crate::table::grouped;

const NODES: usize = 3;
const CLIENTS: u32 = 16;
const PROTOCOL: &str = "score";
/// A line is printed so often.
const MOMENT: Duration = Duration::from_millis(500);
/// A bar has room for so many characters.
const BAR: u64 = 30;
/// The moments in which something happens.
const KILL_AT: u32 = 4;
const START_AT: u32 = 8;
const STOP_AT: u32 = 13;
/// Who is killed.
const VICTIM: usize = 1;

/// Runs it; whether everything that was committed is there.
///
/// # Errors
/// It cannot be run.
pub fn run() -> anyhow::Result<bool> {
    let cluster = Temporary::up(&Plan {
        nodes: NODES,
        loops: 1,
        repositories: NODES,
        replicas: 2,
        group: 1,
        protocol: PROTOCOL.to_owned(),
        durable: true,
        extra: vec!["dead_after_ms = 1000".to_owned(), "alive_every_ms = 200".to_owned()],
        reached: None,
        troubled: false,
    })?;
    say(&format!(
        "\nA cluster: {NODES} processes on this machine, each key on two of them, with logs that \
         are synced;\n{CLIENTS} clients. Node {VICTIM} is going to be killed."
    ));
    let db = Db::connect_with(Connect {
        addresses: cluster.cluster.addresses().to_vec(),
        protocol: PROTOCOL.to_owned(),
        history: true,
        give_up_after: Duration::from_secs(2),
        ..Connect::default()
    })?;
    let clients = Clients {
        dbs: vec![db],
        workload: find("bank")?.build(&["keys=1000".to_owned()], CLIENTS)?,
        tallies: Arc::new(Tallies::new(CLIENTS)),
        seed: 1,
        pause_most: Duration::from_millis(1),
        stop: Arc::default(),
    };
    clients.load()?;
    std::thread::scope(|scope| {
        let ran = scope.spawn(|| clients.run());
        let watched = watch(&cluster, &clients.tallies);
        clients.stop.store(true, Ordering::Relaxed);
        watched.and(ran.join().expect("clients are not to panic").map_err(Into::into))
    })?;
    judge(&clients)
}

/// Prints the moments, and lets happen in them what is to happen.
fn watch(cluster: &Temporary, tallies: &Tallies) -> anyhow::Result<()> {
    let committed = || tallies.total().committed;
    let (start, mut before, mut most) = (Instant::now(), committed(), 1);
    for moment in 1..=STOP_AT {
        let until = MOMENT * moment;
        std::thread::sleep(until.saturating_sub(start.elapsed()));
        let now = committed();
        let done = now - before;
        before = now;
        most = most.max(done);
        let bar = "█".repeat((done * BAR / most) as usize);
        let lives = |node| if cluster.cluster.process(node).is_some() { '●' } else { '✗' };
        let nodes: String = (0..NODES).flat_map(|node| [' ', lives(node)]).collect();
        let happens = match moment {
            KILL_AT => {
                cluster.cluster.kill(VICTIM)?;
                format!("  ← node {VICTIM} is killed")
            }
            START_AT => {
                cluster.cluster.start(VICTIM)?;
                format!("  ← node {VICTIM} starts again and replays its log")
            }
            _ => String::new(),
        };
        let (seconds, done) = (until.as_secs_f64(), grouped(done));
        say(&format!("{seconds:5.1} s {nodes}  {done:>7} committed {bar:30}{happens}"));
    }
    Ok(())
}

/// Whether the data and the history are as they must be; says so.
fn judge(clients: &Clients) -> anyhow::Result<bool> {
    let checks = clients.check(Duration::from_secs(10))?;
    let catalog = clients.dbs[0].catalog();
    let history = by_versions(&clients.close(), &catalog, serde_json::Map::default())?;
    let (level, options) = promise(PROTOCOL).expect("it was just run");
    let verdict = muesli_check::check(&history, level, &options);
    let broken = checks.iter().find(|check| !check.ok);
    let tally = clients.tallies.total();
    let (committed, unknown) = (grouped(tally.committed), tally.unknown);
    match (broken, verdict.holds()) {
        (Some(check), _) => say(&format!("BROKEN: {}: {}", check.name, check.details)),
        (None, false) => say(&format!("BROKEN: {verdict}")),
        (None, true) => say(&format!(
            "All {committed} committed transactions are there ({unknown} of unknown outcome), \
             and the history is {}.",
            level.name()
        )),
    }
    Ok(broken.is_none() && verdict.holds())
}

fn say(line: &str) {
    let mut out = stdout();
    // A reader that has gone away is no matter.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
