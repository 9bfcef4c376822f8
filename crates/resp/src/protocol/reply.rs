//! Replies: values to bytes, in the version of the protocol that the client speaks.

use muesli::SmallBytes;

use super::numbers::double_text;

/// The version of the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RespVersion {
    /// The one that all clients begin with.
    #[default]
    Resp2,
    /// With maps, sets, doubles and pushes; by `HELLO 3`.
    Resp3,
}

/// What a client is answered.
#[derive(Clone, Debug, PartialEq)]
pub enum RespReply {
    /// A word, such as `OK`.
    Simple(&'static str),
    /// A word or text that is not known before.
    Status(Vec<u8>),
    /// An error, its code first.
    Error(String),
    /// A whole number.
    Integer(i64),
    /// Bytes.
    Bulk(SmallBytes),
    /// Text for people.
    Verbatim(String),
    /// Text, in the format that three letters name.
    Formatted([u8; 3], Vec<u8>),
    /// Nothing, where bytes could be.
    Null,
    /// Nothing, where an array could be.
    NullArray,
    /// Values in order.
    Array(Vec<RespReply>),
    /// Keys and values.
    Map(Vec<(RespReply, RespReply)>),
    /// Values in no order.
    Set(Vec<RespReply>),
    /// A number.
    Double(f64),
    /// A whole number of any length, in decimal.
    BigNumber(Vec<u8>),
    /// Yes or no; a number to who speaks the older version.
    Bool(bool),
    /// What nobody has asked for, such as a message of a channel.
    Push(Vec<RespReply>),
    /// Several replies to one command, one after the other.
    Several(Vec<RespReply>),
}

impl RespReply {
    /// `OK`.
    pub const OK: RespReply = RespReply::Simple("OK");

    /// A copy of these bytes.
    pub fn bulk(bytes: impl AsRef<[u8]>) -> RespReply {
        RespReply::Bulk(SmallBytes::new(bytes.as_ref()))
    }

    /// These bytes, or nothing.
    pub fn bulk_or_null(bytes: Option<impl AsRef<[u8]>>) -> RespReply {
        bytes.map_or(RespReply::Null, RespReply::bulk)
    }

    /// An array of such bytes.
    pub fn bulks(all: impl IntoIterator<Item = impl AsRef<[u8]>>) -> RespReply {
        RespReply::Array(all.into_iter().map(RespReply::bulk).collect())
    }

    /// How many there are.
    pub fn count(count: usize) -> RespReply {
        RespReply::Integer(count as i64)
    }

    /// One or none.
    pub fn flag(yes: bool) -> RespReply {
        RespReply::Integer(i64::from(yes))
    }

    /// How many bytes it has once it is written, about.
    pub fn size(&self) -> usize {
        /// The length of bytes or the number of values, as text, and the ends of lines.
        const AROUND: usize = 16;
        let all = |all: &[RespReply]| all.iter().map(RespReply::size).sum();
        let within: usize = match self {
            RespReply::Simple(word) => word.len(),
            RespReply::Error(text) | RespReply::Verbatim(text) => text.len(),
            RespReply::Bulk(bytes) => bytes.len(),
            RespReply::Status(text)
            | RespReply::Formatted(_, text)
            | RespReply::BigNumber(text) => text.len(),
            RespReply::Array(values)
            | RespReply::Set(values)
            | RespReply::Push(values)
            | RespReply::Several(values) => all(values),
            RespReply::Map(pairs) => pairs.iter().map(|it| it.0.size() + it.1.size()).sum(),
            RespReply::Integer(_)
            | RespReply::Null
            | RespReply::NullArray
            | RespReply::Double(_)
            | RespReply::Bool(_) => 0,
        };
        AROUND + within
    }

    /// Writes it.
    pub fn write(&self, version: RespVersion, out: &mut Vec<u8>) {
        let three = version == RespVersion::Resp3;
        match self {
            RespReply::Simple(word) => line(out, b'+', word.as_bytes()),
            // An error is one line, whatever of the client's is quoted in it.
            RespReply::Error(text) => line(out, b'-', &one_line(text.as_bytes())),
            RespReply::Status(text) => line(out, b'+', &one_line(text)),
            RespReply::Integer(value) => number(out, b':', *value),
            RespReply::Bulk(bytes) => bulk(out, bytes.as_slice()),
            RespReply::Verbatim(text) if three => {
                number(out, b'=', text.len() as i64 + 4);
                out.extend_from_slice(b"txt:");
                out.extend_from_slice(text.as_bytes());
                out.extend_from_slice(b"\r\n");
            }
            RespReply::Verbatim(text) => bulk(out, text.as_bytes()),
            RespReply::Formatted(format, text) if three => {
                number(out, b'=', text.len() as i64 + 4);
                out.extend_from_slice(format);
                out.push(b':');
                out.extend_from_slice(text);
                out.extend_from_slice(b"\r\n");
            }
            RespReply::Formatted(_, text) => bulk(out, text),
            RespReply::BigNumber(digits) if three => line(out, b'(', &one_line(digits)),
            RespReply::BigNumber(digits) => bulk(out, &one_line(digits)),
            RespReply::Null if three => out.extend_from_slice(b"_\r\n"),
            RespReply::NullArray if three => out.extend_from_slice(b"_\r\n"),
            RespReply::Null => out.extend_from_slice(b"$-1\r\n"),
            RespReply::NullArray => out.extend_from_slice(b"*-1\r\n"),
            RespReply::Array(all) => values(out, b'*', all, version),
            RespReply::Set(all) => values(out, if three { b'~' } else { b'*' }, all, version),
            RespReply::Push(all) => values(out, if three { b'>' } else { b'*' }, all, version),
            RespReply::Map(all) => {
                match three {
                    true => number(out, b'%', all.len() as i64),
                    false => number(out, b'*', all.len() as i64 * 2),
                }
                for (key, value) in all {
                    key.write(version, out);
                    value.write(version, out);
                }
            }
            RespReply::Double(value) if three => line(out, b',', double_text(*value).as_bytes()),
            RespReply::Double(value) => bulk(out, double_text(*value).as_bytes()),
            RespReply::Bool(yes) if three => {
                out.extend_from_slice(if *yes { b"#t\r\n" } else { b"#f\r\n" })
            }
            RespReply::Bool(yes) => number(out, b':', i64::from(*yes)),
            RespReply::Several(all) => all.iter().for_each(|it| it.write(version, out)),
        }
    }
}

fn line(out: &mut Vec<u8>, kind: u8, text: &[u8]) {
    out.push(kind);
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
}

/// A text without ends of lines.
fn one_line(text: &[u8]) -> Vec<u8> {
    text.iter().map(|it| if matches!(it, b'\r' | b'\n') { b' ' } else { *it }).collect()
}

fn number(out: &mut Vec<u8>, kind: u8, value: i64) {
    line(out, kind, itoa::Buffer::new().format(value).as_bytes());
}

fn bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    number(out, b'$', bytes.len() as i64);
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

fn values(out: &mut Vec<u8>, kind: u8, all: &[RespReply], version: RespVersion) {
    number(out, kind, all.len() as i64);
    all.iter().for_each(|it| it.write(version, out));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reply_has_its_bytes_in_both_versions() {
        let pair = || (RespReply::bulk("a"), RespReply::Integer(1));
        let table: [(RespReply, &str, &str); 15] = [
            (RespReply::OK, "+OK\r\n", "+OK\r\n"),
            (RespReply::Error("ERR a\r\nb".to_owned()), "-ERR a  b\r\n", "-ERR a  b\r\n"),
            (RespReply::Status(b"a\nb".to_vec()), "+a b\r\n", "+a b\r\n"),
            (RespReply::BigNumber(b"12".to_vec()), "$2\r\n12\r\n", "(12\r\n"),
            (RespReply::Formatted(*b"mkd", b"x".to_vec()), "$1\r\nx\r\n", "=5\r\nmkd:x\r\n"),
            (RespReply::Integer(-5), ":-5\r\n", ":-5\r\n"),
            (RespReply::bulk("ab"), "$2\r\nab\r\n", "$2\r\nab\r\n"),
            (RespReply::Null, "$-1\r\n", "_\r\n"),
            (RespReply::NullArray, "*-1\r\n", "_\r\n"),
            (RespReply::Map(vec![pair()]), "*2\r\n$1\r\na\r\n:1\r\n", "%1\r\n$1\r\na\r\n:1\r\n"),
            (RespReply::Set(vec![pair().1]), "*1\r\n:1\r\n", "~1\r\n:1\r\n"),
            (RespReply::Double(1.5), "$3\r\n1.5\r\n", ",1.5\r\n"),
            (RespReply::Bool(true), ":1\r\n", "#t\r\n"),
            (RespReply::Push(vec![pair().1]), "*1\r\n:1\r\n", ">1\r\n:1\r\n"),
            (RespReply::Verbatim("x".to_owned()), "$1\r\nx\r\n", "=5\r\ntxt:x\r\n"),
        ];
        for (reply, two, three) in table {
            for (version, expected) in [(RespVersion::Resp2, two), (RespVersion::Resp3, three)] {
                let mut out = Vec::new();
                reply.write(version, &mut out);
                assert_eq!(String::from_utf8(out).unwrap(), expected, "{reply:?}");
            }
        }
    }
}
