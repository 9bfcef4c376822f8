//! Codecs: how the keys and the values of a space are stored.

use muesli::SmallBytes;
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple, PyType};

use crate::errors::{DataError, misuse};
use crate::values::parts::{Encoding, Part};

/// What a codec does.
enum CodecKind {
    /// Bytes as they are.
    Bytes,
    /// Text in UTF-8, without anything around it.
    Str,
    /// A type of the library.
    Typed(Part),
    /// A tuple of such.
    Tuple(Vec<Part>),
    /// Two functions.
    Functions { encode: Py<PyAny>, decode: Py<PyAny> },
}

/// How keys or values are stored.
#[pyclass(frozen, module = "muesli")]
pub struct Codec {
    name: String,
    kind: CodecKind,
}

#[pymethods]
impl Codec {
    /// A codec of two functions, which make bytes of a value and a value of bytes.
    #[new]
    #[pyo3(signature = (name, encode, decode))]
    fn new(name: String, encode: Bound<'_, PyAny>, decode: Bound<'_, PyAny>) -> PyResult<Codec> {
        if !encode.is_callable() || !decode.is_callable() {
            return Err(PyTypeError::new_err("a codec is made of two functions"));
        }
        let kind = CodecKind::Functions { encode: encode.unbind(), decode: decode.unbind() };
        Ok(Codec { name, kind })
    }

    /// The codec of a type that the package knows by this name.
    #[staticmethod]
    fn named(name: &str) -> PyResult<Codec> {
        let kind =
            match name {
                "bytes" => CodecKind::Bytes,
                "str" => CodecKind::Str,
                other => CodecKind::Typed(Part::named(other).ok_or_else(|| {
                    PyValueError::new_err(format!("no codec is called {other:?}"))
                })?),
            };
        Ok(Codec { name: name.to_owned(), kind })
    }

    /// The codec of tuples whose parts are of these codecs.
    #[staticmethod]
    #[pyo3(signature = (*parts))]
    fn tuple_of(parts: &Bound<'_, PyTuple>) -> PyResult<Codec> {
        let mut typed = Vec::new();
        for part in parts {
            let part = part.cast::<Codec>().map_err(|_| {
                PyTypeError::new_err("the parts of a tuple are codecs, such as `STR` and `U64`")
            })?;
            typed.push(part.get().part()?);
        }
        if typed.is_empty() {
            return Err(PyValueError::new_err("a tuple has at least one part"));
        }
        let names: Vec<_> = typed.iter().map(|part| format!("{part:?}").to_lowercase()).collect();
        Ok(Codec { name: format!("({})", names.join(", ")), kind: CodecKind::Tuple(typed) })
    }

    /// The bytes of a value, as a key.
    fn key<'py>(
        &self,
        py: Python<'py>,
        value: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, self.encode(value, Encoding::Key)?.as_slice()))
    }

    /// The bytes of a value, as what is stored under a key.
    fn row<'py>(
        &self,
        py: Python<'py>,
        value: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, self.encode(value, Encoding::Row)?.as_slice()))
    }

    /// The value of a row's bytes.
    fn of_row(&self, py: Python<'_>, bytes: &[u8]) -> PyResult<Py<PyAny>> {
        self.decode(py, Encoding::Row, bytes)
    }

    /// For annotations, which say of which types it is.
    #[classmethod]
    fn __class_getitem__(class: &Bound<'_, PyType>, _item: &Bound<'_, PyAny>) -> Py<PyType> {
        class.clone().unbind()
    }

    fn __repr__(&self) -> String {
        format!("<Codec {}>", self.name)
    }
}

impl Codec {
    /// What it is as a part of a tuple.
    fn part(&self) -> PyResult<Part> {
        match &self.kind {
            CodecKind::Bytes => Ok(Part::Bytes),
            CodecKind::Str => Ok(Part::Str),
            CodecKind::Typed(part) => Ok(*part),
            CodecKind::Tuple(_) | CodecKind::Functions { .. } => {
                Err(PyTypeError::new_err(format!("`{}` cannot be a part of a tuple", self.name)))
            }
        }
    }

    /// The bytes of a value.
    pub fn encode(&self, value: &Bound<'_, PyAny>, encoding: Encoding) -> PyResult<SmallBytes> {
        match &self.kind {
            CodecKind::Bytes => match value.cast::<PyBytes>() {
                Ok(bytes) => Ok(SmallBytes::new(bytes.as_bytes())),
                Err(_) => Err(self.wrong(value, "bytes")),
            },
            CodecKind::Str => match value.cast::<PyString>() {
                Ok(text) => Ok(SmallBytes::new(text.to_str()?.as_bytes())),
                Err(_) => Err(self.wrong(value, "str")),
            },
            CodecKind::Typed(part) => {
                let mut out = Vec::with_capacity(16);
                part.encode(value, encoding, &mut out)?;
                Ok(out.into())
            }
            CodecKind::Tuple(parts) => {
                let tuple = value.cast::<PyTuple>().map_err(|_| self.wrong(value, "tuple"))?;
                if tuple.len() != parts.len() {
                    let (has, takes) = (tuple.len(), parts.len());
                    let text = format!("the space's codec takes {takes} parts, and not {has}");
                    return Err(PyValueError::new_err(text));
                }
                encode_parts(parts, tuple, encoding)
            }
            CodecKind::Functions { encode, .. } => {
                let encoded = encode.bind(value.py()).call1((value,))?;
                let bytes = encoded.cast::<PyBytes>();
                let bytes = bytes.map_err(|_| self.wrong(&encoded, "bytes from `encode`"))?;
                Ok(SmallBytes::new(bytes.as_bytes()))
            }
        }
    }

    /// The value of bytes.
    pub fn decode(
        &self,
        py: Python<'_>,
        encoding: Encoding,
        mut bytes: &[u8],
    ) -> PyResult<Py<PyAny>> {
        let value = match &self.kind {
            CodecKind::Bytes => return PyBytes::new(py, bytes).into_py_any(py),
            CodecKind::Str => {
                let text = std::str::from_utf8(bytes);
                let text = text.map_err(|_| DataError::new_err("stored bytes are not UTF-8"))?;
                return text.into_py_any(py);
            }
            CodecKind::Functions { decode, .. } => {
                return decode.call1(py, (PyBytes::new(py, bytes),));
            }
            CodecKind::Typed(part) => part.decode(py, encoding, &mut bytes)?,
            CodecKind::Tuple(parts) => {
                let values = parts.iter().map(|part| part.decode(py, encoding, &mut bytes));
                let values = values.collect::<PyResult<Vec<_>>>()?;
                PyTuple::new(py, values)?.into_py_any(py)?
            }
        };
        match bytes.is_empty() {
            true => Ok(value),
            false => Err(DataError::new_err("stored bytes go on after their end")),
        }
    }

    /// The first key that begins with this, and the first one after all that do: text or bytes, or
    /// the first parts of a tuple.
    pub fn prefix(&self, prefix: &Bound<'_, PyAny>) -> PyResult<(SmallBytes, Option<SmallBytes>)> {
        let first = match &self.kind {
            CodecKind::Bytes | CodecKind::Str => self.encode(prefix, Encoding::Key)?,
            CodecKind::Tuple(parts) => {
                let first = prefix.cast::<PyTuple>().map_err(|_| self.wrong(prefix, "tuple"))?;
                if first.len() > parts.len() {
                    return Err(PyValueError::new_err("a prefix has no more parts than a key"));
                }
                encode_parts(parts, first, Encoding::Key)?
            }
            CodecKind::Typed(_) | CodecKind::Functions { .. } => {
                return Err(misuse(format!("keys of the codec `{}` have no prefixes", self.name)));
            }
        };
        let end = first.prefix_end();
        Ok((first, end))
    }

    fn wrong(&self, value: &Bound<'_, PyAny>, takes: &str) -> PyErr {
        let found = value.get_type().name();
        let found = found.map_or_else(|_| "?".to_owned(), |name| name.to_string());
        let name = &self.name;
        PyTypeError::new_err(format!("the codec `{name}` takes {takes}, and not {found}"))
    }
}

/// As many parts as the tuple has.
fn encode_parts(
    parts: &[Part],
    tuple: &Bound<'_, PyTuple>,
    encoding: Encoding,
) -> PyResult<SmallBytes> {
    let mut out = Vec::with_capacity(32);
    for (part, value) in parts.iter().zip(tuple) {
        part.encode(&value, encoding, &mut out)?;
    }
    Ok(out.into())
}
