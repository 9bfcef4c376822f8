//! The printed page, with what it calls transactions.

use std::collections::BTreeMap;
use std::fmt::{Arguments, Write};

use muesli_core::{Answer, Failure, Timestamp};

use crate::harness::subject::{Names, Subject, lines};

/// What a command has printed so far.
#[derive(Debug, Default)]
pub(super) struct Page {
    text: String,
    /// Transactions by the id that their commit got.
    pub names: Names,
    /// What sessions may count on: where each committed transaction lies.
    pub committed_at: BTreeMap<String, Timestamp>,
    /// The transaction whose end is the command under way.
    pub committing: Option<String>,
}

impl Page {
    /// Prints a line.
    pub fn write(&mut self, line: Arguments<'_>) {
        writeln!(self.text, "{line}").expect("into a string");
    }

    /// What was printed, to be printed no more.
    pub fn take(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    /// A transaction that begins or ends is that of the command under way.
    pub fn name<P: Subject>(&mut self, message: &P::Message) {
        if let (Some(txn), Some(name)) = (P::begins(message), &self.committing) {
            self.names.entry(txn).or_insert_with(|| name.clone());
        }
    }

    /// Prints the answer to what the script calls `what`.
    pub fn answer(&mut self, what: &str, result: &Result<Answer, Failure>) {
        let at = match result {
            Ok(Answer::Committed(committed) | Answer::Answered(committed, _)) => Some(committed.at),
            Ok(Answer::Invoked(invoked)) => Some(invoked.at),
            _ => None,
        };
        if let (Some(at), Some(name)) = (at, what.split(' ').next()) {
            self.committed_at.insert(name.to_owned(), at);
        }
        self.write(format_args!("{what}: {}", lines::result(result)));
    }
}
