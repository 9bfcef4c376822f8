//! Exports as JSON lines.
//!
//! The first line says what it is, then each space has one, then each row; after about a mebibyte
//! of rows, and at the end, a line says how many there were so far, with the CRC-32C of all bytes
//! before that line.

use std::borrow::Cow;
use std::io::{self, BufRead, Read, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use muesli_core::catalog::{Index, Partitioning};
use muesli_core::{SmallBytes, SpaceOptions, Wire as _};
use serde::{Deserialize, Serialize};

use super::items::{ExportItem, ExportRow, SECTION_BYTES, SECTION_BYTES_MAX, Unreadable, VERSION};

/// Any line; what it has says which.
#[derive(Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
struct ExportLine<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    muesli_export: Option<u32>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    consistency: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    space: Option<u16>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    index: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    splits: Option<Vec<String>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    dealt64: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    s: Option<u16>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    k: Option<Cow<'a, str>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    k64: Option<Cow<'a, str>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    v: Option<Cow<'a, str>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    v64: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<u64>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    crc32c: Option<Cow<'a, str>>,
}

/// As text where it is that, or in base 64.
fn text_or_base64(bytes: &[u8]) -> (Option<Cow<'_, str>>, Option<Cow<'_, str>>) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (Some(text.into()), None),
        Err(_) => (None, Some(STANDARD.encode(bytes).into())),
    }
}

/// The bytes of one of the two.
fn bytes_of(
    what: &str,
    text: Option<Cow<'_, str>>,
    base64: Option<Cow<'_, str>>,
) -> Result<SmallBytes, Unreadable> {
    match (text, base64) {
        (Some(text), None) => Ok(SmallBytes::new(text.as_bytes())),
        (None, Some(base64)) => decoded(what, &base64),
        (None, None) => Err(Unreadable::Damaged(format!("the row has no {what}"))),
        (Some(_), Some(_)) => Err(Unreadable::Damaged(format!("the row has two {what}s"))),
    }
}

fn decoded(what: &str, base64: &str) -> Result<SmallBytes, Unreadable> {
    let bytes = STANDARD.decode(base64);
    bytes
        .map(SmallBytes::from)
        .map_err(|error| Unreadable::Damaged(format!("the {what} is not in base 64: {error}")))
}

/// Writes an export as lines.
pub(super) struct LinesWriter<W> {
    out: W,
    line: Vec<u8>,
    rows: u64,
    bytes: u64,
    crc: u32,
    /// Bytes of rows since it was last said that they are whole.
    section: usize,
}

impl<W: Write> LinesWriter<W> {
    pub fn begin(out: W, consistency: &str) -> io::Result<LinesWriter<W>> {
        let (line, rows, bytes, crc, section) = (Vec::new(), 0, 0, 0, 0);
        let mut lines = LinesWriter { out, line, rows, bytes, crc, section };
        let consistency = Some(consistency.into());
        let muesli_export = Some(VERSION);
        lines.put(&ExportLine { muesli_export, consistency, ..ExportLine::default() })?;
        Ok(lines)
    }

    fn put(&mut self, line: &ExportLine<'_>) -> io::Result<()> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, line)?;
        self.line.push(b'\n');
        self.crc = crc32c::crc32c_append(self.crc, &self.line);
        self.bytes += self.line.len() as u64;
        self.out.write_all(&self.line)
    }

    pub fn space(&mut self, number: u16, name: &str, options: &SpaceOptions) -> io::Result<()> {
        let index = match options.index {
            Index::Hash => "hash",
            Index::Ordered => "ordered",
        };
        let (splits, dealt64) = match &options.partitioning {
            Partitioning::Hash => (None, None),
            Partitioning::Range(splits) => {
                let splits = splits.iter().map(|split| STANDARD.encode(split.as_slice()));
                (Some(splits.collect()), None)
            }
            dealt @ (Partitioning::Unit(_) | Partitioning::Everywhere) => {
                let mut bytes = Vec::new();
                dealt.encode(&mut bytes);
                (None, Some(STANDARD.encode(bytes).into()))
            }
        };
        let (space, name, index) = (Some(number), Some(name.into()), Some(index.into()));
        self.put(&ExportLine { space, name, index, splits, dealt64, ..ExportLine::default() })
    }

    pub fn row(&mut self, row: &ExportRow) -> io::Result<()> {
        let (k, k64) = text_or_base64(row.key.as_slice());
        let (v, v64) = text_or_base64(row.value.as_slice());
        self.put(&ExportLine { s: Some(row.space), k, k64, v, v64, ..ExportLine::default() })?;
        self.rows += 1;
        self.section += self.line.len();
        if self.section >= SECTION_BYTES {
            self.section = 0;
            self.mark(None)?;
        }
        Ok(())
    }

    fn mark(&mut self, end: Option<bool>) -> io::Result<()> {
        let (rows, crc32c) = (Some(self.rows), Some(format!("{:08x}", self.crc).into()));
        self.put(&ExportLine { end, rows, crc32c, ..ExportLine::default() })
    }

    pub fn end(mut self) -> io::Result<u64> {
        self.mark(Some(true))?;
        self.out.flush()?;
        Ok(self.bytes)
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Reads an export of lines.
pub(super) struct LinesReader<R> {
    input: R,
    text: Vec<u8>,
    line: u64,
    rows: u64,
    bytes: u64,
    crc: u32,
    section: usize,
}

impl<R: BufRead> LinesReader<R> {
    /// What follows, as far as it is at hand.
    pub fn rest(&mut self) -> std::io::Result<&[u8]> {
        self.input.fill_buf()
    }

    pub fn begin(input: R) -> Result<LinesReader<R>, Unreadable> {
        let (text, line, rows, bytes, crc, section) = (Vec::new(), 0, 0, 0, 0, 0);
        let mut lines = LinesReader { input, text, line, rows, bytes, crc, section };
        let foreign = |why: &str| Unreadable::Foreign(why.to_owned());
        lines.read_line().map_err(|unreadable| match unreadable {
            Unreadable::Io(error) => Unreadable::Io(error),
            _ => foreign("its first line is none of an export"),
        })?;
        lines.crc = crc32c::crc32c_append(lines.crc, &lines.text);
        let first = serde_json::from_slice::<ExportLine<'_>>(&lines.text);
        match first.ok().and_then(|line| line.muesli_export) {
            Some(VERSION) => Ok(lines),
            Some(version) => Err(Unreadable::Foreign(format!(
                "it is of version {version}, and this program reads version {VERSION}"
            ))),
            None => Err(foreign("its first line is none of an export")),
        }
    }

    /// Reads a line with its end.
    fn read_line(&mut self) -> Result<(), Unreadable> {
        self.text.clear();
        self.line += 1;
        let mut input = (&mut self.input).take(SECTION_BYTES_MAX as u64);
        let read = input.read_until(b'\n', &mut self.text)?;
        self.bytes += read as u64;
        match self.text.last() {
            Some(b'\n') => Ok(()),
            _ if read == SECTION_BYTES_MAX => Err(self.too_long()),
            _ => Err(Unreadable::Early),
        }
    }

    fn too_long(&self) -> Unreadable {
        let most = SECTION_BYTES_MAX >> 20;
        Unreadable::Damaged(format!("no line says within {most} MiB that what comes is whole"))
    }

    pub fn next(&mut self) -> Result<ExportItem, Unreadable> {
        self.read_line()?;
        let before = self.crc;
        self.crc = crc32c::crc32c_append(self.crc, &self.text);
        let line: ExportLine<'_> = serde_json::from_slice(&self.text)
            .map_err(|error| Unreadable::Damaged(format!("it is no such line ({error})")))?;
        if let Some(space) = line.s {
            let key = bytes_of("key", line.k, line.k64)?;
            let value = bytes_of("value", line.v, line.v64)?;
            self.rows += 1;
            self.section += self.text.len();
            if self.section > SECTION_BYTES_MAX {
                return Err(self.too_long());
            }
            return Ok(ExportItem::Row(ExportRow { space, key, value }));
        }
        if let (Some(number), Some(name), Some(index)) = (line.space, line.name, line.index) {
            let (name, options) =
                (name.into_owned(), options_of(&index, (line.splits, line.dealt64.as_deref()))?);
            return Ok(ExportItem::Space { number, name, options });
        }
        let (Some(rows), Some(crc32c)) = (line.rows, line.crc32c) else {
            return Err(Unreadable::Damaged("it is no line of an export".to_owned()));
        };
        if rows != self.rows {
            let why = format!("there were {rows} rows before it, and {} are there", self.rows);
            return Err(Unreadable::Damaged(why));
        }
        if crc32c != format!("{before:08x}") {
            let why = "what comes before it is not what was written: its checksum differs";
            return Err(Unreadable::Damaged(why.to_owned()));
        }
        self.section = 0;
        Ok(if line.end == Some(true) { ExportItem::End } else { ExportItem::Whole })
    }

    pub fn line(&self) -> u64 {
        self.line
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

fn options_of(
    index: &str,
    (splits, dealt): (Option<Vec<String>>, Option<&str>),
) -> Result<SpaceOptions, Unreadable> {
    let index = match index {
        "hash" => Index::Hash,
        "ordered" => Index::Ordered,
        other => return Err(Unreadable::Damaged(format!("there is no index `{other}`"))),
    };
    let partitioning = match (splits, dealt) {
        (None, None) => Partitioning::Hash,
        (None, Some(dealt)) => {
            let dealt = Partitioning::decode_all(decoded("dealt64", dealt)?.as_slice());
            let unknown = || "how the space is dealt is not known here".to_owned();
            dealt.map_err(|_| Unreadable::Damaged(unknown()))?
        }
        (Some(splits), _) => {
            let splits = splits.iter().map(|split| decoded("split", split));
            Partitioning::Range(splits.collect::<Result<_, _>>()?)
        }
    };
    Ok(SpaceOptions { index, partitioning })
}
