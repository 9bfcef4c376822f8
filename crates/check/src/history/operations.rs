//! Parsing the operations of a transaction straight into the builder.
//!
//! Operations are small arrays whose first element tells the shape of the rest, and the last
//! element (the value or its hash) may be missing. Deserialization visitors walk them without
//! building a tree; only values that are no plain scalars pass through one, whose depth the JSON
//! parser bounds.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, SeqAccess, Visitor};

use super::build::{BuildError, TransactionBuilder};
use super::key::parse_key;
use super::{Atom, Kind, Seen, Version};

/// A key in the file: text, or an integer standing for its decimal text.
pub(super) struct KeyText<'a>(Cow<'a, str>);

impl KeyText<'_> {
    pub(super) fn bytes(&self) -> Result<Cow<'_, [u8]>, String> {
        parse_key(&self.0)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for KeyText<'a> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = KeyText<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key: text or an integer")
            }
            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(KeyText(Cow::Borrowed(text)))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(KeyText(Cow::Owned(text.to_owned())))
            }
            fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
                Ok(KeyText(Cow::Owned(number.to_string())))
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
                Ok(KeyText(Cow::Owned(number.to_string())))
            }
        }
        input.deserialize_any(KeyVisitor)
    }
}

/// A scalar as it stands in the file.
pub(super) enum AtomInput {
    Null,
    Int(i64),
    Unsigned(u64),
    Json(String),
}

impl AtomInput {
    pub(super) fn atom(
        self,
        intern: impl FnOnce(&str) -> Result<u32, BuildError>,
    ) -> Result<Atom, BuildError> {
        Ok(match self {
            AtomInput::Null => Atom::Null,
            AtomInput::Int(number) => Atom::Int(number),
            AtomInput::Unsigned(number) => Atom::unsigned(number),
            AtomInput::Json(json) => Atom::Json(intern(&json)?),
        })
    }
}

impl<'de> Deserialize<'de> for AtomInput {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct AtomVisitor;
        impl<'de> Visitor<'de> for AtomVisitor {
            type Value = AtomInput;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON value")
            }
            fn visit_unit<E: Error>(self) -> Result<AtomInput, E> {
                Ok(AtomInput::Null)
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<AtomInput, E> {
                Ok(AtomInput::Int(number))
            }
            fn visit_u64<E: Error>(self, number: u64) -> Result<AtomInput, E> {
                Ok(AtomInput::Unsigned(number))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<AtomInput, E> {
                Ok(AtomInput::Json(serde_json::Value::from(text).to_string()))
            }
            fn visit_bool<E: Error>(self, truth: bool) -> Result<AtomInput, E> {
                Ok(AtomInput::Json(truth.to_string()))
            }
            fn visit_f64<E: Error>(self, number: f64) -> Result<AtomInput, E> {
                Ok(AtomInput::Json(serde_json::Value::from(number).to_string()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<AtomInput, A::Error> {
                let list = serde::de::value::SeqAccessDeserializer::new(seq);
                serde_json::Value::deserialize(list).map(|list| AtomInput::Json(list.to_string()))
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                map: A,
            ) -> Result<AtomInput, A::Error> {
                let object = serde::de::value::MapAccessDeserializer::new(map);
                serde_json::Value::deserialize(object)
                    .map(|object| AtomInput::Json(object.to_string()))
            }
        }
        input.deserialize_any(AtomVisitor)
    }
}

/// A version id in the file.
pub(super) enum VersionInput {
    Null,
    Own,
    Number(u64),
    List(Vec<u64>),
}

impl VersionInput {
    /// The version in an order line, where `null` and "own" were refused by the parser.
    pub(super) fn version(&self) -> Version<'_> {
        match self {
            VersionInput::Number(number) => Version::Number(*number),
            VersionInput::List(parts) => Version::List(parts),
            VersionInput::Null | VersionInput::Own => Version::List(&[]),
        }
    }

    fn seen(&self) -> Result<Seen<'_>, String> {
        match self {
            VersionInput::Own => Ok(Seen::Own),
            VersionInput::Null => Err("a read needs the version it saw (0: initial)".to_owned()),
            other => Ok(Seen::Version(other.version())),
        }
    }

    fn installed(&self) -> Result<Option<Version<'_>>, String> {
        match self {
            VersionInput::Null => Ok(None),
            VersionInput::Own => Err("\"own\" is for reads; a write names its version".to_owned()),
            other => Ok(Some(other.version())),
        }
    }
}

impl<'de> Deserialize<'de> for VersionInput {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct VersionVisitor;
        impl<'de> Visitor<'de> for VersionVisitor {
            type Value = VersionInput;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a version: an integer from 0, a list of them, null or \"own\"")
            }
            fn visit_unit<E: Error>(self) -> Result<VersionInput, E> {
                Ok(VersionInput::Null)
            }
            fn visit_u64<E: Error>(self, number: u64) -> Result<VersionInput, E> {
                Ok(VersionInput::Number(number))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<VersionInput, E> {
                match text {
                    "own" => Ok(VersionInput::Own),
                    _ => Err(E::invalid_value(serde::de::Unexpected::Str(text), &self)),
                }
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<VersionInput, A::Error> {
                let mut parts = Vec::new();
                while let Some(part) = seq.next_element()? {
                    parts.push(part);
                }
                Ok(VersionInput::List(parts))
            }
        }
        input.deserialize_any(VersionVisitor)
    }
}

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

fn required<'de, A: SeqAccess<'de>, T: Deserialize<'de>>(
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
