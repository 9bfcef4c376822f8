//! Where a Redis is that runs, and who asks it.

use crate::live_error::RedisLiveError;

/// Where Redis listens, unless it is told otherwise.
const DEFAULT_PORT: u16 = 6379;

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

#[cfg(test)]
mod tests {
    use super::*;

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
