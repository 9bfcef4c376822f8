//! `muesli sim`: many simulated runs, in search of one that goes wrong.

mod options;
mod search;
mod strangers;

use std::io::{Write, stdout};
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::{ArgMatches, FromArgMatches};
use muesli_check::HandlerStats;
use muesli_registry::{check_caches, check_strict, check_tree, keeps_old_versions};
use muesli_sim::time::Span;
use muesli_workloads::available::Description;
use muesli_workloads::seeded_run::SeededRun;

use crate::names::check_parameters;
use crate::options::chosen;
use crate::table::grouped;
pub use options::command;
use options::{SimOptions, task};
use search::{Search, SearchTotals, progress};
use strangers::{of_strangers, strangers};

/// Runs the command.
///
/// # Errors
/// It cannot be carried out.
pub fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    let (workload, matches) = chosen(matches);
    let options = SimOptions::from_arg_matches(matches)?;
    let last = if options.minutes.is_some() { u64::MAX } else { 101 };
    let seeds = options.seeds.clone().unwrap_or(1..last);
    if options.trace.is_some() && seeds.end - seeds.start != 1 {
        bail!("--trace takes one seed, as in --seeds {}", seeds.start);
    }
    let deadline = match options.minutes {
        None => None,
        Some(minutes) if minutes > 0.0 && minutes <= 1e6 => {
            Some(Instant::now() + Duration::from_secs_f64(minutes * 60.0))
        }
        Some(minutes) => bail!("--minutes {minutes}: allowed are numbers above 0, to a million"),
    };
    if !(0.0..=1e5).contains(&options.seconds) {
        bail!("--seconds {}: allowed are numbers from 0 to a hundred thousand", options.seconds);
    }
    if options.visiting == Some(true) && options.client_nodes.unwrap_or(0) == 0 {
        bail!("--visiting is of nodes of clients: give --client-nodes, from 1 to 100");
    }
    check_parameters(workload, &options.parameters)?;
    check_strict(&options.protocol, options.strict == Some(true))?;
    check_caches(&options.protocol, options.caches)?;
    check_tree(&options.protocol, options.tree.tree.is_some())?;
    if let Some(folder) = &options.history {
        let message = || format!("cannot make the folder {}", folder.display());
        std::fs::create_dir_all(folder).with_context(message)?;
    }
    let _ = writeln!(stdout(), "{}", task(workload.name, &options, &seeds));
    let search = Search {
        seeded_run: seeded_run(workload, &options)?,
        options: &options,
        workload,
        next: AtomicU64::new(seeds.start),
        end: seeds.end,
        deadline,
        found: Mutex::default(),
        bar: progress(seeds.end - seeds.start),
    };
    let begun = Instant::now();
    search.on_all_cores()?;
    search.bar.finish_and_clear();
    let found = search.found.into_inner().unwrap_or_else(PoisonError::into_inner);
    let rate = found.seeds as f64 / begun.elapsed().as_secs_f64();
    let SearchTotals {
        seeds,
        transactions,
        faults,
        verdicts,
        roots,
        handlers,
        failed,
        strangers,
        background,
        ..
    } = found;
    let background = background.line(keeps_old_versions(&options.protocol), grouped);
    let line = format!(
        "{} seeds, {} transactions, {} faults, {} histories judged, {} seeds failed, {rate:.1} \
         seeds/s; {background}",
        grouped(seeds),
        grouped(transactions),
        grouped(faults),
        grouped(verdicts),
        grouped(failed),
    );
    if roots.judged + roots.undecided > 0 {
        let judged = grouped(roots.judged as u64);
        let undecided = grouped(roots.undecided as u64);
        let _ = writeln!(
            stdout(),
            "{judged} roots judged by their operations, {undecided} not decided"
        );
    }
    if handlers != HandlerStats::default() {
        let _ = writeln!(stdout(), "{}", of_handlers(&handlers));
    }
    // A reader that has gone away is no matter.
    let _ = writeln!(stdout(), "{line}");
    if options.strangers > 0 {
        let _ = write!(stdout(), "{}", of_strangers(&strangers));
    }
    Ok(u8::from(failed > 0))
}

/// What was run for transactions with open children after their ends.
fn of_handlers(stats: &HandlerStats) -> String {
    let number = |many: usize| grouped(many as u64);
    format!(
        "{} compensations of open children ran, {} of them by others than their transactions' \
         clients; {} commit handlers, {} of them by others",
        number(stats.compensations),
        number(stats.compensations_by_others),
        number(stats.commit_handlers),
        number(stats.commit_handlers_by_others),
    )
}

fn seeded_run(workload: &'static Description, options: &SimOptions) -> anyhow::Result<SeededRun> {
    let mut parameters = workload.small_parameters();
    parameters.extend(options.parameters.iter().cloned());
    Ok(SeededRun {
        parameters,
        protocol: options.protocol.clone(),
        nodes: options.nodes as usize,
        repositories: options.repositories.map(usize::from),
        client_nodes: options.client_nodes.map(usize::from),
        visiting: options.visiting,
        strict: options.strict,
        production: options.production,
        least: Span::from_nanos((options.seconds * 1e9) as u64),
        histories: options.history.clone(),
        masters: usize::from(options.masters),
        replicas: options.replicas,
        partitions_per_repository: usize::from(options.partitions_per_repository),
        tree: options.tree.plan(),
        validator_nodes: usize::from(options.tree.validator_nodes),
        batching: options.batches.batching()?,
        group: options.group,
        caches: options.caches,
        parallel: usize::from(options.parallel),
        clients: options.clients,
        transactions_least: options.transactions,
        faults: options.faults.clone(),
        plan: options.plan.clone(),
        strangers: strangers(options),
        ..SeededRun::of(workload)
    })
}
