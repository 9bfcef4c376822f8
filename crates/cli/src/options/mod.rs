//! Options that several commands share, and what they say about workloads.

pub mod geography;
pub mod tree;

use std::fmt::Write as _;
use std::path::Path;

use clap::{ArgMatches, Args, Command};
use muesli_core::batching::BATCH_TIMEOUT;
use muesli_core::{BatchLinks, Batching, CommitBatch, LinkBatch, Nanos, Secret};
use muesli_sim::time::Span;
use muesli_workloads::available::{Description, workloads};

/// The variable that names the file of a cluster's secret, for clients and administrators as for
/// servers.
const SECRET_VARIABLE: &str = "MUESLI_SECRET_FILE";

/// How messages leave: the options of commands that start nodes.
#[derive(Args, Clone, Debug, Default)]
pub struct BatchOptions {
    /// So many messages for one node leave together, 1 to 1024, and wait for each other; with 1
    /// all that a turn has to say leaves with it, and nothing waits [default: 1; in a search drawn
    /// from the seed, 1 in most]
    #[arg(long, value_name = "SIZE")]
    pub batch: Option<usize>,
    /// The first of them waits for so long at most, 1us to 1s, as in 500us [default: 1ms]
    #[arg(long, value_name = "TIME", requires = "batch")]
    pub batch_timeout: Option<Span>,
    /// Over which links: all; or, under protocols that validate by a tree, to validators above
    /// (up), from validators to what is below them (down), or both (tree) [default: all]
    #[arg(long, value_name = "LINKS", requires = "batch")]
    pub batch_links: Option<BatchLinks>,
    /// Under alvin and certified-*, so many commits of a site are ordered as one at most, 1 to
    /// 1024, where four such are under way; with 1 each is by itself [default: 1; in a search
    /// drawn from the seed, 1 in most]
    #[arg(long, value_name = "COMMITS")]
    pub commits_per_command: Option<usize>,
}

impl BatchOptions {
    /// What was asked for; `None`: nothing was.
    ///
    /// # Errors
    /// Batches that cannot be.
    pub fn batching(&self) -> anyhow::Result<Option<Batching>> {
        if self.batch.is_none() && self.commits_per_command.is_none() {
            return Ok(None);
        }
        let commits = CommitBatch::new(self.commits_per_command.unwrap_or(1))?;
        let size = self.batch.unwrap_or(1);
        let timeout = self.batch_timeout.map_or(BATCH_TIMEOUT, |it| Nanos(it.as_nanos()));
        let batch = LinkBatch::new(size, timeout)?;
        let batching = Batching::over(self.batch_links.unwrap_or_default(), batch);
        Ok(Some(batching.with_commits(commits)))
    }

    /// The same as lines of a server's file.
    pub fn lines(&self) -> Vec<String> {
        let timeout = self.batch_timeout.map(|it| it.as_nanos().div_ceil(1_000));
        let lines = [
            self.batch.map(|size| format!("batch = {size}")),
            timeout.map(|micros| format!("batch_timeout_us = {micros}")),
            self.batch_links.map(|links| format!("batch_links = \"{links}\"")),
            self.commits_per_command.map(|most| format!("commits_per_command = {most}")),
        ];
        lines.into_iter().flatten().collect()
    }

    /// The same as options of a command, each behind a space.
    pub fn arguments(&self) -> String {
        let options = [
            self.batch.map(|size| format!(" --batch {size}")),
            self.batch_timeout.map(|timeout| format!(" --batch-timeout {timeout}")),
            self.batch_links.map(|links| format!(" --batch-links {links}")),
            self.commits_per_command.map(|most| format!(" --commits-per-command {most}")),
        ];
        options.into_iter().flatten().collect()
    }
}

/// The secret of the file that was given, or else of the one that the environment names.
///
/// # Errors
/// There is such a file, and it holds no secret.
pub fn secret(given: Option<&Path>) -> anyhow::Result<Option<Secret>> {
    let named = std::env::var_os(SECRET_VARIABLE);
    let path = given.or(named.as_deref().map(Path::new));
    Ok(path.map(muesli_cluster::read_secret).transpose()?)
}

/// One subcommand per workload, each with the options of `A` and the workload's parameters in
/// its help, and with what `more` says of the workload.
pub fn workload_commands<A: Args>(command: Command, more: fn(&Description) -> String) -> Command {
    let command = command
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .subcommand_help_heading("Workloads")
        .subcommand_value_name("WORKLOAD");
    workloads().iter().fold(command, |command, workload| {
        let parameters = parameters(workload) + &more(workload);
        let one =
            Command::new(workload.name).after_help(parameters.clone()).after_long_help(parameters);
        // Last: what is said of `A` and of its parts would stand instead.
        let one = A::augment_args(one);
        command.subcommand(one.about(workload.about).long_about(workload.about))
    })
}

/// The workload that was asked for, and its options.
pub fn chosen(matches: &ArgMatches) -> (&'static Description, &ArgMatches) {
    let (name, matches) = matches.subcommand().expect("a workload is required");
    let found = workloads().iter().find(|workload| workload.name == name);
    (found.expect("the subcommands are the workloads"), matches)
}

fn parameters(workload: &Description) -> String {
    let mut text = "Parameters (--param name=value):\n".to_owned();
    for parameter in workload.parameters {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "  {}={}\n          {} Takes {}.",
            parameter.name, parameter.default, parameter.help, parameter.kind
        );
    }
    text
}
