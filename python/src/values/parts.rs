//! Values of a type that is known by name, as the library's typed spaces store them: keys so that
//! their order is kept (`muesli::key`), rows as postcard.

use muesli::Key;
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyString};

use crate::errors::{DataError, raised};

/// A type of the library, of a value or of a part of a tuple.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    U8,
    U16,
    U32,
    U64,
    U128,
    I8,
    I16,
    I32,
    I64,
    I128,
    Bool,
    Str,
    Bytes,
}

/// For which of the two encodings a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    Key,
    Row,
}

/// All numbers, with their types.
macro_rules! for_numbers {
    ($part:expr, $type:ident => $done:expr, $other:expr) => {
        match $part {
            Part::U8 => {
                type $type = u8;
                $done
            }
            Part::U16 => {
                type $type = u16;
                $done
            }
            Part::U32 => {
                type $type = u32;
                $done
            }
            Part::U64 => {
                type $type = u64;
                $done
            }
            Part::U128 => {
                type $type = u128;
                $done
            }
            Part::I8 => {
                type $type = i8;
                $done
            }
            Part::I16 => {
                type $type = i16;
                $done
            }
            Part::I32 => {
                type $type = i32;
                $done
            }
            Part::I64 => {
                type $type = i64;
                $done
            }
            Part::I128 => {
                type $type = i128;
                $done
            }
            Part::Bool | Part::Str | Part::Bytes => $other,
        }
    };
}

impl Part {
    /// The part that is called so.
    pub fn named(name: &str) -> Option<Part> {
        Some(match name {
            "u8" => Part::U8,
            "u16" => Part::U16,
            "u32" => Part::U32,
            "u64" => Part::U64,
            "u128" => Part::U128,
            "i8" => Part::I8,
            "i16" => Part::I16,
            "i32" => Part::I32,
            "i64" => Part::I64,
            "i128" => Part::I128,
            "bool" => Part::Bool,
            "str" => Part::Str,
            "bytes" => Part::Bytes,
            _ => return None,
        })
    }

    /// Appends a value.
    pub fn encode(
        self,
        value: &Bound<'_, PyAny>,
        encoding: Encoding,
        out: &mut Vec<u8>,
    ) -> PyResult<()> {
        for_numbers!(self, Number => {
            return put(&number::<Number>(self, value)?, encoding, out);
        }, ());
        match self {
            Part::Bool => put(
                &value.cast::<PyBool>().map_err(|_| wrong(self, value))?.is_true(),
                encoding,
                out,
            ),
            Part::Str => {
                let text = value.cast::<PyString>().map_err(|_| wrong(self, value))?;
                put(&text.to_str()?.to_owned(), encoding, out)
            }
            _ => {
                let bytes = value.cast::<PyBytes>().map_err(|_| wrong(self, value))?;
                put(&bytes.as_bytes().to_vec(), encoding, out)
            }
        }
    }

    /// Takes a value off the front.
    pub fn decode(
        self,
        py: Python<'_>,
        encoding: Encoding,
        bytes: &mut &[u8],
    ) -> PyResult<Py<PyAny>> {
        for_numbers!(self, Number => {
            return take::<Number>(encoding, bytes)?.into_py_any(py);
        }, ());
        match self {
            Part::Bool => take::<bool>(encoding, bytes)?.into_py_any(py),
            Part::Str => take::<String>(encoding, bytes)?.into_py_any(py),
            _ => PyBytes::new(py, &take::<Vec<u8>>(encoding, bytes)?).into_py_any(py),
        }
    }
}

fn number<'py, N>(part: Part, value: &Bound<'py, PyAny>) -> PyResult<N>
where
    N: for<'a> FromPyObject<'a, 'py, Error = PyErr>,
{
    value.extract().map_err(|error: PyErr| match error.is_instance_of::<PyTypeError>(value.py()) {
        true => wrong(part, value),
        false => error,
    })
}

fn wrong(part: Part, value: &Bound<'_, PyAny>) -> PyErr {
    let name = format!("{part:?}").to_lowercase();
    let found = value.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string());
    PyTypeError::new_err(format!("the space's codec takes `{name}` here, and not {found}"))
}

fn put<T: Key + serde::Serialize>(
    value: &T,
    encoding: Encoding,
    out: &mut Vec<u8>,
) -> PyResult<()> {
    match encoding {
        Encoding::Key => value.encode(out),
        Encoding::Row => {
            let encoded = postcard::to_stdvec(value);
            out.extend(encoded.map_err(|error| DataError::new_err(error.to_string()))?);
        }
    }
    Ok(())
}

fn take<T: Key + serde::de::DeserializeOwned>(
    encoding: Encoding,
    bytes: &mut &[u8],
) -> PyResult<T> {
    match encoding {
        Encoding::Key => T::decode(bytes).map_err(raised),
        Encoding::Row => {
            let taken = postcard::take_from_bytes(bytes);
            let (value, rest) = taken.map_err(|error| {
                DataError::new_err(format!("stored bytes cannot be decoded: {error}"))
            })?;
            *bytes = rest;
            Ok(value)
        }
    }
}
