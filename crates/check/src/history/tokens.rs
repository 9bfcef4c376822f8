//! The smallest parts of a line: keys, values and version ids.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};

use super::build::BuildError;
use super::key::parse_key;
use super::{Atom, Seen, Version};

/// A key in the file: text, or an integer standing for its decimal text.
pub(super) struct KeyText<'a>(pub(super) Cow<'a, str>);

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

    pub(super) fn seen(&self) -> Result<Seen<'_>, String> {
        match self {
            VersionInput::Own => Ok(Seen::Own),
            VersionInput::Null => Err("a read needs the version it saw (0: initial)".to_owned()),
            other => Ok(Seen::Version(other.version())),
        }
    }

    pub(super) fn installed(&self) -> Result<Option<Version<'_>>, String> {
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
