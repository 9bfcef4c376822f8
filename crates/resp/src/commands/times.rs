//! Moments at which keys expire, as commands name them.

use crate::call::{CommandCall, integer_or};
use crate::keyspace::stop::{CommandStop, texts};

/// How a moment is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    pub seconds: bool,
    /// Since 1970, and not from now on.
    pub absolute: bool,
}

impl Unit {
    pub const EX: Unit = Unit { seconds: true, absolute: false };
    pub const PX: Unit = Unit { seconds: false, absolute: false };
    pub const EXAT: Unit = Unit { seconds: true, absolute: true };
    pub const PXAT: Unit = Unit { seconds: false, absolute: true };

    /// The unit that an option names.
    pub fn of_option(option: &[u8]) -> Option<Unit> {
        let all = [("EX", Unit::EX), ("PX", Unit::PX), ("EXAT", Unit::EXAT), ("PXAT", Unit::PXAT)];
        let found = all.into_iter().find(|it| option.eq_ignore_ascii_case(it.0.as_bytes()));
        found.map(|it| it.1)
    }

    /// The moment of this number, in milliseconds since 1970; `None`: it cannot be.
    fn moment(self, number: i64, now: u64) -> Option<i64> {
        let number = if self.seconds { number.checked_mul(1000)? } else { number };
        if self.absolute { Some(number) } else { number.checked_add(now as i64) }
    }

    /// The moment that an argument names, in the past perhaps.
    pub fn any_moment(self, call: &CommandCall<'_>, at: usize) -> Result<i64, CommandStop> {
        let number = integer_or(call.arg(at), texts::NO_INTEGER)?;
        self.moment(number, call.scope.now).map_or_else(|| invalid(call), Ok)
    }

    /// The moment that an argument names, from a number above zero.
    pub fn expiry(self, call: &CommandCall<'_>, at: usize) -> Result<u64, CommandStop> {
        if at >= call.len() {
            return CommandStop::refused(texts::SYNTAX);
        }
        let number = integer_or(call.arg(at), texts::NO_INTEGER)?;
        match self.moment(number, call.scope.now) {
            Some(moment) if number > 0 => Ok(moment as u64),
            _ => invalid(call),
        }
    }
}

fn invalid<T>(call: &CommandCall<'_>) -> Result<T, CommandStop> {
    let name = String::from_utf8_lossy(call.arg(0)).to_ascii_lowercase();
    CommandStop::refused(format!("ERR invalid expire time in '{name}' command"))
}
