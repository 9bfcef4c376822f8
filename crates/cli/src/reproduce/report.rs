//! What is told of a figure: its points, and its claims beside the paper's.

use std::io::{Write, stdout};
use std::path::Path;

use super::figure::{ClaimTarget, Figure};
use super::judge::{JudgedClaim, best_of};
use super::point::{Point, Quantity};
use super::points::Course;
use super::seed_points::SeedPoints;
use crate::bench::commands;
use crate::table::{self, grouped};

/// Prints what was seen; whether all is as it should be.
pub fn tell(
    figure: &Figure,
    (all_points, course): (&[SeedPoints], &Course),
    judged: &[JudgedClaim],
    out: &Path,
) -> bool {
    let run = match figure.cases.is_empty() {
        true => format!("workload: {} {}", figure.workload, figure.parameters.join(" ")),
        false => format!("sums up figures of: {}", figure.workloads().join(", ")),
    };
    let text = format!(
        "\n{}\n  {run}\n  machine: {}\n  chosen: {}\n  {}",
        figure.about,
        machines(figure),
        figure.chosen,
        course.described(figure)
    );
    let _ = writeln!(stdout(), "{text}");
    for printed in figure.printed {
        let _ = writeln!(stdout(), "  printed: {}: {}", printed.name, printed.source);
    }
    let _ = writeln!(stdout(), "{}", points_table(figure, all_points));
    if !figure.baselines.is_empty() {
        let medians: Vec<_> = all_points.iter().map(|it| it.median.clone()).collect();
        let _ = writeln!(stdout(), "{}", ratios_table(figure, &medians));
    }
    let _ = writeln!(stdout(), "{}", claims_table(figure, judged));
    let _ = writeln!(stdout(), "written to {}", out.join(figure.name).display());
    let points = all_points.iter().map(|seed_points| &seed_points.median);
    let broken = points.flat_map(|point| point.broken.iter().map(move |it| (point, it)));
    let mut fine = judged.iter().all(|judged| judged.met != Some(false));
    for (point, broken) in broken {
        let _ = writeln!(stdout(), "BROKEN: {} at {}: {broken}", point.line, point.x);
        fine = false;
    }
    fine
}

/// What is run on.
fn machines(figure: &Figure) -> String {
    if figure.shows.is_of_placement() {
        return "none: what is counted is in a trace".to_owned();
    }
    let mut all: Vec<_> = figure.cases.iter().map(|case| (case.of.machine)().about).collect();
    all.dedup();
    if all.is_empty() { (figure.machine)().about.to_owned() } else { all.join("; ") }
}

/// A median, and from where to where the seeds lie, if they differ as they are written.
fn with_range(text: impl Fn(f64) -> String, median: f64, (least, most): (f64, f64)) -> String {
    let (least, most) = (text(least), text(most));
    if least == most { text(median) } else { format!("{} ({least}..{most})", text(median)) }
}

/// A line for each point: medians of the seeds, and where the seeds lie.
pub fn points_table(figure: &Figure, all_points: &[SeedPoints]) -> comfy_table::Table {
    if figure.shows.is_of_placement() {
        return placement_table(figure, all_points);
    }
    let mut header = vec!["line", figure.axis.name];
    header.extend(["nodes", "clients"].into_iter().filter(|name| *name != figure.axis.name));
    let alone = figure.workload == commands::NAME;
    let measured = match alone {
        true => ["commands/s", "stepping", "p50", "p99", "messages"],
        false => ["committed/s", "updates aborted", "p50", "p99", "messages"],
    };
    header.extend(measured);
    let usual = [Quantity::Throughput, Quantity::Commands, Quantity::MedianLatency];
    let special = (!usual.contains(&figure.shows)).then_some(figure.shows);
    header.extend(special.map(Quantity::name));
    header.extend(figure.models.first().map(|_| "by the model"));
    header.extend(figure.theory.map(|_| "nodes busy"));
    let racked = all_points.iter().any(|it| it.median.rack_messages > 0.0);
    let of_racks = ["messages between racks", "packets", "bytes", "uplinks occupied"];
    header.extend(of_racks.into_iter().filter(|_| racked));
    let mut table = table::new(header.iter().map(|name| (*name).to_owned()).collect());
    let share = |point: &Point| if alone { point.busy } else { point.aborts };
    for seed_points in all_points {
        let (point, range) = (&seed_points.median, |quantity| seed_points.range(quantity));
        let mut row = vec![point.line.to_owned(), figure.place(point.x)];
        let counts = [("nodes", point.nodes.to_string()), ("clients", point.clients.to_string())];
        let counts = counts.into_iter().filter(|(name, _)| *name != figure.axis.name);
        row.extend(counts.map(|(_, count)| count));
        row.extend([
            with_range(
                |it| grouped(it.round() as u64),
                point.throughput,
                range(Quantity::Throughput),
            ),
            with_range(|it| format!("{:.1} %", it * 100.0), share(point), {
                (share(&seed_points.least), share(&seed_points.most))
            }),
            table::micros(point.p50_ms * 1e3),
            table::micros(point.p99_ms * 1e3),
            format!("{:.1}", point.messages_a_commit),
        ]);
        let own = figure.lines.iter().find(|line| line.name == point.line);
        let own = own.and_then(|line| line.shows);
        row.extend(special.map(|quantity| {
            let quantity = own.unwrap_or(quantity);
            with_range(|it| format!("{it:.3}"), point.shows(quantity), range(quantity))
        }));
        let model = figure.models.iter().find(|model| model.of == point.line);
        let by_model = || match model.map(|model| (model.predicts)(point)) {
            Some(number) if number >= 1_000.0 => grouped(number.round() as u64),
            Some(number) => format!("{number:.3}"),
            None => String::new(),
        };
        row.extend(figure.models.first().map(|_| by_model()));
        row.extend(figure.theory.map(|_| format!("{:.0} %", point.busy * 100.0)));
        let of_racks = [
            format!("{:.1}", point.rack_messages),
            format!("{:.1}", point.rack_packets),
            format!("{:.0}", point.rack_bytes),
            format!("{:.0} %", point.links_occupied * 100.0),
        ];
        row.extend(of_racks.into_iter().filter(|_| racked));
        table.add_row(row);
    }
    table
}

/// The same of a figure about placement, where nothing else is measured.
fn placement_table(figure: &Figure, all_points: &[SeedPoints]) -> comfy_table::Table {
    let shown: &[Quantity] = match figure.shows {
        Quantity::TraceLength => &[Quantity::TraceLength],
        _ => {
            &[Quantity::Distributed, Quantity::Misrouted, Quantity::Crossing, Quantity::PlacedLoad]
        }
    };
    let header = ["line", figure.axis.name].into_iter().chain(shown.iter().map(|it| it.name()));
    let mut table = table::new(header.map(str::to_owned).collect());
    for seed_points in all_points {
        let point = &seed_points.median;
        let mut row = vec![point.line.to_owned(), point.x.to_string()];
        row.extend(shown.iter().map(|shown| {
            let range = seed_points.range(*shown);
            with_range(|it| format!("{it:.2}"), point.shows(*shown), range)
        }));
        table.add_row(row);
    }
    table
}

/// What each line that is no baseline shows over the best of these, place by place: for each node
/// with data, for each machine, and by the theory.
fn ratios_table(figure: &Figure, points: &[Point]) -> comfy_table::Table {
    let header = ["line", figure.axis.name, "best other", "a data node", "a machine", "by theory"];
    let mut table = table::new(header.map(str::to_owned).into());
    for point in points.iter().filter(|point| !figure.baselines.contains(&point.line)) {
        let best = |quantity| best_of(figure.baselines, points, point.x, quantity);
        let Some((name, _)) = best(Quantity::AMachine) else { continue };
        let over = |quantity| {
            let ratio = best(quantity).map(|(_, best)| point.shows(quantity) / best);
            ratio.filter(|it| it.is_finite()).map_or("-".to_owned(), |it| format!("{it:.2}"))
        };
        table.add_row([
            point.line.to_owned(),
            point.x.to_string(),
            name.to_owned(),
            over(Quantity::ANode),
            over(Quantity::AMachine),
            over(Quantity::Predicted),
        ]);
    }
    table
}

fn claims_table(figure: &Figure, judged: &[JudgedClaim]) -> comfy_table::Table {
    let header = ["claim", "paper", "ours", "ours/paper", "target", ""];
    let mut table = table::new(header.map(str::to_owned).into());
    for (claim, judged) in figure.claims.iter().zip(judged) {
        let number = |number: Option<f64>| number.map_or("-".to_owned(), |it| format!("{it:.2}"));
        let target = match claim.target {
            None => "-".to_owned(),
            Some(ClaimTarget::Least(least)) => format!("at least {least}"),
            Some(ClaimTarget::Most(most)) => format!("at most {most}"),
            Some(ClaimTarget::Between(least, most)) => format!("{least} to {most}"),
        };
        let met = match judged.met {
            None => "",
            Some(true) => "met",
            Some(false) => "MISSED",
        };
        table.add_row([
            judged.what.to_owned(),
            number(judged.paper),
            with_range(|it| format!("{it:.2}"), judged.ours, judged.range),
            number(judged.ratio()),
            target,
            met.to_owned(),
        ]);
    }
    table
}
