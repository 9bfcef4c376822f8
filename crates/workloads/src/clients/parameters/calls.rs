//! The parameters that the benchmarks of nested transactions have in common: `objects`, `calls`,
//! `reads` and `length`, each with one meaning.
//!
//! They are those of the experiments in Turcu's dissertation (2015, sections 4.3.2 and 5.3.1),
//! where they are called *o*, *c*, *r* and *L*. The workloads are the bank and its loans, sets
//! (linked lists, skip lists, hash tables, search trees) and counters; `docs/inside/workloads.md`
//! says what a call is in each.

use std::time::Duration;

use muesli::{Db, Error};

use crate::parameters::{Parameter, ParameterError, ParameterKind, Values};

/// The most calls that a transaction can have.
const CALLS_MOST: u64 = 1_000;
/// Calls take less than so many milliseconds besides their accesses: a transaction is to end
/// before its time is over.
const LENGTH_MOST: f64 = 10_000.0;

/// How long a transaction's calls take besides their accesses.
pub const LENGTH: Parameter = Parameter::new(
    "length",
    "0",
    ParameterKind::Number(0.0, LENGTH_MOST),
    "Milliseconds that a transaction's calls take besides their accesses, an equal share each: \
     they wait, inside of the part that a call is.",
);

/// How many objects there are to choose from, at least `least`, and what one is.
pub const fn objects(
    default: &'static str,
    (least, most): (u64, u64),
    help: &'static str,
) -> Parameter {
    Parameter::new("objects", default, ParameterKind::Count(least, most), help)
}

/// How many calls a transaction makes, at least `least`, and what one is.
pub const fn calls(default: &'static str, least: u64, help: &'static str) -> Parameter {
    Parameter::new("calls", default, ParameterKind::Count(least, CALLS_MOST), help)
}

/// The share of transactions whose calls only read.
pub const fn reads(default: &'static str, help: &'static str) -> Parameter {
    Parameter::new("reads", default, ParameterKind::Percent, help)
}

/// Whether the named shares of transactions leave something of a hundred percent.
///
/// # Errors
/// They make more than that.
pub fn check_shares(values: &Values, names: &[&str]) -> Result<(), ParameterError> {
    let sum: f64 = names.iter().map(|name| values.number(name)).sum();
    if sum <= 100.0 {
        return Ok(());
    }
    let (last, others) = names.split_last().expect("a share has a name");
    let text = format!("{} and {last} make {sum} %, over 100 %", others.join(", "));
    Err(ParameterError::Incompatible(text))
}

/// Whether transactions find as many different objects as they need.
///
/// # Errors
/// They do not: `calls` calls of so many objects each are more than there are.
pub fn check_objects((name, calls): (&str, u64), each: u64, of: u64) -> Result<(), ParameterError> {
    let needed = calls.saturating_mul(each);
    if needed <= of {
        return Ok(());
    }
    let text = format!(
        "{name}={calls} needs {needed} different objects in a transaction, and there are {of}"
    );
    Err(ParameterError::Incompatible(text))
}

/// What calls do besides their accesses: they wait, by the clock of whoever runs them.
#[derive(Clone, Copy, Debug)]
pub struct CallLength {
    each: Duration,
}

impl CallLength {
    /// The share of each of so many calls of a transaction.
    pub fn new(values: &Values, calls: u64) -> CallLength {
        let all = Duration::from_secs_f64(values.number("length") / 1e3);
        CallLength { each: all.div_f64(calls.max(1) as f64) }
    }

    /// How long a call waits.
    pub fn each(&self) -> Duration {
        self.each
    }

    /// Waits as a call does.
    ///
    /// # Errors
    /// The database is closed.
    pub async fn wait(&self, db: &Db) -> Result<(), Error> {
        self.wait_for(db, 1).await
    }

    /// Waits as so many calls of one part do.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub async fn wait_for(&self, db: &Db, calls: u32) -> Result<(), Error> {
        if self.each.is_zero() || calls == 0 {
            return Ok(());
        }
        db.sleep(self.each * calls).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[Parameter] = &[
        objects("10", (2, 99), ""),
        calls("2", 1, ""),
        reads("50", ""),
        Parameter::new("totals", "1", ParameterKind::Percent, ""),
        LENGTH,
    ];

    fn read(given: &str) -> Result<Values, ParameterError> {
        let given: Vec<_> = given.split_whitespace().map(str::to_owned).collect();
        Values::read("demo", TABLE, &given)
    }

    #[test]
    fn a_length_is_shared_by_the_calls() {
        let each = |given: &str| {
            let values = read(given).unwrap();
            CallLength::new(&values, values.count("calls")).each()
        };
        assert_eq!(each(""), Duration::ZERO);
        assert_eq!(each("length=10 calls=4"), Duration::from_micros(2_500));
        assert_eq!(each("length=0.5 calls=1"), Duration::from_micros(500));
    }

    #[test]
    fn what_cannot_be_is_refused_and_why() {
        let error = |given: &str| read(given).unwrap_err().to_string();
        assert!(error("length=-1").contains("from 0 to below 10000"));
        assert!(error("calls=0").contains("from 1 to 1000"));
        let shares = check_shares(&read("reads=90 totals=20").unwrap(), &["reads", "totals"]);
        assert_eq!(shares.unwrap_err().to_string(), "reads and totals make 110 %, over 100 %");
        assert_eq!(check_shares(&read("reads=99").unwrap(), &["reads", "totals"]), Ok(()));
        let text = check_objects(("calls", 4), 2, 7).unwrap_err().to_string();
        assert!(text.contains("calls=4 needs 8 different objects") && text.contains("are 7"));
        assert_eq!(check_objects(("calls", 4), 2, 8), Ok(()));
    }
}
