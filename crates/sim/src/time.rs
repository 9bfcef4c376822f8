//! Virtual time: nanoseconds since the simulated world began.
//!
//! Two types keep instants and lengths apart: a [`VirtualTime`] is a point, a [`Span`] a length.
//! Both print as the shortest exact text (`1500us`, `3ms`, `17ns`) and read that text back, because
//! fault plans are printed by a failing run and given back on a command line.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::str::FromStr;

/// A point in virtual time, in nanoseconds since the start of the world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VirtualTime(u64);

/// A length of virtual time, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

/// A text that is no length of time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no length of time: expected a whole number and a unit (ns, us, ms or s), as 15ms"
)]
pub struct SpanError(String);

impl VirtualTime {
    /// The start of the world.
    pub const ZERO: VirtualTime = VirtualTime(0);
    /// Later than anything that happens.
    pub const NEVER: VirtualTime = VirtualTime(u64::MAX);

    /// The point `nanos` nanoseconds after the start.
    pub const fn from_nanos(nanos: u64) -> Self {
        VirtualTime(nanos)
    }

    /// Nanoseconds since the start.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The length from `earlier` to here; zero if `earlier` is later.
    pub const fn since(self, earlier: VirtualTime) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);

    /// A length in nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Span(nanos)
    }

    /// A length in microseconds; saturates at the longest length there is.
    pub const fn from_micros(micros: u64) -> Self {
        Span(micros.saturating_mul(1_000))
    }

    /// A length in milliseconds; saturates at the longest length there is.
    pub const fn from_millis(millis: u64) -> Self {
        Span(millis.saturating_mul(1_000_000))
    }

    /// A length in seconds; saturates at the longest length there is.
    pub const fn from_secs(secs: u64) -> Self {
        Span(secs.saturating_mul(1_000_000_000))
    }

    /// The length in nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The length in seconds, for figures.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// This length `factor` times over; saturates at the longest length there is.
    pub const fn times(self, factor: u64) -> Span {
        Span(self.0.saturating_mul(factor))
    }
}

impl Add<Span> for VirtualTime {
    type Output = VirtualTime;

    fn add(self, span: Span) -> VirtualTime {
        VirtualTime(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Span> for VirtualTime {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Add for Span {
    type Output = Span;

    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}

impl Sub for Span {
    type Output = Span;

    fn sub(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }
}

/// The units of a printed length, the longest first.
const UNITS: [(&str, u64); 4] = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];

impl fmt::Display for Span {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exact = UNITS.iter().find(|(_, nanos)| self.0.is_multiple_of(*nanos));
        let (unit, nanos) = exact.expect("every length is a whole number of nanoseconds");
        write!(out, "{}{unit}", self.0 / nanos)
    }
}

impl FromStr for Span {
    type Err = SpanError;

    fn from_str(text: &str) -> Result<Self, SpanError> {
        let wrong = || SpanError(text.to_owned());
        let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, unit) = text.split_at(digits);
        let (_, nanos) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
        let number: u64 = number.parse().map_err(|_| wrong())?;
        number.checked_mul(*nanos).map(Span).ok_or_else(wrong)
    }
}

impl fmt::Display for VirtualTime {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        Span(self.0).fmt(out)
    }
}

impl FromStr for VirtualTime {
    type Err = SpanError;

    fn from_str(text: &str) -> Result<Self, SpanError> {
        text.parse().map(|Span(nanos)| VirtualTime(nanos))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lengths_print_in_their_largest_exact_unit() {
        let printed = [
            (Span::ZERO, "0s"),
            (Span::from_nanos(17), "17ns"),
            (Span::from_micros(1_500), "1500us"),
            (Span::from_millis(3), "3ms"),
            (Span::from_secs(90), "90s"),
        ];
        for (span, text) in printed {
            assert_eq!(span.to_string(), text);
        }
    }

    #[test]
    fn wrong_texts_are_refused_with_what_is_allowed() {
        for text in ["", "ms", "12", "1.5ms", "-3ms", "3 ms", "99999999999s", "4h"] {
            let error = text.parse::<Span>().expect_err(text);
            assert!(error.to_string().contains("ns, us, ms or s"));
        }
    }

    proptest! {
        #[test]
        fn printed_lengths_read_back(nanos: u64) {
            let span = Span::from_nanos(nanos);
            prop_assert_eq!(span.to_string().parse(), Ok(span));
        }

        #[test]
        fn since_undoes_add(start in 0..u64::MAX / 2, length in 0..u64::MAX / 2) {
            let (start, length) = (VirtualTime::from_nanos(start), Span::from_nanos(length));
            prop_assert_eq!((start + length).since(start), length);
        }
    }
}
