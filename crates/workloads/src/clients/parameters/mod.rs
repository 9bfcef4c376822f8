//! The parameters of workloads: typed, with defaults, read from `name=value`.
//!
//! A workload declares a table of what it takes; everything that is said about parameters, in
//! help texts and in errors, comes from that table. [`calls`] has those of the benchmarks of nested
//! transactions, [`interface`] the one that says by what means they reach data.

pub mod calls;
pub mod interface;

use std::collections::BTreeMap;
use std::fmt;

use thiserror::Error;

/// One parameter of a workload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// The value it has where none is given.
    pub default: &'static str,
    /// What values it takes.
    pub kind: ParameterKind,
    /// What it does, in one sentence.
    pub help: &'static str,
}

/// The values a parameter takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ParameterKind {
    /// A whole number within these bounds, both included.
    Count(u64, u64),
    /// A share in percent, 0 to 100.
    Percent,
    /// A number within these bounds: the first is included, the second is not.
    Number(f64, f64),
    /// `true` or `false`.
    Flag,
    /// One of these words.
    Choice(&'static [&'static str]),
}

/// A value of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
enum ParameterValue {
    Count(u64),
    Number(f64),
    Flag(bool),
    Word(&'static str),
}

/// Values for all parameters of a workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Values(BTreeMap<&'static str, ParameterValue>);

/// A parameter that cannot be taken.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ParameterError {
    /// The text is not `name=value`.
    #[error("`{0}` is no parameter: expected `name=value`, as in `keys=1000`")]
    Form(String),
    /// The workload has no such parameter.
    #[error("{workload} has no parameter `{name}`; it has: {allowed}")]
    Unknown {
        /// The workload.
        workload: &'static str,
        /// What was given.
        name: String,
        /// What is there.
        allowed: String,
    },
    /// The parameter does not take this value.
    #[error("parameter `{name}` cannot be `{value}`: allowed are {allowed}")]
    Value {
        /// The parameter.
        name: &'static str,
        /// What was given.
        value: String,
        /// What it takes.
        allowed: String,
    },
    /// Parameters that are fine alone and not together.
    #[error("{0}")]
    Incompatible(String),
}

impl Parameter {
    /// A parameter with this name, default, kind and help.
    pub const fn new(
        name: &'static str,
        default: &'static str,
        kind: ParameterKind,
        help: &'static str,
    ) -> Parameter {
        Parameter { name, default, kind, help }
    }
}

impl fmt::Display for ParameterKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParameterKind::Count(least, u64::MAX) => write!(f, "whole numbers from {least}"),
            ParameterKind::Count(least, most) => write!(f, "whole numbers from {least} to {most}"),
            ParameterKind::Percent => f.write_str("percentages from 0 to 100"),
            ParameterKind::Number(least, most) => write!(f, "numbers from {least} to below {most}"),
            ParameterKind::Flag => f.write_str("true and false"),
            ParameterKind::Choice(words) => f.write_str(&words.join(", ")),
        }
    }
}

impl ParameterKind {
    fn read(&self, text: &str) -> Option<ParameterValue> {
        match *self {
            ParameterKind::Count(least, most) => {
                let count = text.parse().ok().filter(|count| (least..=most).contains(count));
                count.map(ParameterValue::Count)
            }
            ParameterKind::Percent => {
                let share = text.parse().ok().filter(|share| (0.0..=100.0).contains(share));
                share.map(ParameterValue::Number)
            }
            ParameterKind::Number(least, most) => {
                let number = text.parse().ok().filter(|number| (least..most).contains(number));
                number.map(ParameterValue::Number)
            }
            ParameterKind::Flag => text.parse().ok().map(ParameterValue::Flag),
            ParameterKind::Choice(words) => {
                words.iter().find(|word| **word == text).map(|w| ParameterValue::Word(w))
            }
        }
    }
}

impl Values {
    /// The values of `parameters` of `workload`: defaults, changed by what is given as
    /// `name=value`; the last one of a name counts.
    ///
    /// # Errors
    /// A text that is no parameter of the workload, or a value that it does not take.
    pub fn read(
        workload: &'static str,
        parameters: &[Parameter],
        given: &[String],
    ) -> Result<Values, ParameterError> {
        let default = |parameter: &Parameter| {
            let value = parameter.kind.read(parameter.default);
            (parameter.name, value.expect("a default is a value that the parameter takes"))
        };
        let mut values: BTreeMap<_, _> = parameters.iter().map(default).collect();
        for text in given {
            let form = || ParameterError::Form(text.clone());
            let (name, value) = text.split_once('=').ok_or_else(form)?;
            let found = parameters.iter().find(|parameter| parameter.name == name.trim());
            let parameter = found.ok_or_else(|| ParameterError::Unknown {
                workload,
                name: name.to_owned(),
                allowed: parameters.iter().map(|known| known.name).collect::<Vec<_>>().join(", "),
            })?;
            let read = parameter.kind.read(value.trim());
            let value = read.ok_or_else(|| ParameterError::Value {
                name: parameter.name,
                value: value.to_owned(),
                allowed: parameter.kind.to_string(),
            })?;
            values.insert(parameter.name, value);
        }
        Ok(Values(values))
    }

    fn value(&self, name: &str) -> ParameterValue {
        *self.0.get(name).unwrap_or_else(|| panic!("the workload declares no parameter `{name}`"))
    }

    /// A whole number.
    ///
    /// # Panics
    /// If the workload did not declare it as one; so for the other three.
    pub fn count(&self, name: &str) -> u64 {
        match self.value(name) {
            ParameterValue::Count(count) => count,
            other => panic!("`{name}` is no count: {other:?}"),
        }
    }

    /// Refuses more communities than there are of something that belongs to them: most would have
    /// none, and who looks for one of such a community would look without an end.
    ///
    /// # Errors
    /// There are more.
    pub fn refuse_empty_communities(&self, of: &'static str) -> Result<(), ParameterError> {
        let (communities, count) = (self.count("communities"), self.count(of));
        if communities <= count {
            return Ok(());
        }
        Err(ParameterError::Incompatible(format!(
            "`communities={communities}` is more than `{of}={count}`: a community needs one at \
             least; give at most `communities={count}`, or more {of}"
        )))
    }

    /// A number or a percentage.
    ///
    /// # Panics
    /// See [`count`](Self::count).
    pub fn number(&self, name: &str) -> f64 {
        match self.value(name) {
            ParameterValue::Number(number) => number,
            other => panic!("`{name}` is no number: {other:?}"),
        }
    }

    /// A flag.
    ///
    /// # Panics
    /// See [`count`](Self::count).
    pub fn flag(&self, name: &str) -> bool {
        match self.value(name) {
            ParameterValue::Flag(flag) => flag,
            other => panic!("`{name}` is no flag: {other:?}"),
        }
    }

    /// A word.
    ///
    /// # Panics
    /// See [`count`](Self::count).
    pub fn word(&self, name: &str) -> &'static str {
        match self.value(name) {
            ParameterValue::Word(word) => word,
            other => panic!("`{name}` is no word: {other:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[Parameter] = &[
        Parameter::new("keys", "10", ParameterKind::Count(2, 99), ""),
        Parameter::new("reads", "50", ParameterKind::Percent, ""),
        Parameter::new("theta", "0", ParameterKind::Number(0.0, 1.0), ""),
        Parameter::new("safe", "true", ParameterKind::Flag, ""),
        Parameter::new("mix", "a", ParameterKind::Choice(&["a", "b"]), ""),
    ];

    fn read(given: &[&str]) -> Result<Values, ParameterError> {
        let given: Vec<_> = given.iter().map(|text| (*text).to_owned()).collect();
        Values::read("demo", TABLE, &given)
    }

    #[test]
    fn defaults_stand_until_something_is_given() {
        let values = read(&["mix=b", "keys=3", "keys=4"]).unwrap();
        assert_eq!((values.count("keys"), values.number("reads")), (4, 50.0));
        assert_eq!((values.flag("safe"), values.word("mix")), (true, "b"));
    }

    #[test]
    fn errors_list_what_is_allowed() {
        let error = |given: &str| read(&[given]).unwrap_err().to_string();
        assert!(error("keys").contains("name=value"));
        assert!(error("key=1").contains("demo has no parameter `key`; it has: keys, reads, theta"));
        assert!(error("keys=1").contains("whole numbers from 2 to 99"));
        assert!(error("reads=101").contains("0 to 100"));
        assert!(error("theta=1").contains("from 0 to below 1"));
        assert!(error("safe=yes").contains("true and false"));
        assert!(error("mix=c").contains("a, b"));
        assert!(error("theta=NaN").contains("theta"));
    }
}
