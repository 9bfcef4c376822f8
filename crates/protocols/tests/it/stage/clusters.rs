//! The clusters that scripts set up: their protocols, with switches turned, and their settings.

use std::error::Error;

use goldenscript::{ArgumentConsumer, Command};
use muesli_core::{Limits, Nanos, Settings};
use muesli_protocols::bumper::{self, TimeWarp};
use muesli_protocols::global_clock::Everybody;
use muesli_protocols::gmu::{self, Vectors};
use muesli_protocols::granola::{self, Granola, LockingExit};
use muesli_protocols::locking::{self, TryLocks};
use muesli_protocols::repeatable_read::{self, NewestVersions};
use muesli_protocols::score::Snapshots;
use muesli_protocols::two_phase::{self, TwoPhase};

use super::Stage;
use super::script::{Play, duration};
use crate::subject::{Subject, procedures};

/// Turns one switch of a protocol.
type Switch<R> = fn(&mut R, &str, bool) -> Result<(), String>;

pub(super) fn cluster(command: &Command) -> Result<Box<dyn Play>, Box<dyn Error>> {
    let mut args = command.consume_args();
    match args.take_key("protocol").unwrap_or("score") {
        "score" => stage::<TwoPhase<Snapshots>>(args, two_phase::Rules::default(), switch),
        "2pc" => stage::<TwoPhase<TryLocks>>(args, locking::Rules::default(), locking_switch),
        "rr" => stage::<TwoPhase<NewestVersions>>(args, Default::default(), rr_switch),
        "ngm" => stage::<TwoPhase<Everybody>>(args, two_phase::Rules::default(), switch),
        "gmu" => stage::<TwoPhase<Vectors>>(args, gmu::Rules::default(), gmu_switch),
        "gmu-printed" => stage::<TwoPhase<Vectors>>(args, gmu::Rules::printed(), gmu_switch),
        "bumper" => stage::<TwoPhase<TimeWarp>>(args, bumper::Rules::default(), bumper_switch),
        "bumper-da" => stage::<TwoPhase<TimeWarp>>(args, bumper::Rules::delaying(), bumper_switch),
        "bumper-tw" => {
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
    *match name {
        "validate" => &mut rules.validate,
        "reads_wait" => &mut rules.reads_wait,
        "waits_by_proposal" => &mut rules.waits_by_proposal,
        "lock_reads" => &mut rules.lock_reads,
        "waits_for_all" => &mut rules.waits_for_all,
        "ordered_queue" => &mut rules.ordered_queue,
        "validate_scans" => &mut rules.validate_scans,
        "reads_raise" => &mut rules.reads_raise,
        "catch_up_when_idle" => &mut rules.catch_up_when_idle,
        "delayed_excludes" => &mut rules.delayed_excludes,
        "finish_waits_for_log" => &mut rules.finish_waits_for_log,
        "judged_by_snapshot" => &mut rules.judged_by_snapshot,
        "seen_is_not_missed" => &mut rules.seen_is_not_missed,
        "sessions_bring_pasts" => &mut rules.sessions_bring_pasts,
        "decides_in_time" => &mut rules.decides_in_time,
        other => return Err(format!("no rule `{other}`")),
    } = on;
    Ok(())
}

fn locking_switch(rules: &mut locking::Rules, name: &str, on: bool) -> Result<(), String> {
    match name {
        "waits" => rules.waits = on,
        other => return switch(&mut rules.family, other, on),
    }
    Ok(())
}

fn rr_switch(rules: &mut repeatable_read::Rules, name: &str, on: bool) -> Result<(), String> {
    match name {
        "locks_at_writes" => rules.locks_at_writes = on,
        other => return switch(&mut rules.family, other, on),
    }
    Ok(())
}

fn bumper_switch(rules: &mut bumper::Rules, name: &str, on: bool) -> Result<(), String> {
    *match name {
        "alone_in_the_past" => &mut rules.alone_in_the_past,
        "below_proposals" => &mut rules.below_proposals,
        "read_stamps" => &mut rules.read_stamps,
        "triad_rule" => &mut rules.triad_rule,
        "before_the_earliest" => &mut rules.before_the_earliest,
        "reads_wait_for_the_past" => &mut rules.reads_wait_for_the_past,
        "distinct_readers" => &mut rules.distinct_readers,
        "stamps_reach_the_snapshot" => &mut rules.stamps_reach_the_snapshot,
        "floors_at_watermark" => &mut rules.floors_at_watermark,
        "updates_stamp" => &mut rules.updates_stamp,
        other => return switch(&mut rules.family, other, on),
    } = on;
    Ok(())
}

fn gmu_switch(rules: &mut gmu::Rules, name: &str, on: bool) -> Result<(), String> {
    *match name {
        "reads_wait" => &mut rules.reads_wait,
        "local_reads_wait" => &mut rules.local_reads_wait,
        "filter_by_vectors" => &mut rules.filter_by_vectors,
        "pointwise" => &mut rules.pointwise,
        "exact_validation" => &mut rules.exact_validation,
        "unique_numbers" => &mut rules.unique_numbers,
        "merge_votes" => &mut rules.merge_votes,
        "fits_side_by_side" => &mut rules.fits_side_by_side,
        other => return switch(&mut rules.family, other, on),
    } = on;
    Ok(())
}

fn granola_switch(rules: &mut granola::Rules, name: &str, on: bool) -> Result<(), String> {
    *match name {
        "undo_on_demand" => return locking_exit(rules, LockingExit::UndoOnDemand),
        "stay" => return locking_exit(rules, LockingExit::Stay),
        "implicit_votes" => &mut rules.implicit_votes,
        "bounds_in_order" => &mut rules.bounds_in_order,
        "in_order" => &mut rules.in_order,
        "highest_is_final" => &mut rules.highest_is_final,
        "carries_floor" => &mut rules.carries_floor,
        "raises_last" => &mut rules.raises_last,
        "reads_raise" => &mut rules.reads_raise,
        "readers_check" => &mut rules.readers_check,
        "passes" => &mut rules.out_of_order,
        "tells" => &mut rules.data_in_votes,
        "tells_in_turn" => &mut rules.data_sent_in_order,
        "passes_apart" => &mut rules.out_of_order_apart,
        "readers_look" => &mut rules.readers_look,
        "ceiling" => &mut rules.ceiling,
        "stable_conflicts" => &mut rules.stable_conflicts,
        "master_waits" => &mut rules.master_waits,
        "reads_logged" => &mut rules.reads_logged,
        "supersets" => &mut rules.supersets,
        "locks_queued" => &mut rules.locks_queued,
        "epochs_checked" => &mut rules.epochs_checked,
        other => return Err(format!("no rule `{other}`")),
    } = on;
    Ok(())
}

fn locking_exit(rules: &mut granola::Rules, way: LockingExit) -> Result<(), String> {
    rules.locking_exit = way;
    Ok(())
}
