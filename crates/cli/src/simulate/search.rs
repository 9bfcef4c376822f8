//! The search: seeds are tried on all cores, and what fails is told as it is found.

use std::collections::BTreeMap;
use std::io::{Write, stdout};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use muesli_check::{HandlerStats, RootStats};
use muesli_sim::plan::Plan;
use muesli_sim::world::StrangerCount;
use muesli_workloads::available::Description;
use muesli_workloads::background::Backgrounds;
use muesli_workloads::seeded_run::{SeededRun, SeededRunError, Trialled};

use super::options::{SimOptions, command_again};
use crate::table::grouped;

/// A bar for so many seeds.
pub fn progress(seeds: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} seeds  {msg}  {eta} left");
    ProgressBar::new(seeds).with_style(style.expect("the template is one"))
}

/// A search under way.
pub struct Search<'a> {
    pub seeded_run: SeededRun,
    pub options: &'a SimOptions,
    pub workload: &'static Description,
    pub next: AtomicU64,
    pub end: u64,
    pub deadline: Option<Instant>,
    pub found: Mutex<SearchTotals>,
    pub bar: ProgressBar,
}

#[derive(Default)]
/// What was found so far.
pub struct SearchTotals {
    pub seeds: u64,
    pub transactions: u64,
    pub faults: u64,
    pub verdicts: u64,
    pub roots: RootStats,
    pub handlers: HandlerStats,
    pub failed: u64,
    pub strangers: BTreeMap<&'static str, StrangerCount>,
    pub background: Backgrounds,
    /// Why the search cannot go on.
    pub error: Option<anyhow::Error>,
}

impl Search<'_> {
    /// Tries all seeds, on all cores.
    ///
    /// # Errors
    /// The search cannot go on.
    pub fn on_all_cores(&self) -> anyhow::Result<()> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            for _ in 0..cores {
                scope.spawn(|| self.work());
            }
        });
        self.lock().error.take().map_or(Ok(()), Err)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, SearchTotals> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes seeds until there are none, or no time, or no sense in going on.
    fn work(&self) {
        while self.deadline.is_none_or(|deadline| Instant::now() < deadline) {
            let seed = self.next.fetch_add(1, Ordering::Relaxed);
            if seed >= self.end || self.lock().error.is_some() {
                return;
            }
            if let Err(error) = self.one(seed) {
                self.lock().error = Some(error);
            }
        }
    }

    fn one(&self, seed: u64) -> anyhow::Result<()> {
        let trialled = attempt(&self.seeded_run, seed, self.options.trace.is_some());
        let (plan, problems) = match trialled {
            Ok(trialled) => {
                let trialled = trialled?;
                self.count(&trialled);
                if let (Some(path), Some(trace)) = (&self.options.trace, &trialled.trace) {
                    let message = || format!("cannot write the trace to {}", path.display());
                    std::fs::write(path, trace).with_context(message)?;
                }
                (Some(trialled.plan), trialled.problems)
            }
            Err(panic) => (None, vec![panic]),
        };
        if !problems.is_empty() {
            self.tell(seed, plan.as_ref(), &problems)?;
        }
        self.bar.inc(1);
        Ok(())
    }

    fn count(&self, trialled: &Trialled) {
        let mut found = self.lock();
        found.seeds += 1;
        found.transactions += trialled.transactions;
        found.faults += trialled.plan.faults().len() as u64;
        found.verdicts += trialled.verdicts;
        found.roots.add(&trialled.roots);
        found.handlers.add(&trialled.handlers);
        for (name, counted) in &trialled.strangers {
            *found.strangers.entry(name).or_default() += *counted;
        }
        trialled.background.iter().for_each(|run| found.background.add(run));
        let message = format!("{} transactions", grouped(found.transactions));
        drop(found);
        self.bar.set_message(message);
    }

    fn again(&self, seed: u64, shorter: Option<&Plan>) -> String {
        command_again(self.workload.name, self.options, seed, shorter)
    }

    fn tell(&self, seed: u64, plan: Option<&Plan>, problems: &[String]) -> anyhow::Result<()> {
        self.lock().failed += 1;
        let mut text = format!("seed {seed} FAILED\n");
        if let Some(plan) = plan {
            text += &format!("  plan: {plan}\n");
        }
        for problem in problems {
            text += &format!("  {}\n", problem.trim_end().replace('\n', "\n  "));
        }
        text += &format!("  again: {}\n", self.again(seed, None));
        if let Some(plan) = plan.filter(|plan| !plan.faults().is_empty()) {
            let shrunk = self.seeded_run.shrink(seed, plan)?;
            if shrunk.faults().len() < plan.faults().len() {
                text += &format!("  shorter: {}\n", self.again(seed, Some(&shrunk)));
            }
        }
        self.bar.suspend(|| {
            // A reader that has gone away is no matter.
            let _ = write!(stdout(), "{text}");
        });
        Ok(())
    }
}

/// Tries a seed; what an assertion of the code under test said, if one failed.
fn attempt(
    seeded_run: &SeededRun,
    seed: u64,
    trace: bool,
) -> Result<Result<Trialled, SeededRunError>, String> {
    catch_unwind(AssertUnwindSafe(|| seeded_run.run(seed, trace))).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        format!("an assertion failed: {}", text.unwrap_or("without a message"))
    })
}
