//! A record as it is stored: its number, its change counter, its units, and its fields.
//!
//! The bytes of the fields are a function of the record's number, so that every read can tell
//! whether it got what it asked for; a write of a field writes the same bytes again.

use muesli::{Error, SmallBytes};

/// What each record holds at first.
pub(super) const UNITS: i64 = 100;

const HEADER: usize = 24;

/// A record without its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub number: u64,
    /// How often it was changed.
    pub changes: u64,
    pub units: i64,
}

impl Record {
    /// As it is when it is loaded or inserted.
    pub fn first(number: u64) -> Record {
        Record { number, changes: 0, units: UNITS }
    }

    /// After one more change, with so many more units.
    pub fn changed(self, units: i64) -> Record {
        Record { changes: self.changes + 1, units: self.units + units, ..self }
    }
}

/// How large records are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordLayout {
    bytes: usize,
}

impl RecordLayout {
    pub fn new(fields: u64, field_length: u64) -> RecordLayout {
        RecordLayout { bytes: (fields * field_length) as usize }
    }

    pub fn encode(&self, record: &Record) -> SmallBytes {
        let mut value = Vec::with_capacity(HEADER + self.bytes);
        value.extend_from_slice(&record.number.to_le_bytes());
        value.extend_from_slice(&record.changes.to_le_bytes());
        value.extend_from_slice(&record.units.to_le_bytes());
        for word in words(record.number).take(self.bytes.div_ceil(8)) {
            value.extend_from_slice(&word);
        }
        value.truncate(HEADER + self.bytes);
        SmallBytes::from(value)
    }

    /// The record that was read.
    ///
    /// # Errors
    /// It is no record, or its fields are not those of its number.
    pub fn decode(&self, value: &SmallBytes) -> Result<Record, Error> {
        let bytes = value.as_slice();
        let wrong = |what: &str| Error::Codec(format!("a record {what}"));
        if bytes.len() != HEADER + self.bytes {
            return Err(wrong("of the wrong length"));
        }
        let (header, fields) = bytes.split_at(HEADER);
        let (parts, _) = header.as_chunks::<8>();
        let record = Record {
            number: u64::from_le_bytes(parts[0]),
            changes: u64::from_le_bytes(parts[1]),
            units: i64::from_le_bytes(parts[2]),
        };
        // Word by word: a call to compare each eight bytes was up to half of a run's time.
        let (whole, rest) = fields.as_chunks::<8>();
        let mut wanted = words(record.number);
        let is_whole = whole.iter().zip(&mut wanted).all(|(found, word)| *found == word);
        let last = wanted.next().unwrap_or_default();
        if is_whole && *rest == last[..rest.len()] {
            Ok(record)
        } else {
            Err(wrong("with the fields of another"))
        }
    }
}

/// Endless bytes that depend on the number alone.
fn words(number: u64) -> impl Iterator<Item = [u8; 8]> {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    std::iter::from_fn(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        Some(state.to_le_bytes())
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn records_come_back_and_damage_is_noticed(
            number: u64, changes: u64, units: i64, fields in 1u64..5, length in 1u64..20, at: usize,
        ) {
            let layout = RecordLayout::new(fields, length);
            let record = Record { number, changes, units };
            let value = layout.encode(&record);
            prop_assert_eq!(layout.decode(&value), Ok(record));
            let mut damaged = value.as_slice().to_vec();
            let at = HEADER + at % (damaged.len() - HEADER);
            damaged[at] ^= 1;
            prop_assert!(layout.decode(&damaged.into()).is_err());
            prop_assert!(RecordLayout::new(fields, length + 1).decode(&value).is_err());
        }
    }
}
