//! What can be too large.

use std::fmt;

/// Which limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Limit {
    /// Of a key.
    Key,
    /// Of a value.
    Value,
    /// Of an argument of a procedure or a delayed action.
    Argument,
    /// Of the result of a procedure.
    Result,
    /// Of a transaction.
    Transaction,
    /// Of the answer of one operation.
    Answer,
    /// Of all that a transaction is told of what was left to its turn.
    Results,
}

impl Limit {
    /// The configuration key that sets it.
    pub const fn key(self) -> &'static str {
        match self {
            Limit::Key => "key_bytes_max",
            Limit::Value | Limit::Argument | Limit::Result => "value_bytes_max",
            Limit::Transaction | Limit::Results => "transaction_bytes_max",
            Limit::Answer => "answer_bytes_max",
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Limit::Key => "a key",
            Limit::Value => "a value",
            Limit::Argument => "an argument",
            Limit::Result => "a result",
            Limit::Transaction => "a transaction",
            Limit::Answer => "an answer",
            Limit::Results => "a list of what delayed actions gave",
        })
    }
}
