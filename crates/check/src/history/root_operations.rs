//! The operations of roots, as the format has them.
//!
//! As those of transactions they are small arrays, the name first: `["+",set,key,was_new]`,
//! `["-",set,key,was_there]`, `["?",set,key,found]`, `["+=",counter,by]`, `["=",counter,value]`.

use std::fmt;
use std::io::{self, Write};

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, SeqAccess, Visitor};

use super::build::HistoryBuilder;
use super::operations::required;
use super::tokens::KeyText;
use super::{History, NamedOperation};
use crate::abstract_operations::AbstractOperation;

/// Reads an array of operations.
pub(super) fn parse(
    builder: &mut HistoryBuilder,
    text: &str,
) -> Result<Vec<AbstractOperation>, serde_json::Error> {
    let mut parser = serde_json::Deserializer::from_str(text);
    OperationsSeed(&mut builder.history).deserialize(&mut parser)
}

/// Writes one.
pub(super) fn write(
    history: &History,
    operations: &[AbstractOperation],
    out: &mut impl Write,
) -> io::Result<()> {
    let name = |number: u64| serde_json::Value::from(history.show_object(number)).to_string();
    out.write_all(b"[")?;
    for (place, operation) in operations.iter().enumerate() {
        out.write_all(if place == 0 { b"" } else { b"," })?;
        match *operation {
            AbstractOperation::Add { set, key, was_new } => {
                write!(out, "[\"+\",{},{},{was_new}]", name(set), name(key))?;
            }
            AbstractOperation::Remove { set, key, was_there } => {
                write!(out, "[\"-\",{},{},{was_there}]", name(set), name(key))?;
            }
            AbstractOperation::Contains { set, key, found } => {
                write!(out, "[\"?\",{},{},{found}]", name(set), name(key))?;
            }
            AbstractOperation::Increase { counter, by } => {
                write!(out, "[\"+=\",{},{by}]", name(counter))?;
            }
            AbstractOperation::Read { counter, value } => {
                write!(out, "[\"=\",{},{value}]", name(counter))?;
            }
        }
    }
    out.write_all(b"]")
}

/// The array of operations.
struct OperationsSeed<'h>(&'h mut History);

impl<'de> DeserializeSeed<'de> for OperationsSeed<'_> {
    type Value = Vec<AbstractOperation>;
    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<Self::Value, D::Error> {
        input.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for OperationsSeed<'_> {
    type Value = Vec<AbstractOperation>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of operations on sets and counters")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut operations = Vec::new();
        while let Some(operation) = seq.next_element_seed(OperationSeed(self.0))? {
            operations.push(operation);
        }
        Ok(operations)
    }
}

struct OperationSeed<'h>(&'h mut History);

impl<'de> DeserializeSeed<'de> for OperationSeed<'_> {
    type Value = AbstractOperation;
    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<Self::Value, D::Error> {
        input.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for OperationSeed<'_> {
    type Value = AbstractOperation;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an operation: an array that starts with \"+\", \"-\", \"?\", \"+=\" or \"=\"")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let name: KeyText<'de> = required(&mut seq, "the name of the operation")?;
        let object: KeyText<'de> = required(&mut seq, "its set or counter")?;
        let object = object.bytes().map_err(A::Error::custom)?;
        let (key, key_bytes);
        let operation = match name.0.as_ref() {
            "+" | "-" | "?" => {
                key = required::<A, KeyText<'de>>(&mut seq, "its key")?;
                key_bytes = key.bytes().map_err(A::Error::custom)?;
                let answer = required(&mut seq, "its answer, true or false")?;
                on_set(&name.0, &object, &key_bytes, answer)
            }
            "+=" => {
                let by = required(&mut seq, "the amount that was added")?;
                NamedOperation::Increase { counter: &object, by }
            }
            "=" => {
                let value = required(&mut seq, "the value that was read")?;
                NamedOperation::Read { counter: &object, value }
            }
            other => {
                let reason =
                    format!("operation \"{other}\" of a root; allowed are +, -, ?, += and =");
                return Err(A::Error::custom(reason));
            }
        };
        let operation = self.0.abstract_of(operation).map_err(A::Error::custom)?;
        match seq.next_element::<IgnoredAny>()? {
            None => Ok(operation),
            Some(_) => Err(A::Error::custom("an operation has too many elements")),
        }
    }
}

fn on_set<'a>(name: &str, set: &'a [u8], key: &'a [u8], answer: bool) -> NamedOperation<'a> {
    match name {
        "+" => NamedOperation::Add { set, key, was_new: answer },
        "-" => NamedOperation::Remove { set, key, was_there: answer },
        _ => NamedOperation::Contains { set, key, found: answer },
    }
}
