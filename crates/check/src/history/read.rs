//! Reading the file format: JSON Lines, one line at a time.
//!
//! A line is parsed in two steps: its fields by derive, its operations (the bulk of the file)
//! straight into the builder without an intermediate tree. Whatever the bytes are, the answer is
//! a history or one error with the number of the line and the reason.

use std::borrow::Cow;
use std::io::{BufRead, Read};

use serde::Deserialize;
use serde::de::DeserializeSeed;
use serde_json::value::RawValue;
use thiserror::Error;

use super::build::{BuildError, HistoryBuilder};
use super::operations::OpsSeed;
use super::record::check_as_of;
use super::tokens::{AtomInput, KeyText, VersionInput};
use super::{
    Atom, History, Kind, Root, RootRole, Status, Transaction, TxnId, Version, root_operations,
};

/// The longest line accepted, so that a file without line ends cannot exhaust memory.
const LINE_BYTES_MAX: u64 = 1 << 28;

/// Why a file is not a history.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("line {line}: {reason}")]
pub struct FormatError {
    /// Number of the line, from 1.
    pub line: u64,
    /// What is wrong with it and, where it helps, what is allowed.
    pub reason: String,
}

impl History {
    /// PlacedReads a history; the kind comes from its `meta` line, "version" if there is none.
    ///
    /// # Errors
    /// [`FormatError`] with the first line that is not part of a history.
    pub fn read(input: impl BufRead) -> Result<History, FormatError> {
        History::read_as(input, None)
    }

    /// PlacedReads a history whose kind is `kind` unless its `meta` line names one.
    ///
    /// # Errors
    /// [`FormatError`] with the first line that is not part of a history.
    pub fn read_as(mut input: impl BufRead, kind: Option<Kind>) -> Result<History, FormatError> {
        let mut builder = HistoryBuilder::new(kind.unwrap_or_default());
        let mut bytes = Vec::new();
        let mut line = 0;
        let mut content_seen = false;
        loop {
            line += 1;
            bytes.clear();
            let failed = |reason: String| FormatError { line, reason };
            let length = (&mut input)
                .take(LINE_BYTES_MAX)
                .read_until(b'\n', &mut bytes)
                .map_err(|error| failed(format!("cannot read: {error}")))?;
            if length == 0 {
                return Ok(builder.finish());
            }
            if length as u64 == LINE_BYTES_MAX {
                return Err(failed(format!("longer than {LINE_BYTES_MAX} bytes")));
            }
            let text = std::str::from_utf8(bytes.trim_ascii())
                .map_err(|error| failed(format!("not UTF-8: {error}")))?;
            if !text.is_empty() {
                read_line(&mut builder, text, !content_seen).map_err(failed)?;
                content_seen = true;
            }
        }
    }
}

/// The union of the fields of all kinds of lines.
#[derive(Deserialize)]
struct JsonLine<'a> {
    #[serde(borrow, default)]
    t: Option<Text<'a>>,
    #[serde(borrow, default)]
    id: Option<Text<'a>>,
    #[serde(default)]
    s: Option<AtomInput>,
    #[serde(default)]
    b: Option<u64>,
    #[serde(default)]
    e: Option<u64>,
    #[serde(borrow, default)]
    st: Option<Text<'a>>,
    #[serde(default)]
    ro: Option<bool>,
    #[serde(default)]
    ts: Option<AtomInput>,
    #[serde(default)]
    of: Option<u64>,
    #[serde(borrow, default)]
    ops: Option<&'a RawValue>,
    #[serde(borrow, default)]
    k: Option<KeyText<'a>>,
    #[serde(default)]
    node: Option<AtomInput>,
    #[serde(default)]
    vs: Option<Vec<VersionInput>>,
    #[serde(borrow, default)]
    root: Option<Text<'a>>,
    #[serde(borrow, default, rename = "as")]
    role: Option<Text<'a>>,
}

/// Text that is borrowed from the line where it holds no escapes.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

fn text_of<'t>(text: &'t Option<Text<'_>>) -> Option<&'t str> {
    text.as_ref().map(|text| text.0.as_ref())
}

fn read_line(builder: &mut HistoryBuilder, text: &str, first: bool) -> Result<(), String> {
    let line: JsonLine<'_> = serde_json::from_str(text).map_err(|error| reason(&error))?;
    match text_of(&line.t) {
        None | Some("txn") => read_transaction(builder, line),
        Some("root") => read_root(builder, line),
        Some("start") => read_start(builder, line),
        Some("order") => read_order(builder, line),
        Some("meta") if first => read_meta(builder, text),
        Some("meta") => Err("a meta line may only be the first line".to_owned()),
        Some(other) => {
            Err(format!("t is \"{other}\"; allowed are meta, txn, root, start and order"))
        }
    }
}

fn read_meta(builder: &mut HistoryBuilder, text: &str) -> Result<(), String> {
    let mut fields: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(text).map_err(|error| reason(&error))?;
    fields.remove("t");
    let kind = match fields.remove("kind") {
        None => builder.kind(),
        Some(kind) if kind == "version" => Kind::Version,
        Some(kind) if kind == "append" => Kind::Append,
        Some(kind) => {
            return Err(format!("kind is {kind}; allowed are \"version\" and \"append\""));
        }
    };
    *builder = HistoryBuilder::new(kind);
    builder.meta(fields);
    Ok(())
}

fn read_transaction(builder: &mut HistoryBuilder, line: JsonLine<'_>) -> Result<(), String> {
    let id = text_of(&line.id).ok_or("a transaction needs a text `id`")?;
    let begin = line.b.ok_or("a transaction needs `b`, its begin in nanoseconds")?;
    let status = read_status(text_of(&line.st))?;
    let ops = line.ops.ok_or("a transaction needs `ops`")?;
    if let Some(end) = line.e.filter(|end| *end < begin) {
        return Err(BuildError::EndsBeforeBegin { begin, end }.to_string());
    }
    check_as_of(begin, line.of).map_err(|error| error.to_string())?;
    let part = read_part(text_of(&line.root), text_of(&line.role))?;
    let text = |error: BuildError| error.to_string();
    let name = builder.name(TxnId::Text(id)).map_err(text)?;
    let session = read_atom(builder, line.s)?;
    let timestamp = read_atom(builder, line.ts)?;
    let transaction = Transaction {
        name,
        session,
        begin,
        end: line.e,
        status,
        read_only: line.ro,
        timestamp,
        as_of: line.of,
        first_op: 0,
    };
    let mut transaction = builder.push_transaction(transaction).map_err(text)?;
    if let Some((root, role)) = part {
        transaction.part_of(TxnId::Text(root), role).map_err(text)?;
    }
    let mut parser = serde_json::Deserializer::from_str(ops.get());
    OpsSeed(&mut transaction).deserialize(&mut parser).map_err(|error| reason(&error))
}

/// The root that a transaction is part of, and its role there.
fn read_part<'t>(
    root: Option<&'t str>,
    role: Option<&str>,
) -> Result<Option<(&'t str, RootRole)>, String> {
    match (root, role) {
        (None, None) => Ok(None),
        (Some(root), Some(word)) => {
            let role = RootRole::ALL.into_iter().find(|role| role.name() == word);
            let role = role.ok_or_else(|| {
                format!("as is \"{word}\"; allowed are own, child, compensation and handler")
            });
            Ok(Some((root, role?)))
        }
        (Some(_), None) => {
            Err("a transaction with a `root` needs `as`: own, child, compensation or handler"
                .to_owned())
        }
        (None, Some(_)) => Err("a transaction with `as` needs `root`, the id of a root".to_owned()),
    }
}

fn read_root(builder: &mut HistoryBuilder, line: JsonLine<'_>) -> Result<(), String> {
    let id = text_of(&line.id).ok_or("a root needs a text `id`")?;
    let begin = line.b.ok_or("a root needs `b`, its begin in nanoseconds")?;
    let status = read_status(text_of(&line.st))?;
    let ops = line.ops.ok_or("a root needs `ops`, its operations on sets and counters")?;
    let name = builder.name(TxnId::Text(id)).map_err(|error| error.to_string())?;
    let session = read_atom(builder, line.s)?;
    let operations = root_operations::parse(builder, ops.get()).map_err(|error| reason(&error))?;
    let root = Root { name, session, begin, end: line.e, status, operations };
    builder.push_root(root).map_err(|error| error.to_string())
}

fn read_start(builder: &mut HistoryBuilder, line: JsonLine<'_>) -> Result<(), String> {
    let ops = line.ops.ok_or("a start line needs `ops`, what put there what structures held")?;
    for operation in root_operations::parse(builder, ops.get()).map_err(|error| reason(&error))? {
        builder.history.push_start(operation).map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn read_status(letter: Option<&str>) -> Result<Status, String> {
    match letter {
        Some("c") => Ok(Status::Committed),
        Some("a") => Ok(Status::Aborted),
        Some("u") => Ok(Status::Unknown),
        Some("r") => Ok(Status::Running),
        Some(other) => Err(format!("st is \"{other}\"; allowed are c, a, u and r")),
        None => Err("a transaction or root needs `st`: c, a, u or r".to_owned()),
    }
}

fn read_order(builder: &mut HistoryBuilder, line: JsonLine<'_>) -> Result<(), String> {
    let key = line.k.ok_or("an order line needs `k`")?;
    let versions = line.vs.ok_or("an order line needs `vs`, the list of versions")?;
    let node = read_atom(builder, line.node)?;
    let versions: Vec<Version<'_>> = versions.iter().map(VersionInput::version).collect();
    builder.order_atom(&key.bytes()?, node, &versions).map_err(|error| error.to_string())
}

fn read_atom(builder: &mut HistoryBuilder, input: Option<AtomInput>) -> Result<Atom, String> {
    match input {
        None => Ok(Atom::Unrecorded),
        Some(input) => input.atom(|json| builder.text(json)).map_err(|error| error.to_string()),
    }
}

/// The parser counts lines within the text it is given, always one: that part would mislead.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line ") {
        Some((reason, _)) if error.column() > 0 => format!("{reason} (column {})", error.column()),
        _ => text,
    }
}
