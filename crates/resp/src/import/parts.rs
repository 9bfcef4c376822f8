//! A file as parts of keys, as many together as fit in a transaction.

use std::io::{BufReader, Read, Seek};

use muesli_rdb::{RdbElement, RdbEvent, RdbKey, RdbKind, RdbReader};

use super::RdbImport;
use super::error::{RdbImportError, cut_text};
use crate::keyspace::header::ValueKind;
use crate::keyspace::rows::DATABASES;

/// Parts together have so many bytes, about; one element may have more.
const BATCH_BYTES: usize = 1 << 20;
/// Parts together have at most so many keys, so that a transaction does not take long.
const BATCH_KEYS: usize = 256;
/// What an element costs beside its bytes, about.
const ELEMENT_BYTES: usize = 100;

/// A part of a key: elements that come one after the other.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ImportPart {
    pub db: u8,
    pub key: Vec<u8>,
    pub kind: RdbKind,
    pub expires: Option<u64>,
    /// How many elements are before these; of a string, how many bytes.
    pub from: u64,
    pub elements: Vec<RdbElement>,
    pub is_last: bool,
}

impl ImportPart {
    pub fn is_first(&self) -> bool {
        self.from == 0
    }

    pub fn is_whole(&self) -> bool {
        self.is_first() && self.is_last
    }

    /// A collection without elements.
    pub fn is_empty(&self) -> bool {
        self.is_whole() && self.elements.is_empty()
    }

    /// How much comes before what is after this.
    pub fn to(&self) -> u64 {
        match self.elements.first() {
            Some(RdbElement::Text(text)) => self.from + text.len() as u64,
            _ => self.from + self.elements.len() as u64,
        }
    }
}

/// The type of a key here.
pub(super) fn kind_of(kind: RdbKind) -> ValueKind {
    match kind {
        RdbKind::String => ValueKind::String,
        RdbKind::List => ValueKind::List,
        RdbKind::Set => ValueKind::Set,
        RdbKind::Sorted => ValueKind::Sorted,
        RdbKind::Hash => ValueKind::Hash,
    }
}

/// The member of a set or sorted set, or the field of a hash, that an element is.
pub(super) fn member_of(element: &RdbElement) -> Option<&[u8]> {
    match element {
        RdbElement::Member(member)
        | RdbElement::Scored(member, _)
        | RdbElement::Field(member, _) => Some(member),
        RdbElement::Text(_) | RdbElement::Item(_) => None,
    }
}

/// How many bytes an element has.
pub(super) fn element_bytes(element: &RdbElement) -> usize {
    match element {
        RdbElement::Text(bytes) | RdbElement::Item(bytes) | RdbElement::Member(bytes) => {
            bytes.len()
        }
        RdbElement::Scored(member, score) => member.len() + size_of_val(score),
        RdbElement::Field(field, value) => field.len() + value.len(),
    }
}

/// Reads a file as parts of keys.
pub(super) struct PartReader<R> {
    reader: RdbReader<R>,
    /// What expires up to then, in milliseconds since 1970, is passed over.
    now: u64,
    /// The database of the next key.
    db: u64,
    /// Parts that are complete.
    batch: Vec<ImportPart>,
    batch_bytes: usize,
    /// The last part of the last key, to which elements come.
    open: Option<ImportPart>,
    open_bytes: usize,
    keys: u64,
    /// Keys that had expired.
    pub expired: u64,
    skip_functions: bool,
    /// How many libraries of functions were passed over.
    pub libraries: u64,
    /// The version of Redis that has written the file.
    pub redis: Option<String>,
}

impl<'a, R: Read + Seek> PartReader<BufReader<&'a mut R>> {
    /// Begins to read from the start.
    ///
    /// # Errors
    /// It is no such file.
    pub fn open(source: &'a mut R, import: &RdbImport, now: u64) -> Result<Self, RdbImportError> {
        source.rewind()?;
        Ok(PartReader {
            reader: RdbReader::open(BufReader::new(source))?,
            now,
            db: 0,
            batch: Vec::new(),
            batch_bytes: 0,
            open: None,
            open_bytes: 0,
            keys: 0,
            expired: 0,
            skip_functions: import.skip_functions,
            libraries: 0,
            redis: None,
        })
    }
}

impl<R: Read> PartReader<R> {
    /// The version of the file's format.
    pub fn version(&self) -> u32 {
        self.reader.version()
    }

    /// Reads to the end, and gives parts, as many as fit in a transaction at a time.
    ///
    /// # Errors
    /// The file cannot be read, has functions that are not to be passed over, or what the parts
    /// are given to says so.
    pub fn read(
        &mut self,
        progress: &mut impl FnMut(u64, u64),
        mut each: impl FnMut(Vec<ImportPart>) -> Result<(), RdbImportError>,
    ) -> Result<(), RdbImportError> {
        while let Some(event) = self.reader.next_event()? {
            match event {
                RdbEvent::Aux { name, value } if name == b"redis-ver" => {
                    self.redis = Some(cut_text(&value));
                }
                RdbEvent::Aux { .. } => {}
                RdbEvent::Library(code) if !self.skip_functions => {
                    return Err(RdbImportError::Function(library_name(&code)));
                }
                RdbEvent::Library(_) => self.libraries += 1,
                RdbEvent::Database(number) => self.db = number,
                RdbEvent::Key(key) => self.begin(key)?,
                RdbEvent::Element(element) => self.add(element),
                RdbEvent::KeyEnd => self.end_key(),
            }
            // A part of a long key goes when it is as long as parts are.
            if self.open_bytes >= BATCH_BYTES {
                self.split(&mut each)?;
                progress(self.keys, self.reader.offset());
            }
            if self.batch_bytes >= BATCH_BYTES || self.batch.len() >= BATCH_KEYS {
                self.give(&mut each)?;
                progress(self.keys, self.reader.offset());
            }
        }
        self.give(&mut each)?;
        progress(self.keys, self.reader.offset());
        Ok(())
    }

    fn give(
        &mut self,
        each: &mut impl FnMut(Vec<ImportPart>) -> Result<(), RdbImportError>,
    ) -> Result<(), RdbImportError> {
        self.batch_bytes = 0;
        match std::mem::take(&mut self.batch) {
            none if none.is_empty() => Ok(()),
            parts => each(parts),
        }
    }

    fn begin(&mut self, key: RdbKey) -> Result<(), RdbImportError> {
        let RdbKey { key, kind, expires } = key;
        if expires.is_some_and(|at| at <= self.now) {
            self.expired += 1;
            return Ok(());
        }
        let db = u8::try_from(self.db).ok().filter(|it| usize::from(*it) < DATABASES);
        let db = db.ok_or(RdbImportError::Database(self.db))?;
        self.open_bytes = ELEMENT_BYTES + key.len();
        let (from, elements, is_last) = (0, Vec::new(), false);
        self.open = Some(ImportPart { db, key, kind, expires, from, elements, is_last });
        Ok(())
    }

    fn add(&mut self, element: RdbElement) {
        let Some(open) = &mut self.open else { return };
        self.open_bytes += ELEMENT_BYTES + element_bytes(&element);
        open.elements.push(element);
    }

    fn end_key(&mut self) {
        let Some(open) = self.open.take() else { return };
        self.keys += 1;
        self.batch_bytes += std::mem::take(&mut self.open_bytes);
        self.batch.push(ImportPart { is_last: true, ..open });
    }

    /// Gives the elements of the open part, and leaves it open for those that follow. A string is
    /// given in pieces, of which the last one stays.
    fn split(
        &mut self,
        each: &mut impl FnMut(Vec<ImportPart>) -> Result<(), RdbImportError>,
    ) -> Result<(), RdbImportError> {
        self.give(each)?;
        let Some(mut open) = self.open.take() else { return Ok(()) };
        let elements = std::mem::take(&mut open.elements);
        self.open_bytes = ELEMENT_BYTES + open.key.len();
        let pieces = match &elements[..] {
            [RdbElement::Text(text)] => {
                let pieces = text.chunks(BATCH_BYTES).map(|it| vec![RdbElement::Text(it.to_vec())]);
                pieces.collect::<Vec<_>>()
            }
            _ => {
                let part = ImportPart { elements, ..open.clone() };
                open.from = part.to();
                self.open = Some(open);
                return each(vec![part]);
            }
        };
        drop(elements);
        let last = pieces.len() - 1;
        for (at, elements) in pieces.into_iter().enumerate() {
            let part = ImportPart { elements, ..open.clone() };
            if at == last {
                // It is given with its key's end.
                self.open_bytes += part.elements.iter().map(element_bytes).sum::<usize>();
                self.open = Some(part);
                return Ok(());
            }
            open.from = part.to();
            each(vec![part])?;
        }
        Ok(())
    }
}

/// The name of a library, which is in the first line of its code.
fn library_name(code: &[u8]) -> String {
    let line = code.split(|it| matches!(it, b'\n' | b'\r')).next().unwrap_or_default();
    let mut names = line.split(u8::is_ascii_whitespace).filter_map(|it| it.strip_prefix(b"name="));
    cut_text(names.next().unwrap_or(b"(without a name)"))
}

#[cfg(test)]
mod tests {
    use super::library_name;

    #[test]
    fn libraries_have_names() {
        assert_eq!(library_name(b"#!lua name=mine\nreturn 1"), "mine");
        assert_eq!(library_name(b"return 1"), "(without a name)");
        assert_eq!(library_name(b"#!lua name=\x1b[2J"), "\\u{1b}[2J");
    }
}
