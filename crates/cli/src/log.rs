//! `muesli log`: the write-ahead log of a server that does not start.

use std::io::{Write, stdout};
use std::path::PathBuf;

use anyhow::bail;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use muesli::{Db, Options, VerifiedReplay};
use muesli_cluster::storage::stopped::repair::{End, Inspection, Sequence, StoppedLog};
use muesli_log::Cut;
use muesli_workloads::available;

/// Something of the log is damaged.
const DAMAGED: u8 = 1;

const AFTER: &str = "\
FOLDER is the server's `data_dir`; with several loops, one of the folders `loop-N` in it. The \
server must have stopped.

Where a server does not start because its log is damaged:
  1. Copy the folder away.
  2. muesli log inspect FOLDER            what can be read, and what cannot
  3. With a replica (`group` above 1): empty the folder, and start the server.
  4. Without:
     muesli log truncate FOLDER --at N    what would be lost
     muesli log truncate FOLDER --at N --yes
     Where there are other servers, start it with --accept-loss true once.";

#[derive(Args, Clone, Debug)]
struct InspectOptions {
    /// The server's folder
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

#[derive(Args, Clone, Debug)]
struct TruncateOptions {
    /// The server's folder
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    /// The first record that is lost, as the error of the start names it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    at: u64,
    /// Cut it: what is lost cannot be brought back but from a copy of the folder
    #[arg(long)]
    yes: bool,
}

/// The command's options.
pub fn command() -> Command {
    let inspect = Command::new("inspect")
        .about("Say what the log of a server that has stopped holds; changes nothing")
        .after_help("Exit status: 0 all can be read, 1 something is damaged, 2 it cannot be told.");
    let truncate = Command::new("truncate").about(
        "Cut the log of a server that has stopped before a record, which is lost with all after it",
    );
    let verify = Command::new("verify")
        .about("Read, decode and replay all that a folder holds; changes nothing")
        .after_help(
            "FOLDER is that of an embedded database or the `data_dir` of a server, with all of its \
             loops, or one of the folders `loop-N` in it. Others may read it meanwhile.\n\
             Exit status: 0 all is as it was written, 1 something is damaged, 2 it cannot be told.",
        );
    Command::new("log")
        .about("Look at and cut the log of a server that does not start")
        .after_help(AFTER)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(InspectOptions::augment_args(inspect))
        .subcommand(InspectOptions::augment_args(verify))
        .subcommand(TruncateOptions::augment_args(truncate).after_help(AFTER))
}

/// Runs the command.
///
/// # Errors
/// The folder is in use, is none of a server, or cannot be read; or the log is not cut.
pub fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    match matches.subcommand() {
        Some(("inspect", matches)) => inspect(&InspectOptions::from_arg_matches(matches)?),
        Some(("verify", matches)) => verify(&InspectOptions::from_arg_matches(matches)?),
        Some(("truncate", matches)) => truncate(&TruncateOptions::from_arg_matches(matches)?),
        _ => unreachable!("every subcommand is listed above"),
    }
}

fn inspect(options: &InspectOptions) -> anyhow::Result<u8> {
    let log = StoppedLog::open(&options.folder)?.inspect()?;
    let mut damaged = false;
    for segment in &log.segments {
        let records = match segment.records {
            Some((first, last)) => format!("records {first} to {last}"),
            None => "no records".to_owned(),
        };
        let end = match segment.end {
            End::Clean => String::new(),
            End::Torn(at) => format!(
                "; at byte {at} begins what nobody was told of, which the next start cuts off"
            ),
            End::Damaged(at, record) => {
                format!("; damaged at byte {at}: record {record} was promised and cannot be read")
            }
            End::NoHeader => "; its header cannot be read".to_owned(),
        };
        damaged |= matches!(segment.end, End::Damaged(..) | End::NoHeader);
        print_line(&format!("{}: {} bytes, {records}{end}", segment.file, segment.bytes));
    }
    for (covers, wrong) in &log.checkpoints {
        let state = match wrong {
            None => "can be read".to_owned(),
            Some(why) => format!("cannot be used: {why}"),
        };
        damaged |= wrong.is_some();
        print_line(&format!("checkpoint of the first {covers} records: {state}"));
    }
    Ok(if damaged { DAMAGED } else { 0 })
}

fn verify(options: &InspectOptions) -> anyhow::Result<u8> {
    let procedures = available::procedures();
    let known = Options { procedures, ..Options::default() };
    let mut damaged = false;
    for of in Db::verify(&options.folder, &known)? {
        let records = match of.records {
            Some((first, last)) => format!("records {first} to {last}"),
            None => "no records".to_owned(),
        };
        let (folder, protocol) = (of.folder.display(), &of.protocol);
        print_line(&format!(
            "{folder}: {protocol}, {} spaces; {} files of the log, {} bytes, {records}",
            of.spaces, of.segments, of.bytes
        ));
        for replay in &of.replays {
            let begins = match replay.checkpoint {
                Some(covers) => format!("the checkpoint of the first {covers} records"),
                None => "the first record".to_owned(),
            };
            let VerifiedReplay { records, last, .. } = replay;
            print_line(&format!("  from {begins}: {records} records replayed, up to {last}"));
            if let Some(Cut { file, offset, .. }) = &replay.cut {
                print_line(&format!(
                    "  {file}: at byte {offset} begins what nobody was told of, which the next \
                     start cuts off"
                ));
            }
        }
        damaged |= !of.faults.is_empty();
        of.faults.iter().for_each(|fault| print_line(&format!("  DAMAGED: {fault}")));
    }
    Ok(if damaged { DAMAGED } else { 0 })
}

fn truncate(options: &TruncateOptions) -> anyhow::Result<u8> {
    let (folder, at) = (StoppedLog::open(&options.folder)?, Sequence(options.at));
    let log = folder.inspect()?;
    folder.judge_cut(at)?;
    print_what_is_lost(&log, at);
    if !options.yes {
        bail!("nothing was changed; copy the folder away, and cut the log with --yes");
    }
    let left = folder.truncate(at)?;
    print_line(&format!(
        "the log ends after record {left} now. Where there are other servers, start this one with \
         `accept_loss = true` once: to them its folder is an older copy"
    ));
    Ok(0)
}

/// Says what a cut before record `at` costs.
fn print_what_is_lost(log: &Inspection, at: Sequence) {
    let last = log.segments.iter().filter_map(|segment| segment.records.map(|(_, last)| last));
    match last.max().filter(|last| *last >= at) {
        Some(last) => print_line(&format!(
            "lost: records {at} to {last}, what may follow them, and all that clients were told of"
        )),
        None => print_line(&format!("lost: record {at}, and what may follow it")),
    }
    for (covers, _) in log.checkpoints.iter().filter(|(covers, _)| *covers >= at) {
        print_line(&format!("removed: the checkpoint of the first {covers} records"));
    }
}

fn print_line(line: &str) {
    let _ = writeln!(stdout(), "{line}"); // A reader that has gone away is no matter.
}
