//! Statements about a run, and whether they hold.

use std::fmt::{Debug, Display};

use muesli::Error;

/// A statement about a run, and whether it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What was checked, in a few words.
    pub name: &'static str,
    /// Whether it holds.
    pub ok: bool,
    /// What was counted, or what is wrong.
    pub details: String,
}

impl Check {
    /// A check that holds if `wrong` is empty; then `right` says what was looked at.
    pub fn none_wrong(name: &'static str, wrong: &Complaints, right: String) -> Check {
        let details = if wrong.count == 0 { right } else { wrong.to_string() };
        Check { name, ok: wrong.count == 0, details }
    }
}

/// Things found wrong: all counted, the first few kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Complaints {
    count: u64,
    first: Vec<String>,
}

const COMPLAINTS_KEPT: usize = 3;

impl Complaints {
    /// Adds one.
    pub fn add(&mut self, what: impl FnOnce() -> String) {
        self.count += 1;
        if self.first.len() < COMPLAINTS_KEPT {
            self.first.push(what());
        }
    }

    /// Complains of an answer that no moment can have given.
    pub fn judge<T: Debug>(
        &mut self,
        what: impl Display,
        answer: &Result<T, Error>,
        is_right: impl FnOnce(&T) -> bool,
    ) {
        if let Ok(found) = answer
            && !is_right(found)
        {
            self.add(|| format!("{what}: {found:?}"));
        }
    }

    /// Adds those of others.
    pub fn extend(&mut self, others: &Complaints) {
        self.count += others.count;
        let free = COMPLAINTS_KEPT - self.first.len().min(COMPLAINTS_KEPT);
        self.first.extend(others.first.iter().take(free).cloned());
    }
}

impl std::fmt::Display for Complaints {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} wrong: {}", self.count, self.first.join("; "))?;
        let more = self.count - self.first.len() as u64;
        if more > 0 { write!(f, "; and {more} more") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_judged_and_errors_are_none() {
        let mut wrong = Complaints::default();
        wrong.judge("a count", &Ok(3), |count| *count == 3);
        wrong.judge("a count", &Err::<i32, _>(Error::ReadOnly), |_| false);
        assert_eq!(wrong, Complaints::default());
        wrong.judge("a count", &Ok(4), |count| *count == 3);
        assert_eq!(wrong.to_string(), "1 wrong: a count: 4");
    }
}
