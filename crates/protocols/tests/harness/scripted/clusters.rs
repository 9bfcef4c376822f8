//! What the clusters have in common that scripts set up: their settings, and how switches of their
//! protocols are turned.

use std::error::Error;

use goldenscript::{ArgumentConsumer, Command};
use muesli_core::{Limits, Nanos, Settings};

use super::Harness;
use super::script::{Play, duration};
use crate::harness::subject::{Subject, procedures};

/// Sets up the cluster that a command asks for, of the protocols of one program.
pub type Clusters = fn(&Command) -> Result<Box<dyn Play>, Box<dyn Error>>;

/// Turns one switch of a protocol.
pub type Switch<R> = fn(&mut R, &str, bool) -> Result<(), String>;

/// A stage of one protocol, with what a command sets beside that.
pub fn harness<P: Subject>(
    mut args: ArgumentConsumer<'_>,
    mut switches: P::Switches,
    apply: Switch<P::Switches>,
) -> Result<Box<dyn Play>, Box<dyn Error>> {
    let mut settings = Settings {
        gossip_every: Nanos::from_millis(3_600_000),
        record_collected: true,
        procedures: procedures::all(),
        limits: Limits { procedure_steps: 1_000, ..Limits::default() },
        ..Settings::default()
    };
    let (mut nodes, mut masters, mut clients, mut tree, mut manual) = (3, 0, 0, None, false);
    let (mut replicas, mut partitions_per_repository) = (1, 1);
    while let Some((key, value)) = args.next_key() {
        match key {
            "nodes" => nodes = value.parse()?,
            "clients" => clients = value.parse()?,
            "masters" => masters = value.parse()?,
            "tree" => tree = Some(value.parse()?),
            "replicas" => replicas = value.parse()?,
            "spread" => partitions_per_repository = value.parse()?,
            "log" => (settings.logging, manual) = (true, value == "manual"),
            "off" => value.split(',').try_for_each(|name| apply(&mut switches, name, false))?,
            "on" => value.split(',').try_for_each(|name| apply(&mut switches, name, true))?,
            "gossip" => settings.gossip_every = duration(value)?,
            "page" => settings.limits.page_rows = value.parse()?,
            "client_lease" => settings.client_lease = duration(value)?,
            "lease" => settings.snapshot_lease = duration(value)?,
            "lock_wait" => settings.lock_wait = duration(value)?,
            "in_doubt" => settings.in_doubt_after = duration(value)?,
            "give_up" => settings.give_up_after = duration(value)?,
            other => return Err(format!("no setting `{other}`").into()),
        }
    }
    args.reject_next()?;
    Ok(Box::new(Harness::<P>::new(
        (nodes, masters, clients, tree),
        (replicas, partitions_per_repository),
        settings,
        switches,
        manual,
    )))
}
