//! The rows of a scan, as an iterator.

use std::collections::VecDeque;
use std::sync::Mutex;

use muesli::SmallBytes;
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::transaction::Transaction;
use crate::values::scan::Scan;
use crate::waiting::wait;

/// An iterator over the rows of a range; it reads a page when the last one is used up.
#[pyclass(frozen, module = "muesli")]
pub struct Rows {
    transaction: Py<Transaction>,
    scan: Scan,
    page: Mutex<VecDeque<(SmallBytes, SmallBytes)>>,
}

#[pymethods]
impl Rows {
    /// For annotations, which say of which types it is.
    #[classmethod]
    fn __class_getitem__(class: &Bound<'_, PyType>, _item: &Bound<'_, PyAny>) -> Py<PyType> {
        class.clone().unbind()
    }

    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let (space, open) = (self.scan.space.get(), self.transaction.get().open()?);
        if let Some(row) = self.pop() {
            return space.decode_row(py, &row).map(Some);
        }
        if self.scan.done() {
            return Ok(None);
        }
        let range = self.scan.next_range();
        let scan = async { open.note(open.tx().scan(space.space, range).await) };
        let rows = wait(py, &mut open.caller(), scan)?;
        self.scan.advance(&rows);
        self.page.lock().unwrap_or_else(|broken| broken.into_inner()).extend(rows);
        self.pop().map(|row| space.decode_row(py, &row)).transpose()
    }
}

impl Rows {
    /// The rows of a scan of a transaction.
    pub fn new(transaction: Py<Transaction>, scan: Scan) -> Rows {
        Rows { transaction, scan, page: Mutex::default() }
    }

    fn pop(&self) -> Option<(SmallBytes, SmallBytes)> {
        self.page.lock().unwrap_or_else(|broken| broken.into_inner()).pop_front()
    }
}
