//! As much HTTP as is needed: one request a connection, and its answer.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// The longest request, in bytes.
const REQUEST_BYTES_MAX: usize = 8 << 10;
/// Most header lines of a request.
const HEADERS_MAX: usize = 64;
/// A request has come after so long, and its answer gone after as long again, or the connection is
/// closed.
const WITHIN: Duration = Duration::from_secs(5);

/// An answer.
pub struct HttpAnswer {
    /// As HTTP counts them.
    pub status: u16,
    /// The body, as text.
    pub text: String,
}

/// Why a request has no such answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpRefusal {
    /// It is no request.
    Unreadable,
    /// It is longer than it may be.
    TooLong,
    /// It asks for something else than to read.
    Method,
    /// There is nothing of this path.
    NotFound,
}

impl HttpRefusal {
    fn answer(self) -> HttpAnswer {
        let (status, text) = match self {
            HttpRefusal::Unreadable => (400, "this is no HTTP request"),
            HttpRefusal::TooLong => (431, "a request may have 8,192 bytes and 64 header lines"),
            HttpRefusal::Method => (405, "only GET and HEAD are answered"),
            HttpRefusal::NotFound => (404, "there are /metrics, /health and /ready"),
        };
        HttpAnswer { status, text: format!("{text}\n") }
    }
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct HttpRequest {
    path: String,
    /// Whether the body is wanted, too.
    has_body: bool,
}

/// Answers what comes over a connection, once, as `answer` says of its path.
pub fn serve(mut stream: TcpStream, answer: impl FnOnce(&str) -> Result<HttpAnswer, HttpRefusal>) {
    let Some(request) = read_request(&mut stream, Instant::now() + WITHIN) else { return };
    let has_body = request.as_ref().map_or(true, |it| it.has_body);
    let answered = request.and_then(|it| answer(&it.path)).unwrap_or_else(HttpRefusal::answer);
    write(&mut stream, &encode(&answered, has_body), Instant::now() + WITHIN);
}

/// Writes until the time is over. Who has gone away is no matter.
fn write(stream: &mut TcpStream, mut bytes: &[u8], until: Instant) {
    while !bytes.is_empty() {
        let left = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero());
        if left.is_none() || stream.set_write_timeout(left).is_err() {
            return;
        }
        match stream.write(bytes) {
            Ok(0) | Err(_) => return,
            Ok(count) => bytes = &bytes[count..],
        }
    }
}

/// `None`: nobody is there any more, or the time is over.
fn read_request(
    stream: &mut TcpStream,
    until: Instant,
) -> Option<Result<HttpRequest, HttpRefusal>> {
    let (mut bytes, mut part) = (Vec::new(), [0; 1024]);
    loop {
        let left = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())?;
        stream.set_read_timeout(Some(left)).ok()?;
        match stream.read(&mut part) {
            Ok(0) | Err(_) => return None,
            Ok(count) => bytes.extend_from_slice(&part[..count]),
        }
        if let Some(request) = parse(&bytes) {
            return Some(request);
        }
    }
}

/// `None`: more is to come.
fn parse(bytes: &[u8]) -> Option<Result<HttpRequest, HttpRefusal>> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(bytes) {
        Ok(httparse::Status::Partial) if bytes.len() <= REQUEST_BYTES_MAX => None,
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
            Some(Err(HttpRefusal::TooLong))
        }
        Err(_) => Some(Err(HttpRefusal::Unreadable)),
        Ok(httparse::Status::Complete(_)) => {
            let path = request.path.unwrap_or_default();
            let path = path.split('?').next().unwrap_or_default().to_owned();
            Some(match request.method {
                Some("GET") => Ok(HttpRequest { path, has_body: true }),
                Some("HEAD") => Ok(HttpRequest { path, has_body: false }),
                _ => Err(HttpRefusal::Method),
            })
        }
    }
}

fn encode(answer: &HttpAnswer, has_body: bool) -> Vec<u8> {
    let HttpAnswer { status, text } = answer;
    let reason = match status {
        200 => "OK",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        431 => "Request Header Fields Too Large",
        _ => "Service Unavailable",
    };
    let mut bytes = format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        text.len()
    )
    .into_bytes();
    if has_body {
        bytes.extend_from_slice(text.as_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path_of(text: &str) -> Option<Result<String, HttpRefusal>> {
        parse(text.as_bytes()).map(|it| it.map(|request| request.path))
    }

    #[test]
    fn requests_are_read_and_refused() {
        assert_eq!(path_of("GET /metr"), None, "more is to come");
        assert_eq!(path_of("GET /metrics HTTP/1.1\r\nHost: a\r\n"), None);
        let whole = "GET /metrics?x=1 HTTP/1.1\r\nHost: a\r\n\r\n";
        assert_eq!(path_of(whole), Some(Ok("/metrics".to_owned())));
        assert_eq!(path_of("POST / HTTP/1.1\r\n\r\n"), Some(Err(HttpRefusal::Method)));
        assert_eq!(path_of("*1\r\n$4\r\nPING\r\n"), Some(Err(HttpRefusal::Unreadable)));
        let long = format!("GET /{} ", "a".repeat(REQUEST_BYTES_MAX));
        assert_eq!(path_of(&long), Some(Err(HttpRefusal::TooLong)));
        let lines = "a: b\r\n".repeat(HEADERS_MAX + 1);
        let many = format!("GET / HTTP/1.1\r\n{lines}\r\n");
        assert_eq!(path_of(&many), Some(Err(HttpRefusal::TooLong)));
    }

    #[test]
    fn an_answer_says_its_length_and_a_head_has_no_body() {
        let answer = HttpAnswer { status: 503, text: "not yet\n".to_owned() };
        let with_body = String::from_utf8(encode(&answer, true)).unwrap();
        assert!(with_body.starts_with("HTTP/1.1 503 Service Unavailable\r\n"), "{with_body}");
        assert!(with_body.contains("Content-Length: 8\r\n"), "{with_body}");
        assert!(with_body.ends_with("\r\n\r\nnot yet\n"), "{with_body}");
        assert!(encode(&answer, false).ends_with(b"close\r\n\r\n"));
    }
}
