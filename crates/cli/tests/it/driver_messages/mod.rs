//! Messages between drivers that say anything, to servers that serve: every kind of them, with
//! numbers, names and places that can be and that cannot, said by probes, clients, administrators
//! and a member that lies. Servers live, do not grow, and what honest clients see is what their
//! protocol promises.
//!
//! What the member does not say is what an administrator may have decided, as that a repository
//! moves or another server has left: that is believed, whoever says it with the secret.

mod drawing;
mod speaker;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, TcpListener};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use muesli::{Connect, Db};
use muesli_cluster::lifecycle::visit::{self, Visit};
use muesli_cluster::wire::control::Control;
use muesli_cluster::wire::hello::ProcessKind;
use muesli_cluster::{Durability, LoopFailure, Server, ServerOptions, StopServer};
use muesli_core::{NodeId, Secret, Settings};
use muesli_workloads::available::{self, find};
use muesli_workloads::connected::Clients;
use muesli_workloads::history::by_versions;
use muesli_workloads::simulated::guarantee;
use muesli_workloads::tally::Tallies;

use drawing::{Drawing, KINDS, kind_of};
use speaker::Speaker;

const PATIENCE: Duration = Duration::from_secs(20);
/// Servers that serve; the one behind them is the member that lies.
const HONEST: usize = 3;
/// Messages between drivers that are said in a round, to all servers together.
const MESSAGES: usize = 3_600;
/// First frames of connections that say anything.
const HELLOS: usize = 300;

pub(super) fn secret() -> Secret {
    Secret::new(b"known to the members alone").unwrap()
}

/// Addresses that are free now, of a loopback address that belongs to this process: no other
/// program takes their ports before the servers do.
fn free_addresses() -> Vec<String> {
    let [_, _, high, low] = std::process::id().to_be_bytes();
    let own = Ipv4Addr::new(127, 1, high, low);
    let bound: Vec<_> = (0..=HONEST).map(|_| TcpListener::bind((own, 0)).unwrap()).collect();
    bound.iter().map(|listener| listener.local_addr().unwrap().to_string()).collect()
}

struct Servers {
    addresses: Vec<String>,
    stops: Vec<StopServer>,
    threads: Vec<JoinHandle<Result<(), LoopFailure>>>,
}

impl Servers {
    fn start(group: u16) -> Servers {
        let addresses = free_addresses();
        let servers: Vec<_> = (0..).map(NodeId).zip(addresses.iter().cloned()).collect();
        let (mut stops, mut threads) = (Vec::new(), Vec::new());
        for (node, listen) in &servers {
            // Members of groups ask all servers, once, whether their group has begun.
            if group <= 1 && node.0 as usize == HONEST {
                continue;
            }
            let options = ServerOptions {
                node: *node,
                listen: listen.clone(),
                servers: servers.clone(),
                repositories: if group > 1 { 1 } else { HONEST },
                group,
                secret: Some(secret()),
                durability: Durability::Memory,
                settings: Settings { record_collected: true, ..Settings::default() },
                ..ServerOptions::default()
            };
            let (sender, receiver) = std::sync::mpsc::channel();
            threads.push(std::thread::spawn(move || {
                let server = Server::open(options).unwrap();
                sender.send(server.stop()).unwrap();
                server.run()
            }));
            stops.push(receiver.recv().unwrap());
        }
        Servers { addresses, stops, threads }
    }

    fn honest(&self) -> &[String] {
        &self.addresses[..HONEST]
    }

    /// What the servers that serve count under names like this, together.
    fn counted(&self, name: &str) -> u64 {
        let status = |address: &String| visit::status(address, PATIENCE).unwrap();
        self.honest().iter().map(|it| status(it).status_of(name).unwrap_or_default()).sum()
    }

    /// Where the last server has come, it leaves its name to the member that lies.
    fn lose_the_last(&mut self) {
        for thread in self.threads.drain(HONEST..) {
            self.stops[HONEST].stop();
            thread.join().unwrap().unwrap();
        }
        self.stops.truncate(HONEST);
    }

    fn live(&self) {
        for (node, thread) in self.threads.iter().enumerate() {
            assert!(!thread.is_finished(), "server {node} has ended");
        }
    }

    fn stop(self) {
        self.stops.iter().for_each(StopServer::stop);
        for thread in self.threads {
            thread.join().unwrap().unwrap();
        }
    }
}

/// Clients that behave, with what they record.
fn clients(servers: &Servers) -> Clients {
    let workload = find("bank").unwrap().build(&["objects=40".to_owned()], 6).unwrap();
    let connect = || {
        let connect = Connect {
            addresses: servers.honest().to_vec(),
            history: true,
            procedures: available::procedures(),
            connect_within: Duration::from_secs(2),
            ..Connect::default()
        };
        Db::connect_with(connect).unwrap()
    };
    Clients {
        dbs: (0..2).map(|_| connect()).collect(),
        workload,
        tallies: Arc::new(Tallies::new(6)),
        seed: 7,
        pause_most: Duration::from_millis(2),
        stop: Arc::default(),
    }
}

/// How much memory this process has, in bytes.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

/// Everybody says everything to everyone.
fn send_anything(servers: &Servers, seed: u64) {
    let process_kinds =
        [ProcessKind::Probe, ProcessKind::Client, ProcessKind::Admin, ProcessKind::Server];
    let mut drawing = Drawing::new(seed);
    let mut speakers: Vec<_> = servers
        .honest()
        .iter()
        .flat_map(|address| process_kinds.map(|process_kind| Speaker::new(address, process_kind)))
        .collect();
    for round in 0..MESSAGES {
        let speaker = &mut speakers[round % (process_kinds.len() * HONEST)];
        let map = speaker.map();
        let control =
            drawing.control(round / (process_kinds.len() * HONEST), &map, speaker.is_member());
        speaker.print_line(&control, drawing.alive());
        if round % 100 == 0 {
            servers.live();
        }
    }
    for round in 0..HELLOS {
        let address = &servers.honest()[round % HONEST];
        speaker::introduce(address, &drawing.hello(round), drawing.odd_frame(round));
    }
    speakers.iter_mut().for_each(Speaker::receive_all);
}

/// At least a fifth has passed, and of each kind what was said was counted.
fn judge_counts(servers: &Servers, group: u16) {
    let mut of_kinds = BTreeMap::new();
    for kind in KINDS {
        let (taken, rejected) = ["taken", "rejected"].map(|it| format!("{kind}-{it}")).into();
        of_kinds.insert(kind, (servers.counted(&taken), servers.counted(&rejected)));
    }
    let (taken, rejected) =
        ["controls-taken", "controls-rejected"].map(|it| servers.counted(it)).into();
    println!("taken {taken}, rejected {rejected}: {of_kinds:?}");
    let all = taken + rejected;
    assert!(all >= MESSAGES as u64 * 9 / 10, "{all} of {MESSAGES}: {of_kinds:?}");
    assert!(taken * 5 >= all && rejected * 5 >= all, "{of_kinds:?}");
    // Nobody asks a server for these; and spaces are made by one way only.
    let other_way = if group > 1 { "create-space" } else { "spaces-made" };
    let answers = ["space-created", "status", "members", "accesses", "loads", "sizes"];
    let never = [&answers[..], &[other_way]].concat();
    for (kind, (taken, rejected)) in of_kinds {
        assert!(taken + rejected >= (MESSAGES / KINDS.len()) as u64 * 3 / 4, "{kind}: too few");
        assert_eq!(taken == 0, never.contains(&kind), "{kind}: {taken} taken");
        assert_eq!(rejected == 0, kind.starts_with("ask-"), "{kind}: {rejected} rejected");
    }
}

fn everybody_sends_everything(group: u16) {
    let mut servers = Servers::start(group);
    // Without groups the member that lies comes first, and tells a map: servers wait for it.
    let mut members = Vec::new();
    if group <= 1 {
        let member = |address: &String| Speaker::new(address, ProcessKind::Server);
        members.extend(servers.honest().iter().map(member));
        members.iter_mut().for_each(Speaker::tell_map);
    }
    let deadline = Instant::now() + PATIENCE;
    while servers.counted("ready") < HONEST as u64 {
        assert!(Instant::now() < deadline, "the servers do not find each other");
        members.iter_mut().for_each(Speaker::receive_all);
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(members);
    let clients = clients(&servers);
    clients.load().unwrap();
    servers.lose_the_last();
    let before = resident();
    let stop = clients.stop.clone();
    std::thread::scope(|scope| {
        let fuzz = scope.spawn(|| {
            let ended =
                catch_unwind(AssertUnwindSafe(|| send_anything(&servers, u64::from(group))));
            stop.store(true, Ordering::Relaxed);
            ended
        });
        clients.run().unwrap();
        fuzz.join().unwrap().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
    servers.live();
    judge_counts(&servers, group);
    let grown = resident().saturating_sub(before) >> 20;
    assert!(grown < 200, "{grown} MiB");
    let checks = clients.check(PATIENCE).unwrap();
    assert!(checks.iter().all(|check| check.ok), "{checks:?}");
    let (total, catalog) = (clients.tallies.total(), clients.dbs[0].catalog());
    assert!(total.ended() > 100, "{} transactions", total.ended());
    let history = by_versions(&clients.close(), &catalog, serde_json::Map::default()).unwrap();
    let (level, options) = guarantee("score").unwrap();
    let verdict = muesli_check::check(&history, level, &options);
    assert!(verdict.holds(), "{verdict}");
    // Whoever comes now is served, and an administrator is answered.
    for address in servers.honest() {
        let mut admin = Visit::begin_as_admin(address, PATIENCE, Some(&secret())).unwrap();
        assert!(matches!(admin.ask(&Control::AskMembers).unwrap(), Control::Members { .. }));
    }
    servers.stop();
}

#[test]
fn servers_take_from_drivers_what_makes_sense() {
    everybody_sends_everything(1);
}

#[test]
fn servers_of_groups_take_from_drivers_what_makes_sense() {
    everybody_sends_everything(3);
}

#[test]
fn every_kind_of_message_is_said() {
    let mut drawing = Drawing::new(1);
    for (round, kind) in KINDS.into_iter().enumerate() {
        let control = drawing.control(round, &Default::default(), true);
        assert_eq!((control.kind(), kind_of(&control)), (kind, round));
    }
}
