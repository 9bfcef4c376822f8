//! The files of a figure: its table, and its plot.

use std::path::Path;

use anyhow::Context;

use super::figure::Figure;
use super::judge::JudgedClaim;
use super::plot;
use super::point::Point;
use super::seed_points::SeedPoints;

/// Writes the table and the plots.
///
/// # Errors
/// The system does not let it.
pub fn write_files(
    figure: &Figure,
    (by_seed, all_points, first): (&[Vec<Point>], &[SeedPoints], u64),
    judged: &[JudgedClaim],
    out: &Path,
) -> anyhow::Result<()> {
    std::fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    let canvas = plot::draw(figure, all_points);
    for (extension, bytes) in [
        ("csv", csv(figure, (by_seed, all_points, first), judged).into_bytes()),
        ("svg", canvas.svg().into_bytes()),
        ("png", canvas.png()?),
    ] {
        let path = out.join(format!("{}.{extension}", figure.name));
        std::fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// The points of each seed, then claims, then what the paper prints, each a table of its own.
fn csv(
    figure: &Figure,
    (by_seed, all_points, first): (&[Vec<Point>], &[SeedPoints], u64),
    judged: &[JudgedClaim],
) -> String {
    let mut text = "seed,line,x,nodes,clients,committed_a_second,several_a_second,updates_aborted,\
         mean_ms,several_ms,p50_ms,p99_ms,messages_a_commit,locked,transition_ms,machines,\
         rack_messages,rack_packets,rack_bytes,\
         links_occupied,busy,predicted,over_first,distributed,misrouted,crossing,placed_load,\
         trace_length\n"
        .to_owned();
    let runs = (first..).zip(by_seed);
    for (seed, point) in runs.flat_map(|(seed, points)| points.iter().map(move |it| (seed, it))) {
        text += &format!(
            "{seed},\"{}\",{},{},{},{:.1},{:.1},{:.5},{:.4},{:.4},{:.3},{:.3},{:.2},{:.5},{:.4},\
             {},{:.3},{:.3},{:.1},{:.4},{:.4},{:.1},{:.4},{:.3},{:.3},{:.3},{:.4},{}\n",
            point.line,
            point.x,
            point.nodes,
            point.clients,
            point.throughput,
            point.several_a_second,
            point.aborts,
            point.mean_ms,
            point.several_ms,
            point.p50_ms,
            point.p99_ms,
            point.messages_a_commit,
            point.locked,
            point.transition_ms,
            point.machines,
            point.rack_messages,
            point.rack_packets,
            point.rack_bytes,
            point.links_occupied,
            point.busy,
            point.predicted,
            point.over_first,
            point.distributed,
            point.misrouted,
            point.crossing,
            point.placed_load,
            point.trace_length,
        );
    }
    text += "\nclaim,paper,ours,least,most,ours_over_paper,met\n";
    let number = |number: Option<f64>| number.map_or(String::new(), |it| format!("{it:.4}"));
    for judged in judged {
        let met = judged.met.map_or(String::new(), |met| met.to_string());
        text += &format!(
            "\"{}\",{},{},{},{},{},{met}\n",
            judged.what,
            number(judged.paper),
            number(Some(judged.ours)),
            number(Some(judged.range.0)),
            number(Some(judged.range.1)),
            number(judged.ratio())
        );
    }
    let medians: Vec<_> = all_points.iter().map(|seed_points| seed_points.median.clone()).collect();
    text += if figure.printed.is_empty() { "" } else { "\nprinted,x,shown,source\n" };
    for printed in figure.printed {
        for (x, y) in printed.places(figure, &medians) {
            text += &format!("\"{}\",{x},{y:.4},\"{}\"\n", printed.name, printed.source);
        }
    }
    text
}
