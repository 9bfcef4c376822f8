//! Exports in binary.
//!
//! ```text
//! MuesExpt | version u32 | length u32 | what it shows, as text
//! kind u8 | length u32 | payload | checksum u32          a block; any number of them
//! ```
//!
//! All numbers are little-endian. A checksum is the CRC-32C of all bytes of the file before it. A
//! block is a space (1): number u16, index u8 (0 hash, 1 ordered), name, whether it is dealt by
//! ranges u8, and the splits, if it is; rows (2), about a mebibyte of them: each the number of its
//! space u16, key, value; or the end (3): the number of rows u64. Names, keys, values and splits
//! have their length u32 before them.

use std::io::{self, BufRead, Write};

use muesli_core::catalog::{Index, Partitioning};
use muesli_core::{SmallBytes, SpaceOptions, Wire as _};

use super::items::{
    ExportItem, ExportRow, SECTION_BYTES, SECTION_BYTES_MAX, Unreadable, VERSION, read_exactly,
};

const MAGIC: &[u8; 8] = b"MuesExpt";
const SPACE: u8 = 1;
const ROWS: u8 = 2;
const END: u8 = 3;
/// Bytes of a block before its payload.
const HEAD_BYTES: usize = 5;

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    let length = u32::try_from(bytes.len()).expect("limits are far below 4 GiB");
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Writes an export as blocks.
pub(super) struct BlocksWriter<W> {
    out: W,
    /// Rows that wait for their block to be full.
    gathered: Vec<u8>,
    rows: u64,
    bytes: u64,
    crc: u32,
}

impl<W: Write> BlocksWriter<W> {
    pub fn begin(out: W, consistency: &str) -> io::Result<BlocksWriter<W>> {
        let (gathered, rows, bytes, crc) = (Vec::new(), 0, 0, 0);
        let mut blocks = BlocksWriter { out, gathered, rows, bytes, crc };
        let mut head = MAGIC.to_vec();
        head.extend_from_slice(&VERSION.to_le_bytes());
        put_bytes(&mut head, consistency.as_bytes());
        blocks.put(&head)?;
        Ok(blocks)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.crc = crc32c::crc32c_append(self.crc, bytes);
        self.bytes += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    fn block(&mut self, kind: u8, payload: &[u8]) -> io::Result<()> {
        let length = u32::try_from(payload.len()).expect("limits are far below 4 GiB");
        let mut head = vec![kind];
        head.extend_from_slice(&length.to_le_bytes());
        self.put(&head)?;
        self.put(payload)?;
        let checksum = self.crc.to_le_bytes();
        self.put(&checksum)
    }

    pub fn space(&mut self, number: u16, name: &str, options: &SpaceOptions) -> io::Result<()> {
        let mut payload = number.to_le_bytes().to_vec();
        payload.push(u8::from(options.index == Index::Ordered));
        put_bytes(&mut payload, name.as_bytes());
        match &options.partitioning {
            Partitioning::Hash => payload.push(0),
            Partitioning::Range(splits) => {
                payload.push(1);
                splits.iter().for_each(|split| put_bytes(&mut payload, split.as_slice()));
            }
            dealt @ (Partitioning::Unit(_) | Partitioning::Everywhere) => {
                let mut bytes = Vec::new();
                dealt.encode(&mut bytes);
                payload.push(2);
                put_bytes(&mut payload, &bytes);
            }
        }
        self.block(SPACE, &payload)
    }

    pub fn row(&mut self, row: &ExportRow) -> io::Result<()> {
        self.gathered.extend_from_slice(&row.space.to_le_bytes());
        put_bytes(&mut self.gathered, row.key.as_slice());
        put_bytes(&mut self.gathered, row.value.as_slice());
        self.rows += 1;
        if self.gathered.len() >= SECTION_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        let rows = std::mem::take(&mut self.gathered);
        if rows.is_empty() { Ok(()) } else { self.block(ROWS, &rows) }
    }

    pub fn end(mut self) -> io::Result<u64> {
        self.flush()?;
        self.block(END, &self.rows.to_le_bytes())?;
        self.out.flush()?;
        Ok(self.bytes)
    }

    pub fn bytes(&self) -> u64 {
        self.bytes + self.gathered.len() as u64
    }
}

/// Reads an export of blocks.
pub(super) struct BlocksReader<R> {
    input: R,
    payload: Vec<u8>,
    /// Up to here the rows of the block were given out.
    done: usize,
    in_rows: bool,
    /// Where the block is.
    offset: u64,
    rows: u64,
    bytes: u64,
    crc: u32,
}

fn damaged(why: &str) -> Unreadable {
    Unreadable::Damaged(why.to_owned())
}

impl<R: BufRead> BlocksReader<R> {
    /// What follows, as far as it is at hand.
    pub fn rest(&mut self) -> std::io::Result<&[u8]> {
        self.input.fill_buf()
    }

    pub fn begin(input: R) -> Result<BlocksReader<R>, Unreadable> {
        let (payload, done, in_rows, offset) = (Vec::new(), 0, false, 0);
        let (rows, bytes, crc) = (0, 0, 0);
        let mut blocks = BlocksReader { input, payload, done, in_rows, offset, rows, bytes, crc };
        let foreign = |unreadable| match unreadable {
            Unreadable::Io(error) => Unreadable::Io(error),
            _ => Unreadable::Foreign("it does not begin as an export does".to_owned()),
        };
        let head = blocks.read(16).map_err(foreign)?;
        if head[..8] != *MAGIC {
            return Err(foreign(Unreadable::Early));
        }
        let word = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four"));
        let (version, length) = (word(8), word(12) as usize);
        if version != VERSION {
            let why =
                format!("it is of version {version}, and this program reads version {VERSION}");
            return Err(Unreadable::Foreign(why));
        }
        blocks.read(length).map_err(foreign)?;
        Ok(blocks)
    }

    fn read(&mut self, bytes: usize) -> Result<Vec<u8>, Unreadable> {
        let mut out = Vec::new();
        read_exactly(&mut self.input, bytes, &mut out)?;
        self.crc = crc32c::crc32c_append(self.crc, &out);
        self.bytes += bytes as u64;
        Ok(out)
    }

    pub fn next(&mut self) -> Result<ExportItem, Unreadable> {
        if self.in_rows {
            return self.next_row();
        }
        self.offset = self.bytes;
        let head = self.read(HEAD_BYTES)?;
        let length = u32::from_le_bytes(head[1..].try_into().expect("four bytes")) as usize;
        if length > SECTION_BYTES_MAX {
            return Err(damaged("its length is none of a block"));
        }
        self.payload = self.read(length)?;
        let wanted = self.crc.to_le_bytes();
        if self.read(4)? != wanted {
            return Err(damaged("its checksum differs: it is not what was written"));
        }
        match head[0] {
            SPACE => self.space(),
            ROWS => {
                (self.in_rows, self.done) = (true, 0);
                self.next_row()
            }
            END if self.payload == self.rows.to_le_bytes() => Ok(ExportItem::End),
            END => Err(damaged("it says another number of rows than there are")),
            kind => Err(Unreadable::Damaged(format!("there is no block of kind {kind}"))),
        }
    }

    /// The next of the payload's bytes, which are so many.
    fn part(&mut self, bytes: usize) -> Result<&[u8], Unreadable> {
        let part = self.payload.get(self.done..).and_then(|rest| rest.get(..bytes));
        self.done += bytes;
        part.ok_or_else(|| damaged("it ends within a row or a name"))
    }

    fn bytes_with_length(&mut self) -> Result<&[u8], Unreadable> {
        let length = self.part(4)?.try_into().expect("four bytes");
        self.part(u32::from_le_bytes(length) as usize)
    }

    fn number(&mut self) -> Result<u16, Unreadable> {
        Ok(u16::from_le_bytes(self.part(2)?.try_into().expect("two bytes")))
    }

    fn next_row(&mut self) -> Result<ExportItem, Unreadable> {
        if self.done == self.payload.len() {
            self.in_rows = false;
            return Ok(ExportItem::Whole);
        }
        let space = self.number()?;
        let key = SmallBytes::new(self.bytes_with_length()?);
        let value = SmallBytes::new(self.bytes_with_length()?);
        self.rows += 1;
        Ok(ExportItem::Row(ExportRow { space, key, value }))
    }

    fn space(&mut self) -> Result<ExportItem, Unreadable> {
        self.done = 0;
        let number = self.number()?;
        let index = if self.part(1)? == [0] { Index::Hash } else { Index::Ordered };
        let name = String::from_utf8(self.bytes_with_length()?.to_vec());
        let name = name.map_err(|_| damaged("the name of the space is no text"))?;
        let partitioning = match self.part(1)? {
            [0] => Partitioning::Hash,
            [1] => {
                let mut splits = Vec::new();
                while self.done < self.payload.len() {
                    splits.push(SmallBytes::new(self.bytes_with_length()?));
                }
                Partitioning::Range(splits)
            }
            _ => {
                let dealt = Partitioning::decode_all(self.bytes_with_length()?);
                dealt.map_err(|_| damaged("how the space is dealt is not known here"))?
            }
        };
        let options = SpaceOptions { index, partitioning };
        Ok(ExportItem::Space { number, name, options })
    }

    pub fn offset(&self) -> u64 {
        self.offset
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}
