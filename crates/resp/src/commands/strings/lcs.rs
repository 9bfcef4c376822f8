//! The longest common subsequence of two strings.

use muesli::SmallBytes;

use crate::call::{Answer, CommandCall};
use crate::keyspace::stop::{CommandStop, texts};
use crate::protocol::reply::RespReply;

/// So many pairs of places of both strings are looked at, at most.
const PAIRS_MAX: usize = 32 << 20;

#[derive(Default)]
struct LcsOptions {
    length: bool,
    indices: bool,
    with_lengths: bool,
    shortest: i64,
}

impl LcsOptions {
    fn read(call: &CommandCall<'_>) -> Result<LcsOptions, CommandStop> {
        let mut options = LcsOptions::default();
        let mut at = 3;
        while at < call.len() {
            match () {
                () if call.is(at, "LEN") => options.length = true,
                () if call.is(at, "IDX") => options.indices = true,
                () if call.is(at, "WITHMATCHLEN") => options.with_lengths = true,
                () if call.is(at, "MINMATCHLEN") && at + 1 < call.len() => {
                    at += 1;
                    options.shortest = call.integer(at)?.max(0);
                }
                () => return CommandStop::refused(texts::SYNTAX),
            }
            at += 1;
        }
        if options.length && options.indices {
            let both = "ERR If you want both the length and indexes, please just use IDX.";
            return CommandStop::refused(both);
        }
        Ok(options)
    }
}

pub(super) async fn lcs(call: &CommandCall<'_>) -> Answer {
    let mut both = [SmallBytes::EMPTY, SmallBytes::EMPTY];
    for (at, text) in both.iter_mut().enumerate() {
        match call.scope.string(call.db, call.arg(at + 1)).await {
            Ok(found) => *text = found.unwrap_or(SmallBytes::EMPTY),
            Err(CommandStop::Refused(_)) => {
                return CommandStop::refused("ERR The specified keys must contain string values");
            }
            Err(other) => return Err(other),
        }
    }
    let options = LcsOptions::read(call)?;
    let (left, right) = (both[0].as_slice(), both[1].as_slice());
    if (left.len() + 1).saturating_mul(right.len() + 1) > PAIRS_MAX {
        return CommandStop::refused(
            "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len",
        );
    }
    let lengths = Lengths::of(left, right);
    if options.length {
        return Ok(RespReply::count(lengths.at(left.len(), right.len())));
    }
    let (common, matches) = lengths.walk(left, right);
    if !options.indices {
        return Ok(RespReply::bulk(common));
    }
    let longs = matches.into_iter().filter(|it| it.2 as i64 >= options.shortest);
    let span = |from: usize, length: usize| {
        RespReply::Array(vec![RespReply::count(from), RespReply::count(from + length - 1)])
    };
    let matches = longs.map(|(left, right, length)| {
        let mut parts = vec![span(left, length), span(right, length)];
        parts.extend(options.with_lengths.then(|| RespReply::count(length)));
        RespReply::Array(parts)
    });
    Ok(RespReply::Map(vec![
        (RespReply::bulk("matches"), RespReply::Array(matches.collect())),
        (RespReply::bulk("len"), RespReply::count(common.len())),
    ]))
}

/// How long the longest common subsequence is of each two beginnings.
struct Lengths {
    width: usize,
    all: Vec<u32>,
}

impl Lengths {
    fn of(left: &[u8], right: &[u8]) -> Lengths {
        let width = right.len() + 1;
        let mut lengths = Lengths { width, all: vec![0; (left.len() + 1) * width] };
        for (i, a) in left.iter().enumerate() {
            for (j, b) in right.iter().enumerate() {
                let longest = match a == b {
                    true => lengths.at(i, j) + 1,
                    false => lengths.at(i, j + 1).max(lengths.at(i + 1, j)),
                };
                lengths.all[(i + 1) * width + j + 1] = longest as u32;
            }
        }
        lengths
    }

    fn at(&self, i: usize, j: usize) -> usize {
        self.all[i * self.width + j] as usize
    }

    /// The subsequence, and where it lies in both, from the end: left, right, how long.
    fn walk(&self, left: &[u8], right: &[u8]) -> (Vec<u8>, Vec<(usize, usize, usize)>) {
        let (mut i, mut j) = (left.len(), right.len());
        let (mut common, mut matches) = (Vec::new(), Vec::<(usize, usize, usize)>::new());
        while i > 0 && j > 0 {
            if left[i - 1] == right[j - 1] {
                (i, j) = (i - 1, j - 1);
                common.push(left[i]);
                match matches.last_mut() {
                    Some(last) if last.0 == i + 1 && last.1 == j + 1 => {
                        *last = (i, j, last.2 + 1);
                    }
                    _ => matches.push((i, j, 1)),
                }
            } else if self.at(i - 1, j) > self.at(i, j - 1) {
                i -= 1;
            } else {
                j -= 1;
            }
        }
        common.reverse();
        (common, matches)
    }
}
