//! The clusters that scripts set up: their protocols, with switches turned, and their settings.

use std::error::Error;

use goldenscript::{ArgumentConsumer, Command};
use muesli_core::{Limits, Nanos, Settings};
use muesli_protocols::bumper::{self, TimeWarp};
use muesli_protocols::canonical_name;
use muesli_protocols::gmu::{self, Vectors};
use muesli_protocols::granola::{self, Granola, LockingExit, Ordering, SharedData};
use muesli_protocols::non_genuine_multiversioning::Everybody;
use muesli_protocols::repeatable_read::{self, LockTime, NewestVersions};
use muesli_protocols::score::Snapshots;
use muesli_protocols::two_phase::{self, Breakable, LockWaits, Sabotage, TwoPhase};
use muesli_protocols::two_phase_commit::{self, TryLocks, WriteLocks};

use super::Stage;
use super::script::{Play, duration};
use crate::subject::{Subject, procedures};

/// Turns one switch of a protocol.
type Switch<R> = fn(&mut R, &str, bool) -> Result<(), String>;

pub(super) fn cluster(command: &Command) -> Result<Box<dyn Play>, Box<dyn Error>> {
    let mut args = command.consume_args();
    match canonical_name(args.take_key("protocol").unwrap_or("score")) {
        "score" => stage::<TwoPhase<Snapshots>>(args, two_phase::Rules::default(), switch),
        "two-phase-commit" => {
            stage::<TwoPhase<TryLocks>>(args, two_phase_commit::Rules::default(), locking_switch)
        }
        "repeatable-read" => stage::<TwoPhase<NewestVersions>>(args, Default::default(), rr_switch),
        "non-genuine-multiversioning" => {
            stage::<TwoPhase<Everybody>>(args, two_phase::Rules::default(), switch)
        }
        "gmu" => stage::<TwoPhase<Vectors>>(args, gmu::Rules::default(), gmu_switch),
        "gmu-printed" => stage::<TwoPhase<Vectors>>(args, gmu::Rules::printed(), gmu_switch),
        "bumper" => stage::<TwoPhase<TimeWarp>>(args, bumper::Rules::default(), bumper_switch),
        "bumper-delaying" => {
            stage::<TwoPhase<TimeWarp>>(args, bumper::Rules::delaying(), bumper_switch)
        }
        "bumper-time-warping" => {
            stage::<TwoPhase<TimeWarp>>(args, bumper::Rules::time_warping(), bumper_switch)
        }
        "bumper-reconciled" => {
            stage::<TwoPhase<TimeWarp>>(args, bumper::Rules::reconciled(), bumper_switch)
        }
        "bumper-printed" => {
            stage::<TwoPhase<TimeWarp>>(args, bumper::Rules::printed(), bumper_switch)
        }
        "granola" => stage::<Granola>(args, granola::Rules::default(), granola_switch),
        "granola-locking" => stage::<Granola>(args, granola::Rules::locking(), granola_switch),
        "sinfonia" => stage::<Granola>(args, granola::Rules::sinfonia(), granola_switch),
        other => Err(format!("no protocol `{other}`").into()),
    }
}

fn stage<P: Subject>(
    mut args: ArgumentConsumer<'_>,
    mut rules: P::Rules,
    turn: Switch<P::Rules>,
) -> Result<Box<dyn Play>, Box<dyn Error>> {
    let mut settings = Settings {
        gossip_every: Nanos::from_millis(3_600_000),
        record_collected: true,
        procedures: procedures::all(),
        limits: Limits { procedure_steps: 1_000, ..Limits::default() },
        ..Settings::default()
    };
    let (mut nodes, mut masters, mut manual) = (3, 0, false);
    let (mut replicas, mut spread) = (1, 1);
    while let Some((key, value)) = args.next_key() {
        match key {
            "nodes" => nodes = value.parse()?,
            "masters" => masters = value.parse()?,
            "replicas" => replicas = value.parse()?,
            "spread" => spread = value.parse()?,
            "log" => (settings.logging, manual) = (true, value == "manual"),
            "off" => value.split(',').try_for_each(|name| turn(&mut rules, name, false))?,
            "on" => value.split(',').try_for_each(|name| turn(&mut rules, name, true))?,
            "gossip" => settings.gossip_every = duration(value)?,
            "lease" => settings.snapshot_lease = duration(value)?,
            "lock_wait" => settings.lock_wait = duration(value)?,
            "in_doubt" => settings.in_doubt_after = duration(value)?,
            "give_up" => settings.give_up_after = duration(value)?,
            other => return Err(format!("no setting `{other}`").into()),
        }
    }
    args.reject_next()?;
    Ok(Box::new(Stage::<P>::new((nodes, masters), (replicas, spread), settings, rules, manual)))
}

fn switch(rules: &mut two_phase::Rules, name: &str, on: bool) -> Result<(), String> {
    if name == "waits_for_all" {
        rules.lock_waits = if on { LockWaits::ForAll } else { LockWaits::Ordered };
        return Ok(());
    }
    let rule = two_phase::FamilySwitch::named(name).ok_or_else(|| format!("no rule `{name}`"))?;
    rules.set(rule, on);
    Ok(())
}

fn locking_switch(rules: &mut two_phase_commit::Rules, name: &str, on: bool) -> Result<(), String> {
    match name {
        "waits" => rules.choice = if on { WriteLocks::WaitedFor } else { WriteLocks::Tried },
        other => return switch(&mut rules.family, other, on),
    }
    Ok(())
}

fn rr_switch(rules: &mut repeatable_read::Rules, name: &str, on: bool) -> Result<(), String> {
    match name {
        "locks_at_writes" => rules.choice = if on { LockTime::Write } else { LockTime::Commit },
        other => return switch(&mut rules.family, other, on),
    }
    Ok(())
}

fn bumper_switch(rules: &mut bumper::Rules, name: &str, on: bool) -> Result<(), String> {
    match bumper::BumperSwitch::named(name) {
        Some(rule) => rules.set(rule, on),
        None => return switch(&mut rules.family, name, on),
    }
    Ok(())
}

fn gmu_switch(rules: &mut gmu::Rules, name: &str, on: bool) -> Result<(), String> {
    match gmu::GmuSwitch::named(name) {
        Some(rule) => rules.set(rule, on),
        None => return switch(&mut rules.family, name, on),
    }
    Ok(())
}

fn granola_switch(rules: &mut granola::Rules, name: &str, on: bool) -> Result<(), String> {
    match (name, on) {
        ("undo_on_demand", _) => rules.locking_exit = LockingExit::UndoOnDemand,
        ("stay", _) => rules.locking_exit = LockingExit::Stay,
        ("passes", true) => rules.ordering = Ordering::OutOfOrder,
        ("passes", false) => rules.ordering = Ordering::Timestamps,
        ("tells", true) => rules.shared_data = SharedData::Told,
        ("tells", false) => rules.shared_data = SharedData::Coordinated,
        (other, _) => {
            let rule =
                granola::GranolaSwitch::named(other).ok_or_else(|| format!("no rule `{other}`"))?;
            rules.set(rule, on);
        }
    }
    Ok(())
}
