//! What a suggestion is made from: a trace in a file, or one that a workload is run for.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use clap::{ArgAction, Args};
use muesli_placement::printed::RowTable;
use muesli_placement::suggestion::BothShares;
use muesli_placement::trace::read_file;
use muesli_placement::units::RefinementTerms;
use muesli_placement::units::child::Child;
use muesli_placement::{AccessTrace, Scheme, Suggestion, Terms, suggest};
use muesli_workloads::available;
use muesli_workloads::planned::traces::{PLANNED, PlannedWorkload, TraceRequest, planned};

use crate::names::{check_parameters, nearest, question};

/// What the process is called with that METIS runs in.
pub const CHILD: &str = "place-units";
/// The METIS of a large graph may take so long.
const CHILD_WITHIN: Duration = Duration::from_secs(120);

/// This program as the process that METIS runs in.
///
/// # Errors
/// The program is not found.
pub fn child() -> anyhow::Result<Child> {
    Ok(Child {
        program: std::env::current_exe().context("this program is not found")?,
        arguments: ["partition", CHILD].map(str::to_owned).into(),
        within: CHILD_WITHIN,
    })
}

/// What suggestions for so many partitions go by, in commands as in figures.
///
/// # Errors
/// This program is not found.
pub fn terms(partitions: u32) -> anyhow::Result<Terms> {
    let refinement = RefinementTerms { partitions, ..RefinementTerms::default() };
    Ok(Terms { refinement, child: Some(child()?), ..Terms::default() })
}

#[derive(Args, Clone, Debug)]
pub struct SuggestOptions {
    /// A workload whose procedures are plans, which is run and traced; with --trace, the one that
    /// the trace is of, to set the scheme beside it that is usual
    #[arg(value_name = "WORKLOAD", required_unless_present = "trace")]
    workload: Option<String>,
    /// A parameter of the workload; several times for several
    #[arg(long = "param", value_name = "NAME=VALUE", conflicts_with = "trace")]
    parameters: Vec<String>,
    /// How many transactions are traced
    #[arg(long, value_name = "N", default_value_t = 4_000, conflicts_with = "trace",
        value_parser = clap::value_parser!(u64).range(10..=1_000_000))]
    transactions: u64,
    /// Where chance comes from
    #[arg(long, value_name = "X", default_value_t = 1, conflicts_with = "trace")]
    seed: u64,
    /// How many partitions units are placed in
    #[arg(long, value_name = "N", default_value_t = 8,
        value_parser = clap::value_parser!(u32).range(1..=4_096))]
    partitions: u32,
    /// Take a trace that was recorded, and run nothing
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Write the trace to a file
    #[arg(long, value_name = "FILE", conflicts_with = "trace")]
    record: Option<PathBuf>,
    /// As JSON
    #[arg(long, action = ArgAction::SetTrue)]
    pub json: bool,
}

/// A trace, and what is suggested for it.
pub struct Suggested {
    /// What the trace is of.
    pub name: String,
    pub trace: AccessTrace,
    pub partitions: u32,
    pub suggestion: Suggestion,
    /// The scheme that is usual, and its shares with units dealt in turn.
    pub manual: Option<(Scheme, BothShares)>,
}

impl Suggested {
    /// The shares of the dissertation's method, and how many rows it places.
    ///
    /// # Errors
    /// There are too many pairs of rows, or the process that places them failed.
    pub fn by_rows(&self) -> anyhow::Result<(usize, BothShares)> {
        let (trace, learn) = (&self.trace, self.trace.cut().learn);
        let rows = RowTable::learn(trace, learn, self.partitions, &child()?)?;
        Ok((rows.len(), BothShares::of(trace, |of| rows.shares(of))))
    }
}

impl SuggestOptions {
    /// Records the trace or reads it, and suggests a placement.
    ///
    /// # Errors
    /// There is no such workload or file, or the process that places units failed.
    pub fn suggested(&self) -> anyhow::Result<Suggested> {
        let workload = self.workload.as_deref().map(found).transpose()?;
        let (name, trace) = self.traced(workload)?;
        let suggestion = suggest(&trace, &terms(self.partitions)?)?;
        let manual = workload
            .map(|workload| (workload.manual(), workload.manual_both(&trace, self.partitions)));
        let partitions = self.partitions;
        Ok(Suggested { name, trace, partitions, suggestion, manual })
    }

    fn traced(
        &self,
        workload: Option<&'static PlannedWorkload>,
    ) -> anyhow::Result<(String, AccessTrace)> {
        if let Some(path) = &self.trace {
            let trace = read(path)?;
            if let Some(workload) = workload {
                let names = workload.tables.iter().map(|(name, ..)| *name);
                if !names.eq(trace.tables.iter().map(|table| table.name.as_str())) {
                    bail!("{} is no trace of `{}`", path.display(), workload.name);
                }
            }
            return Ok((path.display().to_string(), trace));
        }
        let workload = workload.expect("one is required where there is no trace");
        check_parameters(available::find(workload.name)?, &self.parameters)?;
        let (transactions, seed) = (self.transactions, self.seed);
        let recording = TraceRequest { parameters: self.parameters.clone(), transactions, seed };
        let trace = workload.record(&recording)?;
        if let Some(path) = &self.record {
            fs::write(path, trace.to_bytes())
                .with_context(|| format!("{} cannot be written", path.display()))?;
        }
        Ok((workload.name.to_owned(), trace))
    }
}

/// The workload called so, if its procedures are plans; else which one was meant.
fn found(name: &str) -> anyhow::Result<&'static PlannedWorkload> {
    planned(name).map_err(|error| {
        let meant = nearest(name, PLANNED.iter().map(|workload| workload.name));
        anyhow!("{error}{}", question(meant))
    })
}

fn read(path: &Path) -> anyhow::Result<AccessTrace> {
    read_file(path).with_context(|| format!("{} is no trace", path.display()))
}

/// The workloads that can be traced, for a command's help.
pub fn after_help() -> String {
    let names: Vec<_> = PLANNED.iter().map(|workload| workload.name).collect();
    format!(
        "Workloads whose procedures are plans: {}. Of a trace the first 70 % are learnt from, \
         and the last 15 % are fresh: nothing was learnt from them or chosen by them. Nothing is \
         changed in any database.",
        names.join(", ")
    )
}
