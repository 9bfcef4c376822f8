//! `muesli partition suggest`: by which column each table is placed, and what it is worth; and with
//! `--connect` which partitions of servers that run should move.

use std::io::{Write, stdout};

use clap::{ArgMatches, Args, Command, FromArgMatches, ValueEnum};
use muesli_placement::suggestion::BothShares;
use serde_json::json;

use super::online::{self, LiveTerms};
use super::source::{SuggestOptions, Suggested, after_help};
use crate::table;

#[derive(Args, Clone, Debug)]
struct MethodOptions {
    #[command(flatten)]
    source: SuggestOptions,
    /// How data are placed: by columns and units; or beside that by the dissertation's method, rows
    /// and METIS, whose shares are printed, too
    #[arg(long, value_enum, default_value = "columns")]
    method: PlacementMethod,
    /// Say for servers that run, by these addresses, which partitions should move; one that
    /// answers is enough
    #[arg(long, value_name = "HOST:PORT,…",
        conflicts_with_all = ["workload", "trace", "parameters", "record", "method", "partitions",
            "transactions", "seed"])]
    connect: Option<String>,
    /// Measure for so long
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0, requires = "connect")]
    seconds: f64,
    #[command(flatten)]
    live: LiveTerms,
}

/// How data are placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PlacementMethod {
    Columns,
    Printed,
}

/// The dissertation's method: how many rows it placed, and its shares.
type ByRows = Option<(usize, BothShares)>;

/// The command's options.
pub fn command() -> Command {
    let command = Command::new("suggest")
        .about("Suggest from a trace by what each table is placed, and which units where")
        .after_help(after_help());
    let command = online::only_with_connection(MethodOptions::augment_args(command));
    command.mut_arg("workload", |it| it.required_unless_present_any(["trace", "connect"]))
}

/// Runs the command.
///
/// # Errors
/// As [`SuggestOptions::suggested`] and [`Suggested::by_rows`].
pub fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    let options = MethodOptions::from_arg_matches(matches)?;
    let MethodOptions { source, method, connect, seconds, live } = options;
    if let Some(connect) = connect {
        let text = online::suggest::text(&connect, &live, (seconds, source.json))?;
        let _ = writeln!(stdout(), "{text}"); // A reader that has gone away is no matter.
        return Ok(0);
    }
    let suggested = source.suggested()?;
    let by_rows = (method == PlacementMethod::Printed).then(|| suggested.by_rows()).transpose()?;
    let text = match source.json {
        true => as_json(&suggested, &by_rows)?,
        false => as_text(&suggested, &by_rows),
    };
    let _ = writeln!(stdout(), "{text}"); // A reader that has gone away is no matter.
    Ok(0)
}

fn as_json(suggested: &Suggested, by_rows: &ByRows) -> anyhow::Result<String> {
    let manual = suggested.manual.as_ref().map(|(scheme, shares)| {
        json!({ "tables": scheme.described(&suggested.trace), "shares": shares })
    });
    Ok(serde_json::to_string_pretty(&json!({
        "of": suggested.name,
        "transactions": suggested.trace.transactions.len(),
        "partitions": suggested.partitions,
        "suggestion": suggested.suggestion,
        "manual": manual,
        "printed": by_rows.as_ref().map(|(rows, shares)| {
            json!({ "rows": rows, "shares": shares })
        }),
    }))?)
}

fn as_text(suggested: &Suggested, by_rows: &ByRows) -> String {
    let Suggested { name, trace, partitions, suggestion, manual } = suggested;
    let (count, cut) = (trace.transactions.len(), trace.cut());
    let mut text = format!(
        "{name}: {count} transactions, {} learnt from, {} fresh\n",
        cut.learn.len(),
        cut.report.len()
    );
    let header = ["table", "suggested", "manual"].map(str::to_owned).to_vec();
    let mut tables = table::new(header);
    let by_hand = manual.as_ref().map(|(scheme, _)| scheme.described(trace));
    for (table, placed) in &suggestion.tables {
        let manual = by_hand.as_ref().map_or("", |all| all[table].as_str());
        tables.add_row([table.as_str(), placed.as_str(), manual]);
    }
    text += &format!("{tables}\n\n");
    let header = ["%, fresh (learnt from)", "distributed", "misrouted", "crossing", "load"];
    let mut shares = table::new(header.map(str::to_owned).to_vec());
    shares.add_row(row("suggested", &suggestion.suggested));
    shares.add_row(row("the same by hash", &suggestion.by_hash));
    if let Some((_, of_manual)) = manual {
        shares.add_row(row("manual, in turn", of_manual));
    }
    if let Some((_, of_rows)) = by_rows {
        shares.add_row(row("printed: rows, METIS", of_rows));
    }
    let advice = match suggestion.places_units {
        true => "placing them is worth it",
        false => "a hash does as well, and is what is suggested",
    };
    text += &format!(
        "{shares}\n\n{} units in {partitions} partitions, first by {}; {advice}; {} schemes tried",
        suggestion.units, suggestion.first_by, suggestion.tried
    );
    if let Some((rows, _)) = by_rows {
        text += &format!("\nprinted: {rows} rows placed one by one, those not seen by a hash");
    }
    text
}

fn row(name: &str, shares: &BothShares) -> [String; 5] {
    let BothShares { in_sample, fresh } = shares;
    let both = |fresh: f64, in_sample: f64| format!("{fresh:.1} ({in_sample:.1})");
    [
        name.to_owned(),
        both(fresh.distributed, in_sample.distributed),
        both(fresh.misrouted, in_sample.misrouted),
        both(fresh.crossing, in_sample.crossing),
        format!("{:.2} ({:.2})", fresh.load, in_sample.load),
    ]
}
