//! `muesli partition suggest --connect`: which partitions should move, and what that is worth.

use std::thread;
use std::time::Duration;

use muesli_placement::online::{MoveTerms, plan_moves};

use super::live::{LiveCluster, LiveCounters};
use super::options::{LiveTerms, seconds};
use super::report::PlanReport;

/// Measures for so long, and plans. Nothing is moved.
///
/// # Errors
/// A server does not answer or samples nothing, or the cluster's partitions do not move.
pub fn report(
    cluster: &LiveCluster,
    terms: &MoveTerms,
    period: Duration,
) -> anyhow::Result<PlanReport> {
    let before = cluster.counters()?;
    before.check_sampled()?;
    thread::sleep(period);
    report_since(cluster, terms, (&before, &cluster.counters()?))
}

/// Measures for so many seconds and plans, for people or as JSON.
///
/// # Errors
/// As [`report`].
pub fn text(
    addresses: &str,
    live: &LiveTerms,
    (period, as_json): (f64, bool),
) -> anyhow::Result<String> {
    let (terms, period) = (live.terms()?, seconds("--seconds", period)?);
    let cluster = LiveCluster::connect(addresses, live)?;
    let report = report(&cluster, &terms, period)?;
    Ok(match as_json {
        true => serde_json::to_string_pretty(&report.as_json())?,
        false => report.as_text(),
    })
}

/// Plans by what was counted between two moments.
///
/// # Errors
/// As [`report`].
pub(super) fn report_since(
    cluster: &LiveCluster,
    terms: &MoveTerms,
    (before, after): (&LiveCounters, &LiveCounters),
) -> anyhow::Result<PlanReport> {
    let period = after.since(before);
    let placement = cluster.placement(&period)?;
    let samples = cluster.samples(placement.partitions.len())?;
    let (seconds, rate) = (period.seconds, period.rate());
    let plan = plan_moves(&placement, &samples, (seconds, rate), terms);
    let measured = period.shares(&placement);
    Ok(PlanReport { servers: cluster.servers(), seconds, measured, plan })
}
