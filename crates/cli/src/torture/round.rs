//! One round: a new cluster, clients, faults, and the judgement of what was seen.

use std::fmt;
use std::fs::File;
use std::io::BufWriter;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::Context;
use muesli::{Connect, Db, Report};
use muesli_check::History;
use muesli_core::Catalog;
use muesli_workloads::available::{self, find};
use muesli_workloads::check::Check;
use muesli_workloads::connected::Clients;
use muesli_workloads::history::{by_lists, by_versions};
use muesli_workloads::simulated::guarantee;
use muesli_workloads::tally::{Tallies, Tally};
use muesli_workloads::workload::AnyWorkload;

use super::ballast::{Ballast, LoadedBallast};
use super::copies::FolderCopies;
use super::inflict::{Suffered, Victims};
use super::network::{CuttableNetwork, Means};
use super::operator::{Changed, Guests, JOINS, Operator};
use super::plan::{TortureKind, draw};
use super::probe::Probe;
use super::roster::Roster;
use crate::local::{ClusterPlan, LocalCluster};
use crate::options::tree::{self, TreeOptions};

/// Native clients, each with connections of its own.
const NATIVE_CLIENTS: usize = 2;
/// Clients that run transactions, dealt to the native clients.
const CLIENTS: u32 = 16;
/// A client pauses for at most so long between transactions.
const PAUSE_MOST: Duration = Duration::from_millis(10);
/// An operation of a client waits so long for its answer.
const GIVE_UP_AFTER: Duration = Duration::from_millis(1_500);
/// When all faults are over, the cluster must serve again within this, and longer where much was
/// loaded: what a server holds it reads from its disk, or fetches, and all may do so at once.
const SERVES_WITHIN: Duration = Duration::from_secs(20);
/// So much longer for each megabyte that was loaded.
const A_MEGABYTE_TAKES: Duration = Duration::from_millis(20);
/// The clients go on for so long when it does.
const CALM: Duration = Duration::from_millis(500);
/// Connections are given up soon, and come again often.
const SHORT_SILENCES: [&str; 2] = ["alive_every_ms = 200", "dead_after_ms = 1000"];
/// Logs and checkpoints are small, so that there are many.
const SMALL_LOGS: [&str; 2] = ["log_segment_bytes = 200000", "checkpoint_bytes = 300000"];
/// Snapshots are let go while a client or a server is silent by a fault, which none is for the ten
/// seconds of production.
const SHORT_LEASES: [&str; 2] = ["snapshot_lease_ms = 500", "snapshot_age_max_ms = 1000"];

/// What a round is to be.
#[derive(Clone, Debug)]
pub struct TortureRound {
    pub seed: u64,
    pub length: Duration,
    pub kinds: Vec<TortureKind>,
    /// All of them, those that only have validators included.
    pub nodes: usize,
    pub replicas: usize,
    pub group: u16,
    /// The tree above those with data.
    pub tree: TreeOptions,
    /// How partitions are made.
    pub means: Means,
    pub protocol: String,
    pub durable: bool,
    pub workload: &'static str,
    pub parameters: Vec<String>,
    /// What is loaded beside; something: all sizes and times are those of production.
    pub ballast: Ballast,
    /// Whether leases of snapshots are so short that they end in faults, where nothing is loaded.
    pub short_leases: bool,
    /// When a leader dies and nothing else is wrong, its group must serve again within this.
    pub fails_over_within: Duration,
}

/// What came of a round that could be run.
#[derive(Debug)]
pub struct Ran {
    pub tally: Tally,
    pub recovered: Vec<Recovered>,
    /// How long after the death of each leader that died undisturbed everything was served.
    pub fail_overs: Vec<Duration>,
    /// What became of changes of the placement, if there were any.
    pub changed: Option<Changed>,
    /// What was found wrong, if anything.
    pub violation: Option<String>,
}

/// How long after the end of a fault the cluster served.
#[derive(Clone, Debug)]
pub struct Recovered {
    pub name: String,
    /// `None` where another fault was in the way.
    pub after: Option<Duration>,
}

impl fmt::Display for TortureRound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TortureRound { seed, workload, nodes, replicas, group, .. } = self;
        let seconds = self.length.as_secs_f64();
        let groups = if *group > 1 { format!(", groups of {group}") } else { String::new() };
        let is_of_nesting = |it: &&String| it.starts_with("nesting=") || it.starts_with("open=");
        let nesting = self.parameters.iter().filter(is_of_nesting);
        let nesting = nesting.map(|it| format!(" {it}")).collect::<String>();
        write!(
            f,
            "seed {seed}: {workload}{nesting}, {nodes} servers, {replicas} replicas{groups}"
        )?;
        let leases = if self.ends_leases() { ", leases of 0.5 s" } else { "" };
        write!(f, ", {seconds:.0} s{leases}")
    }
}

/// The parts of a round while it runs.
struct RunningRound<'a> {
    round: &'a TortureRound,
    cluster: &'a LocalCluster,
    roster: &'a Roster,
    network: &'a dyn CuttableNetwork,
    clients: Clients,
    ballast: Option<LoadedBallast>,
    operator: Option<Operator<'a>>,
    catalog: Arc<Catalog>,
}

impl TortureRound {
    /// Runs it in `dir`; `over` ends it early.
    ///
    /// # Errors
    /// It cannot be run.
    pub fn run(&self, dir: &std::path::Path, over: &AtomicBool) -> anyhow::Result<Ran> {
        let (cluster, network) = self.means.lay_out(dir, self.nodes + self.joins())?;
        let (network, roster) = (&*network, Roster::of(self.nodes));
        let plan = self.plan(network)?;
        let _down = Down(&cluster);
        cluster.start_all(&plan)?;
        let reached = network.reached().map(|reached| reached.servers);
        let all = reached.unwrap_or_else(|| cluster.addresses().to_vec());
        let addresses = all[..self.nodes].to_vec();
        let workload = find(self.workload)?.build(&self.parameters, CLIENTS)?;
        if let Some(roots) = workload.roots() {
            roots.recorder().switch_on();
        }
        let connect = |number| self.connect(number, &addresses, workload.as_ref());
        let dbs: Result<Vec<_>, _> = (0..NATIVE_CLIENTS).map(connect).collect();
        let clients = Clients {
            dbs: dbs?,
            workload,
            tallies: Arc::new(Tallies::new(CLIENTS)),
            seed: self.seed,
            pause_most: PAUSE_MOST,
            stop: Arc::default(),
        };
        clients.load().context("the first data cannot be written")?;
        let ballast = self.ballast.load(&addresses, &self.protocol, self.seed, over)?;
        let probe = Probe::begin(&addresses, &self.protocol)?;
        let catalog = clients.dbs[0].catalog();
        let kinds: Vec<_> = self.kinds.iter().copied().filter(|kind| kind.is_beside()).collect();
        let operator = Operator {
            cluster: &cluster,
            roster: &roster,
            plan: &plan,
            addresses: all,
            secret: cluster.secret()?,
            seed: self.seed,
            kinds,
            guests: Mutex::new(Guests::behind(self.nodes)),
        };
        let operator = (!operator.kinds.is_empty()).then_some(operator);
        let running = RunningRound {
            round: self,
            cluster: &cluster,
            roster: &roster,
            network,
            clients,
            ballast,
            operator,
            catalog,
        };
        running.run(probe, over, dir)
    }

    /// When all faults are over, the cluster must serve again within this.
    fn serves_within(&self) -> Duration {
        let megabytes = u32::try_from(self.ballast.bytes >> 20).unwrap_or(u32::MAX);
        SERVES_WITHIN + A_MEGABYTE_TAKES.saturating_mul(megabytes)
    }

    /// How many servers may join.
    fn joins(&self) -> usize {
        if self.kinds.contains(&TortureKind::Join) { JOINS } else { 0 }
    }

    /// Whether leases of snapshots end while faults last.
    fn ends_leases(&self) -> bool {
        self.ballast.bytes == 0 && self.short_leases
    }

    /// What servers are configured with, beside what each cluster needs.
    fn keys(&self) -> Vec<&'static str> {
        let mut keys = vec!["record_collected = true"];
        if self.ballast.bytes == 0 {
            keys.extend(SHORT_SILENCES.iter().chain(&SMALL_LOGS));
        }
        if self.ends_leases() {
            keys.extend(SHORT_LEASES);
        }
        keys
    }

    fn plan(&self, network: &dyn CuttableNetwork) -> anyhow::Result<ClusterPlan> {
        let mut extra: Vec<_> = self.keys().into_iter().map(str::to_owned).collect();
        if let Some(tree) = self.tree.plan() {
            let apart = usize::from(self.tree.validator_nodes);
            extra.extend(tree::keys(&tree, self.with_data(), apart)?);
        }
        Ok(ClusterPlan {
            nodes: self.nodes,
            loops: 1,
            repositories: self.with_data().max(self.replicas),
            replicas: self.replicas,
            group: self.group,
            protocol: self.protocol.clone(),
            durable: self.durable,
            extra,
            reached: network.reached(),
            troubled: true,
        })
    }

    /// How many servers hold data.
    fn with_data(&self) -> usize {
        self.nodes - usize::from(self.tree.validator_nodes)
    }

    /// A client. Each is near to another server, so that data that move do so on and on.
    fn connect(
        &self,
        number: usize,
        addresses: &[String],
        workload: &dyn AnyWorkload,
    ) -> anyhow::Result<Db> {
        Ok(Db::connect_with(Connect {
            addresses: addresses.to_vec(),
            protocol: self.protocol.clone(),
            near: Some((number % self.with_data()) as u32),
            history: workload.history().is_none(),
            procedures: available::procedures(),
            give_up_after: GIVE_UP_AFTER,
            ..Connect::default()
        })?)
    }
}

impl RunningRound<'_> {
    fn run(&self, probe: Probe, over: &AtomicBool, dir: &std::path::Path) -> anyhow::Result<Ran> {
        let (suffered, ran, changed) = std::thread::scope(|scope| {
            let faults = scope.spawn(|| {
                let suffered = self.suffer(&probe, over);
                self.clients.stop.store(true, Ordering::Relaxed);
                suffered
            });
            if let Some(ballast) = &self.ballast {
                scope.spawn(|| ballast.use_until(&self.clients.stop));
            }
            let stop = &self.clients.stop;
            let changes =
                self.operator.as_ref().map(|operator| scope.spawn(|| operator.change_until(stop)));
            let ran = self.clients.run();
            let suffered = faults.join().expect("faults are not to panic");
            let changed = changes.map(|it| it.join().expect("changes are not to panic"));
            (suffered, ran, changed.transpose())
        });
        let all = suffered.as_deref().unwrap_or_default();
        let recovered = all.iter().map(|one| recovery(one, all, &probe)).collect();
        let most = self.round.fails_over_within;
        let fail_overs: Vec<_> =
            all.iter().filter_map(|one| fail_over(one, all, &probe, most)).collect();
        drop(probe);
        let late = fail_overs.iter().find(|after| **after > most).map(|after| {
            let (after, most) = (after.as_secs_f64(), most.as_secs_f64());
            format!("not served for {after:.2} s after a leader died, where {most} s are allowed")
        });
        let (changed, troubled) = match changed {
            Ok(changed) => (changed, None),
            Err(error) => (None, Some(error)),
        };
        let mut at_the_end = None;
        let at_last = || self.operator.as_ref().map(Operator::change_at_last).transpose();
        let violation = match (suffered.map(|_| troubled), ran) {
            (Err(error) | Ok(Some(error)), _) => Some(format!("{error:#}")),
            (Ok(None), Err(error)) => Some(format!("a client could not go on: {error}")),
            (Ok(None), Ok(())) => {
                let last = at_last();
                let failed = last.as_ref().err().map(|error| format!("{error:#}"));
                at_the_end = last.ok().flatten();
                // What was recorded is judged all the same.
                let judged = self.judge(dir)?;
                let both =
                    [failed, judged].into_iter().flatten().reduce(|all, one| all + "; " + &one);
                both.or(late)
            }
        };
        let changed = [changed, at_the_end].into_iter().flatten().reduce(Changed::and);
        let tally = self.clients.tallies.total();
        Ok(Ran { tally, recovered, fail_overs, changed, violation })
    }

    /// Carries out the faults, and sees to it that the cluster serves afterwards.
    fn suffer(&self, probe: &Probe, over: &AtomicBool) -> anyhow::Result<Vec<Suffered>> {
        let TortureRound { seed, ref kinds, nodes, length, .. } = *self.round;
        let RunningRound { cluster, roster, network, .. } = *self;
        let victims = Victims { cluster, roster, network, copies: FolderCopies::default() };
        let suffered = victims.suffer(&draw(seed, kinds, nodes, length), over)?;
        let healed = Instant::now();
        let within = self.round.serves_within();
        let served = probe.wait_until_served(healed, within);
        served.with_context(|| {
            let words: Vec<_> = (0..nodes).map(|node| self.cluster.last_output(node)).collect();
            let seconds = within.as_secs();
            format!("not served within {seconds} s after all faults; last words: {words:?}")
        })?;
        std::thread::sleep(CALM);
        Ok(suffered)
    }

    /// What is wrong with what was seen, if anything.
    fn judge(&self, dir: &std::path::Path) -> anyhow::Result<Option<String>> {
        let within = self.round.serves_within();
        let mut checks = match self.clients.check(within) {
            Ok(checks) => checks,
            Err(error) => return Ok(Some(format!("the data cannot be read: {error}"))),
        };
        checks.push(self.clients.tallies.total().expected());
        if let Some(wrong) = self.ballast.as_ref().and_then(|it| it.check(within)) {
            return Ok(Some(wrong));
        }
        let reports = self.clients.close();
        let history = self.history(&reports);
        let history = match history {
            Ok(history) => history,
            Err(error) => return Ok(Some(format!("no history: {error:#}"))),
        };
        let (level, options) = guarantee(&self.round.protocol).context("it was just run")?;
        let verdict = muesli_check::check(&history, level, &options);
        let broken: Option<&Check> = checks.iter().find(|check| !check.ok);
        let violation = match (broken, verdict.holds()) {
            (Some(check), _) => Some(format!("{}: {}", check.name, check.details)),
            (None, false) => Some(verdict.to_string()),
            (None, true) => None,
        };
        if violation.is_some() {
            let file = dir.join("history.jsonl");
            history.write(BufWriter::new(File::create(file)?))?;
        }
        Ok(violation)
    }

    /// As the simulator has it: roots of open children are in it, with what their operations
    /// answered.
    fn history(&self, reports: &[Report]) -> anyhow::Result<History> {
        let meta = [("workload", self.round.workload.into()), ("seed", self.round.seed.into())];
        let meta = meta.map(|(name, value)| (name.to_owned(), value)).into_iter().collect();
        Ok(match self.clients.workload.history() {
            Some(lists) => by_lists(&lists, meta)?,
            None => {
                let mut history = by_versions(reports, &self.catalog, meta)?;
                if let Some(roots) = self.clients.workload.roots() {
                    roots.add_roots(&mut history)?;
                }
                history
            }
        })
    }
}

/// How long it took to serve after the end of `one`, unless others of `all` were in the way.
fn recovery(one: &Suffered, all: &[Suffered], probe: &Probe) -> Recovered {
    let after = probe.served_after(one.ended).filter(|after| {
        let until = one.ended + *after;
        let others = all.iter().filter(|other| !std::ptr::eq(*other, one));
        others.into_iter().all(|other| other.ended < one.ended || until < other.began)
    });
    Recovered { name: one.name.clone(), after }
}

/// How long nothing was served after a leader died by `one`, unless others of `all` were in the way
/// before it was served again or had to be.
fn fail_over(one: &Suffered, all: &[Suffered], probe: &Probe, most: Duration) -> Option<Duration> {
    let after = probe.served_after(one.began).filter(|_| one.deposes)?;
    let until = one.began + after.min(most);
    let others = all.iter().filter(|other| !std::ptr::eq(*other, one));
    let is_apart = |other: &Suffered| other.ended < one.began || until < other.began;
    others.into_iter().all(is_apart).then_some(after)
}

/// Stops a cluster when it is dropped, however the round went.
struct Down<'a>(&'a LocalCluster);

impl Drop for Down<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.0.down() {
            eprintln!("muesli: {error:#}");
        }
    }
}
