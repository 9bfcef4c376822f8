//! Parsing the operations of a transaction straight into the builder.
//!
//! Operations are small arrays whose first element tells the shape of the rest, and the last
//! element (the value or its hash) may be missing. Deserializers walk them without
//! building a tree; only values that are no plain scalars pass through one, whose depth the JSON
//! parser bounds.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, SeqAccess, Visitor};

use super::build::BuildError;
use super::key::parse_key;
use super::record::TransactionBuilder;
use super::tokens::{AtomInput, KeyText, VersionInput};
use super::{Atom, Kind};

/// The array of operations.
pub(super) struct OpsSeed<'b, 't>(pub(super) &'b mut TransactionBuilder<'t>);

impl<'de> DeserializeSeed<'de> for OpsSeed<'_, '_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<(), D::Error> {
        input.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for OpsSeed<'_, '_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of operations")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(OpSeed(self.0))?.is_some() {}
        Ok(())
    }
}

struct OpSeed<'b, 't>(&'b mut TransactionBuilder<'t>);

impl<'de> DeserializeSeed<'de> for OpSeed<'_, '_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<(), D::Error> {
        input.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for OpSeed<'_, '_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an operation: an array that starts with \"r\", \"w\", \"d\", \"s\" or \"a\"")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let name: KeyText<'de> = required(&mut seq, "the name of the operation")?;
        match name.0.as_ref() {
            "r" if self.0.kind() == Kind::Append => self.read_list(&mut seq)?,
            "r" => self.read(&mut seq)?,
            "w" => self.write(&mut seq)?,
            "d" => self.delete(&mut seq)?,
            "s" => self.scan(&mut seq)?,
            "a" => self.append(&mut seq)?,
            other => {
                let reason = format!("operation \"{other}\"; allowed are r, w, d, s and a");
                return Err(A::Error::custom(reason));
            }
        }
        match seq.next_element::<IgnoredAny>()? {
            None => Ok(()),
            Some(_) => Err(A::Error::custom("an operation has too many elements")),
        }
    }
}

impl OpSeed<'_, '_> {
    fn read<'de, A: SeqAccess<'de>>(self, seq: &mut A) -> Result<(), A::Error> {
        let (key, version) = key_and_version(seq)?;
        let value = optional_atom(self.0, seq)?;
        let seen = version.seen().map_err(A::Error::custom)?;
        done(self.0.read_atom(&key, seen, value))
    }

    fn write<'de, A: SeqAccess<'de>>(self, seq: &mut A) -> Result<(), A::Error> {
        let (key, version) = key_and_version(seq)?;
        let value = optional_atom(self.0, seq)?;
        let version = version.installed().map_err(A::Error::custom)?;
        done(self.0.write_atom(&key, version, value))
    }

    fn delete<'de, A: SeqAccess<'de>>(self, seq: &mut A) -> Result<(), A::Error> {
        let (key, version) = key_and_version(seq)?;
        let version = version.installed().map_err(A::Error::custom)?;
        done(self.0.delete(&key, version))
    }

    fn scan<'de, A: SeqAccess<'de>>(self, seq: &mut A) -> Result<(), A::Error> {
        let low: KeyText<'de> = required(seq, "the low end of the scan")?;
        let high: Option<KeyText<'de>> = required(seq, "the high end of the scan, or null")?;
        let low = low.bytes().map_err(A::Error::custom)?;
        let high = high.as_ref().map(KeyText::bytes).transpose().map_err(A::Error::custom)?;
        self.0.begin_scan(&low, high.as_deref()).map_err(A::Error::custom)?;
        match seq.next_element_seed(RowsSeed(self.0))? {
            Some(()) => Ok(()),
            None => Err(A::Error::custom("an operation lacks the rows of the scan")),
        }
    }

    fn append<'de, A: SeqAccess<'de>>(self, seq: &mut A) -> Result<(), A::Error> {
        let key = key_bytes(seq)?;
        let element: AtomInput = required(seq, "the element to append")?;
        let element = element.atom(|json| intern(self.0, json)).map_err(A::Error::custom)?;
        done(self.0.append_atom(&key, element))
    }

    fn read_list<'de, A: SeqAccess<'de>>(self, seq: &mut A) -> Result<(), A::Error> {
        let key = key_bytes(seq)?;
        self.0.begin_list(&key).map_err(A::Error::custom)?;
        match seq.next_element_seed(ListSeed(self.0))? {
            Some(()) => Ok(()),
            None => Err(A::Error::custom("an operation lacks the list that was read")),
        }
    }
}

/// The rows of a scan: `[[k, v, h], …]`.
struct RowsSeed<'b, 't>(&'b mut TransactionBuilder<'t>);

impl<'de> DeserializeSeed<'de> for RowsSeed<'_, '_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<(), D::Error> {
        input.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for RowsSeed<'_, '_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the rows of a scan")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(RowSeed(self.0))?.is_some() {}
        Ok(())
    }
}

struct RowSeed<'b, 't>(&'b mut TransactionBuilder<'t>);

impl<'de> DeserializeSeed<'de> for RowSeed<'_, '_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<(), D::Error> {
        input.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for RowSeed<'_, '_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a row: [key, version, value]")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let (key, version) = key_and_version(&mut seq)?;
        let value = optional_atom(self.0, &mut seq)?;
        let seen = version.seen().map_err(A::Error::custom)?;
        self.0.scan_row(&key, seen, value).map_err(A::Error::custom)
    }
}

/// The elements of a list that was read; `null` is the empty list.
struct ListSeed<'b, 't>(&'b mut TransactionBuilder<'t>);

impl<'de> DeserializeSeed<'de> for ListSeed<'_, '_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<(), D::Error> {
        input.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ListSeed<'_, '_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the list that was read")
    }
    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while let Some(element) = seq.next_element::<AtomInput>()? {
            let element = element.atom(|json| intern(self.0, json)).map_err(A::Error::custom)?;
            self.0.list_element(element).map_err(A::Error::custom)?;
        }
        Ok(())
    }
}

pub(super) fn required<'de, A: SeqAccess<'de>, T: Deserialize<'de>>(
    seq: &mut A,
    what: &str,
) -> Result<T, A::Error> {
    let element = seq.next_element()?;
    element.ok_or_else(|| A::Error::custom(format!("an operation lacks {what}")))
}

fn key_bytes<'de, A: SeqAccess<'de>>(seq: &mut A) -> Result<Cow<'de, [u8]>, A::Error> {
    match required::<A, KeyText<'de>>(seq, "its key")?.0 {
        Cow::Borrowed(text) => parse_key(text).map_err(A::Error::custom),
        Cow::Owned(text) => match parse_key(&text) {
            Ok(bytes) => Ok(Cow::Owned(bytes.into_owned())),
            Err(reason) => Err(A::Error::custom(reason)),
        },
    }
}

fn key_and_version<'de, A: SeqAccess<'de>>(
    seq: &mut A,
) -> Result<(Cow<'de, [u8]>, VersionInput), A::Error> {
    let key = key_bytes(seq)?;
    let version = required(seq, "its version")?;
    Ok((key, version))
}

fn optional_atom<'de, A: SeqAccess<'de>>(
    transaction: &mut TransactionBuilder<'_>,
    seq: &mut A,
) -> Result<Atom, A::Error> {
    match seq.next_element::<AtomInput>()? {
        None => Ok(Atom::Unrecorded),
        Some(input) => input.atom(|json| intern(transaction, json)).map_err(A::Error::custom),
    }
}

fn intern(transaction: &mut TransactionBuilder<'_>, json: &str) -> Result<u32, BuildError> {
    transaction.intern_json(json)
}

fn done<E: Error>(result: Result<&mut TransactionBuilder<'_>, BuildError>) -> Result<(), E> {
    result.map(|_| ()).map_err(E::custom)
}
