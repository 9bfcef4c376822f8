//! Benchmarks of clusters whose servers have network namespaces of their own, and what is left of
//! a benchmark that does not come to its end.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::Value;

use super::commands::{assert_refused, muesli, status, text};

const NODES: usize = 4;
const BENCH: [&str; 8] =
    ["bench", "objects", "--driver", "cluster", "--nodes", "4", "--protocol", "hierarchy-locking"];
const OBJECTS: [&str; 6] =
    ["--param", "objects=160", "--param", "updates=4", "--param", "subtrees=2"];
/// Two racks, each with an inner node.
const RACKS: [&str; 6] =
    ["--tree", "2x2", "--machine", "rack-nodes=2", "--machine", "rack-packets=5000"];
/// Longer than any test waits.
const FOR_LONG: [&str; 2] = ["--seconds", "600"];

fn spawned(more: &[&str], folder: &Path) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_muesli"));
    command.args([&BENCH[..], &OBJECTS, &RACKS, more].concat()).env("TMPDIR", folder);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// A short benchmark in namespaces with these options; nothing where they cannot be made, which is
/// told then.
fn short(more: &[&str]) -> Option<(u32, Output)> {
    let folder = tempfile::tempdir().unwrap();
    let options = ["--namespaces", "--clients", "4", "--transactions", "200", "--json", "-"];
    let bench = spawned(&[&options, more].concat(), folder.path());
    let process = bench.id();
    let output = bench.wait_with_output().unwrap();
    let error = text(&output.stderr);
    if error.contains("--namespaces: network namespaces cannot be made here: ") {
        assert_eq!(status(&output), 2, "{error}");
        println!("not tried: {error}");
        return None;
    }
    Some((process, output))
}

/// The namespaces of a process, and its interface.
fn left_by(process: u32) -> Vec<String> {
    let list = Command::new("ip").args(["netns", "list"]).output().unwrap();
    let list = text(&list.stdout);
    let name = |line: &str| line.split_whitespace().next().unwrap_or_default().to_owned();
    let mut left: Vec<_> = list.lines().map(name).collect();
    left.retain(|name| name.starts_with(&format!("muesli-{process}-")));
    let link = format!("muesli{process}");
    left.extend(Path::new("/sys/class/net").join(&link).exists().then_some(link));
    left
}

/// The processes of a benchmark's servers, once all are there; its folder is in `folder`.
fn servers(bench: &mut Child, folder: &Path) -> Vec<Pid> {
    let begun = Instant::now();
    loop {
        let dirs = std::fs::read_dir(folder).unwrap().flatten();
        let nodes = dirs.flat_map(|dir| (0..NODES).map(move |node| (dir.path(), node)));
        let pid = |(dir, node): (std::path::PathBuf, usize)| {
            std::fs::read_to_string(dir.join(format!("node-{node}/pid"))).ok()?.parse().ok()
        };
        let all: Vec<_> = nodes.filter_map(pid).filter_map(Pid::from_raw).collect();
        if all.len() == NODES {
            return all;
        }
        let (ended, late) = (bench.try_wait().unwrap(), begun.elapsed().as_secs() > 60);
        assert!(ended.is_none() && !late, "its servers do not start: {ended:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Sends a signal to a benchmark whose servers run, and waits for its end.
fn ended_by(mut bench: Child, signal: Signal, folder: &Path) -> Vec<Pid> {
    let servers = servers(&mut bench, folder);
    kill_process(Pid::from_raw(bench.id() as i32).unwrap(), signal).unwrap();
    let output = bench.wait_with_output().unwrap();
    let ended = std::os::unix::process::ExitStatusExt::signal(&output.status);
    assert_eq!(ended, Some(signal.as_raw()), "{}", text(&output.stderr));
    servers
}

fn assert_nothing_left(process: u32, servers: &[Pid], folder: &Path) {
    assert_eq!(left_by(process), [""; 0]);
    assert!(servers.iter().all(|server| test_kill_process(*server).is_err()), "they have ended");
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 0, "its folder is removed");
}

#[test]
fn racks_of_namespaces_share_scarce_links_and_leave_nothing() {
    let Some((process, output)) = short(&[]) else { return };
    assert_eq!(status(&output), 0, "{}", text(&output.stderr));
    let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    // As without namespaces: two reads and two prepares go to the other rack, and are answered.
    let seen = result["throughput"].as_f64().expect("a number");
    assert!(seen < 2.0 * 5_000.0 / 8.0 * 1.2, "{result}");
    assert_eq!(left_by(process), [""; 0]);
    let (process, output) = short(&["--machine", "rack-nodes=3"]).unwrap();
    assert_refused_as(&output, "4 servers do not fill racks of 3");
    assert_eq!(left_by(process), [""; 0], "also after an error");
}

fn assert_refused_as(output: &Output, expected: &str) {
    let error = text(&output.stderr);
    assert!(status(output) != 0 && error.contains(expected), "{error}");
}

#[test]
fn an_interrupted_bench_stops_its_servers() {
    let folder = tempfile::tempdir().unwrap();
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let bench = spawned(&FOR_LONG, folder.path());
        let servers = ended_by(bench, signal, folder.path());
        assert!(servers.iter().all(|server| test_kill_process(*server).is_err()), "{signal:?}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "its folder is removed");
    }
}

#[test]
fn an_interrupted_bench_removes_its_namespaces_and_a_killed_ones_are_removed_by_the_next() {
    if short(&[]).is_none() {
        return;
    }
    let in_namespaces = [&["--namespaces"], &FOR_LONG[..]].concat();
    let folder = tempfile::tempdir().unwrap();
    let bench = spawned(&in_namespaces, folder.path());
    let process = bench.id();
    let ended = ended_by(bench, Signal::INT, folder.path());
    assert_nothing_left(process, &ended, folder.path());
    let bench = spawned(&in_namespaces, folder.path());
    let killed = bench.id();
    let servers = ended_by(bench, Signal::KILL, folder.path());
    // Unless a torture of another test has done it by then.
    let (_, output) = short(&[]).unwrap();
    assert_eq!(status(&output), 0, "{}", text(&output.stderr));
    assert_eq!(left_by(killed), [""; 0]);
    // They run on without a network until they are ended.
    servers.iter().for_each(|server| kill_process(*server, Signal::KILL).unwrap());
}

#[test]
fn namespaces_are_for_clusters_that_are_started() {
    let expected = "--namespaces is for clusters that are started: the driver cluster";
    for driver in ["embedded", "sim"] {
        assert_refused(&["bench", "bank", "--namespaces", "--driver", driver], &[expected]);
    }
    let connect = ["bench", "bank", "--namespaces", "--driver", "cluster", "--connect", "a:1"];
    assert_refused(&connect, &[expected]);
    let help = muesli(&["bench", "bank", "--help"]);
    assert!(text(&help.stdout).contains("--namespaces"), "{}", text(&help.stdout));
}
