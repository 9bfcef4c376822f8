//! Real processes: servers started by the command line, clients in this process and in others.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

use muesli::{Connect, Db, Doubt, Error, Outcome, SpaceOptions};
use muesli_cluster::lifecycle::visit;
use muesli_workloads::available::find;
use muesli_workloads::embedded::{self, Embedded, Length};
use muesli_workloads::history::by_versions;
use muesli_workloads::simulated::guarantee;
use muesli_workloads::tally::Tallies;

pub(crate) fn muesli(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_muesli"));
    command.args(arguments);
    command
}

pub(crate) fn output_text(output: &Output) -> String {
    let texts = [&output.stdout, &output.stderr];
    texts.map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}

/// A cluster in a folder of its own, stopped and removed when dropped.
pub(crate) struct Cluster {
    dir: tempfile::TempDir,
    pub(crate) protocol: String,
}

impl Cluster {
    pub(crate) fn up(arguments: &[&str]) -> Cluster {
        let protocol = arguments.iter().skip_while(|it| **it != "--protocol").nth(1);
        let protocol = (*protocol.unwrap_or(&"score")).to_owned();
        let cluster = Cluster { dir: tempfile::tempdir().unwrap(), protocol };
        assert!(cluster.checked_output(&[&["up"], arguments].concat()).contains(" at 127.0.0.1:"));
        cluster
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        let dir = self.dir.path().to_str().unwrap();
        let all = [&["cluster"], arguments, &["--dir", dir]].concat();
        muesli(&all).output().unwrap()
    }

    pub(crate) fn checked_output(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", output_text(&output));
        output_text(&output)
    }

    pub(crate) fn addresses(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.dir.path().join("addresses")).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    pub(crate) fn node(&self, node: usize) -> PathBuf {
        self.dir.path().join(format!("node-{node}"))
    }

    /// The file of the cluster's secret.
    pub(crate) fn secret(&self) -> String {
        self.dir.path().join("secret").display().to_string()
    }

    /// The last line that a node has printed.
    pub(crate) fn last_output(&self, node: usize) -> String {
        let text = std::fs::read_to_string(self.node(node).join("output")).unwrap_or_default();
        text.lines().last().unwrap_or_default().to_owned()
    }

    fn status(&self, node: usize, name: &str) -> u64 {
        let visited = visit::status(&self.addresses()[node], Duration::from_secs(20));
        visited.unwrap().status_of(name).unwrap()
    }

    pub(crate) fn signal(&self, node: usize, signal: rustix::process::Signal) {
        let text = std::fs::read_to_string(self.node(node).join("pid")).unwrap();
        let process = rustix::process::Pid::from_raw(text.trim().parse().unwrap()).unwrap();
        rustix::process::kill_process(process, signal).unwrap();
    }

    pub(crate) fn connect(&self, history: bool) -> Db {
        self.connect_near(None, history)
    }

    /// A client that is near to a node.
    pub(crate) fn connect_near(&self, near: Option<u32>, history: bool) -> Db {
        let (addresses, protocol) = (self.addresses(), self.protocol.clone());
        let give_up_after = Duration::from_secs(2);
        let usual = Connect::default();
        let connect = Connect { addresses, protocol, near, history, give_up_after, ..usual };
        Db::connect_with(connect).unwrap()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.run(&["down"]);
    }
}

fn output_of(node: &Path) -> String {
    std::fs::read_to_string(node.join("output")).unwrap()
}

/// What a transaction that is left open holds back is shown, with the client that holds it.
#[test]
fn what_an_open_snapshot_holds_back_is_shown_in_the_status() {
    let cluster = Cluster::up(&["--nodes", "1", "--memory"]);
    let db = cluster.connect(false);
    let space = db.create_space("s", SpaceOptions::default()).unwrap();
    let put = |db: &Db| {
        let value = vec![7; 100_000];
        db.blocking().transact(async move |tx| tx.put(space, "key", value.clone()).await).unwrap();
    };
    put(&db);
    let reader = db.blocking().begin().unwrap();
    assert!(muesli::blocking::block_on(reader.get(space, "key")).unwrap().is_some());
    let client = cluster.connect(false);
    let held = || cluster.status(0, "old-version-bytes");
    while held() < 1_000_000 {
        put(&client);
    }
    let addresses = cluster.addresses().join(",");
    let output = muesli(&["admin", "status", "--connect", &addresses]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", output_text(&output));
    let admin = output_text(&output);
    let names = ["memory-bytes", "old-version-bytes", "oldest-snapshot-ms", "oldest-snapshot-node"];
    for name in names {
        assert!(admin.contains(name), "{name} is not in\n{admin}");
    }
    assert!(cluster.status(0, "memory-bytes") >= held());
    // The server knows who holds it, a client and no server, and not since when.
    while cluster.status(0, "oldest-snapshot-node") == 0 {
        put(&client);
    }
    assert_eq!(cluster.status(0, "oldest-snapshot-ms"), 0);
    muesli::blocking::block_on(reader.rollback()).unwrap();
    // Clients say by timers what they need.
    while held() > 0 {
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Runs transfers over a client of this process and judges their history.
pub(crate) fn bank_holds(cluster: &Cluster, transactions: u64) {
    let workload = find("bank").unwrap().build(&["objects=200".to_owned()], 8).unwrap();
    let tallies = Arc::new(Tallies::new(8));
    let plan = Embedded {
        options: muesli::Options::default(),
        warm_up: Duration::ZERO,
        length: Length::Transactions(transactions),
        seed: 1,
        strict: false,
    };
    let db = cluster.connect(true);
    let outcome = embedded::run_connected(&[db], &workload, &plan, &tallies).unwrap();
    assert!(outcome.checks.iter().all(|check| check.ok), "{:?}", outcome.checks);
    let history = by_versions(&outcome.reports, &outcome.catalog, Default::default()).unwrap();
    let (level, options) = guarantee(&cluster.protocol).unwrap();
    let verdict = muesli_check::check(&history, level, &options);
    assert!(verdict.holds(), "{verdict}");
    assert!(outcome.tally.committed > 0);
}

#[test]
fn three_processes_keep_their_promises_and_stop_when_told() {
    let cluster = Cluster::up(&["--nodes", "3", "--replicas", "2"]);
    bank_holds(&cluster, 2_000);
    let table = cluster.checked_output(&["status"]);
    assert!(!table.contains("dead"), "{table}");
    assert!(cluster.checked_output(&["down"]).contains("3 servers stopped"));
    for node in 0..3 {
        let last = output_of(&cluster.node(node));
        assert!(last.trim_end().ends_with(&format!("server {node} stopped")), "{last}");
    }
    assert!(cluster.checked_output(&["status"]).matches("dead").count() == 3);
}

#[test]
fn data_of_an_earlier_run_are_told_and_not_taken_for_broken() {
    let cluster = Cluster::up(&["--nodes", "1"]);
    let addresses = cluster.addresses().join(",");
    let measured = || {
        let all = ["bench", "ycsb", "--driver", "cluster", "--connect", &addresses];
        let length = ["--clients", "2", "--seconds", "0.2", "--param", "keys=50"];
        let output = muesli(&[&all[..], &length].concat()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", output_text(&output));
        output_text(&output)
    };
    let checked =
        |output_text: &str| (output_text.contains("holds"), output_text.contains("not checked"));
    let [first, second] = [measured(), measured()];
    assert_eq!(checked(&first), (true, false), "{first}");
    assert_eq!(checked(&second), (true, true), "{second}");
    assert!(second.contains("data of an earlier run"), "{second}");
}

/// A client process in the middle of its work.
fn client(cluster: &Cluster) -> Child {
    let addresses = cluster.addresses().join(",");
    let arguments =
        ["bench", "bank", "--driver", "cluster", "--connect", &addresses, "--seconds", "60"];
    let mut command = muesli(&arguments);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

#[test]
fn a_client_that_dies_leaves_nothing_in_doubt() {
    let cluster = Cluster::up(&["--nodes", "3", "--replicas", "2", "--memory"]);
    for _ in 0..3 {
        let before = cluster.status(0, "messages-sent");
        let mut client = client(&cluster);
        // In the middle: thousands of messages were answered.
        while cluster.status(0, "messages-sent") < before + 5_000 {
            std::thread::sleep(Duration::from_millis(10));
        }
        client.kill().unwrap();
        client.wait().unwrap();
    }
    for node in 0..3 {
        while cluster.status(node, "clients") + cluster.status(node, "in-doubt") > 0 {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    every_account_is_there(&cluster, 1_000);
}

#[test]
fn delayed_procedures_are_run_by_servers_and_their_answers_come_back() {
    let protocols = "bumper,bumper-reconciled";
    let cluster =
        ["--driver", "cluster", "--nodes", "3", "--replicas", "2", "--protocol", protocols];
    let load = ["--clients", "4", "--transactions", "200"];
    let asked = ["--param", "delayed=true", "--param", "procedures=true", "--param", "asked=true"];
    let all = [&["bench", "counters"][..], &cluster, &load, &asked].concat();
    let output = muesli(&all).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", output_text(&output));
    let counted = output_text(&output)
        .lines()
        .find(|line| line.contains("what was added"))
        .map(str::to_owned);
    assert!(
        counted.is_some_and(|line| line.matches("holds").count() == 2),
        "{}",
        output_text(&output)
    );
}

/// The data of other clients are there: everybody can still read and write all of them.
pub(crate) fn every_account_is_there(cluster: &Cluster, many: u32) {
    write_all_accounts(&cluster.connect(false), many);
}

/// Reads and writes all accounts.
pub(crate) fn write_all_accounts(db: &Db, many: u32) {
    let accounts = db.space("accounts").unwrap();
    let rows = db.blocking().transact(async move |tx| {
        let keys: Vec<_> = (0..many).map(|key: u32| key.to_string()).collect();
        let found = tx.get_many(accounts, keys.iter().map(String::as_str)).await?;
        for (key, value) in keys.iter().zip(&found) {
            tx.put(accounts, key.as_str(), value.clone().expect("every account was loaded"))
                .await?;
        }
        Ok::<_, Error>(found.len())
    });
    assert_eq!(rows, Ok(many as usize));
}

#[test]
fn a_durable_node_comes_back_with_what_was_committed() {
    let cluster = Cluster::up(&["--nodes", "3", "--replicas", "2"]);
    let db = cluster.connect(false);
    let counters = db.create_space("counters", SpaceOptions::default()).unwrap();
    let counters = counters.typed::<u64, u64>();
    for round in 1..=6u64 {
        let node = (round % 3).to_string();
        cluster.checked_output(&["kill", &node]);
        assert!(cluster.checked_output(&["restart", &node]).contains("serves"));
        let seen = db.strict().blocking().transact(async move |tx| {
            for key in 0..30 {
                let seen = counters.get(tx, &key).await?.unwrap_or(0);
                if seen != round - 1 {
                    return Err(Error::rollback(format!("{key} is {seen} in round {round}")));
                }
                counters.put(tx, &key, &round).await?;
            }
            Ok(())
        });
        assert_eq!(seen, Ok(()));
    }
}

#[test]
fn a_node_of_memory_that_lost_its_data_is_refused_and_clients_are_told_errors() {
    let cluster = Cluster::up(&["--nodes", "2", "--memory"]);
    let db = cluster.connect(false);
    let space = db.create_space("s", SpaceOptions::default()).unwrap();
    let write = move |db: &Db| {
        db.blocking().transact(async move |tx| {
            for key in 0..20u8 {
                tx.put(space, vec![key], "value").await?;
            }
            Ok(())
        })
    };
    write(&db).unwrap();
    cluster.checked_output(&["kill", "1"]);
    let error = write(&db).unwrap_err();
    assert!(matches!(error, Error::Unknown { .. } | Error::Timeout { .. }), "{error}");
    let again = cluster.run(&["restart", "1"]);
    assert_eq!(again.status.code(), Some(2));
    assert!(output_text(&again).contains("node 1 has lost its data"), "{}", output_text(&again));
}

#[test]
fn checkpoints_are_taken_while_clients_run_and_started_from() {
    let keys = ["checkpoint_bytes=40000", "log_segment_bytes=65536", "record_collected=true"];
    let set = keys.iter().flat_map(|key| ["--set", key]);
    let up: Vec<_> = ["--nodes", "2", "--replicas", "2"].into_iter().chain(set).collect();
    let cluster = Cluster::up(&up);
    bank_holds(&cluster, 3_000);
    for node in ["0", "1"] {
        let number = node.parse().unwrap();
        assert!(cluster.status(number, "checkpoints") > 2);
        let log = cluster.node(number).join("data/log");
        let files = std::fs::read_dir(log).unwrap().map(|file| file.unwrap().file_name());
        let names: Vec<_> = files.map(|name| name.into_string().unwrap()).collect();
        let checkpoints = names.iter().filter(|name| name.starts_with("checkpoint")).count();
        assert!((1..=3).contains(&checkpoints), "{names:?}");
        cluster.checked_output(&["kill", node]);
        cluster.checked_output(&["restart", node]);
        assert!(output_of(&cluster.node(number)).contains("a checkpoint held the first"));
    }
    every_account_is_there(&cluster, 200);
}

#[test]
fn processes_of_several_loops_keep_their_promises_and_their_data() {
    let cluster = Cluster::up(&["--nodes", "2", "--loops", "2", "--replicas", "2"]);
    bank_holds(&cluster, 1_000);
    cluster.checked_output(&["kill", "1"]);
    cluster.checked_output(&["restart", "1"]);
    every_account_is_there(&cluster, 200);
    cluster.checked_output(&["down"]);
    let file = cluster.node(0).join("muesli.toml");
    let fewer = muesli(&["start", "--loops", "1", "--config", file.to_str().unwrap()]).output();
    assert!(output_text(&fewer.unwrap()).contains("those of 2 loops, not of 1"));
}

#[test]
fn what_became_of_an_unanswered_commit_is_told_later() {
    let cluster = Cluster::up(&["--nodes", "2", "--replicas", "2", "--repositories", "2"]);
    let db = cluster.connect(false);
    let space = db.create_space("s", SpaceOptions::default()).unwrap();
    let read = move |db: &Db| {
        let strict = db.strict();
        strict.blocking().transact(async move |tx| tx.get(space, "key").await).unwrap()
    };
    for round in 0..2u8 {
        let before = read(&db);
        let transaction = db.blocking().begin().unwrap();
        muesli::blocking::block_on(async {
            transaction.get(space, "key").await.unwrap();
            transaction.put(space, "key", vec![round]).await.unwrap();
        });
        // From here on nobody can have all votes before the node goes on.
        cluster.signal(1, rustix::process::Signal::STOP);
        let ended = muesli::blocking::block_on(transaction.commit());
        let Err(Error::Unknown { txn, .. }) = ended else { panic!("{ended:?}") };
        let known = db.blocking().outcome(txn).unwrap();
        assert_eq!(known, Outcome::NotKnown(Doubt::UnderWay));
        cluster.signal(1, rustix::process::Signal::CONT);
        let outcome = loop {
            match db.blocking().outcome(txn).unwrap() {
                Outcome::NotKnown(Doubt::UnderWay) => {}
                known => break known,
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        let now = read(&db);
        match outcome {
            Outcome::Committed(_) => assert_eq!(now.unwrap(), muesli::SmallBytes::new(&[round])),
            Outcome::Aborted(_) => assert_eq!(now, before),
            Outcome::NotKnown(why) => panic!("{why}"),
        }
        assert_eq!(db.blocking().outcome(txn).unwrap(), outcome);
        let another = cluster.connect(false);
        let known = another.blocking().outcome(txn).unwrap();
        assert_eq!(known, Outcome::NotKnown(Doubt::Elsewhere));
    }
}

#[test]
fn sigterm_ends_a_lone_server_with_status_zero() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let arguments = ["start", "--listen", "127.0.0.1:0", "--data-dir", data.to_str().unwrap()];
    for _ in 0..2 {
        let mut server = muesli(&arguments).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines =
            std::io::BufRead::lines(std::io::BufReader::new(server.stdout.take().unwrap()));
        let output_text =
            lines.by_ref().map(Result::unwrap).find(|line| line.contains("listens on"));
        let output_text = output_text.unwrap();
        let address = output_text.split("listens on ").nth(1).unwrap().split(';').next().unwrap();
        let db = Db::connect([address]).unwrap();
        db.create_space("s", SpaceOptions::default()).unwrap();
        let id = rustix::process::Pid::from_child(&server);
        rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
        assert_eq!(server.wait().unwrap().code(), Some(0));
        assert_eq!(lines.last().unwrap().unwrap(), "server 0 stopped");
    }
}

#[test]
fn members_of_a_lone_server_are_told_and_a_silent_one_is_an_error() {
    let cluster = Cluster::up(&["--servers", "2", "--memory"]);
    let addresses = cluster.addresses().join(",");
    let members = || muesli(&["admin", "members", "--connect", &addresses]).output().unwrap();
    let output = members();
    let text = output_text(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.matches("serves").count() == 2 && text.contains("no groups"), "{text}");
    cluster.checked_output(&["kill", "1"]);
    let output = members();
    let text = output_text(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("muesli: node 1 at ") && text.contains("does not answer"), "{text}");
}

/// A server that is only just being started is waited for, by every command alike.
#[test]
fn commands_wait_for_a_server_that_comes_up() {
    let cluster = Cluster::up(&["--servers", "1", "--memory"]);
    let addresses = cluster.addresses().join(",");
    let bench = ["bench", "bank", "--driver", "cluster", "--transactions", "9", "--clients", "1"];
    let commands: [&[&str]; 3] = [&bench, &["admin", "members"], &["admin", "status"]];
    for command in commands {
        cluster.checked_output(&["down"]);
        let line = [command, &["--connect", &addresses]].concat();
        let waiting = muesli(&line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        cluster.checked_output(&["restart"]);
        let output = waiting.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{command:?}: {}", output_text(&output));
    }
}
