//! The data of a Redis that runs, which it gives to replicas as an RDB file.

use std::io::{self, Read, Write};

use crate::address::RedisAddress;
use crate::live_error::RedisLiveError;

/// So many bytes are read at a time.
const BUFFER_BYTES: usize = 64 << 10;
/// Longest line of a reply.
const LINE_BYTES_MAX: usize = 4 << 10;
/// How long the mark is by which a file ends whose length was not known.
const MARK_BYTES: usize = 40;
/// Most bytes of an answer that an error shows.
const SHOWN_BYTES: usize = 100;

/// What an error shows of an answer: its beginning, without what a terminal obeys.
fn shown_answer(answer: &str) -> String {
    let mut shown = String::new();
    for (at, one) in answer.char_indices() {
        match one {
            _ if at >= SHOWN_BYTES => return shown + " …",
            '\'' | '"' => shown.push(one),
            _ => shown.extend(one.escape_debug()),
        }
    }
    shown
}

/// The code that an answer begins with which refuses something, such as `ERR`.
fn code_of(answer: &str) -> &str {
    let first = answer.split(' ').next().unwrap_or_default();
    if first.bytes().all(|it| it.is_ascii_uppercase()) { first } else { "" }
}

/// Asks a Redis for all its data, as a replica does, and writes the RDB file that it sends; how
/// many bytes that has. Nothing is to be asked over the connection afterwards.
///
/// # Errors
/// The server refuses, the connection breaks, or the file cannot be written.
pub fn copy_live(
    connection: &mut (impl Read + Write),
    address: &RedisAddress,
    file: &mut impl Write,
    mut progress: impl FnMut(u64),
) -> Result<u64, RedisLiveError> {
    let mut replies = RedisReplies { connection, buffer: Vec::new() };
    if let Some(password) = &address.password {
        let named = ["AUTH"].into_iter().chain(address.user.as_deref()).chain([&**password]);
        replies.ask("AUTH", &named.collect::<Vec<_>>(), "+OK")?;
    }
    let refused = replies.offer_mark()?;
    let synced = replies.ask("PSYNC", &["PSYNC", "?", "-1"], "+FULLRESYNC ");
    synced.map_err(|error| match (error, refused) {
        // It has refused the client, and not the command.
        (RedisLiveError::Connection(_), Some(refused)) => refused,
        (error, _) => error,
    })?;
    let line = replies.line()?;
    let unexpected =
        || RedisLiveError::Unexpected { command: "PSYNC", answer: shown_answer(&line) };
    let length = line.strip_prefix('$').ok_or_else(unexpected)?;
    if let Some(mark) = length.strip_prefix("EOF:").filter(|it| it.len() == MARK_BYTES) {
        return replies.until_mark(mark.as_bytes(), file, &mut progress);
    }
    let length = length.parse().map_err(|_| unexpected())?;
    replies.so_many(length, file, &mut progress)
}

/// What comes over a connection to Redis.
struct RedisReplies<'a, C> {
    connection: &'a mut C,
    /// What has come and was not used.
    buffer: Vec<u8>,
}

impl<C: Read + Write> RedisReplies<'_, C> {
    /// Sends a command, whose reply is to begin like this.
    fn ask(
        &mut self,
        command: &'static str,
        parts: &[&str],
        expected: &str,
    ) -> Result<(), RedisLiveError> {
        let mut request = format!("*{}\r\n", parts.len());
        for part in parts {
            request += &format!("${}\r\n{part}\r\n", part.len());
        }
        self.connection.write_all(request.as_bytes())?;
        let answer = self.line()?;
        match answer.strip_prefix('-') {
            None if answer.starts_with(expected) => Ok(()),
            // What answers a password may repeat it.
            Some(why) if command == "AUTH" => {
                Err(RedisLiveError::Refused { command, why: code_of(why).to_owned() })
            }
            None if command == "AUTH" => {
                Err(RedisLiveError::Unexpected { command, answer: "…".to_owned() })
            }
            Some(why) => Err(RedisLiveError::Refused { command, why: shown_answer(why) }),
            None => Err(RedisLiveError::Unexpected { command, answer: shown_answer(&answer) }),
        }
    }

    /// Says that a file may come whose length is not known. Who does not know the command, as old
    /// servers do not, sends another one: what it has answered.
    ///
    /// # Errors
    /// The server asks for a password or other rights, or the connection breaks.
    fn offer_mark(&mut self) -> Result<Option<RedisLiveError>, RedisLiveError> {
        match self.ask("REPLCONF", &["REPLCONF", "capa", "eof"], "+OK") {
            Ok(()) => Ok(None),
            Err(RedisLiveError::Refused { command, why }) => {
                let is_over = ["NOAUTH", "NOPERM"].contains(&code_of(&why));
                let refused = RedisLiveError::Refused { command, why };
                if is_over { Err(refused) } else { Ok(Some(refused)) }
            }
            Err(error) => Err(error),
        }
    }

    /// More of what comes.
    fn fill(&mut self) -> Result<(), RedisLiveError> {
        let before = self.buffer.len();
        self.buffer.resize(before + BUFFER_BYTES, 0);
        let count = self.connection.read(&mut self.buffer[before..]);
        self.buffer.truncate(before + *count.as_ref().unwrap_or(&0));
        match count {
            Ok(0) => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            Ok(_) => Ok(()),
            Err(error) => match error.kind() {
                io::ErrorKind::Interrupted => Ok(()),
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Err(RedisLiveError::Silent),
                _ => Err(error.into()),
            },
        }
    }

    /// The next line. Empty ones say that the server is still busy with the file.
    fn line(&mut self) -> Result<String, RedisLiveError> {
        loop {
            let end = self.buffer.iter().position(|it| *it == b'\n');
            if end.unwrap_or(self.buffer.len()) > LINE_BYTES_MAX {
                let error = io::Error::other("a line is too long; this may be no Redis");
                return Err(error.into());
            }
            if let Some(end) = end {
                let line: Vec<_> = self.buffer.drain(..=end).collect();
                let line = String::from_utf8_lossy(line.trim_ascii_end()).into_owned();
                if !line.is_empty() {
                    return Ok(line);
                }
                continue;
            }
            self.fill()?;
        }
    }

    /// A file of so many bytes.
    fn so_many(
        &mut self,
        length: u64,
        file: &mut impl Write,
        progress: &mut impl FnMut(u64),
    ) -> Result<u64, RedisLiveError> {
        let mut left = length;
        while left > 0 {
            if self.buffer.is_empty() {
                self.fill()?;
            }
            let count = self.buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            file.write_all(&self.buffer[..count]).map_err(RedisLiveError::Output)?;
            self.buffer.drain(..count);
            left -= count as u64;
            progress(length - left);
        }
        Ok(length)
    }

    /// A file that ends with a mark: the server sends nothing after it.
    fn until_mark(
        &mut self,
        mark: &[u8],
        file: &mut impl Write,
        progress: &mut impl FnMut(u64),
    ) -> Result<u64, RedisLiveError> {
        let mut length = 0;
        loop {
            let is_over = self.buffer.ends_with(mark);
            let count = self.buffer.len().saturating_sub(mark.len());
            file.write_all(&self.buffer[..count]).map_err(RedisLiveError::Output)?;
            self.buffer.drain(..count);
            length += count as u64;
            progress(length);
            if is_over {
                return Ok(length);
            }
            self.fill()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that has these bytes for any request, so many at a time, and then ends.
    struct FakeRedis {
        answers: Vec<u8>,
        at: usize,
        each: usize,
        asked: Vec<u8>,
    }

    impl Read for FakeRedis {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let rest = &self.answers[self.at..];
            let count = rest.len().min(self.each).min(buffer.len());
            buffer[..count].copy_from_slice(&rest[..count]);
            self.at += count;
            Ok(count)
        }
    }

    impl Write for FakeRedis {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.asked.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn copied(address: &str, answers: &str, each: usize) -> Result<(String, String), String> {
        let answers = answers.as_bytes().to_vec();
        let mut redis = FakeRedis { answers, at: 0, each, asked: Vec::new() };
        let mut file = Vec::new();
        let address = RedisAddress::of(address).map_err(|it| it.to_string())?;
        let length = copy_live(&mut redis, &address, &mut file, |_| {});
        let length = length.map_err(|it| it.to_string())?;
        assert_eq!(length, file.len() as u64);
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ok((text(file), text(redis.asked)))
    }

    #[test]
    fn a_file_comes_with_its_length_or_with_a_mark() {
        let mark = ('A'..='Z').chain('a'..='n').collect::<String>();
        let psync = "+OK\r\n+FULLRESYNC 8de1787ba490483314a4d30f1c628bc5025eb761 0\r\n\n\n";
        for each in 1..200 {
            let answers = format!("{psync}$9\r\nREDIS0009");
            let (file, asked) = copied("redis://here", &answers, each).unwrap();
            assert_eq!(file, "REDIS0009");
            let expected = "*3\r\n$8\r\nREPLCONF\r\n$4\r\ncapa\r\n$3\r\neof\r\n\
                            *3\r\n$5\r\nPSYNC\r\n$1\r\n?\r\n$2\r\n-1\r\n";
            assert_eq!(asked, expected);
            let answers = format!("{psync}$EOF:{mark}\r\nREDIS0009{}{mark}", &mark[..20]);
            let (file, _) = copied("redis://here", &answers, each).unwrap();
            assert_eq!(file, format!("REDIS0009{}", &mark[..20]));
        }
    }

    #[test]
    fn who_has_a_password_gives_it() {
        let answers = "+OK\r\n+OK\r\n+FULLRESYNC a 0\r\n$1\r\nR";
        let (_, asked) = copied("redis://:p%40ss@here", answers, 99).unwrap();
        assert!(asked.starts_with("*2\r\n$4\r\nAUTH\r\n$4\r\np@ss\r\n"), "{asked}");
        let (_, asked) = copied("redis://me:secret@here", answers, 99).unwrap();
        assert!(asked.starts_with("*3\r\n$4\r\nAUTH\r\n$2\r\nme\r\n$6\r\nsecret\r\n"), "{asked}");
    }

    #[test]
    fn refusals_and_ends_are_errors() {
        for (answers, expected) in [
            ("-NOAUTH Authentication required.\r\n", "Redis refuses `REPLCONF`: NOAUTH"),
            ("-NOPERM no rights\r\n", "Redis refuses `REPLCONF`: NOPERM no rights"),
            ("-DENIED by mode\r\n", "Redis refuses `REPLCONF`: DENIED by mode"),
            ("+OK\r\n-LOADING it loads\r\n", "Redis refuses `PSYNC`: LOADING it loads"),
            ("+OK\r\n+CONTINUE\r\n", "answers `PSYNC` with `+CONTINUE`"),
            ("+OK\r\n+FULLRESYNC a 0\r\n:1\r\n", "answers `PSYNC` with `:1`"),
            ("+OK\r\n+FULLRESYNC a 0\r\n$x\r\n", "answers `PSYNC` with `$x`"),
            ("+OK\r\n+FULLRESYNC a 0\r\n$9\r\nREDIS", "the connection to Redis failed"),
            ("HTTP/1.1 400 Bad Request\r\n", "answers `REPLCONF` with `HTTP/1.1 400"),
        ] {
            let error = copied("redis://here", answers, 7).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        for end in ["", "\r\n"] {
            let line = "x".repeat(10_000) + end;
            let error = copied("redis://here", &line, 20_000).unwrap_err();
            assert!(error.contains("a line is too long"), "{error}");
        }
    }

    #[test]
    fn a_server_that_does_not_know_of_marks_sends_its_file() {
        let answers = "-ERR Unrecognized REPLCONF option: capa\r\n+FULLRESYNC a 0\r\n$1\r\nR";
        assert_eq!(copied("redis://here", answers, 99).unwrap().0, "R");
    }

    /// Something that cannot be read or written.
    struct BrokenStream(io::ErrorKind);

    impl Read for BrokenStream {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(self.0.into())
        }
    }

    impl Write for BrokenStream {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0 == io::ErrorKind::StorageFull { Err(self.0.into()) } else { Ok(bytes.len()) }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn silence_and_a_full_disk_are_errors_of_their_own() {
        let address = RedisAddress::of("redis://here").unwrap();
        for kind in [io::ErrorKind::WouldBlock, io::ErrorKind::TimedOut] {
            let mut silent = BrokenStream(kind);
            let error = copy_live(&mut silent, &address, &mut Vec::new(), |_| {}).unwrap_err();
            assert!(matches!(error, RedisLiveError::Silent), "{error}");
        }
        let mark = "m".repeat(MARK_BYTES);
        for file in ["$1\r\nR".to_owned(), format!("$EOF:{mark}\r\nR{mark}")] {
            let answers = format!("+OK\r\n+FULLRESYNC a 0\r\n{file}").into_bytes();
            let mut redis = FakeRedis { answers, at: 0, each: 99, asked: Vec::new() };
            let mut full = BrokenStream(io::ErrorKind::StorageFull);
            let error = copy_live(&mut redis, &address, &mut full, |_| {}).unwrap_err();
            assert!(matches!(error, RedisLiveError::Output(_)), "{error}");
        }
    }

    #[test]
    fn errors_show_neither_passwords_nor_what_terminals_obey() {
        for (answer, expected) in [
            ("-ERR unknown command 'AUTH', with args: 'secret'\r\n", "Redis refuses `AUTH`: ERR"),
            ("-secret\r\n", "Redis refuses `AUTH`: "),
            ("+secret\r\n", "Redis answers `AUTH` with `…`, which is not expected"),
        ] {
            assert_eq!(copied("redis://:secret@here", answer, 99).unwrap_err(), expected);
        }
        let answer = format!("+OK\r\n-ERR '\u{1b}[2J\u{202e}{}\r\n", "x".repeat(300));
        let error = copied("redis://here", &answer, 99).unwrap_err();
        let shown = format!("ERR '\\u{{1b}}[2J\\u{{202e}}{} …", "x".repeat(88));
        assert_eq!(error, format!("Redis refuses `PSYNC`: {shown}"));
    }
}
