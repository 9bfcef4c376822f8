//! Hashes of passwords, by argon2id.

use std::fmt;

use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use argon2::{Argon2, Params};

/// A hash is made with at most so much memory, in KiB, so many passes, and so many lanes.
const MEMORY_KIB_MAX: u32 = 256 << 10;
const PASSES_MAX: u32 = 10;
const PARALLEL_MAX: u32 = 8;
/// The longest password, in bytes.
pub(super) const PASSWORD_BYTES_MAX: usize = 1024;
/// The shortest salt and the shortest hash, in bytes.
const SALT_BYTES_MIN: usize = 8;
const HASH_BYTES_MIN: usize = 16;

/// The hash of a password, as a file of users has it.
pub(crate) struct StoredHash(Box<PasswordHash>);

impl fmt::Debug for StoredHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoredHash")
    }
}

impl StoredHash {
    /// Reads a hash in PHC form.
    ///
    /// # Errors
    /// It is none, or costs more than it may.
    pub fn parse(text: &str) -> Result<StoredHash, String> {
        let form = "`$argon2id$v=19$m=…,t=…,p=…$SALT$HASH`, as `muesli user` prints it";
        let hash =
            PasswordHash::new(text).map_err(|why| format!("the hash is not {form}: {why}"))?;
        let salt = hash.salt.as_ref().map_or(0, |it| AsRef::<[u8]>::as_ref(it).len());
        let bytes = hash.hash.as_ref().map_or(0, |it| it.as_bytes().len());
        let is_v19 = hash.version == Some(19);
        if hash.algorithm.as_str() != "argon2id" || !is_v19 || bytes == 0 || salt == 0 {
            return Err(format!("the hash is not {form}"));
        }
        if salt < SALT_BYTES_MIN || bytes < HASH_BYTES_MIN {
            return Err(format!(
                "the hash has a salt of {salt} bytes and {bytes} of its own: at least \
                 {SALT_BYTES_MIN} and {HASH_BYTES_MIN} are allowed"
            ));
        }
        let params = Params::try_from(&hash)
            .map_err(|why| format!("the hash has parameters that make no sense: {why}"))?;
        let (memory, passes, parallel) = (params.m_cost(), params.t_cost(), params.p_cost());
        if memory > MEMORY_KIB_MAX || passes > PASSES_MAX || parallel > PARALLEL_MAX {
            return Err(format!(
                "the hash costs m={memory} KiB of memory, t={passes} passes, p={parallel} lanes: \
                 at most m={MEMORY_KIB_MAX},t={PASSES_MAX},p={PARALLEL_MAX} are allowed"
            ));
        }
        Ok(StoredHash(Box::new(hash)))
    }

    /// Whether this is the password: takes as long as the hash is to cost.
    pub fn verify(&self, password: &[u8]) -> bool {
        Argon2::default().verify_password(password, &*self.0).is_ok()
    }
}

/// The hash of a password, in PHC form, with a salt of its own: 19 MiB of memory and two passes.
///
/// # Errors
/// It is empty or too long, or the system has no random bytes.
pub(super) fn hash_of(password: &[u8]) -> Result<String, String> {
    if password.is_empty() || password.len() > PASSWORD_BYTES_MAX {
        let bytes = password.len();
        return Err(format!("a password has 1 to {PASSWORD_BYTES_MAX} bytes, and not {bytes}"));
    }
    let hash = Argon2::default().hash_password(password);
    Ok(hash.map_err(|why| format!("the password was not hashed: {why}"))?.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_has_its_hash_and_no_other_one() {
        let hash = hash_of(b"a b").unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        assert_ne!(hash, hash_of(b"a b").unwrap());
        let hash = StoredHash::parse(&hash).unwrap();
        assert!(hash.verify(b"a b") && !hash.verify(b"a c") && !hash.verify(b""));
        assert!(hash_of(b"").is_err() && hash_of(&[b'a'; PASSWORD_BYTES_MAX + 1]).is_err());
    }

    #[test]
    fn hashes_that_cost_too_much_or_are_none_are_refused() {
        let salt = "c2FsdHNhbHRzYWx0";
        let hash = "YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXoxMjM0NTY";
        for (text, expected) in [
            (format!("$argon2id$v=19$m=262144,t=10,p=8${salt}${hash}"), None),
            (format!("$argon2id$v=19$m=8,t=1,p=1${salt}${hash}"), None),
            (format!("$argon2id$v=19$m=262145,t=1,p=1${salt}${hash}"), Some("m=262144,t=10,p=8")),
            (format!("$argon2id$v=19$m=64,t=11,p=1${salt}${hash}"), Some("t=11 passes")),
            (format!("$argon2id$v=19$m=999,t=1,p=9${salt}${hash}"), Some("p=9 lanes")),
            (format!("$argon2id$v=19$m=7,t=1,p=1${salt}${hash}"), Some("make no sense")),
            (format!("$argon2i$v=19$m=64,t=1,p=1${salt}${hash}"), Some("$argon2id$v=19")),
            (format!("$argon2id$v=16$m=64,t=1,p=1${salt}${hash}"), Some("$argon2id$v=19")),
            (format!("$argon2id$m=64,t=1,p=1${salt}${hash}"), Some("$argon2id$v=19")),
            (format!("$argon2id$v=19$m=64,t=1,p=1${salt}"), Some("$argon2id$v=19")),
            (format!("$argon2id$v=19$m=64,t=1,p=1${salt}$YWJjZGVmZ2hpag"), Some("at least")),
            ("secret".to_owned(), Some("`muesli user`")),
            (String::new(), Some("`muesli user`")),
        ] {
            let found = StoredHash::parse(&text).err();
            match (found, expected) {
                (None, None) => {}
                (Some(found), Some(expected)) => assert!(found.contains(expected), "{found}"),
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
    }
}
