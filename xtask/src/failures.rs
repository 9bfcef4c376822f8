//! What of the output of many test programs says which tests failed, and why.

use std::collections::VecDeque;
use std::fmt;

/// So many lines of one program are kept: the last ones, which name all its failed tests.
const LINES_MAX: usize = 300;

/// The parts of an output that are about failed tests.
#[derive(Debug, Default)]
pub struct Failures {
    ended: Vec<String>,
    current: Option<VecDeque<String>>,
}

impl Failures {
    /// Takes the next line of the output.
    pub fn take(&mut self, line: &str) {
        if line == "failures:" {
            self.current.get_or_insert_default();
        }
        let Some(current) = &mut self.current else { return };
        current.push_back(line.to_owned());
        if current.len() > LINES_MAX {
            current.pop_front();
        }
        if line.starts_with("test result:") {
            self.ended.extend(self.current.take().into_iter().flatten());
        }
    }
}

impl fmt::Display for Failures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unfinished = self.current.iter().flatten();
        self.ended.iter().chain(unfinished).try_for_each(|line| writeln!(f, "{line}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(lines: &[&str]) -> String {
        let mut failures = Failures::default();
        lines.iter().for_each(|line| failures.take(line));
        failures.to_string()
    }

    #[test]
    fn what_failed_is_kept_and_what_passed_is_not() {
        let program = ["test a ... ok", "failures:", "---- b stdout ----", "why", "failures:"];
        let end = ["    b", "test result: FAILED. 1 passed; 1 failed", "test c ... ok"];
        let kept = [&program[1..], &end[..2]].concat().join("\n") + "\n";
        assert_eq!(printed(&[&program[..], &end[..]].concat()), kept);
        assert_eq!(printed(&["test a ... ok", "test result: ok. 1 passed"]), "");
    }

    #[test]
    fn of_a_long_part_the_last_lines_are_kept() {
        let long = vec!["line"; LINES_MAX * 2];
        let lines = [&["failures:"][..], &long, &["    b", "test result: FAILED."]].concat();
        let kept = printed(&lines);
        assert_eq!(kept.lines().count(), LINES_MAX);
        assert!(kept.ends_with("    b\ntest result: FAILED.\n"), "{kept}");
    }
}
