//! The data of a Redis that runs, which it gives to replicas as an RDB file.

use std::io::{self, Read, Write};

use thiserror::Error;

/// So many bytes are read at a time.
const BUFFER_BYTES: usize = 64 << 10;
/// Longest line of a reply.
const LINE_BYTES_MAX: usize = 4 << 10;
/// How long the mark is by which a file ends whose length was not known.
const MARK_BYTES: usize = 40;
/// Most bytes of an answer that an error shows.
const SHOWN_BYTES: usize = 100;
/// Where Redis listens, unless it is told otherwise.
const DEFAULT_PORT: u16 = 6379;

/// Why no file came.
#[derive(Debug, Error)]
pub enum RedisLiveError {
    /// The address is none.
    #[error("`{0}` is not `redis://[[USER]:PASSWORD@]HOST[:PORT]`")]
    Address(String),
    /// It is to be reached in another way than over TCP: the scheme.
    #[error(
        "`{0}://` is not supported, and neither is TLS; give \
         `redis://[[USER]:PASSWORD@]HOST[:PORT]`, or a file that `BGSAVE` has written"
    )]
    Scheme(String),
    /// The connection broke.
    #[error("the connection to Redis failed: {0}")]
    Connection(#[from] io::Error),
    /// The server has refused a command.
    #[error("Redis refuses `{command}`: {why}")]
    Refused {
        /// The command.
        command: &'static str,
        /// What it says, cut; of what it says to a password only the code, as the rest may have it.
        why: String,
    },
    /// The server answers in another way.
    #[error("Redis answers `{command}` with `{answer}`, which is not expected")]
    Unexpected {
        /// The command.
        command: &'static str,
        /// The beginning of the answer.
        answer: String,
    },
}

/// Where a Redis is, and who asks it.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisAddress {
    /// Its host and port.
    pub host: String,
    /// The user, if it is not the default one.
    pub user: Option<String>,
    /// The password, if it asks for one.
    pub password: Option<String>,
}

impl RedisAddress {
    /// The address of a text `redis://[[USER]:PASSWORD@]HOST[:PORT]`.
    ///
    /// # Errors
    /// It is none.
    pub fn of(text: &str) -> Result<RedisAddress, RedisLiveError> {
        let rest = match text.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("redis") => rest,
            Some((scheme, _)) if is_scheme(scheme) => {
                return Err(RedisLiveError::Scheme(scheme.to_owned()));
            }
            _ => "",
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (credentials, host) = match rest.rsplit_once('@') {
            Some((credentials, host)) => (Some(credentials), host),
            None => (None, rest),
        };
        // A password is not shown: where no `@` is, the host may be forgotten, and all may be one.
        let shown = if credentials.is_some() { host } else { "" };
        let wrong = || RedisLiveError::Address(format!("redis://…{shown}"));
        let (user, password) = match credentials.map(|it| it.split_once(':')) {
            None => (None, None),
            Some(None) => return Err(wrong()),
            Some(Some((user, password))) => (Some(user), Some(password)),
        };
        let decoded = |text: &str| percent_decoded(text).ok_or_else(wrong);
        let port = host.rsplit_once(':').filter(|it| !it.1.ends_with(']')).map(|it| it.1);
        let has_port = port.is_some_and(|it| it.parse::<u16>().is_ok());
        if host.is_empty() || host.starts_with(':') || host.contains('/') {
            return Err(wrong());
        }
        if port.is_some() && !has_port {
            return Err(wrong());
        }
        Ok(RedisAddress {
            host: if has_port { host.to_owned() } else { format!("{host}:{DEFAULT_PORT}") },
            user: user.filter(|it| !it.is_empty()).map(decoded).transpose()?,
            password: password.map(decoded).transpose()?,
        })
    }
}

/// Whether a text can be the scheme of an address.
fn is_scheme(text: &str) -> bool {
    let is_of_one = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'+' | b'-' | b'.');
    text.starts_with(|it: char| it.is_ascii_alphabetic()) && text.bytes().all(is_of_one)
}

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

/// A text in which `%` and two digits stand for a byte.
fn percent_decoded(text: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        let digits = std::str::from_utf8(digits).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = after;
    }
    String::from_utf8(bytes).ok()
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
    replies.ask("REPLCONF", &["REPLCONF", "capa", "eof"], "+OK")?;
    replies.ask("PSYNC", &["PSYNC", "?", "-1"], "+FULLRESYNC ")?;
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

    /// More of what comes.
    fn fill(&mut self) -> Result<(), RedisLiveError> {
        let before = self.buffer.len();
        self.buffer.resize(before + BUFFER_BYTES, 0);
        let count = self.connection.read(&mut self.buffer[before..]);
        self.buffer.truncate(before + *count.as_ref().unwrap_or(&0));
        match count {
            Ok(0) => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(error.into()),
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
            file.write_all(&self.buffer[..count])?;
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
            file.write_all(&self.buffer[..count])?;
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

    /// A server that has these bytes for any request, so many at a time.
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

    #[test]
    fn addresses_have_hosts_and_ports() {
        let host = |text: &str| RedisAddress::of(text).map(|it| it.host);
        assert_eq!(host("redis://here").unwrap(), "here:6379");
        assert_eq!(host("redis://here:7000/").unwrap(), "here:7000");
        assert_eq!(host("redis://[::1]").unwrap(), "[::1]:6379");
        assert_eq!(host("redis://:a@[::1]:7000").unwrap(), "[::1]:7000");
        for wrong in [
            "redis://",
            "redis://:7000",
            "redis://here:port",
            "redis://here/1",
            "redis://secret@here",
            "redis://:secret",
            "redis://user:secret",
            "redis://user:secret/",
            "secret@redis://here",
            "redis://:%zz@here",
            "here:6379",
        ] {
            let error = host(wrong).unwrap_err().to_string();
            assert!(error.contains("is not `redis://") && !error.contains("secret"), "{error}");
        }
        assert_eq!(host("Redis://here").unwrap(), "here:6379");
        for other in ["rediss", "redis+tls", "valkey"] {
            let error = host(&format!("{other}://:secret@here")).unwrap_err().to_string();
            assert!(error.starts_with(&format!("`{other}://` is not supported")), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
