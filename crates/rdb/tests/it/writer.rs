//! Writes files, in all encodings that are read.

use crate::sample::{SampleKey, SampleValue};

/// How a value is written; one that cannot be is written as `Plain`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleEncoding {
    Plain,
    BinaryScores,
    Ziplist,
    Listpack,
    Intset,
    Zipmap,
    Ziplists,
    Nodes,
}

pub const ENCODINGS: [SampleEncoding; 8] = [
    SampleEncoding::Plain,
    SampleEncoding::BinaryScores,
    SampleEncoding::Ziplist,
    SampleEncoding::Listpack,
    SampleEncoding::Intset,
    SampleEncoding::Zipmap,
    SampleEncoding::Ziplists,
    SampleEncoding::Nodes,
];

/// A file that is being written.
pub struct RdbWriter {
    pub bytes: Vec<u8>,
    database: u64,
}

impl RdbWriter {
    pub fn new(version: u32) -> RdbWriter {
        RdbWriter { bytes: format!("REDIS{version:04}").into_bytes(), database: 0 }
    }

    /// The whole file, with its checksum.
    pub fn finish(mut self) -> Vec<u8> {
        self.bytes.push(255);
        let checksum = crc64(&self.bytes);
        self.bytes.extend(checksum.to_le_bytes());
        self.bytes
    }

    pub fn aux(&mut self, name: &str, value: &str) {
        self.bytes.push(250);
        self.string(name.as_bytes());
        self.string(value.as_bytes());
    }

    pub fn length(&mut self, length: u64) {
        match length {
            0..=63 => self.bytes.push(length as u8),
            64..=16_383 => self.bytes.extend((length as u16 | 0x4000).to_be_bytes()),
            16_384..=0xffff_ffff => {
                self.bytes.push(0x80);
                self.bytes.extend((length as u32).to_be_bytes());
            }
            _ => {
                self.bytes.push(0x81);
                self.bytes.extend(length.to_be_bytes());
            }
        }
    }

    /// A string: as a number, compressed, or as it is.
    pub fn string(&mut self, text: &[u8]) {
        if let Some(number) = number(text).and_then(|it| i32::try_from(it).ok()) {
            if let Ok(small) = i8::try_from(number) {
                self.bytes.extend([0xc0, small as u8]);
            } else if let Ok(middle) = i16::try_from(number) {
                self.bytes.push(0xc1);
                self.bytes.extend(middle.to_le_bytes());
            } else {
                self.bytes.push(0xc2);
                self.bytes.extend(number.to_le_bytes());
            }
            return;
        }
        let compressed = compressed(text);
        if text.len() > 20 && compressed.len() < text.len() {
            self.bytes.push(0xc3);
            self.length(compressed.len() as u64);
            self.length(text.len() as u64);
            self.bytes.extend(compressed);
            return;
        }
        self.length(text.len() as u64);
        self.bytes.extend_from_slice(text);
    }

    pub fn key(&mut self, key: &SampleKey, encoding: SampleEncoding) {
        if key.database != self.database {
            self.bytes.push(254);
            self.length(key.database);
            self.database = key.database;
        }
        if let Some(at) = key.expires {
            if at % 1000 == 0 && at / 1000 < 1 << 31 {
                self.bytes.push(253);
                self.bytes.extend(((at / 1000) as u32).to_le_bytes());
            } else {
                self.bytes.push(252);
                self.bytes.extend(at.to_le_bytes());
            }
        }
        self.value(&key.key, &key.value, encoding);
    }

    fn value(&mut self, key: &[u8], value: &SampleValue, encoding: SampleEncoding) {
        use SampleEncoding::{BinaryScores, Intset, Listpack, Nodes, Ziplist, Ziplists, Zipmap};
        let entries = entries(value);
        match (value, encoding) {
            (SampleValue::Text(text), _) => self.plain(0, key, None, std::slice::from_ref(text)),
            (SampleValue::List(_), Ziplist) => self.packed(10, key, &ziplist(&entries)),
            (SampleValue::List(items), Ziplists | Nodes) => self.nodes(key, items, encoding),
            (SampleValue::List(items), _) => self.plain(1, key, Some(items.len()), &entries),
            (SampleValue::Set(_), Listpack) => self.packed(20, key, &listpack(&entries)),
            (SampleValue::Set(members), Intset) if intset(members).is_some() => {
                self.packed(11, key, &intset(members).unwrap());
            }
            (SampleValue::Set(members), _) => self.plain(2, key, Some(members.len()), &entries),
            (SampleValue::Hash(_), Ziplist) => self.packed(13, key, &ziplist(&entries)),
            (SampleValue::Hash(_), Listpack) => self.packed(16, key, &listpack(&entries)),
            (SampleValue::Hash(_), Zipmap) => self.packed(9, key, &zipmap(&entries)),
            (SampleValue::Hash(pairs), _) => self.plain(4, key, Some(pairs.len()), &entries),
            (SampleValue::Sorted(_), Ziplist) => self.packed(12, key, &ziplist(&entries)),
            (SampleValue::Sorted(_), Listpack) => self.packed(17, key, &listpack(&entries)),
            (SampleValue::Sorted(pairs), _) => {
                let is_binary = encoding == BinaryScores;
                self.plain(if is_binary { 5 } else { 3 }, key, Some(pairs.len()), &[]);
                for (member, score) in pairs {
                    self.string(member);
                    self.score(*score, is_binary);
                }
            }
        }
    }

    fn score(&mut self, score: f64, is_binary: bool) {
        match score {
            _ if is_binary => self.bytes.extend(score.to_le_bytes()),
            f64::INFINITY => self.bytes.push(254),
            f64::NEG_INFINITY => self.bytes.push(255),
            _ => {
                let text = format!("{score:e}");
                self.bytes.push(text.len() as u8);
                self.bytes.extend(text.into_bytes());
            }
        }
    }

    fn plain(&mut self, number: u8, key: &[u8], count: Option<usize>, strings: &[Vec<u8>]) {
        self.bytes.push(number);
        self.string(key);
        count.into_iter().for_each(|it| self.length(it as u64));
        strings.iter().for_each(|it| self.string(it));
    }

    fn packed(&mut self, number: u8, key: &[u8], packed: &[u8]) {
        self.plain(number, key, None, &[packed.to_vec()]);
    }

    /// Nodes of three items; of those that may, items of odd length are alone.
    fn nodes(&mut self, key: &[u8], items: &[Vec<u8>], encoding: SampleEncoding) {
        if encoding == SampleEncoding::Ziplists {
            self.plain(14, key, Some(items.chunks(3).len()), &[]);
            return items.chunks(3).for_each(|it| self.string(&ziplist(it)));
        }
        let is_alone = |it: &Vec<u8>| it.len() % 2 == 1;
        let nodes: Vec<_> = items.chunk_by(|a, b| !is_alone(a) && !is_alone(b)).collect();
        self.plain(18, key, Some(nodes.len()), &[]);
        for node in nodes {
            match node {
                [item] if is_alone(item) => {
                    self.length(1);
                    self.string(item);
                }
                _ => {
                    self.length(2);
                    self.string(&listpack(node));
                }
            }
        }
    }
}

/// A value as its parts.
fn entries(value: &SampleValue) -> Vec<Vec<u8>> {
    match value {
        SampleValue::Text(text) => vec![text.clone()],
        SampleValue::List(all) | SampleValue::Set(all) => all.clone(),
        SampleValue::Hash(pairs) => pairs.iter().cloned().flat_map(|it| [it.0, it.1]).collect(),
        SampleValue::Sorted(pairs) => {
            let parts = |it: &(Vec<u8>, f64)| [it.0.clone(), it.1.to_string().into_bytes()];
            pairs.iter().flat_map(parts).collect()
        }
    }
}

/// The number that a text is, if that has no other text.
fn number(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    text.parse().ok().filter(|it: &i64| it.to_string() == text)
}

/// LZF: literals, and runs of one byte.
fn compressed(text: &[u8]) -> Vec<u8> {
    let mut output = Vec::new();
    for run in text.chunk_by(|a, b| a == b) {
        output.extend([0, run[0]]);
        let mut left = run.len() - 1;
        while left >= 3 {
            let copied = left.min(264);
            match copied - 2 {
                short @ 1..=6 => output.extend([(short as u8) << 5, 0]),
                long => output.extend([7 << 5, (long - 7) as u8, 0]),
            }
            left -= copied;
        }
        (0..left).for_each(|_| output.extend([0, run[0]]));
    }
    output
}

pub fn ziplist(entries: &[Vec<u8>]) -> Vec<u8> {
    let (mut body, mut before) = (Vec::new(), 0_usize);
    for entry in entries {
        let begin = body.len();
        match before {
            0..=253 => body.push(before as u8),
            _ => {
                body.push(254);
                body.extend((before as u32).to_le_bytes());
            }
        }
        match (number(entry), entry.len()) {
            (Some(small @ 0..=12), _) => body.push(0xf1 + small as u8),
            (Some(number), _) if i8::try_from(number).is_ok() => body.extend([0xfe, number as u8]),
            (Some(number), _) if i16::try_from(number).is_ok() => {
                body.push(0xc0);
                body.extend((number as i16).to_le_bytes());
            }
            (Some(number), _) => {
                body.push(0xe0);
                body.extend(number.to_le_bytes());
            }
            (None, length @ 0..=63) => body.push(length as u8),
            (None, length) => {
                body.push(0x80);
                body.extend((length as u32).to_be_bytes());
            }
        }
        if number(entry).is_none() {
            body.extend_from_slice(entry);
        }
        before = body.len() - begin;
    }
    let count = (entries.len() as u16).to_le_bytes();
    let length = (body.len() as u32 + 11).to_le_bytes();
    [&length[..], &[0; 4], &count, &body, &[255]].concat()
}

pub fn listpack(entries: &[Vec<u8>]) -> Vec<u8> {
    let mut body = Vec::new();
    for entry in entries {
        let begin = body.len();
        match (number(entry), entry.len()) {
            (Some(small @ 0..=127), _) => body.push(small as u8),
            (Some(number @ -4096..=4095), _) => {
                body.extend((number as u16 & 0x1fff | 0xc000).to_be_bytes());
            }
            (Some(number), _) => {
                body.push(0xf4);
                body.extend(number.to_le_bytes());
            }
            (None, length @ 0..=63) => body.push(0x80 | length as u8),
            (None, length) => {
                body.push(0xf0);
                body.extend((length as u32).to_le_bytes());
            }
        }
        if number(entry).is_none() {
            body.extend_from_slice(entry);
        }
        let length = body.len() - begin;
        match length {
            0..=127 => body.push(length as u8),
            128..=16_382 => body.extend([(length >> 7) as u8, (length & 127) as u8 | 128]),
            _ => body.extend([
                (length >> 14) as u8,
                (length >> 7 & 127) as u8 | 128,
                (length & 127) as u8 | 128,
            ]),
        }
    }
    let count = (entries.len() as u16).to_le_bytes();
    let length = (body.len() as u32 + 7).to_le_bytes();
    [&length[..], &count, &body, &[255]].concat()
}

/// An intset of numbers, if all are some.
pub fn intset(members: &[Vec<u8>]) -> Option<Vec<u8>> {
    let numbers = members.iter().map(|it| number(it)).collect::<Option<Vec<_>>>()?;
    let count = (numbers.len() as u32).to_le_bytes();
    let body = numbers.iter().flat_map(|it| it.to_le_bytes()).collect::<Vec<_>>();
    Some([&8_u32.to_le_bytes()[..], &count, &body].concat())
}

pub fn zipmap(entries: &[Vec<u8>]) -> Vec<u8> {
    let mut body = vec![(entries.len() / 2).min(254) as u8];
    for (at, entry) in entries.iter().enumerate() {
        match entry.len() {
            short @ 0..=253 => body.push(short as u8),
            long => {
                body.push(254);
                body.extend((long as u32).to_le_bytes());
            }
        }
        // Values may have unused bytes behind them.
        let unused = if at % 2 == 1 { entry.len() % 3 } else { 0 };
        body.extend((at % 2 == 1).then_some(unused as u8));
        body.extend_from_slice(entry);
        body.extend(vec![b'?'; unused]);
    }
    body.push(255);
    body
}

/// Redis's CRC-64, bit by bit.
pub fn crc64(bytes: &[u8]) -> u64 {
    // The polynomial of Jones, its bits in reverse.
    const POLYNOMIAL: u64 = 0xad93_d235_94c9_35a9_u64.reverse_bits();
    bytes.iter().fold(0, |crc: u64, byte| {
        let bit = |crc: u64, _| if crc & 1 == 1 { crc >> 1 ^ POLYNOMIAL } else { crc >> 1 };
        (0..8).fold(crc ^ u64::from(*byte), bit)
    })
}
