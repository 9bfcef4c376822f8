//! Spaces, with the codecs of their keys and values.

use muesli::SmallBytes;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyType};

use crate::values::codec::Codec;
use crate::values::parts::Encoding;

/// A named set of keys of one database.
#[pyclass(frozen, module = "muesli")]
pub struct Space {
    pub space: muesli::Space,
    name: String,
    pub key: Py<Codec>,
    value: Py<Codec>,
}

#[pymethods]
impl Space {
    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// Its number in the database, as procedures take it.
    #[getter]
    fn number(&self) -> u16 {
        self.space.id().0
    }

    /// A key, as it is stored.
    fn key_bytes<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, self.encode_key(key)?.as_slice()))
    }

    /// For annotations, which say of which types it is.
    #[classmethod]
    fn __class_getitem__(class: &Bound<'_, PyType>, _item: &Bound<'_, PyAny>) -> Py<PyType> {
        class.clone().unbind()
    }

    fn __repr__(&self) -> String {
        format!("<Space {}>", self.name)
    }
}

impl Space {
    /// A space with these codecs.
    pub fn new(space: muesli::Space, name: String, key: Py<Codec>, value: Py<Codec>) -> Space {
        Space { space, name, key, value }
    }

    /// A key, as it is stored.
    pub fn encode_key(&self, key: &Bound<'_, PyAny>) -> PyResult<SmallBytes> {
        self.key.get().encode(key, Encoding::Key)
    }

    /// A value, as it is stored.
    pub fn encode_value(&self, value: &Bound<'_, PyAny>) -> PyResult<SmallBytes> {
        self.value.get().encode(value, Encoding::Row)
    }

    /// A value that was stored; `None` where there is none.
    pub fn decode_value(&self, py: Python<'_>, value: Option<&SmallBytes>) -> PyResult<Py<PyAny>> {
        match value {
            None => Ok(py.None()),
            Some(value) => self.value.get().decode(py, Encoding::Row, value.as_slice()),
        }
    }

    /// A row as a pair of its key and its value.
    pub fn decode_row(
        &self,
        py: Python<'_>,
        (key, value): &(SmallBytes, SmallBytes),
    ) -> PyResult<Py<PyAny>> {
        let key = self.key.get().decode(py, Encoding::Key, key.as_slice())?;
        (key, self.decode_value(py, Some(value))?).into_py_any(py)
    }
}
