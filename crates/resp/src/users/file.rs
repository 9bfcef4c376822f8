//! The file of users: a line for each, `NAME ROLE HASH`; empty lines and those that begin with `#`
//! are passed over.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use thiserror::Error;

use super::hashes::{StoredHash, hash_of};
use super::user::{RespUser, UserProof, UserRole};

/// The longest file, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Most users.
const USERS_MAX: usize = 1000;
/// The longest name, in bytes.
const NAME_BYTES_MAX: usize = 64;
/// What a line of the file is.
const FORM: &str = "`NAME ROLE HASH`, as `muesli user NAME --role ROLE` prints it";

/// Why there are no users.
#[derive(Debug, Error)]
pub enum UsersError {
    /// The file cannot be read.
    #[error("the file of users {path} cannot be read: {why}")]
    Unreadable {
        /// The file.
        path: String,
        /// What the system says.
        why: io::Error,
    },
    /// The file as a whole is not what it is to be.
    #[error("the file of users {path} {why}")]
    File {
        /// The file.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// A line of the file is not what it is to be.
    #[error("the file of users {path}, line {line}: {why}")]
    Line {
        /// The file.
        path: String,
        /// The line, from 1 on.
        line: usize,
        /// What is wrong with it, and what is allowed.
        why: String,
    },
    /// A line cannot be made of this.
    #[error("{0}")]
    Unfit(String),
}

/// The users of a server.
#[derive(Clone)]
pub struct RespUsers {
    all: Vec<Arc<RespUser>>,
}

impl fmt::Debug for RespUsers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RespUsers").field("count", &self.all.len()).finish()
    }
}

impl RespUsers {
    /// Reads a file of users.
    ///
    /// # Errors
    /// It cannot be read, is too long, has no user, or has a line that is none.
    pub fn read(path: &Path) -> Result<RespUsers, UsersError> {
        let shown = path.display().to_string();
        let unreadable = |why| UsersError::Unreadable { path: shown.clone(), why };
        let mut text = String::new();
        let file = File::open(path).map_err(unreadable)?;
        file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(unreadable)?;
        if text.len() as u64 > FILE_BYTES_MAX {
            let why = format!("is longer than {FILE_BYTES_MAX} bytes");
            return Err(UsersError::File { path: shown, why });
        }
        RespUsers::parse(&text, &shown)
    }

    /// Reads the text of a file of users, which is at this path.
    ///
    /// # Errors
    /// It has no user, or a line that is none.
    pub fn parse(text: &str, path: &str) -> Result<RespUsers, UsersError> {
        let mut all: Vec<Arc<RespUser>> = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let refused = |why| Err(UsersError::Line { path: path.to_owned(), line: at + 1, why });
            match user_of(line) {
                Ok(user) if all.iter().any(|it| it.name == user.name) => {
                    return refused(format!("there is a user `{}` before it", user.name));
                }
                Ok(_) if all.len() == USERS_MAX => {
                    return refused(format!("there are at most {USERS_MAX} users"));
                }
                Ok(user) => all.push(Arc::new(user)),
                Err(why) => return refused(why),
            }
        }
        if all.is_empty() {
            let why = format!("has no users: a line of it is {FORM}");
            return Err(UsersError::File { path: path.to_owned(), why });
        }
        Ok(RespUsers { all })
    }

    /// The line of a file that has this user with this password. Two lines of the same password
    /// are different.
    ///
    /// # Errors
    /// A user cannot have this name or this password.
    pub fn line(name: &str, role: UserRole, password: &[u8]) -> Result<String, UsersError> {
        check_name(name).map_err(UsersError::Unfit)?;
        let hash = hash_of(password).map_err(UsersError::Unfit)?;
        Ok(format!("{name} {} {hash}", role.name()))
    }

    /// The same users, and one for this process itself, which may read, with its password: one of
    /// 256 random bits, which needs no hash that is slow. No file can have a user of its name.
    ///
    /// # Errors
    /// The system has no random bytes.
    pub fn with_own(mut self) -> io::Result<(RespUsers, String)> {
        let mut random = [0; 32];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let password: String = random.iter().map(|it| format!("{it:02x}")).collect();
        let (name, role) = (RespUsers::OWN.to_owned(), UserRole::Read);
        let proof = UserProof::Secret(password.clone().into_bytes());
        self.all.push(Arc::new(RespUser { name, role, proof }));
        Ok((self, password))
    }

    /// The name of the user of [`RespUsers::with_own`].
    pub const OWN: &'static str = "(server)";

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<RespUser>> {
        self.all.iter()
    }

    pub(crate) fn find(&self, name: &[u8]) -> Option<&Arc<RespUser>> {
        self.all.iter().find(|it| it.name.as_bytes() == name)
    }
}

/// Names have letters, digits and `-`, `_`, `.`, `@`.
fn check_name(name: &str) -> Result<(), String> {
    let fits = |it: u8| it.is_ascii_alphanumeric() || b"-_.@".contains(&it);
    if name.bytes().all(fits) && (1..=NAME_BYTES_MAX).contains(&name.len()) {
        return Ok(());
    }
    let shown: String = name.chars().take(NAME_BYTES_MAX).collect();
    Err(format!(
        "`{}` is no name of a user: 1 to {NAME_BYTES_MAX} letters of ASCII, digits, `-`, `_`, `.` \
         and `@` are allowed",
        shown.escape_debug()
    ))
}

fn user_of(line: &str) -> Result<RespUser, String> {
    let parts: Vec<_> = line.split_ascii_whitespace().collect();
    let [name, role, hash] = parts[..] else {
        return Err(format!("it has {} parts instead of three: {FORM}", parts.len()));
    };
    check_name(name)?;
    let Some(role) = UserRole::named(role) else {
        let shown: String = role.chars().take(NAME_BYTES_MAX).collect();
        let shown = shown.escape_debug();
        return Err(format!("`{shown}` is no role: admin, write and read are allowed"));
    };
    let proof = UserProof::Password(StoredHash::parse(hash)?);
    Ok(RespUser { name: name.to_owned(), role, proof })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    const HASH: &str = "$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHRzYWx0\
        $YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXoxMjM0NTY";

    #[test]
    fn a_file_has_a_user_a_line() {
        let text =
            format!("# who\n\nann admin {HASH}\r\n  bob\twrite  {HASH}\n default read {HASH}");
        let users = RespUsers::parse(&text, "f").unwrap();
        let found: Vec<_> = users.all().map(|it| (&*it.name, it.role.name())).collect();
        assert_eq!(found, [("ann", "admin"), ("bob", "write"), ("default", "read")]);
        assert!(users.find(b"bob").is_some() && users.find(b"bo").is_none());
        let (own, _) = users.with_own().unwrap();
        assert_eq!(own.find(RespUsers::OWN.as_bytes()).unwrap().role, UserRole::Read);
        let line = RespUsers::line("ann", UserRole::Write, b"password").unwrap();
        assert_eq!(RespUsers::parse(&line, "f").unwrap().all().count(), 1);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line_and_what_is_allowed() {
        let long = "a".repeat(NAME_BYTES_MAX + 1);
        for (text, expected) in [
            (String::new(), "the file of users f has no users: a line of it is `NAME ROLE HASH`"),
            ("# none\n".to_owned(), "has no users"),
            ("\nann admin".to_owned(), "f, line 2: it has 2 parts instead of three"),
            (format!("ann admin {HASH} x"), "line 1: it has 4 parts"),
            (format!("ann root {HASH}"), "`root` is no role: admin, write and read are allowed"),
            (format!("a\u{1}b admin {HASH}"), "`a\\u{1}b` is no name of a user"),
            (format!("(server) admin {HASH}"), "`(server)` is no name of a user"),
            (format!("{long} admin {HASH}"), "is no name of a user: 1 to 64 letters"),
            ("ann admin secret".to_owned(), "line 1: the hash is not `$argon2id$v=19$"),
            (format!("a read {HASH}\na write {HASH}"), "line 2: there is a user `a` before it"),
        ] {
            let found = RespUsers::parse(&text, "f").unwrap_err().to_string();
            assert!(found.contains(expected), "{found}");
            assert!(!found.contains("secret"), "{found}");
        }
        let lines: String = (0..=USERS_MAX).map(|at| format!("u{at} read {HASH}\n")).collect();
        let found = RespUsers::parse(&lines, "f").unwrap_err().to_string();
        assert!(found.contains("line 1001: there are at most 1000 users"), "{found}");
        assert!(RespUsers::line("a b", UserRole::Read, b"x").is_err());
        assert!(RespUsers::line("a", UserRole::Read, b"").is_err());
    }

    #[test]
    fn a_file_that_is_too_long_or_not_there_is_refused() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let line = [b'#'; 1 << 10];
        (0..=1 << 10).for_each(|_| file.write_all(&line).unwrap());
        let found = RespUsers::read(file.path()).unwrap_err().to_string();
        assert!(found.contains("is longer than 1048576 bytes"), "{found}");
        let found = RespUsers::read(Path::new("/nowhere/users")).unwrap_err().to_string();
        assert!(found.contains("/nowhere/users cannot be read"), "{found}");
    }

    proptest! {
        #[test]
        fn any_text_is_users_or_an_error(text in "[a-z #$=,\n\t\u{e9}019-]{0,200}") {
            let _ = RespUsers::parse(&text, "f");
        }
    }
}
