//! What is told of a figure: its points, and its claims beside the paper's.

use std::io::{Write, stdout};
use std::path::Path;

use super::figure::{Figure, Target};
use super::judge::Judged;
use super::point::{Point, Quantity};
use crate::table::{self, grouped};

/// Says what was seen; whether all is as it should be.
pub fn tell(figure: &Figure, points: &[Point], judged: &[Judged], out: &Path) -> bool {
    let machine = (figure.machine)();
    let text = format!(
        "\n{}\n  workload: {} {}\n  machine: {}\n  chosen: {}",
        figure.about,
        figure.workload,
        figure.parameters.join(" "),
        machine.about,
        figure.chosen
    );
    let _ = writeln!(stdout(), "{text}");
    let _ =
        writeln!(stdout(), "{}\n{}", points_table(figure, points), claims_table(figure, judged));
    let _ = writeln!(stdout(), "written to {}", out.join(figure.name).display());
    let broken = points.iter().flat_map(|point| point.broken.iter().map(move |it| (point, it)));
    let mut fine = judged.iter().all(|judged| judged.met != Some(false));
    for (point, broken) in broken {
        let _ = writeln!(stdout(), "BROKEN: {} at {}: {broken}", point.line, point.x);
        fine = false;
    }
    fine
}

/// A line for each point.
pub fn points_table(figure: &Figure, points: &[Point]) -> comfy_table::Table {
    let mut header = vec!["line", figure.axis.name];
    header.extend(["nodes", "clients"].into_iter().filter(|name| *name != figure.axis.name));
    header.extend(["committed/s", "updates aborted", "p50", "p99", "messages"]);
    let special = (figure.shows != Quantity::Throughput).then_some(figure.shows);
    header.extend(special.map(Quantity::name));
    header.extend(figure.models.first().map(|_| "by the model"));
    let mut table = table::new(header.iter().map(|name| (*name).to_owned()).collect());
    for point in points {
        let mut row = vec![point.line.to_owned(), point.x.to_string()];
        let counts = [("nodes", point.nodes.to_string()), ("clients", point.clients.to_string())];
        let counts = counts.into_iter().filter(|(name, _)| *name != figure.axis.name);
        row.extend(counts.map(|(_, count)| count));
        row.extend([
            grouped(point.throughput.round() as u64),
            format!("{:.1} %", point.aborts * 100.0),
            table::micros(point.p50_ms * 1e3),
            table::micros(point.p99_ms * 1e3),
            format!("{:.1}", point.messages_a_commit),
        ]);
        row.extend(special.map(|quantity| format!("{:.3}", point.shows(quantity))));
        let model = figure.models.iter().find(|model| model.of == point.line);
        row.extend(model.map(|model| format!("{:.3}", (model.says)(point))));
        table.add_row(row);
    }
    table
}

fn claims_table(figure: &Figure, judged: &[Judged]) -> comfy_table::Table {
    let header = ["claim", "paper", "ours", "ours/paper", "target", ""];
    let mut table = table::new(header.map(str::to_owned).into());
    for (claim, judged) in figure.claims.iter().zip(judged) {
        let number = |number: Option<f64>| number.map_or("-".to_owned(), |it| format!("{it:.2}"));
        let target = match claim.target {
            None => "-".to_owned(),
            Some(Target::Least(least)) => format!("at least {least}"),
            Some(Target::Most(most)) => format!("at most {most}"),
        };
        let met = match judged.met {
            None => "",
            Some(true) => "met",
            Some(false) => "MISSED",
        };
        table.add_row([
            judged.what.to_owned(),
            number(judged.paper),
            number(Some(judged.ours)),
            number(judged.ratio()),
            target,
            met.to_owned(),
        ]);
    }
    table
}
