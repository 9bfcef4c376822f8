//! Small recorded scalars: values, elements, sessions, hints.
//!
//! Most recorded values are integers (a value or its hash) and stay inline; everything else is
//! kept as interned canonical JSON text, so that equality of atoms is equality of values.

use std::borrow::Cow;

use super::Interner;

/// A value, or a hash of it, as a recorder hands it over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// The recorder did not keep it: nothing is compared.
    Unrecorded,
    /// No value: an absent or deleted key.
    Null,
    /// A signed integer.
    Int(i64),
    /// An unsigned integer, for example a 64-bit hash.
    Unsigned(u64),
    /// Text.
    Text(&'a str),
}

/// A [`Value`] inside a history; `Json` points at interned JSON text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Atom {
    Unrecorded,
    Null,
    Int(i64),
    Unsigned(u64),
    Json(u32),
}

impl Atom {
    /// An unsigned number, in the one form that compares equal to the same signed number.
    pub(crate) fn unsigned(number: u64) -> Atom {
        i64::try_from(number).map_or(Atom::Unsigned(number), Atom::Int)
    }

    /// The JSON text of this atom (`null` when nothing was recorded).
    pub(crate) fn json(self, texts: &Interner) -> Cow<'_, str> {
        match self {
            Atom::Unrecorded | Atom::Null => Cow::Borrowed("null"),
            Atom::Int(number) => Cow::Owned(number.to_string()),
            Atom::Unsigned(number) => Cow::Owned(number.to_string()),
            Atom::Json(text) => String::from_utf8_lossy(texts.bytes(text)),
        }
    }

    /// Whether two recorded values contradict each other.
    pub(crate) fn contradicts(self, other: Atom) -> bool {
        self != Atom::Unrecorded && other != Atom::Unrecorded && self != other
    }
}

/// The plain text behind interned JSON: a string without its quotes, anything else as it stands.
pub(crate) fn show_text(texts: &Interner, text: u32) -> Cow<'_, str> {
    let json = String::from_utf8_lossy(texts.bytes(text));
    match serde_json::from_str::<String>(&json) {
        Ok(plain) => Cow::Owned(plain),
        Err(_) => json,
    }
}
