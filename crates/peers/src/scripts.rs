//! Counters of a Redis, added to by a script.

use std::io::Write as _;
use std::net::SocketAddr;

use anyhow::{Context, bail};

use crate::client::{command, converse};
use crate::load::Dialect;
use crate::reply::{self, ServerReply};

/// What the counter's procedure does: reads, adds, writes, answers.
pub const READ_AND_WRITE: &str = "\
    local sum = (tonumber(redis.call('GET', KEYS[1])) or 0) + ARGV[1] \
    redis.call('SET', KEYS[1], sum) return sum";
/// The same by the one command that there is for it.
pub const INCREMENT: &str = "return redis.call('INCRBY', KEYS[1], ARGV[1])";

/// Calls of a script, by its name.
pub struct Script {
    /// All of a call but its counter and amount.
    head: Vec<u8>,
}

impl Script {
    /// Empties the Redis and loads the script.
    ///
    /// # Errors
    /// Redis says something unexpected.
    pub fn load(address: SocketAddr, script: &str) -> anyhow::Result<String> {
        let mut out = Vec::new();
        command(&["FLUSHALL"], &mut out);
        command(&["SCRIPT", "LOAD", script], &mut out);
        match converse(address, &out, 2)?.pop() {
            Some(ServerReply::Bytes(Some(name))) => Ok(String::from_utf8(name)?),
            other => bail!("an unexpected reply: {other:?}"),
        }
    }

    pub fn named(name: &str) -> Script {
        let head = format!("*5\r\n$7\r\nEVALSHA\r\n${}\r\n{name}\r\n$1\r\n1\r\n", name.len());
        Script { head: head.into_bytes() }
    }
}

/// How many digits a number has.
fn digits(number: u64) -> u32 {
    number.checked_ilog10().unwrap_or(0) + 1
}

impl Dialect for Script {
    fn ask(&mut self, counter: u32, amount: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.head);
        for number in [u64::from(counter), amount] {
            write!(out, "${}\r\n{number}\r\n", digits(number)).expect("into a vector");
        }
    }

    fn end(&mut self, _out: &mut Vec<u8>) {}

    fn receive(&mut self, input: &[u8], shown: &mut Vec<u64>) -> anyhow::Result<usize> {
        let mut at = 0;
        while let Some((reply, bytes)) = reply::next(&input[at..])? {
            at += bytes;
            let ServerReply::Number(sum) = reply else { bail!("an unexpected reply: {reply:?}") };
            shown.push(u64::try_from(sum).context("a counter below zero")?);
        }
        Ok(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_a_command_of_five_words() {
        let mut out = Vec::new();
        Script::named("abc").ask(120, 7, &mut out);
        let mut expected = Vec::new();
        command(&["EVALSHA", "abc", "1", "120", "7"], &mut expected);
        assert_eq!(out, expected);
    }

    #[test]
    fn answers_are_taken_whole() {
        let mut shown = Vec::new();
        let taken = Script::named("abc").receive(b":12\r\n:3\r\n:4", &mut shown).unwrap();
        assert_eq!((taken, shown), (9, vec![12, 3]));
    }
}
