//! Bounds of ranges, as commands name them.

use std::ops::Bound;

use crate::keyspace::sorted::{Scores, Texts};
use crate::keyspace::stop::CommandStop;
use crate::protocol::numbers::double;

fn score(text: &[u8]) -> Option<Bound<f64>> {
    match text {
        [b'(', rest @ ..] => double(rest).map(Bound::Excluded),
        text => double(text).map(Bound::Included),
    }
}

/// A range of scores.
pub(super) fn scores(lo: &[u8], hi: &[u8]) -> Result<Scores, CommandStop> {
    match (score(lo), score(hi)) {
        (Some(lo), Some(hi)) => Ok(Scores { lo, hi }),
        _ => CommandStop::refused("ERR min or max is not a float"),
    }
}

/// A bound; whether it is one beyond all.
fn text(bound: &[u8]) -> Option<(Bound<Vec<u8>>, Option<u8>)> {
    match bound {
        [b'[', rest @ ..] => Some((Bound::Included(rest.to_vec()), None)),
        [b'(', rest @ ..] => Some((Bound::Excluded(rest.to_vec()), None)),
        [end @ (b'-' | b'+')] => Some((Bound::Unbounded, Some(*end))),
        _ => None,
    }
}

/// A range of members by their bytes.
pub(super) fn texts(lo: &[u8], hi: &[u8]) -> Result<Texts, CommandStop> {
    match (text(lo), text(hi)) {
        (Some((lo, below)), Some((hi, above))) => {
            let is_empty = below == Some(b'+') || above == Some(b'-');
            Ok(Texts { lo, hi, is_empty })
        }
        _ => CommandStop::refused("ERR min or max not valid string range item"),
    }
}
