//! METIS, in a process of its own.
//!
//! While it runs it has handlers of its own for signals of the whole process, and it draws from the
//! process's one source of chance. So a graph goes to a child by its standard input, and labels
//! come back by its standard output, within a time. METIS may print there, too, before the labels
//! or behind them, so these begin with a magic. The child is this program with a hidden command,
//! which calls `serve`. Neither side reads more bytes of the other than a graph of a trace can
//! have.

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{self, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use muesli_core::wire::{Reader, Wire, WireError};
use muesli_core::wire_struct;
use thiserror::Error;

use super::graph::UnitGraph;

/// Why there is no first placement.
#[derive(Debug, Error)]
pub enum ChildError {
    /// The process cannot be run, or talked to.
    #[error("the process that partitions the graph cannot be run: {0}")]
    Io(#[from] io::Error),
    /// It took too long, and was ended.
    #[error("the graph was not partitioned within {0:?}, and the process was ended")]
    Time(Duration),
    /// It failed.
    #[error("the process that partitions the graph failed: {0}")]
    Failed(String),
    /// What it said makes no sense.
    #[error("the process that partitions the graph gave no labels: {0}")]
    Labels(String),
}

/// How a child is run.
#[derive(Clone, Debug)]
pub struct Child {
    /// The program.
    pub program: PathBuf,
    /// What makes it a child.
    pub arguments: Vec<String>,
    /// How long it may take.
    pub within: Duration,
}

/// A graph of nodes that are joined in pairs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PairGraph {
    /// In so many partitions it is cut.
    pub partitions: u32,
    /// By how much a partition may be larger than the mean, in thousandths.
    pub tolerance: u32,
    /// The nodes.
    pub weights: Vec<u64>,
    /// The edges, each once: two nodes, and its weight.
    pub pairs: Vec<(u32, u32, u64)>,
}

/// A graph as a child is given it: units, and for each transaction a node of its own that is joined
/// to its units; and units that are joined in pairs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct GraphMessage {
    partitions: u32,
    /// By how much a partition may be larger than the mean, in thousandths.
    tolerance: u32,
    loads: Vec<u64>,
    /// Transactions: their units, and how many they are.
    units: Vec<Vec<u32>>,
    times: Vec<u64>,
    pairs: Vec<(u32, u32, u64)>,
}

wire_struct!(GraphMessage {
    partitions: u32,
    tolerance: u32,
    loads: Vec<u64>,
    units: Vec<Vec<u32>>,
    times: Vec<u64>,
    pairs: Vec<(u32, u32, u64)>,
});

/// What labels begin with.
const MAGIC: [u8; 8] = *b"muelabel";
/// The most bytes of a graph, and of its labels.
const MESSAGE_MAX: u64 = 1 << 30;
/// So many bytes of a child's complaints are kept.
const COMPLAINTS_MAX: u64 = 64 << 10;
/// So often it is looked whether a child has ended.
const LOOKED_EVERY: Duration = Duration::from_millis(5);
/// So long what it wrote is waited for once it has ended: a process that it has started may still
/// have its pipes.
const PIPES_WITHIN: Duration = Duration::from_secs(5);
/// The most units and transactions: METIS sums up weights of all in 32 bits.
#[cfg(feature = "metis")]
const NODES_MAX: usize = 1 << 24;
/// The most that weights of nodes sum up to, and weights of edges.
#[cfg(feature = "metis")]
const WEIGHTS_MAX: u64 = 1 << 30;
/// The most partitions.
#[cfg(feature = "metis")]
const PARTITIONS_MAX: u32 = 1 << 16;

/// What METIS is allowed beyond the mean, in thousandths; refinement keeps the caps.
const TOLERANCE: u32 = 150;

impl Child {
    /// Has a child place the units of a graph.
    ///
    /// # Errors
    /// It failed, or took too long.
    pub fn partition(&self, graph: &UnitGraph, partitions: u32) -> Result<Vec<u32>, ChildError> {
        let message = GraphMessage {
            partitions,
            tolerance: TOLERANCE,
            loads: graph.loads.clone(),
            units: graph.joint.iter().map(|(units, _)| units.clone()).collect(),
            times: graph.joint.iter().map(|(_, times)| *times).collect(),
            pairs: Vec::new(),
        };
        self.labels(&message)
    }

    /// Has a child cut a graph of pairs.
    ///
    /// # Errors
    /// It failed, or took too long.
    pub fn cut(&self, graph: PairGraph) -> Result<Vec<u32>, ChildError> {
        let PairGraph { partitions, tolerance, weights, pairs } = graph;
        let message =
            GraphMessage { partitions, tolerance, loads: weights, pairs, ..Default::default() };
        self.labels(&message)
    }

    /// The label of each unit of a graph.
    fn labels(&self, message: &GraphMessage) -> Result<Vec<u32>, ChildError> {
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        let answer = self.ask(bytes)?;
        let labels = labels_in(&answer);
        let labels = labels.map_err(|error: WireError| ChildError::Labels(error.to_string()))?;
        let Some(labels) = labels else {
            return Err(ChildError::Labels("its answer has no `muelabel`".to_owned()));
        };
        let count = message.loads.len();
        match labels.len() == count && labels.iter().all(|it| *it < message.partitions) {
            true => Ok(labels),
            false => Err(ChildError::Labels(format!("{} of {count}", labels.len()))),
        }
    }

    fn ask(&self, bytes: Vec<u8>) -> Result<Vec<u8>, ChildError> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn()?;
        let (mut input, output, errors) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        // Nobody waits for it: a child that has failed does not read on, and says why it failed.
        thread::spawn(move || input.take().map(|mut it| it.write_all(&bytes)));
        // Both are read at once: a child that fills one of them waits until somebody has read it.
        let (answer, complaints) =
            (read_aside(output, MESSAGE_MAX), read_aside(errors, COMPLAINTS_MAX));
        // From here on nothing returns before the process is gone.
        let ended = ended_within(&mut child, self.within);
        if !matches!(ended, Ok(Some(_))) {
            let _ = child.kill(); // It fails where the process has ended by itself.
            let _ = child.wait();
        }
        let Some(status) = ended? else { return Err(ChildError::Time(self.within)) };
        match status.success() {
            true => Ok(answer.recv_timeout(PIPES_WITHIN).unwrap_or_else(|_| Ok(Vec::new()))?),
            false => {
                let text = complaints.recv_timeout(PIPES_WITHIN).unwrap_or_else(|_| Ok(Vec::new()));
                let text = text.unwrap_or_default();
                let text = String::from_utf8_lossy(&text);
                Err(ChildError::Failed(format!("{status}: {}", text.trim())))
            }
        }
    }
}

/// How a process ended; `None`: it has not within this time.
fn ended_within(child: &mut process::Child, within: Duration) -> io::Result<Option<ExitStatus>> {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        let left = within.saturating_sub(begun.elapsed());
        if left.is_zero() {
            return Ok(None);
        }
        thread::sleep(LOOKED_EVERY.min(left));
    }
}

/// Reads all that comes out of a pipe, of which so many bytes are kept.
fn read_aside(
    pipe: Option<impl Read + Send + 'static>,
    most: u64,
) -> Receiver<io::Result<Vec<u8>>> {
    let (sender, received) = mpsc::channel();
    thread::spawn(move || {
        let Some(mut pipe) = pipe else { return };
        let mut bytes = Vec::new();
        let kept = pipe.by_ref().take(most).read_to_end(&mut bytes);
        let all = kept.and_then(|_| io::copy(&mut pipe, &mut io::sink()));
        // Nobody listens to what comes too late.
        let _ = sender.send(all.map(|_| bytes));
    });
    received
}

/// The labels in what a child has written: those behind the first magic.
fn labels_in(answer: &[u8]) -> Result<Option<Vec<u32>>, WireError> {
    let begins = answer.windows(MAGIC.len()).position(|bytes| bytes == MAGIC);
    let labels = begins.map(|at| &answer[at + MAGIC.len()..]);
    labels.map(|bytes| Vec::decode(&mut Reader::new(bytes))).transpose()
}

/// What a child does: reads a graph, partitions it, and writes the labels.
///
/// # Errors
/// There is no graph, or METIS cannot do it.
#[cfg(feature = "metis")]
pub fn serve(input: &mut impl Read, output: &mut impl Write) -> Result<(), ChildError> {
    let mut bytes = Vec::new();
    input.take(MESSAGE_MAX).read_to_end(&mut bytes)?;
    let message = GraphMessage::decode_all(&bytes);
    let message = message.map_err(|error| ChildError::Failed(error.to_string()))?;
    let labels = partition(&message).map_err(ChildError::Failed)?;
    let mut answer = MAGIC.to_vec();
    labels.encode(&mut answer);
    output.write_all(&answer)?;
    output.flush()?;
    Ok(())
}

/// Cuts a graph as METIS has it: lists of neighbours, one behind the other.
#[cfg(feature = "metis")]
fn partition(message: &GraphMessage) -> Result<Vec<u32>, String> {
    let GraphMessage { partitions, tolerance, loads, units, times, pairs } = message;
    let count = loads.len();
    let is_node = |unit: &u32| (*unit as usize) < count;
    let fits = units.len() == times.len()
        && units.iter().flatten().all(is_node)
        && pairs.iter().all(|(one, other, _)| one != other && is_node(one) && is_node(other))
        && (1..=PARTITIONS_MAX).contains(partitions)
        && count > 0
        && count + units.len() <= NODES_MAX;
    if !fits {
        return Err("this is no graph that METIS takes".to_owned());
    }
    let neighbours = neighbours(message);
    let total = loads.iter().copied().map(u128::from).sum::<u128>().max(1);
    let weigh = |load: &u64| (u128::from(*load) * u128::from(WEIGHTS_MAX) / total).max(1) as i32;
    let mut weights: Vec<i32> = loads.iter().map(weigh).collect();
    weights.resize(neighbours.len(), 0);
    let mut starts = vec![0];
    let (mut targets, mut edges) = (Vec::new(), Vec::new());
    for list in &neighbours {
        targets.extend(list.iter().map(|(target, _)| *target));
        edges.extend(list.iter().map(|(_, weight)| *weight));
        starts.push(targets.len() as i32);
    }
    let graph = metis::Graph::new(1, *partitions as i32, &starts, &targets);
    let graph = graph.map_err(|error| error.to_string())?;
    let graph = graph.set_vwgt(&weights).set_adjwgt(&edges);
    let graph = graph.set_option(metis::option::UFactor(*tolerance as i32));
    let graph = graph.set_option(metis::option::Seed(1));
    let mut labels = vec![0; neighbours.len()];
    graph.part_kway(&mut labels).map_err(|error| error.to_string())?;
    Ok(labels.into_iter().take(count).map(|label| label as u32).collect())
}

/// The neighbours of each unit, and of each transaction behind them, with the weights of edges.
#[cfg(feature = "metis")]
fn neighbours(message: &GraphMessage) -> Vec<Vec<(i32, i32)>> {
    let GraphMessage { loads, units, times, pairs, .. } = message;
    let count = loads.len();
    let mut neighbours: Vec<Vec<(i32, i32)>> = vec![Vec::new(); count + units.len()];
    let all_pairs = pairs.iter().map(|(.., weight)| 2 * u128::from(*weight)).sum::<u128>();
    for (one, other, weight) in pairs {
        let by_sum = u128::from(*weight) * u128::from(WEIGHTS_MAX) / all_pairs.max(1);
        let weight = u128::from(*weight).min(by_sum).max(1) as i32;
        neighbours[*one as usize].push((*other as i32, weight));
        neighbours[*other as usize].push((*one as i32, weight));
    }
    // Twice, as each edge is in the lists of both its ends.
    let edges_of = |(units, times): (&Vec<u32>, &u64)| u128::from(*times) * 2 * units.len() as u128;
    let all_edges = units.iter().zip(times).map(edges_of).sum::<u128>().max(1);
    let most = u128::from(times.iter().max().copied().unwrap_or(1).max(1));
    for (at, (units, times)) in units.iter().zip(times).enumerate() {
        // By the largest, in thousandths, or less where the sum of all would not fit.
        let by_most = u128::from(*times) * 1_000 / most;
        let by_sum = u128::from(*times) * u128::from(WEIGHTS_MAX) / all_edges;
        let weight = by_most.min(by_sum).max(1) as i32;
        for unit in units {
            neighbours[*unit as usize].push(((count + at) as i32, weight));
            neighbours[count + at].push((*unit as i32, weight));
        }
    }
    neighbours
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// A shell as a child.
    fn child(script: &str, within: Duration) -> Child {
        let arguments = ["-c", script].map(str::to_owned).into();
        Child { program: "sh".into(), arguments, within }
    }

    fn two_nodes() -> PairGraph {
        PairGraph { partitions: 2, weights: vec![1, 1], ..PairGraph::default() }
    }

    /// A shell's command that prints these bytes.
    fn printing(bytes: &[u8]) -> String {
        let octal: String = bytes.iter().map(|byte| format!("\\{byte:03o}")).collect();
        format!("printf '{octal}'")
    }

    /// Within this a child ends that does not wait for anything.
    const SOON: Duration = Duration::from_secs(60);

    #[test]
    fn labels_are_found_in_whatever_else_a_child_prints() {
        let framed = printing(b"muelabel\x02\0\0\0\x01\0\0\0\0\0\0\0");
        let script = format!("cat >/dev/null; echo '***Runtime'; {framed}; echo behind");
        assert_eq!(child(&script, SOON).cut(two_nodes()).unwrap(), [1, 0]);
        for (script, why) in [
            (printing(b"\x02\0\0\0\x01\0\0\0\0\0\0\0"), "no `muelabel`"),
            (printing(b"muelabel\x02"), "more bytes"),
            (printing(b"muelabel\0\0\0\0"), "0 of 2"),
        ] {
            let error = child(&script, SOON).cut(two_nodes()).unwrap_err();
            assert!(matches!(error, ChildError::Labels(_)), "{script}: {error}");
            assert!(error.to_string().contains(why), "{script}: {error}");
        }
    }

    #[test]
    fn a_child_that_does_not_end_is_ended_even_if_it_has_closed_its_pipes() {
        let within = Duration::from_millis(200);
        for script in ["exec sleep 600", "exec >&- 2>&- <&-; exec sleep 600"] {
            let begun = Instant::now();
            let error = child(script, within).cut(two_nodes()).unwrap_err();
            assert!(matches!(error, ChildError::Time(_)), "{script}: {error}");
            assert!(begun.elapsed() < Duration::from_secs(300), "{script}");
        }
    }

    #[test]
    fn what_a_child_complains_of_is_told() {
        let error = child("echo no memory >&2; exit 3", SOON).cut(two_nodes()).unwrap_err();
        assert!(error.to_string().contains("3: no memory"), "{error}");
    }
}
