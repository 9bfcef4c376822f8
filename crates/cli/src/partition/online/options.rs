//! Options that all of these commands have.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::bail;
use clap::{Arg, Args, Command};
use muesli_placement::online::MoveTerms;

use crate::names;

/// What moves are judged by, and how the cluster is reached.
#[derive(Args, Clone, Debug)]
pub struct LiveTerms {
    /// The protocol of the cluster
    #[arg(long, value_name = "NAME", default_value = "granola",
        value_parser = names::protocols(), hide_possible_values = true)]
    pub protocol: String,
    /// The file of the cluster's secret, as the servers have it [env: MUESLI_SECRET_FILE]
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,
    /// The most rows that may move [default: any]
    #[arg(long, value_name = "ROWS")]
    pub budget: Option<u64>,
    /// The most milliseconds that moves may take [default: any]
    #[arg(long, value_name = "MS",
        value_parser = clap::value_parser!(u64).range(1..))]
    pub budget_ms: Option<u64>,
    /// A move must have paid for itself after so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0)]
    pub horizon: f64,
    /// What a transaction of one repository costs it, in microseconds
    #[arg(long, value_name = "US", default_value_t = 10.0)]
    pub transaction_us: f64,
    /// How much more a distributed one costs each of its repositories, in microseconds
    #[arg(long, value_name = "US", default_value_t = 40.0)]
    pub distributed_us: f64,
    /// What a row costs that moves, in microseconds
    #[arg(long, value_name = "US", default_value_t = 4.0)]
    pub row_us: f64,
    /// What a move costs beside its rows, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 20.0)]
    pub move_ms: f64,
    /// The most load of a repository, by the mean
    #[arg(long, value_name = "RATIO", default_value_t = 1.2)]
    pub load_most: f64,
}

impl LiveTerms {
    /// What moves are judged by.
    ///
    /// # Errors
    /// A number that cannot be.
    pub fn terms(&self) -> anyhow::Result<MoveTerms> {
        let costs = [
            ("--horizon", self.horizon),
            ("--transaction-us", self.transaction_us),
            ("--distributed-us", self.distributed_us),
            ("--row-us", self.row_us),
            ("--move-ms", self.move_ms),
        ];
        for (name, value) in costs {
            if !value.is_finite() || value < 0.0 {
                bail!("`{name}`: {value} is no cost: a number of at least 0 is");
            }
        }
        if !self.load_most.is_finite() || self.load_most < 1.0 {
            bail!("`--load-most`: {}: a repository has at least the mean", self.load_most);
        }
        Ok(MoveTerms {
            transaction_us: self.transaction_us,
            distributed_us: self.distributed_us,
            row_us: self.row_us,
            move_ms: self.move_ms,
            horizon_s: self.horizon,
            load_cap: self.load_most,
            rows_most: self.budget.unwrap_or(u64::MAX),
            ms_most: self.budget_ms.map_or(f64::INFINITY, |ms| ms as f64),
            ..MoveTerms::default()
        })
    }
}

/// Of a command that has its servers only where `--connect` is given: the same holds for what moves
/// are judged by.
pub fn only_with_connection(command: Command) -> Command {
    let own = LiveTerms::augment_args(Command::new("terms"));
    let names: Vec<_> = own.get_arguments().map(|it| it.get_id().clone()).collect();
    names
        .into_iter()
        .fold(command, |command, name| command.mut_arg(name, |it| it.requires("connect")))
}

/// So many seconds as a time.
///
/// # Errors
/// It is none, or not longer than nothing.
pub fn seconds(name: &str, seconds: f64) -> anyhow::Result<Duration> {
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) if !time.is_zero() => Ok(time),
        _ => bail!("`{name}`: not {seconds} seconds"),
    }
}

/// The command with the option that says where servers are.
pub fn with_connection(command: Command) -> Command {
    command.arg(
        Arg::new("connect")
            .long("connect")
            .value_name("HOST:PORT,…")
            .default_value("127.0.0.1:7400")
            .help("Addresses of servers; one that answers is enough"),
    )
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches;

    use super::*;

    fn terms(arguments: &[&str]) -> anyhow::Result<MoveTerms> {
        let command = with_connection(LiveTerms::augment_args(Command::new("moves")));
        let all = ["moves"].iter().chain(arguments);
        LiveTerms::from_arg_matches(&command.try_get_matches_from(all)?)?.terms()
    }

    #[test]
    fn what_is_not_given_is_as_in_the_model() {
        assert_eq!(terms(&[]).unwrap(), MoveTerms::default());
        let given = terms(&["--budget", "7", "--budget-ms", "9", "--row-us", "2"]).unwrap();
        assert_eq!((given.rows_most, given.ms_most, given.row_us), (7, 9.0, 2.0));
    }

    #[test]
    fn numbers_that_cannot_be_are_refused() {
        for (option, value) in [("--horizon", "-1"), ("--row-us", "nan"), ("--load-most", "0.5")] {
            let error = terms(&[&format!("{option}={value}")]).unwrap_err().to_string();
            assert!(error.contains(option), "{error}");
        }
        assert!(seconds("--every", 0.0).is_err() && seconds("--every", f64::NAN).is_err());
        assert_eq!(seconds("--every", 0.5).unwrap(), Duration::from_millis(500));
    }
}
