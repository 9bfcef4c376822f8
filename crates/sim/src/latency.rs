//! How long things take: distributions of latency, drawn from a stream of random numbers.
//!
//! Networks and disks share them. They print and read back (`const 50us`, `uniform 40us 60us`,
//! `exp 40us +30us`, `lognormal 60us x1.8`), so that settings can be given on a command line.

use std::fmt;
use std::str::FromStr;

use crate::random::Random;
use crate::time::Span;

/// A distribution of latencies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Latency {
    /// Always the same.
    Constant(Span),
    /// Even from the first to the second, both included.
    Uniform(Span, Span),
    /// A least latency and an exponential tail: the usual shape of a network at light load.
    Exponential {
        /// The least latency.
        least: Span,
        /// The mean of what is added to it.
        mean_tail: Span,
    },
    /// Lognormal: the usual shape with a long tail, of disks and of networks at high load.
    LogNormal {
        /// Half of the draws are below.
        median: Span,
        /// How many times the median the draw one deviation above it is; 1 means constant.
        partitions_per_repository: f64,
    },
}

impl Latency {
    /// An exponential tail of this mean above the least: its own, or that which is always the same.
    /// Others are as they were.
    #[must_use]
    pub fn with_mean_tail(self, mean_tail: Span) -> Latency {
        match self {
            Latency::Constant(least) | Latency::Exponential { least, .. } => {
                Latency::Exponential { least, mean_tail }
            }
            other => other,
        }
    }

    /// Draws one latency.
    pub fn draw(&self, random: &mut Random) -> Span {
        match *self {
            Latency::Constant(span) => span,
            Latency::Uniform(low, high) => {
                Span::from_nanos(random.between(low.as_nanos(), high.as_nanos()))
            }
            Latency::Exponential { least, mean_tail } => {
                least + scaled(mean_tail, random.exponential())
            }
            Latency::LogNormal { median, partitions_per_repository } => scaled(
                median,
                libm::exp(libm::log(partitions_per_repository.max(1.0)) * random.normal()),
            ),
        }
    }

    /// Half of the draws are below this length; for default time-outs.
    pub fn median(&self) -> Span {
        match *self {
            Latency::Constant(span) => span,
            Latency::Uniform(low, high) => {
                Span::from_nanos(low.as_nanos().midpoint(high.as_nanos()))
            }
            Latency::Exponential { least, mean_tail } => {
                least + scaled(mean_tail, std::f64::consts::LN_2)
            }
            Latency::LogNormal { median, .. } => median,
        }
    }
}

/// The length `factor` times `span`; the cast saturates.
fn scaled(span: Span, factor: f64) -> Span {
    Span::from_nanos((span.as_nanos() as f64 * factor) as u64)
}

impl fmt::Display for Latency {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Latency::Constant(span) => write!(out, "const {span}"),
            Latency::Uniform(low, high) => write!(out, "uniform {low} {high}"),
            Latency::Exponential { least, mean_tail } => write!(out, "exp {least} +{mean_tail}"),
            Latency::LogNormal { median, partitions_per_repository } => {
                write!(out, "lognormal {median} x{partitions_per_repository}")
            }
        }
    }
}

/// A text that is no latency.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no latency: expected `const 50us`, `uniform 40us 60us`, `exp 40us +30us` \
     or `lognormal 60us x1.8` (x1 or more)"
)]
pub struct LatencyError(String);

impl FromStr for Latency {
    type Err = LatencyError;

    fn from_str(text: &str) -> Result<Self, LatencyError> {
        parse(text).ok_or_else(|| LatencyError(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<Latency> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let span = |word: &str| word.parse::<Span>().ok();
    match words[..] {
        ["const", constant] => Some(Latency::Constant(span(constant)?)),
        ["uniform", low, high] => Some(Latency::Uniform(span(low)?, span(high)?)),
        ["exp", least, tail] => Some(Latency::Exponential {
            least: span(least)?,
            mean_tail: span(tail.strip_prefix('+')?)?,
        }),
        ["lognormal", median, partitions_per_repository] => {
            let partitions_per_repository: f64 =
                partitions_per_repository.strip_prefix('x')?.parse().ok()?;
            let fits = partitions_per_repository.is_finite() && partitions_per_repository >= 1.0;
            fits.then_some(Latency::LogNormal { median: span(median)?, partitions_per_repository })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::random::Seed;

    fn any_latency() -> impl Strategy<Value = Latency> {
        let span = || (0..1_000_000_000_u64).prop_map(Span::from_nanos);
        prop_oneof![
            span().prop_map(Latency::Constant),
            (span(), span()).prop_map(|(low, high)| Latency::Uniform(low, high)),
            (span(), span())
                .prop_map(|(least, mean_tail)| Latency::Exponential { least, mean_tail }),
            (span(), 1.0..5.0).prop_map(|(median, partitions_per_repository)| Latency::LogNormal {
                median,
                partitions_per_repository
            }),
        ]
    }

    #[test]
    fn half_of_the_draws_are_below_the_median() {
        let fifty = Span::from_micros(50);
        let all = [
            Latency::Uniform(Span::from_micros(10), Span::from_micros(90)),
            Latency::Exponential { least: Span::from_micros(20), mean_tail: fifty },
            Latency::LogNormal { median: fifty, partitions_per_repository: 2.0 },
        ];
        for latency in all {
            let mut random = Seed::new(5).stream();
            let below = (0..20_000).filter(|_| latency.draw(&mut random) < latency.median());
            let share = below.count() as f64 / 20_000.0;
            assert!((share - 0.5).abs() < 0.02, "{latency}: {share} of the draws are below");
        }
    }

    #[test]
    fn wrong_texts_are_refused() {
        for text in ["", "const", "const 5", "exp 1us 2us", "lognormal 1us x0.5", "even 1us 2us"] {
            assert!(text.parse::<Latency>().is_err(), "{text} was taken");
        }
    }

    proptest! {
        #[test]
        fn draws_keep_their_bounds(low in 0..1_000_u64, width in 0..1_000_u64, seed: u64) {
            let (low, high) = (Span::from_nanos(low), Span::from_nanos(low + width));
            let mut random = Seed::new(seed).stream();
            let drawn = Latency::Uniform(low, high).draw(&mut random);
            prop_assert!((low..=high).contains(&drawn));
            let tailed = Latency::Exponential { least: low, mean_tail: high }.draw(&mut random);
            prop_assert!(tailed >= low);
            prop_assert_eq!(Latency::Constant(low).draw(&mut random), low);
        }

        #[test]
        fn printed_latencies_read_back(latency in any_latency()) {
            prop_assert_eq!(latency.to_string().parse(), Ok(latency));
        }
    }
}
