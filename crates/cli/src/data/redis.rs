//! `muesli import redis`: data of Redis into a database, from an RDB file or from a Redis that
//! runs.

use std::fs::File;
use std::io::{BufWriter, Read, Seek};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{ArgMatches, Args, Command, FromArgMatches};
use muesli_rdb::{RdbKind, RedisAddress, RedisLiveError, copy_live};
use muesli_resp::import::{CheckedRdb, RdbImport, RdbImported, RdbPhase, RdbProgress};

use super::chosen::{ChosenDatabase, DatabasePlace};
use super::progress::{ProgressLine, note};
use crate::names;

const AFTER: &str = "\
What is imported is what Redis clients see that `muesli start --resp` serves: strings, lists, \
sets, sorted sets and hashes of the databases 0 to 15, with the times at which they expire. RDB \
files of the versions 1 to 12 are read (Redis up to 8.2, Valkey up to 8). Streams, values of \
modules and hashes whose fields expire are refused by name.

The whole file is read and checked before anything is written, and so is whether one of its keys \
is there already. Then the keys are written, each of them whole or not at all; nobody else should \
write them meanwhile. At last each key is read back and compared with the file. What is over the \
limits of the servers, where these are smaller than by default, is refused while keys are written. \
So is a key that the file has twice; `--replace` does not help with it, as comparing fails then. \
The clock of this machine and those of the servers must agree: keys expire by them.

A Redis that runs is asked for its data as a replica asks for them, once: what it writes \
afterwards is not in them. They go to a temporary file first (in TMPDIR).

Examples:
  muesli import redis dump.rdb --db data
  muesli import redis dump.rdb --connect 127.0.0.1:7400 --replace
  muesli import redis redis://:password@127.0.0.1:6379 --db data";

/// A server that does not answer for so long is given up.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Args, Clone, Debug)]
struct RedisImportOptions {
    /// An RDB file (`dump.rdb`), or `redis://[[USER]:PASSWORD@]HOST[:PORT]`
    #[arg(value_name = "SOURCE")]
    source: PathBuf,
    #[command(flatten)]
    target: RedisImportTarget,
    /// The protocol of the servers
    #[arg(long, value_name = "NAME", default_value = "score", value_parser = names::protocols(),
        hide_possible_values = true)]
    protocol: String,
    /// The file of the cluster's secret, where its servers ask clients for it
    #[arg(long, value_name = "FILE", requires = "connect")]
    secret_file: Option<PathBuf>,
    /// Replace keys that are there already
    #[arg(long)]
    replace: bool,
    /// Import a file that has functions without these
    #[arg(long)]
    skip_functions: bool,
    /// How many repositories a database has that is made by this
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "connect")]
    repositories: usize,
}

/// Where the data go: one of these.
#[derive(Args, Clone, Debug)]
#[group(required = true, multiple = false)]
struct RedisImportTarget {
    /// The folder of a database, made where there is none; of a lone server one that has stopped
    #[arg(long, value_name = "FOLDER")]
    db: Option<PathBuf>,
    /// Servers that run, with commas between
    #[arg(long, value_name = "ADDRESS")]
    connect: Option<String>,
}

/// The command's options.
pub fn command() -> Command {
    let command = RedisImportOptions::augment_args(Command::new("redis").after_help(AFTER));
    command.about("Take the data of Redis: an RDB file, or what a Redis has that runs")
}

/// Runs the command.
///
/// # Errors
/// The data cannot be read or imported, or are not there afterwards as they were.
pub fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    let options = RedisImportOptions::from_arg_matches(matches)?;
    let mut line = ProgressLine::new("imported");
    let name = options.source.to_string_lossy();
    let (mut file, name) = match name.contains("://") {
        true => {
            let address = RedisAddress::of(&name)?;
            (copied(&address, &mut line)?, format!("the data of {}", address.host))
        }
        false => (opened(&options.source)?, name.into_owned()),
    };
    let imported = import(&options, &mut file, &mut line).with_context(|| name.clone());
    let took = line.end();
    let imported = imported?;
    let of = imported.redis.as_ref().map_or(String::new(), |redis| format!(" of Redis {redis}"));
    note(&format!("{name}: RDB version {}{of}", imported.version));
    note(&format!("imported {}, in {took:.1?}", summary(&imported)));
    skipped(&imported).into_iter().for_each(|it| note(&format!("not imported: {it}")));
    note("compared with the data of Redis: all keys are as there");
    Ok(0)
}

fn opened(path: &Path) -> anyhow::Result<File> {
    let file = File::open(path).with_context(|| path.display().to_string())?;
    if !file.metadata()?.is_file() {
        bail!("{} is no file; it is read several times", path.display());
    }
    Ok(file)
}

/// The data of a Redis that runs, in a temporary file.
fn copied(address: &RedisAddress, line: &mut ProgressLine) -> anyhow::Result<File> {
    let host = &address.host;
    let mut connection = connection(host).with_context(|| format!("cannot connect to {host}"))?;
    let folder = std::env::temp_dir();
    let in_folder = || format!("cannot write to the temporary folder {}", folder.display());
    let mut file = BufWriter::new(tempfile::tempfile().with_context(in_folder)?);
    let show = |bytes: u64| line.show_text(|| format!("{} MiB from {host}", bytes >> 20));
    match copy_live(&mut connection, address, &mut file, show) {
        Ok(_) => {}
        Err(RedisLiveError::Output(error)) => return Err(error).with_context(in_folder),
        Err(RedisLiveError::Silent) => {
            bail!("{host}: Redis sent nothing for {} s", PATIENCE.as_secs())
        }
        Err(error) => return Err(error).with_context(|| host.clone()),
    }
    file.into_inner().map_err(|error| error.into_error()).with_context(in_folder)
}

fn connection(host: &str) -> std::io::Result<TcpStream> {
    let mut failed = std::io::Error::other("it has no address");
    for address in host.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(connection) => {
                connection.set_read_timeout(Some(PATIENCE))?;
                connection.set_write_timeout(Some(PATIENCE))?;
                return Ok(connection);
            }
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// Checks a file, and then imports it: a database is opened, or made, only for one that is good.
fn import(
    options: &RedisImportOptions,
    file: &mut (impl Read + Seek),
    line: &mut ProgressLine,
) -> anyhow::Result<RdbImported> {
    let import = RdbImport {
        replace: options.replace,
        skip_functions: options.skip_functions,
        ..RdbImport::default()
    };
    let checked =
        CheckedRdb::check(file, import, |it| show(line, it)).context("nothing was imported")?;
    let RedisImportTarget { db: folder, connect } = options.target.clone();
    let place = DatabasePlace { folder, connect };
    let (protocol, secret_file) = (options.protocol.clone(), options.secret_file.clone());
    let target = ChosenDatabase { place, protocol, secret_file };
    let db = target.open_to_write(options.repositories)?;
    let imported = checked.import(&db, |it| show(line, it));
    db.close();
    Ok(imported?)
}

fn show(line: &mut ProgressLine, progress: RdbProgress) {
    let RdbProgress { phase, keys, bytes } = progress;
    let verb = match phase {
        RdbPhase::Checking => "checked",
        RdbPhase::Looking => "looked for",
        RdbPhase::Writing => "wrote",
        RdbPhase::Comparing => "compared",
    };
    line.show_text(|| format!("{verb} {keys} keys, {} MiB of the file", bytes >> 20));
}

/// So many things.
fn counted(count: u64, one: &str) -> String {
    format!("{count} {one}{}", if count == 1 { "" } else { "s" })
}

fn kind_name(kind: RdbKind) -> &'static str {
    match kind {
        RdbKind::String => "string",
        RdbKind::List => "list",
        RdbKind::Set => "set",
        RdbKind::Sorted => "sorted set",
        RdbKind::Hash => "hash",
    }
}

fn summary(imported: &RdbImported) -> String {
    let of_kind = |(kind, count): (&RdbKind, &u64)| match (kind, *count) {
        (RdbKind::Hash, 2..) => format!("{count} hashes"),
        _ => counted(*count, kind_name(*kind)),
    };
    let kinds: Vec<_> = imported.keys.iter().map(of_kind).collect();
    let kinds = if kinds.is_empty() { "no value".to_owned() } else { kinds.join(", ") };
    let (keys, elements) =
        (counted(imported.count(), "key"), counted(imported.elements, "element"));
    format!("{keys} ({kinds}) with {elements} and {} bytes", imported.bytes)
}

fn skipped(imported: &RdbImported) -> Vec<String> {
    let libraries = match imported.libraries {
        0 => None,
        1 => Some("1 library of functions".to_owned()),
        many => Some(format!("{many} libraries of functions")),
    };
    let some =
        |count: u64, one: &str, which: &str| (count > 0).then(|| counted(count, one) + which);
    let expired = some(imported.expired, "key", " that had expired");
    let empty = some(imported.empty, "collection", " without elements");
    [expired, empty, libraries].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn what_was_imported_is_counted_in_words() {
        let keys = BTreeMap::from([(RdbKind::String, 1), (RdbKind::Hash, 2)]);
        let (elements, bytes) = (9, 77);
        let (expired, empty, libraries) = (1, 2, 1);
        let default = RdbImported::default();
        let all = RdbImported { keys, elements, bytes, expired, empty, libraries, ..default };
        let expected = "3 keys (1 string, 2 hashes) with 9 elements and 77 bytes";
        assert_eq!(summary(&all), expected);
        let expected =
            ["1 key that had expired", "2 collections without elements", "1 library of functions"];
        assert_eq!(skipped(&all), expected);
        let none = RdbImported::default();
        assert_eq!(summary(&none), "0 keys (no value) with 0 elements and 0 bytes");
        assert!(skipped(&none).is_empty());
    }
}
