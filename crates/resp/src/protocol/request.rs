//! Requests: commands from bytes, as they come in.

use std::fmt;

use thiserror::Error;

use super::inline;
use super::limits::RequestLimits;
use super::numbers;

/// A command with its arguments, the name first.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct RespCommand {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl fmt::Debug for RespCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(|it| it.escape_ascii().to_string())).finish()
    }
}

impl RespCommand {
    /// A command of these words.
    pub fn of(words: impl IntoIterator<Item = impl AsRef<[u8]>>) -> RespCommand {
        let mut command = RespCommand::default();
        for word in words {
            command.push(word.as_ref());
        }
        command
    }

    fn push(&mut self, word: &[u8]) {
        self.bytes.extend_from_slice(word);
        self.ends.push(self.bytes.len());
    }

    /// How many words it has.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether it has no words.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The word at this place.
    ///
    /// # Panics
    /// There are fewer.
    pub fn word(&self, at: usize) -> &[u8] {
        let begin = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.bytes[begin..self.ends[at]]
    }

    /// All words.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &[u8]> + ExactSizeIterator {
        (0..self.len()).map(|at| self.word(at))
    }

    /// How many bytes its words have.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// How many bytes of memory it takes, about.
    pub fn memory(&self) -> usize {
        size_of::<RespCommand>() + self.bytes.len() + size_of_val(&self.ends[..])
    }
}

/// Why bytes are no request; the connection is of no use any more.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProtocolError {
    /// A line without a command that is too long.
    #[error("Protocol error: too big inline request")]
    InlineTooLong,
    /// Quotes of an inline command that make no sense.
    #[error("Protocol error: unbalanced quotes in request")]
    Quotes,
    /// The line of the number of arguments is too long.
    #[error("Protocol error: too big mbulk count string")]
    CountTooLong,
    /// The number of arguments is none, or too large.
    #[error("Protocol error: invalid multibulk length")]
    Count,
    /// The line of the length of an argument is too long.
    #[error("Protocol error: too big bulk count string")]
    LengthTooLong,
    /// The length of an argument is none, or too large.
    #[error("Protocol error: invalid bulk length")]
    Length,
    /// An argument begins in another way.
    #[error("Protocol error: expected '$', got '{}'", char::from(*.0).escape_default())]
    NoLength(u8),
    /// More waits than a client may let wait.
    #[error("Protocol error: the query buffer of this client is full")]
    Full,
}

/// A command that has not come in whole.
struct PartialCommand {
    command: RespCommand,
    /// So many arguments are still to come.
    missing: usize,
    /// How long the next one is, once that is known.
    length: Option<usize>,
}

/// What one client sends, taken apart into commands.
pub struct Requests {
    limits: RequestLimits,
    buffer: Vec<u8>,
    /// What lies before is done with.
    at: usize,
    pending: Option<PartialCommand>,
}

impl fmt::Debug for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Requests").field("waiting", &self.waiting()).finish_non_exhaustive()
    }
}

impl Requests {
    /// Nothing has come in yet.
    pub fn new(limits: RequestLimits) -> Requests {
        Requests { limits, buffer: Vec::new(), at: 0, pending: None }
    }

    /// Other limits hold from the next command on.
    pub fn set_limits(&mut self, limits: RequestLimits) {
        self.limits = limits;
    }

    /// Takes in what was sent.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.at > 0 && self.at == self.buffer.len() {
            self.buffer.clear();
            self.at = 0;
            self.buffer.shrink_to(64 << 10);
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// How many bytes wait that were sent and belong to no command yet.
    pub fn waiting(&self) -> usize {
        let begun = self.pending.as_ref().map_or(0, |it| it.command.memory());
        self.buffer.len() - self.at + begun
    }

    /// The next command that has come in whole, if there is one.
    ///
    /// # Errors
    /// What was sent is no request.
    pub fn next_command(&mut self) -> Result<Option<RespCommand>, ProtocolError> {
        loop {
            if self.pending.is_none() && !self.begin()? {
                return self.incomplete();
            }
            if !self.take_arguments()? {
                return self.incomplete();
            }
            let Some(done) = self.pending.take() else { continue };
            if !done.command.is_empty() {
                return Ok(Some(done.command));
            }
        }
    }

    /// Nothing more to be had for now.
    fn incomplete(&mut self) -> Result<Option<RespCommand>, ProtocolError> {
        if self.waiting() > self.limits.buffer_bytes {
            return Err(ProtocolError::Full);
        }
        if self.at > 64 << 10 {
            self.buffer.drain(..self.at);
            self.at = 0;
        }
        Ok(None)
    }

    /// The line that begins here, without its end, if it has come in.
    fn line(&mut self, most: usize, error: ProtocolError) -> Result<Option<&[u8]>, ProtocolError> {
        let rest = &self.buffer[self.at..];
        let Some(end) = rest.iter().take(most + 2).position(|it| *it == b'\n') else {
            return if rest.len() > most { Err(error) } else { Ok(None) };
        };
        let from = self.at;
        self.at += end + 1;
        let line = &self.buffer[from..from + end];
        Ok(Some(line.strip_suffix(b"\r").unwrap_or(line)))
    }

    /// Begins with the next command; whether there is one.
    fn begin(&mut self) -> Result<bool, ProtocolError> {
        let Some(first) = self.buffer.get(self.at) else { return Ok(false) };
        let limits = self.limits;
        if *first != b'*' {
            let line = self.line(limits.inline_bytes, ProtocolError::InlineTooLong)?;
            let Some(line) = line else { return Ok(false) };
            let words = inline::words(line).ok_or(ProtocolError::Quotes)?;
            let command = RespCommand::of(words);
            self.pending = Some(PartialCommand { command, missing: 0, length: None });
            return Ok(true);
        }
        let line = self.line(limits.inline_bytes, ProtocolError::CountTooLong)?;
        let Some(line) = line else { return Ok(false) };
        let count = numbers::integer(&line[1..]).ok_or(ProtocolError::Count)?;
        let missing = usize::try_from(count).unwrap_or(0); // Below zero it is an empty command.
        if missing > limits.arguments {
            return Err(ProtocolError::Count);
        }
        self.pending =
            Some(PartialCommand { command: RespCommand::default(), missing, length: None });
        Ok(true)
    }

    /// Takes in arguments; whether all are there.
    fn take_arguments(&mut self) -> Result<bool, ProtocolError> {
        let Some(mut pending) = self.pending.take() else { return Ok(false) };
        let done = self.fill(&mut pending);
        self.pending = Some(pending);
        done
    }

    fn fill(&mut self, pending: &mut PartialCommand) -> Result<bool, ProtocolError> {
        while pending.missing > 0 {
            let length = match pending.length {
                Some(length) => length,
                None => match self.length()? {
                    Some(length) => *pending.length.insert(length),
                    None => return Ok(false),
                },
            };
            let rest = &self.buffer[self.at..];
            if rest.len() < length + 2 {
                return Ok(false);
            }
            pending.command.push(&rest[..length]);
            self.at += length + 2;
            pending.length = None;
            pending.missing -= 1;
        }
        Ok(true)
    }

    /// The length of the next argument, if it has come in.
    fn length(&mut self) -> Result<Option<usize>, ProtocolError> {
        let most = self.limits.bulk_bytes;
        let Some(first) = self.buffer.get(self.at).copied() else { return Ok(None) };
        let line = self.line(self.limits.inline_bytes, ProtocolError::LengthTooLong)?;
        let Some(line) = line else { return Ok(None) };
        if first != b'$' {
            return Err(ProtocolError::NoLength(first));
        }
        let length = numbers::integer(&line[1..]).and_then(|it| usize::try_from(it).ok());
        match length {
            Some(length) if length <= most => Ok(Some(length)),
            _ => Err(ProtocolError::Length),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{ProtocolError, RequestLimits, Requests, RespCommand};

    fn encoded(words: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            bytes.extend(format!("${}\r\n", word.len()).into_bytes());
            bytes.extend(word);
            bytes.extend(b"\r\n");
        }
        bytes
    }

    fn all(requests: &mut Requests) -> Result<Vec<RespCommand>, ProtocolError> {
        std::iter::from_fn(|| requests.next_command().transpose()).collect()
    }

    proptest! {
        #[test]
        fn commands_come_out_as_they_went_in_however_they_are_cut(
            commands in prop::collection::vec(
                prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 1..5), 1..6),
            cuts in prop::collection::vec(1..9_usize, 1..40),
        ) {
            let bytes: Vec<u8> = commands.iter().flat_map(|it| encoded(it)).collect();
            let mut requests = Requests::new(RequestLimits::default());
            let (mut found, mut rest, mut cuts) = (Vec::new(), &bytes[..], cuts.iter().cycle());
            while !rest.is_empty() {
                let (now, behind) = rest.split_at(rest.len().min(*cuts.next().unwrap()));
                requests.feed(now);
                found.extend(all(&mut requests).unwrap());
                rest = behind;
            }
            prop_assert_eq!(found, commands.iter().map(RespCommand::of).collect::<Vec<_>>());
            prop_assert_eq!(requests.waiting(), 0);
        }

        #[test]
        fn any_bytes_are_requests_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut requests = Requests::new(RequestLimits::default());
            requests.feed(&bytes);
            let _ = all(&mut requests);
        }
    }

    #[test]
    fn what_is_no_request_is_named_as_redis_names_it() {
        let long = vec![b'a'; (64 << 10) + 3];
        let table: [(&[u8], &str); 7] = [
            (b"*x\r\n", "Protocol error: invalid multibulk length"),
            (b"*3000000000\r\n", "Protocol error: invalid multibulk length"),
            (b"*1\r\nfoo\r\n", "Protocol error: expected '$', got 'f'"),
            (b"*1\r\n$-1\r\n", "Protocol error: invalid bulk length"),
            (b"*1\r\n$2000000000\r\n", "Protocol error: invalid bulk length"),
            (b"set \"\r\n", "Protocol error: unbalanced quotes in request"),
            (&long, "Protocol error: too big inline request"),
        ];
        for (bytes, expected) in table {
            let mut requests = Requests::new(RequestLimits::default());
            requests.feed(bytes);
            assert_eq!(all(&mut requests).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn empty_commands_are_passed_over_and_inline_ones_taken() {
        let mut requests = Requests::new(RequestLimits::default());
        requests.feed(b"\r\n*0\r\n*-1\r\nPING a\r\n*1\r\n$4\r\nPING\r\n");
        let found = all(&mut requests).unwrap();
        assert_eq!(found, [RespCommand::of(["PING", "a"]), RespCommand::of(["PING"])]);
    }

    #[test]
    fn a_client_that_sends_more_than_may_wait_is_refused() {
        let limits = RequestLimits { buffer_bytes: 100, ..RequestLimits::default() };
        let mut requests = Requests::new(limits);
        requests.feed(b"*1\r\n$200\r\n");
        assert_eq!(requests.next_command(), Ok(None));
        requests.feed(&[b'a'; 150]);
        assert_eq!(requests.next_command(), Err(ProtocolError::Full));
    }
}
