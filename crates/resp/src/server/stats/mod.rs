//! What a server counts and measures: for `INFO`, `LATENCY HISTOGRAM` and `SLOWLOG`.

mod command_times;
mod slow_log;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

pub(super) use command_times::{CommandCounts, CommandTimes, RanCommand};
pub(super) use slow_log::{SlowCommand, SlowLog, SlowLogLimits};

/// Counts, for `INFO`.
#[derive(Default)]
pub(super) struct ServerStats {
    pub connections: Cell<u64>,
    pub refused: Cell<u64>,
    pub commands: Cell<u64>,
    pub expired: Cell<u64>,
    pub transactions: Cell<u64>,
    pub errors: Cell<u64>,
    /// How often each code was answered.
    pub error_codes: RefCell<BTreeMap<String, u64>>,
    /// How many changes were made since the start.
    pub changes: Cell<u64>,
    /// How often each command was given, and how long that took.
    pub times: CommandTimes,
    /// Commands that took long.
    pub slow: SlowLog,
}

/// So many codes of errors are counted apart, each of so many letters, at most: scripts can answer
/// any.
const ERROR_CODES_MAX: usize = 128;
const ERROR_CODE_BYTES_MAX: usize = 32;

impl ServerStats {
    /// A client is answered this error.
    pub fn count_error(&self, text: &str) {
        add(&self.errors, 1);
        let code = text.split([' ', '\r', '\n']).next().unwrap_or_default();
        let is_letter = |it: u8| it.is_ascii_alphanumeric() || it == b'_';
        let is_code = (1..=ERROR_CODE_BYTES_MAX).contains(&code.len());
        let code = if is_code && code.bytes().all(is_letter) { code } else { "ERR" };
        let mut codes = self.error_codes.borrow_mut();
        if let Some(count) = codes.get_mut(code) {
            *count += 1;
        } else if codes.len() < ERROR_CODES_MAX {
            codes.insert(code.to_owned(), 1);
        }
    }

    /// As `CONFIG RESETSTAT`.
    pub fn reset(&self) {
        self.times.reset(|_| true);
        for count in [&self.connections, &self.refused, &self.commands, &self.expired] {
            count.set(0);
        }
        self.error_codes.borrow_mut().clear();
        for count in [&self.transactions, &self.errors] {
            count.set(0);
        }
    }
}

pub(super) fn add(count: &Cell<u64>, more: u64) {
    count.set(count.get() + more);
}
