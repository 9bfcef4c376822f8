//! Counters in one call each, on a Muesli and on a Redis.

use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Args;

use crate::load::{self, LoadOptions, Measured};
use crate::scripts::{INCREMENT, READ_AND_WRITE, Script};
use crate::{native, server};

/// What the command takes.
#[derive(Args)]
pub struct CountersArguments {
    /// Connections
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    clients: u32,
    /// Calls that each connection has in flight, one number a part of the run
    #[arg(long, value_delimiter = ',', default_value = "1,16",
        value_parser = clap::value_parser!(u32).range(1..=256))]
    in_flight: Vec<u32>,
    /// Counters
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    keys: u32,
    /// How long each system is measured in a round
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// How often they take turns
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    rounds: u32,
    /// Where chance comes from
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The program `muesli`; that beside this one if none is given
    #[arg(long)]
    muesli: Option<PathBuf>,
    /// Leaves Redis out
    #[arg(long)]
    alone: bool,
}

/// Runs the command.
///
/// # Errors
/// A server cannot be started, or says something unexpected; or a counter is wrong.
pub fn run(arguments: &CountersArguments) -> anyhow::Result<()> {
    for &in_flight in &arguments.in_flight {
        let load = LoadOptions {
            in_flight: in_flight as usize,
            keys: arguments.keys,
            length: Duration::try_from_secs_f64(arguments.seconds)?,
            seed: arguments.seed,
        };
        let (mut own, mut script, mut command) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..arguments.rounds {
            own.push(muesli(arguments, &load)?);
            if !arguments.alone {
                script.push(redis(arguments.clients, &load, READ_AND_WRITE)?);
                command.push(redis(arguments.clients, &load, INCREMENT)?);
            }
        }
        let what = format!("{} connections, {in_flight} in flight each", arguments.clients);
        let best = tell(&format!("muesli, {what}"), &own, None)?;
        if !arguments.alone {
            tell(&format!("redis EVALSHA GET and SET, {what}"), &script, Some(best))?;
            tell(&format!("redis EVALSHA INCRBY, {what}"), &command, Some(best))?;
        }
    }
    Ok(())
}

fn muesli(arguments: &CountersArguments, load: &LoadOptions) -> anyhow::Result<Measured> {
    let program = match &arguments.muesli {
        Some(program) => program.clone(),
        None => std::env::current_exe()?.with_file_name("muesli"),
    };
    let server = server::Muesli::start(&program)?;
    let connect = |number| native::connect(server.address(), number);
    load::run((0..arguments.clients).map(connect).collect::<anyhow::Result<_>>()?, load)
}

fn redis(clients: u32, load: &LoadOptions, script: &str) -> anyhow::Result<Measured> {
    let server = server::Redis::start()?;
    let name = Script::load(server.address(), script)?;
    let connect = |_| Ok((load::connect(server.address())?, Script::named(&name)));
    load::run((0..clients).map(connect).collect::<anyhow::Result<_>>()?, load)
}

/// Says what the rounds came to: the median and the spread, and how often it goes into `ours`.
fn tell(what: &str, rounds: &[Measured], ours: Option<f64>) -> anyhow::Result<f64> {
    let mut rates: Vec<f64> = rounds.iter().map(Measured::rate).collect();
    rates.sort_by(f64::total_cmp);
    let (least, most) = (rates[0], rates[rates.len() - 1]);
    let median = rates[rates.len() / 2];
    let ratio = ours.map(|ours| format!("; muesli is {:.2} times that", ours / median));
    let mut out = std::io::stdout();
    writeln!(
        out,
        "{what}: {median:.0} calls/s ({least:.0} to {most:.0}, {} rounds){}",
        rates.len(),
        ratio.unwrap_or_default()
    )
    .context("cannot write")?;
    ensure!(rounds.iter().all(|it| it.is_exact), "{what}: a counter shows another sum");
    Ok(median)
}
