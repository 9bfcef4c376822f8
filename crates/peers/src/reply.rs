//! Replies of Redis (RESP2), as far as the benchmark needs them.

use anyhow::{Context, bail};

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerReply {
    /// A simple string: `OK`, `QUEUED`.
    Status(String),
    Error(String),
    Number(i64),
    Bytes(Option<Vec<u8>>),
    /// `None`: a transaction that met a conflict.
    List(Option<Vec<ServerReply>>),
}

/// The first reply in `buffer` and its length; `None`: more must come.
///
/// # Errors
/// This is no reply.
pub fn next(buffer: &[u8]) -> anyhow::Result<Option<(ServerReply, usize)>> {
    let Some(end) = buffer.windows(2).position(|pair| pair == b"\r\n") else { return Ok(None) };
    let line = std::str::from_utf8(&buffer[..end])?;
    let (kind, rest) = line.split_at_checked(1).context("an empty line")?;
    let after = end + 2;
    Ok(Some(match kind {
        "+" => (ServerReply::Status(rest.to_owned()), after),
        "-" => (ServerReply::Error(rest.to_owned()), after),
        ":" => (ServerReply::Number(rest.parse()?), after),
        "$" => match usize::try_from(rest.parse::<i64>()?) {
            Err(_) => (ServerReply::Bytes(None), after),
            Ok(count) if buffer.len() < after + count + 2 => return Ok(None),
            Ok(count) => {
                (ServerReply::Bytes(Some(buffer[after..after + count].to_vec())), after + count + 2)
            }
        },
        "*" => match usize::try_from(rest.parse::<i64>()?) {
            Err(_) => (ServerReply::List(None), after),
            Ok(count) => {
                let (mut list, mut at) = (Vec::new(), after);
                for _ in 0..count {
                    let Some((reply, bytes)) = next(&buffer[at..])? else { return Ok(None) };
                    list.push(reply);
                    at += bytes;
                }
                (ServerReply::List(Some(list)), at)
            }
        },
        other => bail!("a reply that begins with {other:?}"),
    }))
}

impl ServerReply {
    /// The number in it.
    ///
    /// # Errors
    /// There is none.
    pub fn number(&self) -> anyhow::Result<i64> {
        match self {
            ServerReply::Number(number) => Ok(*number),
            ServerReply::Bytes(Some(bytes)) => Ok(std::str::from_utf8(bytes)?.parse()?),
            other => bail!("{other:?} is no number"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_read_whole_or_not_at_all() {
        let bytes = b"*3\r\n$2\r\n12\r\n$-1\r\n+QUEUED\r\n:7\r\n";
        let number = ServerReply::Bytes(Some(b"12".to_vec()));
        let list = vec![
            number.clone(),
            ServerReply::Bytes(None),
            ServerReply::Status("QUEUED".to_owned()),
        ];
        assert_eq!(next(bytes).unwrap(), Some((ServerReply::List(Some(list)), bytes.len() - 4)));
        for end in 0..bytes.len() - 4 {
            assert_eq!(next(&bytes[..end]).unwrap(), None);
        }
        assert_eq!(next(&bytes[bytes.len() - 4..]).unwrap(), Some((ServerReply::Number(7), 4)));
        assert_eq!(number.number().unwrap(), 12);
        assert!(next(b"what\r\n").is_err());
    }
}
