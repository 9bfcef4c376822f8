//! `muesli partition draw`: the units of each partition, by the load that they bring.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{Write, stdout};
use std::path::PathBuf;

use anyhow::Context;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use muesli_placement::scheme::RowPlaces;
use muesli_placement::units::UnitGraph;
use serde::Serialize;
use serde_json::json;

use super::source::{SuggestOptions, Suggested, after_help};

#[derive(Args, Clone, Debug)]
struct DrawOptions {
    #[command(flatten)]
    source: SuggestOptions,
    /// Draw into an SVG file, in place of text
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// The command's options.
pub fn command() -> Command {
    let command = Command::new("draw")
        .about("Draw the suggested placement: the units of each partition, by their load")
        .after_help(after_help());
    DrawOptions::augment_args(command)
}

/// Runs the command.
///
/// # Errors
/// As [`SuggestOptions::suggested`], or the file cannot be written.
pub fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    let options = DrawOptions::from_arg_matches(matches)?;
    let suggested = options.source.suggested()?;
    let drawn = drawn(&suggested);
    if let Some(path) = &options.svg {
        fs::write(path, as_svg(&suggested.name, &drawn))
            .with_context(|| format!("{} cannot be written", path.display()))?;
    }
    let text = match (options.source.json, &options.svg) {
        (true, _) => serde_json::to_string_pretty(&json!({ "partitions": drawn }))? + "\n",
        (false, Some(path)) => format!("{}\n", path.display()),
        (false, None) => as_text(&drawn),
    };
    let _ = write!(stdout(), "{text}"); // A reader that has gone away is no matter.
    Ok(0)
}

/// A unit, and how many of the transactions learnt from touch it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct DrawnUnit {
    unit: String,
    load: u64,
}

/// A partition, with its units, the most loaded first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
struct DrawnPartition {
    load: u64,
    units: Vec<DrawnUnit>,
}

fn drawn(suggested: &Suggested) -> Vec<DrawnPartition> {
    let Suggested { trace, suggestion, partitions, .. } = suggested;
    let proposed = &suggestion.proposed;
    let graph = UnitGraph::new(trace, trace.cut().learn, &proposed.scheme);
    let loads: BTreeMap<_, _> = graph.units.iter().copied().zip(graph.loads).collect();
    let mut all = vec![DrawnPartition::default(); *partitions as usize];
    for (unit, load) in loads {
        let at = proposed.partition(unit) as usize;
        let name = format!("{} {}", trace.domains[usize::from(unit.domain)], unit.value);
        all[at].load += load;
        all[at].units.push(DrawnUnit { unit: name, load });
    }
    for partition in &mut all {
        partition.units.sort_by_key(|unit| std::cmp::Reverse(unit.load));
    }
    all
}

/// The widest bar, in letters.
const LETTERS: u64 = 50;
/// So many units of a partition are named.
const NAMED: usize = 4;

fn most(all: &[DrawnPartition]) -> u64 {
    all.iter().map(|partition| partition.load).max().unwrap_or(0).max(1)
}

fn named(partition: &DrawnPartition) -> String {
    let names: Vec<_> = partition.units.iter().take(NAMED).map(|it| it.unit.as_str()).collect();
    let more = partition.units.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    names.join(", ") + &more
}

fn as_text(all: &[DrawnPartition]) -> String {
    let (most, mut text) = (most(all), String::new());
    for (number, partition) in all.iter().enumerate() {
        let bar = "█".repeat((partition.load * LETTERS).div_ceil(most) as usize);
        let _ = writeln!(text, "{number:>4} {:>7} {bar}", partition.load);
        let _ = writeln!(text, "{:>13}{}", "", named(partition));
    }
    text
}

/// Pixels of the longest bar, of a bar's height, and of the margin to its left.
const WIDE: u64 = 700;
const HIGH: usize = 26;
const LEFT: u64 = 60;

fn as_svg(name: &str, all: &[DrawnPartition]) -> String {
    let (most, height) = (most(all), 40 + all.len() * HIGH);
    let width = LEFT + WIDE + 20;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"20\">{}: units of each partition, by transactions</text>\n",
        escaped(name)
    );
    for (number, partition) in all.iter().enumerate() {
        let y = 32 + number * HIGH;
        let _ = writeln!(svg, "<text x=\"8\" y=\"{}\">{number}</text>", y + 15);
        let mut begun = 0;
        for (place, unit) in partition.units.iter().enumerate() {
            let (from, to) = (begun * WIDE / most, (begun + unit.load) * WIDE / most);
            begun += unit.load;
            let fill = if place % 2 == 0 { "#4a7fb5" } else { "#9dbfdf" };
            let _ = writeln!(
                svg,
                "<rect x=\"{}\" y=\"{y}\" width=\"{}\" height=\"20\" fill=\"{fill}\"><title>{}: \
                 {}</title></rect>",
                LEFT + from,
                to - from,
                escaped(&unit.unit),
                unit.load
            );
        }
    }
    svg + "</svg>\n"
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> Vec<DrawnPartition> {
        let unit = |number: u64| DrawnUnit { unit: format!("warehouse {number}"), load: number };
        let of = |numbers: &[u64]| DrawnPartition {
            load: numbers.iter().sum(),
            units: numbers.iter().copied().map(unit).collect(),
        };
        vec![of(&[30, 20]), of(&[10, 5, 4, 3, 2, 1])]
    }

    #[test]
    fn bars_are_as_long_as_loads_and_the_largest_units_are_named() {
        let text = as_text(&two());
        let bars: Vec<usize> = text.lines().map(|line| line.matches('█').count()).collect();
        assert_eq!(bars, [50, 0, 25, 0]);
        assert!(text.contains("warehouse 4, warehouse 3 and 2 more"), "{text}");
    }

    #[test]
    fn a_drawing_has_a_piece_for_each_unit_and_names_are_escaped() {
        let svg = as_svg("a<b", &two());
        assert_eq!(svg.matches("<title>").count(), 8);
        assert!(svg.contains("a&lt;b: units") && svg.ends_with("</svg>\n"));
    }
}
