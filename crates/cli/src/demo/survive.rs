//! A cluster of three processes that survives a kill, before the user's eyes.
//!
//! Each key is kept by all three, which agree on it in groups. Each line is a moment: how many
//! transactions committed, and which nodes live. A node that leads is killed as by `kill -9`, the
//! others go on, and it is started again; what was committed must be there in the end.

use std::io::{Write, stdout};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use muesli::{Connect, Db};
use muesli_cluster::lifecycle::visit::Visit;
use muesli_cluster::wire::control::Control;
use muesli_core::ReplicaRole;
use muesli_workloads::available::find;
use muesli_workloads::connected::Clients;
use muesli_workloads::history::by_versions;
use muesli_workloads::simulated::guarantee;
use muesli_workloads::tally::Tallies;

use crate::local::{ClusterPlan, Temporary};
use crate::table::grouped;

const NODES: usize = 3;
const CLIENTS: u32 = 16;
const PROTOCOL: &str = "score";
/// A line is printed so often.
const MOMENT: Duration = Duration::from_millis(500);
/// How often is looked for commits, to find the longest time without.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// A bar has room for so many characters.
const BAR: u64 = 30;
/// The moments in which something happens.
const KILL_AT: u32 = 3;
const START_AT: u32 = 7;
const STOP_AT: u32 = 10;
/// How long a node may take to say whom it leads.
const ANSWERS_WITHIN: Duration = Duration::from_millis(500);

/// Runs it; whether everything that was committed is there.
///
/// # Errors
/// It cannot be run.
pub fn run() -> anyhow::Result<bool> {
    let cluster = Temporary::up(&ClusterPlan {
        nodes: NODES,
        loops: 1,
        repositories: NODES,
        replicas: 1,
        group: NODES as u16,
        protocol: PROTOCOL.to_owned(),
        durable: true,
        extra: vec!["dead_after_ms = 1000".to_owned(), "alive_every_ms = 200".to_owned()],
        reached: None,
        troubled: false,
    })?;
    print_line(&format!(
        "\nA cluster: {NODES} processes on this machine in groups of {NODES}: each key is on all \
         of them, in logs that are synced;\n{CLIENTS} clients. A server that leads is going to be \
         killed, and the others go on."
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
        workload: find("bank")?.build(&["objects=1000".to_owned()], CLIENTS)?,
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
    let victim = leader(cluster);
    let first = tallies.total().committed;
    let mut watching = Watching {
        tallies,
        start: Instant::now(),
        seen: (first, Instant::now()),
        before: first,
        most: 1,
        pause: Duration::ZERO,
    };
    let (mut killed, mut started) = (0, 0);
    for moment in 1..=STOP_AT {
        let done = watching.wait_until(MOMENT * moment);
        let is_running = |node| if cluster.cluster.process(node).is_some() { '●' } else { '✗' };
        let nodes: String = (0..NODES).flat_map(|node| [' ', is_running(node)]).collect();
        let happens = match moment {
            KILL_AT => {
                (killed, watching.pause) = (watching.before, Duration::ZERO);
                cluster.cluster.kill(victim)?;
                format!("  ← server {victim} is killed")
            }
            START_AT => {
                started = watching.before;
                cluster.cluster.start(victim)?;
                format!("  ← server {victim} starts again and catches up")
            }
            _ => String::new(),
        };
        let bar = "█".repeat((done * BAR / watching.most) as usize);
        let (seconds, done) = ((MOMENT * moment).as_secs_f64(), grouped(done));
        print_line(&format!("{seconds:5.1} s {nodes}  {done:>7} committed {bar:30}{happens}"));
    }
    let a_second = |commits: u64, moments: u32| {
        grouped((commits as f64 / (MOMENT * moments).as_secs_f64()).round() as u64)
    };
    print_line(&format!(
        "Committed a second: {} before the kill, {} while server {victim} was dead, {} after; \
         never nothing for more than {:.2} s.",
        a_second(killed - first, KILL_AT),
        a_second(started - killed, START_AT - KILL_AT),
        a_second(watching.before - started, STOP_AT - START_AT),
        watching.pause.as_secs_f64(),
    ));
    Ok(())
}

/// The node that leads most groups.
fn leader(cluster: &Temporary) -> usize {
    let leads = |node: &usize| {
        let asked = Visit::begin(&cluster.cluster.addresses()[*node], ANSWERS_WITHIN)
            .and_then(|mut visit| visit.ask(&Control::AskMembers));
        let Ok(Control::Members { members, .. }) = asked else { return 0 };
        members.iter().filter(|(_, role)| *role == ReplicaRole::Leads).count()
    };
    (0..NODES).max_by_key(leads).unwrap_or(0)
}

/// What was seen so far.
struct Watching<'a> {
    tallies: &'a Tallies,
    start: Instant,
    /// How many commits there were when there was a new one last, and when that was.
    seen: (u64, Instant),
    /// Commits at the last moment, and the most in one.
    before: u64,
    most: u64,
    /// The longest time without a commit.
    pause: Duration,
}

impl Watching<'_> {
    /// Waits for the next moment; how many committed meanwhile.
    fn wait_until(&mut self, moment: Duration) -> u64 {
        while self.start.elapsed() < moment {
            std::thread::sleep(LOOK_EVERY);
            let now = self.tallies.total().committed;
            self.pause = self.pause.max(self.seen.1.elapsed());
            if now > self.seen.0 {
                self.seen = (now, Instant::now());
            }
        }
        let done = self.seen.0 - self.before;
        (self.before, self.most) = (self.seen.0, self.most.max(done));
        done
    }
}

/// Whether the data and the history are as they must be; says so.
fn judge(clients: &Clients) -> anyhow::Result<bool> {
    let checks = clients.check(Duration::from_secs(10))?;
    let catalog = clients.dbs[0].catalog();
    let history = by_versions(&clients.close(), &catalog, serde_json::Map::default())?;
    let (level, options) = guarantee(PROTOCOL).expect("it was just run");
    let verdict = muesli_check::check(&history, level, &options);
    let broken = checks.iter().find(|check| !check.ok);
    let tally = clients.tallies.total();
    let (committed, unknown) = (grouped(tally.committed), tally.unknown);
    match (broken, verdict.holds()) {
        (Some(check), _) => print_line(&format!("BROKEN: {}: {}", check.name, check.details)),
        (None, false) => print_line(&format!("BROKEN: {verdict}")),
        (None, true) => print_line(&format!(
            "All {committed} committed transactions are there ({unknown} of unknown outcome), \
             and the history is {}.",
            level.name()
        )),
    }
    Ok(broken.is_none() && verdict.holds())
}

fn print_line(line: &str) {
    let mut out = stdout();
    // A reader that has gone away is no matter.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
