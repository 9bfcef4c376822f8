//! Strings: short ones in their header, longer ones in pieces.

use muesli::{Range, SmallBytes};

use super::header::{KeyHeader, KeyValue};
use super::rows::{ContentPart, Id, PIECE_BYTES, RowKey};
use super::scope::{KeyHandle, KeyScope};
use super::stop::{CommandStop, texts};

/// Longest string, as Redis has it.
const STRING_BYTES_MAX: u64 = 512 << 20;

fn piece_row(id: Id, piece: u64) -> SmallBytes {
    RowKey::content(id, ContentPart::Piece).ordered(piece).done()
}

/// # Errors
/// A string of this length cannot be.
pub(crate) fn check_length(length: u64) -> Result<(), CommandStop> {
    if length > STRING_BYTES_MAX { CommandStop::refused(texts::TOO_LONG) } else { Ok(()) }
}

/// How long a string is; 0 where there is none.
///
/// # Errors
/// It is something else.
pub(crate) fn length(header: Option<&KeyHeader>) -> Result<u64, CommandStop> {
    match header.map(|it| &it.value) {
        None => Ok(0),
        Some(KeyValue::Text(text)) => Ok(text.len() as u64),
        Some(KeyValue::Pieces(_, length)) => Ok(*length),
        Some(KeyValue::Rows(..)) => CommandStop::refused(texts::WRONG_TYPE),
    }
}

impl KeyScope<'_> {
    /// The string that a key has.
    pub async fn string(&self, db: u8, key: &[u8]) -> Result<Option<SmallBytes>, CommandStop> {
        let header = self.header(db, key).await?;
        self.string_of(header.as_ref()).await
    }

    /// The string of a header.
    pub async fn string_of(
        &self,
        header: Option<&KeyHeader>,
    ) -> Result<Option<SmallBytes>, CommandStop> {
        match header.map(|it| &it.value) {
            None => Ok(None),
            Some(KeyValue::Text(text)) => Ok(Some(text.clone())),
            Some(KeyValue::Pieces(id, length)) => {
                let mut whole = vec![0; *length as usize];
                self.read_pieces(*id, 0, &mut whole).await?;
                Ok(Some(SmallBytes::from(whole)))
            }
            Some(KeyValue::Rows(..)) => CommandStop::refused(texts::WRONG_TYPE),
        }
    }

    /// A part of a string, which lies within it.
    pub async fn string_part(
        &self,
        header: &KeyHeader,
        from: u64,
        to: u64,
    ) -> Result<Vec<u8>, CommandStop> {
        match &header.value {
            KeyValue::Text(text) => Ok(text.as_slice()[from as usize..to as usize].to_vec()),
            KeyValue::Pieces(id, _) => {
                let mut part = vec![0; (to - from) as usize];
                self.read_pieces(*id, from, &mut part).await?;
                Ok(part)
            }
            KeyValue::Rows(..) => CommandStop::refused(texts::WRONG_TYPE),
        }
    }

    async fn read_pieces(&self, id: Id, from: u64, part: &mut [u8]) -> Result<(), CommandStop> {
        let size = PIECE_BYTES as u64;
        let to = from + part.len() as u64;
        let (lo, hi) = (piece_row(id, from / size), piece_row(id, to.div_ceil(size)));
        let before = RowKey::content(id, ContentPart::Piece).len();
        for (row, bytes) in self.scan(Range::of(lo.as_slice()..hi.as_slice())).await? {
            let number = row.as_slice()[before..].first_chunk();
            let begin = number.map_or(0, |it| u64::from_be_bytes(*it)) * size;
            let lo = begin.max(from);
            let hi = (begin + bytes.len() as u64).min(to);
            if lo < hi {
                let found = &bytes.as_slice()[(lo - begin) as usize..(hi - begin) as usize];
                part[(lo - from) as usize..(hi - from) as usize].copy_from_slice(found);
            }
        }
        Ok(())
    }

    /// Gives a key a string.
    pub async fn set_string(
        &self,
        entry: &mut KeyHandle,
        text: &[u8],
        expires: Option<u64>,
    ) -> Result<(), CommandStop> {
        check_length(text.len() as u64)?;
        if text.len() <= PIECE_BYTES {
            let value = KeyValue::Text(SmallBytes::new(text));
            return self.set(entry, KeyHeader { value, expires }).await;
        }
        let id = self.new_id();
        for (piece, bytes) in text.chunks(PIECE_BYTES).enumerate() {
            self.put(piece_row(id, piece as u64), SmallBytes::new(bytes)).await?;
        }
        let value = KeyValue::Pieces(id, text.len() as u64);
        self.set(entry, KeyHeader { value, expires }).await
    }

    /// Overwrites a part of a string, which grows where it is shorter; its length then. Zeros are
    /// between its end and the part.
    pub async fn write_string(
        &self,
        entry: &mut KeyHandle,
        at: u64,
        part: &[u8],
    ) -> Result<u64, CommandStop> {
        let before = length(entry.found.as_ref())?;
        let after = before.max(at + part.len() as u64);
        check_length(after)?;
        let expires = entry.expires();
        if let Some(KeyHeader { value: KeyValue::Pieces(id, _), .. }) = entry.found {
            self.write_pieces(id, at, part).await?;
            self.set(entry, KeyHeader { value: KeyValue::Pieces(id, after), expires }).await?;
            return Ok(after);
        }
        let mut text = match &entry.found {
            Some(KeyHeader { value: KeyValue::Text(text), .. }) => text.as_slice().to_vec(),
            _ => Vec::new(),
        };
        if after <= PIECE_BYTES as u64 {
            text.resize(after as usize, 0);
            text[at as usize..][..part.len()].copy_from_slice(part);
            self.set_string(entry, &text, expires).await?;
            return Ok(after);
        }
        let id = self.new_id();
        self.write_pieces(id, 0, &text).await?;
        self.write_pieces(id, at, part).await?;
        self.set(entry, KeyHeader { value: KeyValue::Pieces(id, after), expires }).await?;
        Ok(after)
    }

    /// Overwrites pieces; those that are not there are zeros.
    async fn write_pieces(&self, id: Id, at: u64, part: &[u8]) -> Result<(), CommandStop> {
        let size = PIECE_BYTES as u64;
        let (mut at, mut rest) = (at, part);
        while !rest.is_empty() {
            let (piece, within) = (at / size, (at % size) as usize);
            let (now, behind) = rest.split_at(rest.len().min(PIECE_BYTES - within));
            let row = piece_row(id, piece);
            let found = self.get(row.clone()).await?;
            let mut bytes = found.map_or_else(Vec::new, |it| it.as_slice().to_vec());
            bytes.resize(bytes.len().max(within + now.len()), 0);
            bytes[within..within + now.len()].copy_from_slice(now);
            self.put(row, SmallBytes::from(bytes)).await?;
            at += now.len() as u64;
            rest = behind;
        }
        Ok(())
    }
}
