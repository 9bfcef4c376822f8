//! Scans of ranges, a page at a time.

use std::ops::Bound as End;
use std::sync::{Mutex, MutexGuard};

use muesli::{Range, SmallBytes};
use pyo3::prelude::*;

use crate::values::space::Space;

/// The first page has so many rows, and each further one twice as many as the last one.
const PAGE_ROWS: usize = 32;
/// But not more than this.
const PAGE_ROWS_MAX: usize = 1024;

/// Where a scan is.
struct ScanState {
    from: SmallBytes,
    /// Up to this key, which is not among them.
    to: Option<SmallBytes>,
    left: usize,
    page: usize,
    done: bool,
}

/// A range of a space that is read a page at a time.
#[pyclass(frozen, module = "muesli._native")]
pub struct Scan {
    pub space: Py<Space>,
    reverse: bool,
    state: Mutex<ScanState>,
}

#[pymethods]
impl Scan {
    /// The range from `start` on, up to `stop`, which is not a part of it; or the keys that begin
    /// with `prefix`.
    #[new]
    #[pyo3(signature = (space, start=None, stop=None, prefix=None, reverse=false, limit=None))]
    pub fn new(
        space: Py<Space>,
        start: Option<Bound<'_, PyAny>>,
        stop: Option<Bound<'_, PyAny>>,
        prefix: Option<Bound<'_, PyAny>>,
        reverse: bool,
        limit: Option<usize>,
    ) -> PyResult<Scan> {
        let of = space.get();
        let encode = |key: Option<Bound<'_, PyAny>>| key.map(|key| of.encode_key(&key)).transpose();
        let (mut from, mut to) = (encode(start)?.unwrap_or(SmallBytes::EMPTY), encode(stop)?);
        if let Some(prefix) = prefix {
            let (first, end) = of.key.get().prefix(&prefix)?;
            from = from.max(first);
            to = match (to, end) {
                (Some(stop), Some(end)) => Some(stop.min(end)),
                (stop, end) => stop.or(end),
            };
        }
        // Bounds that exclude each other are no mistake: there is nothing between them.
        let done = limit == Some(0) || to.as_ref().is_some_and(|to| *to <= from);
        let (left, page) = (limit.unwrap_or(usize::MAX), PAGE_ROWS);
        Ok(Scan { space, reverse, state: Mutex::new(ScanState { from, to, left, page, done }) })
    }

    /// Whether there is nothing more.
    #[getter]
    pub fn done(&self) -> bool {
        self.state().done
    }
}

impl Scan {
    /// The next page that is to be read.
    pub fn next_range(&self) -> Range {
        let state = self.state();
        let to = state.to.as_ref().map_or(End::Unbounded, |to| End::Excluded(to.as_slice()));
        let range = Range::of::<&[u8]>((End::Included(state.from.as_slice()), to));
        let range = range.limit(state.page.min(state.left));
        if self.reverse { range.reverse() } else { range }
    }

    /// The page was read, and had these rows.
    pub fn advance(&self, rows: &[(SmallBytes, SmallBytes)]) {
        let mut state = self.state();
        state.done |= rows.len() < state.page.min(state.left) || rows.len() == state.left;
        state.left -= rows.len().min(state.left);
        state.page = (state.page * 2).min(PAGE_ROWS_MAX);
        let Some((last, _)) = rows.last() else { return };
        match self.reverse {
            true => state.to = Some(last.clone()),
            false => state.from = last.successor(),
        }
    }

    fn state(&self) -> MutexGuard<'_, ScanState> {
        self.state.lock().unwrap_or_else(|broken| broken.into_inner())
    }
}
