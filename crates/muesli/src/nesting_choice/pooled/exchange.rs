//! The row of a call site: where it is, its bytes, and what an exchange makes of them. Who runs the
//! transaction is not known here.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::{PoolRefusal, PoolReport, PooledComparison};
use crate::data::space::Space;
use crate::error::Error;

/// What a row begins with: how the rest is written.
const FORMAT: u8 = 1;

/// Where the row of a call site is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PoolRow {
    pub space: Space,
    pub key: Arc<str>,
}

/// What an exchange writes to a row of which this was read, if anything.
pub(crate) type RowChange = Box<dyn Fn(Option<&[u8]>) -> Result<Option<Vec<u8>>, Error> + Send>;

/// What the task that tells the other nodes does next.
pub(crate) enum NextReport {
    /// Changes the row by a transaction of its own; then whether that has committed is passed on.
    Exchange(RowChange, Box<dyn FnOnce(bool) + Send>),
    /// Looks again after so long.
    After(Duration),
    /// Ends, as there is nothing to tell.
    Nothing,
}

/// Runs the task that tells the other nodes what this one has observed, beside its transactions.
pub(crate) trait RowExchange: fmt::Debug {
    fn begin_reports(&self, row: &PoolRow, next: Box<dyn FnMut() -> NextReport + Send>);
}

/// What was found of a row.
pub(in crate::nesting_choice) type ExchangeResult = Result<Option<PooledComparison>, PoolRefusal>;

/// What comes of a report to a row of which this was read, and what is to be written.
///
/// # Errors
/// It cannot be written down.
pub(in crate::nesting_choice) fn exchange(
    bytes: Option<&[u8]>,
    report: &PoolReport,
) -> Result<(ExchangeResult, Option<Vec<u8>>), Error> {
    let row = match bytes.map(decode).transpose() {
        Ok(row) => row.flatten(),
        Err(refusal) => return Ok((Err(refusal), None)),
    };
    let after = PooledComparison::after(row.clone(), report);
    let changed =
        after.as_ref().ok().and_then(Option::as_ref).filter(|it| row.as_ref() != Some(it));
    let bytes = changed.map(encode).transpose()?;
    Ok((after, bytes))
}

fn encode(comparison: &PooledComparison) -> Result<Vec<u8>, Error> {
    let bytes = postcard::to_extend(comparison, vec![FORMAT]);
    bytes.map_err(|error| Error::Codec(format!("the row of a nesting choice: {error}")))
}

/// What a row says; `None`: nothing that can be read.
///
/// # Errors
/// It was written by a program of another version.
fn decode(bytes: &[u8]) -> Result<Option<PooledComparison>, PoolRefusal> {
    match bytes.split_first() {
        Some((&FORMAT, rest)) => Ok(postcard::from_bytes(rest).ok()),
        Some(_) => Err(PoolRefusal::OtherFormat),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nesting_choice::NestingModel;

    #[test]
    fn a_row_is_read_as_it_was_written() {
        let models = vec![NestingModel::Flat, NestingModel::Closed, NestingModel::Open];
        let (now, attempt, slots) = (1_u64 << 60, Some(1_000_000), Vec::new());
        let report = PoolReport { now, number: 0, attempt, models, slots, refused: None };
        let row = PooledComparison::after(None, &report).unwrap().unwrap();
        let mut bytes = encode(&row).unwrap();
        assert!(bytes.len() < 1_000, "{}", bytes.len());
        assert_eq!(decode(&bytes), Ok(Some(row)));
        assert_eq!(decode(&bytes[..bytes.len() - 1]), Ok(None));
        assert_eq!(decode(&[]), Ok(None));
        bytes[0] += 1;
        assert_eq!(decode(&bytes), Err(PoolRefusal::OtherFormat));
    }
}
