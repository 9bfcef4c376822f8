//! The header of a key: its type, when it expires, and a short string or where the rest is.

use muesli::{Error, SmallBytes};

use super::rows::Id;

/// Redis's types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueKind {
    String,
    List,
    Set,
    Sorted,
    Hash,
}

impl ValueKind {
    pub const ALL: [ValueKind; 5] =
        [ValueKind::String, ValueKind::List, ValueKind::Set, ValueKind::Sorted, ValueKind::Hash];

    /// As `TYPE` says it.
    pub fn name(self) -> &'static str {
        match self {
            ValueKind::String => "string",
            ValueKind::List => "list",
            ValueKind::Set => "set",
            ValueKind::Sorted => "zset",
            ValueKind::Hash => "hash",
        }
    }
}

/// What a key has.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum KeyValue {
    /// A short string.
    Text(SmallBytes),
    /// A string in pieces, of so many bytes.
    Pieces(Id, u64),
    /// A collection of this type, in rows.
    Rows(ValueKind, Id),
}

impl KeyValue {
    pub fn kind(&self) -> ValueKind {
        match self {
            KeyValue::Text(_) | KeyValue::Pieces(..) => ValueKind::String,
            KeyValue::Rows(kind, _) => *kind,
        }
    }

    /// What is in rows.
    pub fn id(&self) -> Option<Id> {
        match self {
            KeyValue::Text(_) => None,
            KeyValue::Pieces(id, _) | KeyValue::Rows(_, id) => Some(*id),
        }
    }
}

/// The header of a key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct KeyHeader {
    pub value: KeyValue,
    /// In milliseconds since 1970.
    pub expires: Option<u64>,
}

const TEXT: u8 = 0;
const PIECES: u8 = 1;
const ROWS: u8 = 2;
const EXPIRES: u8 = 0x80;

impl KeyHeader {
    pub fn is_over(&self, now: u64) -> bool {
        self.expires.is_some_and(|at| at <= now)
    }

    pub fn to_row(&self) -> SmallBytes {
        let mut bytes = Vec::with_capacity(32);
        let (kind, id) = match &self.value {
            KeyValue::Text(_) => (TEXT, None),
            KeyValue::Pieces(id, _) => (PIECES, Some(id)),
            KeyValue::Rows(kind, id) => (ROWS + *kind as u8, Some(id)),
        };
        bytes.push(kind | if self.expires.is_some() { EXPIRES } else { 0 });
        bytes.extend(self.expires.into_iter().flat_map(u64::to_be_bytes));
        bytes.extend(id.into_iter().flat_map(|id| id.to_be_bytes()));
        match &self.value {
            KeyValue::Text(text) => bytes.extend_from_slice(text.as_slice()),
            KeyValue::Pieces(_, length) => bytes.extend(length.to_be_bytes()),
            KeyValue::Rows(..) => {}
        }
        SmallBytes::from(bytes)
    }

    /// # Errors
    /// Somebody else has written the row.
    pub fn of_row(row: &SmallBytes) -> Result<KeyHeader, Error> {
        let wrong = || Error::Codec("this is no header of a Redis key".to_owned());
        let (first, mut rest) = row.as_slice().split_first().ok_or_else(wrong)?;
        let number = |rest: &mut &[u8]| {
            let (number, after) = rest.split_first_chunk().ok_or_else(wrong)?;
            *rest = after;
            Ok::<_, Error>(u64::from_be_bytes(*number))
        };
        let expires = if first & EXPIRES != 0 { Some(number(&mut rest)?) } else { None };
        let value = match first & !EXPIRES {
            TEXT => KeyValue::Text(SmallBytes::new(rest)),
            PIECES => KeyValue::Pieces(number(&mut rest)?, number(&mut rest)?),
            kind => {
                let kind =
                    kind.checked_sub(ROWS).and_then(|it| ValueKind::ALL.get(usize::from(it)));
                KeyValue::Rows(*kind.ok_or_else(wrong)?, number(&mut rest)?)
            }
        };
        Ok(KeyHeader { value, expires })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_come_back() {
        let values = [
            KeyValue::Text(SmallBytes::new(b"abc")),
            KeyValue::Text(SmallBytes::EMPTY),
            KeyValue::Pieces(7, 1 << 40),
            KeyValue::Rows(ValueKind::String, 1),
            KeyValue::Rows(ValueKind::Sorted, u64::MAX),
            KeyValue::Rows(ValueKind::Hash, 3),
        ];
        for (value, expires) in
            values.into_iter().flat_map(|it| [(it.clone(), None), (it, Some(9))])
        {
            let header = KeyHeader { value, expires };
            assert_eq!(KeyHeader::of_row(&header.to_row()), Ok(header));
        }
    }

    #[test]
    fn rows_of_others_are_refused() {
        for row in [&b""[..], b"\x80abc", b"\x7f", b"\x01ab"] {
            assert!(KeyHeader::of_row(&SmallBytes::new(row)).is_err(), "{row:?}");
        }
    }
}
