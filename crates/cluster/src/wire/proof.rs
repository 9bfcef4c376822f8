//! The cluster's secret in the handshake: members and administrators prove that they know it, in
//! both directions, and it is never sent.
//!
//! Whoever dials sends a challenge in its [`Hello`], and says whether it can prove the secret. A
//! server that has the secret asks those who come as servers or administrators (and clients, where
//! it is told to) for a proof: it sends a challenge of its own, and the answer is the tag of both
//! challenges and of all that the hello claims. Its [`Welcome`], or a [`ConnectionRefusal`],
//! carries the tag of what that says and of the dialler's challenge. Both challenges are drawn
//! anew for each connection, so nothing that was overheard can be used again.
//!
//! What this does not do: frames after the handshake carry no proof of their own. Whoever can
//! change what passes between two machines can change what members say; that needs TLS, or a
//! network that only they are on.

use std::path::Path;

use muesli_core::issuance::Issuer;
use muesli_core::secret::UnfitSecret;
use muesli_core::wire::Wire;
use muesli_core::{Secret, Tag, wire_struct};
use thiserror::Error;

use crate::wire::challenge::Challenge;
use crate::wire::hello::{Hello, Welcome};
use crate::wire::ids::ClusterId;
use crate::wire::refusal::ConnectionRefusal;

const BY_DIALLER: &str = "muesli: whoever dials";
const BY_SERVER: &str = "muesli: a server's welcome";
const REFUSAL: &str = "muesli: a server's refusal";

/// The answer to a challenge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecretProof {
    /// The tag.
    pub tag: Tag,
}

wire_struct!(SecretProof { tag: Tag });

/// The tag by which whoever said `hello` answers a server's challenge.
pub fn of_dialler(secret: &Secret, hello: &Hello, challenge: Challenge) -> Tag {
    secret.tag(BY_DIALLER, &both(challenge, hello))
}

/// Whether this is the tag of [`of_dialler`].
pub fn is_of_dialler(secret: &Secret, hello: &Hello, challenge: Challenge, tag: &Tag) -> bool {
    secret.verify(BY_DIALLER, &both(challenge, hello), tag)
}

/// The welcome with the server's proof for whoever sent this challenge.
pub fn signed(secret: &Secret, challenge: Challenge, welcome: Welcome) -> Welcome {
    let plain = Welcome { proof: None, ..welcome };
    let tag = secret.tag(BY_SERVER, &both(challenge, &plain));
    Welcome { proof: Some(tag), ..plain }
}

/// Whether the welcome was signed for this challenge.
pub fn is_signed(secret: &Secret, challenge: Challenge, welcome: &Welcome) -> bool {
    let plain = Welcome { proof: None, ..welcome.clone() };
    let holds = |tag: &Tag| secret.verify(BY_SERVER, &both(challenge, &plain), tag);
    welcome.proof.as_ref().is_some_and(holds)
}

/// The refusal with the server's proof for whoever sent this challenge.
pub fn signed_refusal(
    secret: &Secret,
    challenge: Challenge,
    refusal: ConnectionRefusal,
) -> ConnectionRefusal {
    let plain = ConnectionRefusal { proof: None, ..refusal };
    let tag = secret.tag(REFUSAL, &both(challenge, &plain));
    ConnectionRefusal { proof: Some(tag), ..plain }
}

/// Whether the refusal was signed for this challenge.
pub fn is_signed_refusal(
    secret: &Secret,
    challenge: Challenge,
    refusal: &ConnectionRefusal,
) -> bool {
    let plain = ConnectionRefusal { proof: None, ..refusal.clone() };
    let holds = |tag: &Tag| secret.verify(REFUSAL, &both(challenge, &plain), tag);
    refusal.proof.as_ref().is_some_and(holds)
}

fn both(challenge: Challenge, contents: &impl Wire) -> Vec<u8> {
    let mut bytes = Vec::new();
    challenge.encode(&mut bytes);
    contents.encode(&mut bytes);
    bytes
}

/// A new secret, as a line of text for a file.
///
/// # Panics
/// As [`Challenge::draw`].
pub fn new_secret() -> String {
    let bytes = [Challenge::draw(), Challenge::draw()];
    bytes.iter().flat_map(|half| half.0).map(|byte| format!("{byte:02x}")).collect()
}

/// Why a file holds no secret.
#[derive(Debug, Error)]
pub enum SecretFileError {
    /// It cannot be read.
    #[error("the secret's file {path}: {error}")]
    Io {
        /// The file.
        path: String,
        /// What the system said.
        error: std::io::Error,
    },
    /// What it holds cannot be a secret.
    #[error("{path} holds {error}")]
    Unfit {
        /// The file.
        path: String,
        /// What a secret must be.
        error: UnfitSecret,
    },
}

/// The secret that a file holds; white space around it is no part of it.
///
/// # Errors
/// The file cannot be read, or holds too few bytes or too many.
pub fn read_secret(path: &Path) -> Result<Secret, SecretFileError> {
    let io_error = |error| SecretFileError::Io { path: path.display().to_string(), error };
    let bytes = std::fs::read(path).map_err(io_error)?;
    let unfit = |error| SecretFileError::Unfit { path: path.display().to_string(), error };
    Secret::new(bytes.trim_ascii()).map_err(unfit)
}

/// The key by which servers of a cluster prove to each other, through clients, what they have said:
/// which timestamps they have issued, and how they voted. Without a secret it is as open as the
/// cluster is.
pub(crate) fn issuer(cluster: ClusterId, secret: Option<&Secret>) -> Issuer {
    let cluster = cluster.0.to_le_bytes();
    let mut key = [0; 16];
    match secret {
        Some(secret) => key = secret.tag("muesli: issued timestamps", &cluster).0,
        None => key[..8].copy_from_slice(&cluster),
    }
    Issuer::new(key)
}

#[cfg(test)]
mod tests {
    use muesli_core::NodeId;

    use super::*;
    use crate::wire::hello::ProcessKind;
    use crate::wire::refusal::Reason;

    #[test]
    fn proofs_hold_for_what_was_said_and_for_one_connection() {
        let secret = Secret::new(b"a secret of some length").unwrap();
        let other = Secret::new(b"another secret of a length").unwrap();
        let hello =
            Hello { process_kind: ProcessKind::Server, node: NodeId(2), ..Hello::default() };
        let (first, second) = (Challenge::draw(), Challenge::draw());
        assert_ne!(first, second);
        let tag = of_dialler(&secret, &hello, first);
        assert!(is_of_dialler(&secret, &hello, first, &tag));
        assert!(!is_of_dialler(&secret, &hello, second, &tag));
        assert!(!is_of_dialler(&other, &hello, first, &tag));
        let another = Hello { node: NodeId(1), ..hello };
        assert!(!is_of_dialler(&secret, &another, first, &tag));

        let welcome = signed(&secret, first, Welcome::default());
        assert!(is_signed(&secret, first, &welcome));
        assert!(!is_signed(&secret, second, &welcome));
        assert!(!is_signed(&other, first, &welcome));
        assert!(!is_signed(&secret, first, &Welcome { node: NodeId(7), ..welcome.clone() }));
        assert!(!is_signed(&secret, first, &Welcome { proof: None, ..welcome }));

        let refusal =
            ConnectionRefusal { reason: Reason::Left, text: "gone".to_owned(), proof: None };
        assert!(!is_signed_refusal(&secret, first, &refusal));
        let refusal = signed_refusal(&secret, first, refusal);
        assert!(is_signed_refusal(&secret, first, &refusal));
        assert!(!is_signed_refusal(&secret, second, &refusal));
        let bent = ConnectionRefusal { reason: Reason::Lost, ..refusal };
        assert!(!is_signed_refusal(&secret, first, &bent));
    }

    #[test]
    fn a_secret_is_read_from_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secret");
        assert!(read_secret(&path).unwrap_err().to_string().contains("secret"));
        std::fs::write(&path, "  0123456789abcdef\n").unwrap();
        assert_eq!(read_secret(&path).unwrap(), Secret::new(b"0123456789abcdef").unwrap());
        std::fs::write(&path, new_secret()).unwrap();
        assert!(read_secret(&path).is_ok() && new_secret().len() == 64);
        std::fs::write(&path, "short\n").unwrap();
        let error = read_secret(&path).unwrap_err().to_string();
        assert!(error.contains("5 bytes") && error.contains("16 to 4096"), "{error}");
    }
}
