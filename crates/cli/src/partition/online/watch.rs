//! `muesli partition watch`: plans again and again, and moves partitions as it goes.

use std::thread;

use clap::{ArgMatches, Args, Command, FromArgMatches};

use super::following::FollowedCluster;
use super::lines::print;
use super::live::LiveCluster;
use super::options::{LiveTerms, seconds, with_connection};

const AFTER: &str = "\
After moves a whole period is measured. Where neither the share of distributed transactions nor \
the load of the busiest repository is better than before them, they are taken back, and these \
partitions stay for ten periods. Budgets are of each period.";

#[derive(Args, Clone, Debug)]
struct WatchOptions {
    #[command(flatten)]
    live: LiveTerms,
    /// How long a period is
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    every: f64,
    /// So many periods, and not for ever
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    times: Option<u64>,
    /// Move partitions; without it only what would be done is said
    #[arg(long, requires = "budget")]
    apply: bool,
    /// As JSON, a line for each period and each move
    #[arg(long)]
    json: bool,
}

/// The command's options.
pub fn command() -> Command {
    let command = Command::new("watch")
        .about("Plan moves of partitions of servers that run, again and again; and make them")
        .after_help(AFTER);
    WatchOptions::augment_args(with_connection(command))
}

/// Runs the command.
///
/// # Errors
/// The cluster does not answer at the start, or its partitions do not move.
pub fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    let options = WatchOptions::from_arg_matches(matches)?;
    let connect = matches.get_one::<String>("connect").expect("it has a default");
    let (terms, every) = (options.live.terms()?, seconds("--every", options.every)?);
    let cluster = LiveCluster::connect(connect, &options.live)?;
    let mut followed = FollowedCluster::begin(cluster, terms, options.apply)?;
    let mut period = 0;
    while options.times.is_none_or(|times| period < times) {
        period += 1;
        thread::sleep(every);
        followed.end_period(&mut |event| {
            print(&match options.json {
                true => event.as_json(period).to_string(),
                false => event.line(period, options.apply),
            });
        });
    }
    Ok(0)
}
