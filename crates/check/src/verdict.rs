//! What the checker says, for people and for drawing.

use std::fmt::{self, Write};

use crate::finding::Finding;
use crate::history::{HandlerStats, Status};
use crate::level::Level;

/// Whether a history satisfies a level, and if not, why.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The level judged.
    pub level: Level,
    /// What is wrong with single reads, writes and replica chains; the first of each sort.
    pub findings: Vec<Finding>,
    /// How many findings there are, beyond those kept in `findings` too.
    pub finding_count: u64,
    /// A short cycle, if the level's graph has any.
    pub cycle: Option<Cycle>,
    /// The size of what was judged.
    pub stats: Stats,
}

/// The size of a judged history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Transactions of any fate.
    pub transactions: usize,
    /// Transactions that count as committed.
    pub committed: usize,
    /// Operations; a scan counts once.
    pub operations: usize,
    /// Edges of the graph of the level.
    pub edges: usize,
    /// What was judged above the transactions.
    pub roots: RootStats,
    /// What was run for roots after their ends.
    pub handlers: HandlerStats,
}

/// How many roots were judged by what their operations answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RootStats {
    /// Those of which it is known whether a serial order explains them.
    pub judged: usize,
    /// Those of which it was not found out in as many steps as the search may take.
    pub undecided: usize,
}

/// A cycle: the edge at place `i` leads from the transaction at place `i` to the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cycle {
    /// The transactions in order.
    pub transactions: Vec<CycleTransaction>,
    /// As many edges; the last leads back to the first transaction.
    pub edges: Vec<CycleEdge>,
}

/// A transaction of a cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CycleTransaction {
    /// Its name.
    pub id: String,
    /// Its session, empty if none was recorded.
    pub session: String,
    /// Nanoseconds at begin.
    pub begin: u64,
    /// Nanoseconds at the end, `None` if it never returned.
    pub end: Option<u64>,
    /// What the client knew about its end.
    pub status: Status,
    /// Whether it counts as committed.
    pub committed: bool,
}

/// Why one transaction must come before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EdgeKind {
    /// The first wrote a version, the second the next one.
    WriteWrite,
    /// The first wrote the version that the second read.
    WriteRead,
    /// The first read a version, the second wrote the next one.
    ReadWrite,
    /// The first ended before the second began.
    RealTime,
    /// Both belong to one session, which ran the first before the second.
    Session,
}

impl EdgeKind {
    /// The short name used in reports.
    pub fn name(self) -> &'static str {
        match self {
            EdgeKind::WriteWrite => "ww",
            EdgeKind::WriteRead => "wr",
            EdgeKind::ReadWrite => "rw",
            EdgeKind::RealTime => "real time",
            EdgeKind::Session => "session",
        }
    }
}

/// An edge of a cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CycleEdge {
    /// Why it is there.
    pub kind: EdgeKind,
    /// The key behind it; empty for real time and session order.
    pub key: String,
    /// The version the first transaction read or wrote.
    pub from_version: String,
    /// The version the second transaction read or wrote.
    pub to_version: String,
}

impl RootStats {
    /// Adds those of another history.
    pub fn add(&mut self, other: &RootStats) {
        self.judged += other.judged;
        self.undecided += other.undecided;
    }
}

impl Verdict {
    /// Whether the history satisfies the level, as far as was decided.
    pub fn holds(&self) -> bool {
        !self.is_broken() && self.stats.roots.undecided == 0
    }

    /// Whether the history breaks the level. One that does not need not satisfy it: it may be that
    /// some roots could not be judged.
    pub fn is_broken(&self) -> bool {
        self.finding_count > 0 || self.cycle.is_some()
    }

    /// The cycle as a graph in the DOT language, if there is one.
    pub fn to_dot(&self) -> Option<String> {
        self.cycle.as_ref().map(Cycle::to_dot)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match (self.is_broken(), self.holds()) {
            (true, _) => "broken",
            (false, true) => "holds",
            (false, false) => "not decided",
        };
        let Stats { transactions, committed, operations, edges, roots, handlers: _ } = self.stats;
        writeln!(
            f,
            "{}: {word} ({transactions} transactions, {committed} committed, {operations} \
             operations, {edges} edges)",
            self.level
        )?;
        let RootStats { judged, undecided } = roots;
        if judged > 0 {
            writeln!(f, "  {judged} roots judged by their operations")?;
        }
        if undecided > 0 {
            writeln!(f, "  {undecided} roots not judged: the search for their order was too long")?;
        }
        for finding in &self.findings {
            writeln!(f, "  {finding}")?;
        }
        let more = self.finding_count - (self.findings.len() as u64).min(self.finding_count);
        if more > 0 {
            writeln!(f, "  and {more} more findings")?;
        }
        self.cycle.iter().try_for_each(|cycle| write!(f, "{cycle}"))
    }
}

impl fmt::Display for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  a cycle of {} transactions:", self.transactions.len())?;
        let header = ["transaction", "session", "begin", "end", "fate"].map(str::to_owned);
        let rows = self.transactions.iter().map(CycleTransaction::cells);
        write_table(f, std::iter::once(header).chain(rows).collect())?;
        let header = ["before", "after", "why", "key", "versions"].map(str::to_owned);
        let rows = (0..self.edges.len()).map(|place| self.edge_cells(place));
        write_table(f, std::iter::once(header).chain(rows).collect())
    }
}

impl Cycle {
    fn edge_cells(&self, place: usize) -> [String; 5] {
        let edge = &self.edges[place];
        let after = &self.transactions[(place + 1) % self.transactions.len()];
        [
            self.transactions[place].id.clone(),
            after.id.clone(),
            edge.kind.name().to_owned(),
            edge.key.clone(),
            edge.versions(),
        ]
    }

    fn to_dot(&self) -> String {
        let mut dot = String::from("digraph cycle {\n  node [shape=box];\n");
        for (place, txn) in self.transactions.iter().enumerate() {
            let [id, session, begin, end, fate] = txn.cells();
            let session = if session.is_empty() { session } else { format!("session {session}\n") };
            let label = escape(&format!("{id}\n{session}{begin} to {end}\n{fate}"));
            // Writing to a string cannot fail.
            let _ = writeln!(dot, "  t{place} [label=\"{label}\"];");
        }
        for (place, edge) in self.edges.iter().enumerate() {
            let next = (place + 1) % self.transactions.len();
            let label = escape(&format!("{} {}\n{}", edge.kind.name(), edge.key, edge.versions()));
            let _ = writeln!(dot, "  t{place} -> t{next} [label=\"{label}\"];");
        }
        dot.push_str("}\n");
        dot
    }
}

impl CycleTransaction {
    fn cells(&self) -> [String; 5] {
        let fate = match (self.status, self.committed) {
            (Status::Committed, _) => "committed",
            (Status::Aborted, _) => "aborted",
            (Status::Running, _) => "running",
            (Status::Unknown, true) => "unknown, committed",
            (Status::Unknown, false) => "unknown, aborted",
        };
        [
            self.id.clone(),
            self.session.clone(),
            self.begin.to_string(),
            self.end.map_or_else(|| "never".to_owned(), |end| end.to_string()),
            fate.to_owned(),
        ]
    }
}

impl CycleEdge {
    /// What happened on this edge, in a few words.
    fn versions(&self) -> String {
        let (from, to) = (&self.from_version, &self.to_version);
        match self.kind {
            EdgeKind::WriteWrite => format!("wrote {from}, then wrote {to}"),
            EdgeKind::WriteRead => format!("wrote {from}, read {to}"),
            EdgeKind::ReadWrite => format!("read {from}, wrote {to}"),
            EdgeKind::RealTime | EdgeKind::Session => format!("ended {from}, began {to}"),
        }
    }
}

fn write_table(f: &mut fmt::Formatter<'_>, rows: Vec<[String; 5]>) -> fmt::Result {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: [usize; 4] = std::array::from_fn(|column| width(column).unwrap_or(0));
    for row in &rows {
        let mut line = String::from("   ");
        for (cell, width) in row.iter().zip(widths) {
            write!(line, " {cell:<width$} ")?;
        }
        writeln!(f, "{line} {}", row[4])?;
    }
    Ok(())
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
