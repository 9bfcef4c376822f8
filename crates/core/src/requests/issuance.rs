//! How a client proves that a timestamp was issued by a member.
//!
//! A timestamp that a client names raises clocks, so members take it only where one of them has
//! issued it. Members share a key. What a member says to a client comes with a [`Proof`]: the
//! largest timestamp that the member knows to be issued, and a tag of that which only the key
//! makes. The client shows the largest proof that it was given with all that it says, to whichever
//! member; it covers every timestamp up to it. Nobody is asked, and no table is kept. What leaves
//! together has one proof.

use std::hash::Hasher as _;
#[expect(
    deprecated,
    reason = "SipHash-2-4 with keys of one's own is what it is, and is wanted"
)]
use std::hash::SipHasher;

use ctutils::CtEq;

use crate::bytes::SmallBytes;
use crate::ids::{RepositoryId, Timestamp};
use crate::procedure::{Call, Class, Fragment, Place, ProcedureId};
use crate::wire_struct;

/// The procedure that has a repository issue a timestamp, for nothing, that its client may prove;
/// known to protocols whose timestamps follow clocks
/// ([`TIMESTAMP_STEP`](crate::contract::Protocol::TIMESTAMP_STEP)).
pub const ISSUE: &str = "muesli.issue";

/// The call that has a repository issue a timestamp: it lies there. An idle repository issues that
/// of its clock, or one above all that it has issued.
pub fn issue(repository: RepositoryId) -> Call {
    let procedure = ProcedureId { name: ISSUE.into(), version: 1 };
    let (place, arguments) = (Place::Repository(repository), SmallBytes::EMPTY);
    Call { class: Class::Auto, fragments: vec![Fragment { procedure, place, arguments }] }
}

/// That members have issued timestamps up to this one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Proof {
    /// Up to which.
    pub upto: Timestamp,
    /// The tag of that.
    pub tag: u64,
}

wire_struct!(Proof { upto: Timestamp, tag: u64 });

/// The key that members share.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Issuer {
    key: (u64, u64),
}

impl Issuer {
    /// With this key: 16 bytes that nobody else can guess.
    pub fn new(key: [u8; 16]) -> Issuer {
        let [low, high] = [0, 8].map(|from| {
            let mut half = [0; 8];
            half.copy_from_slice(&key[from..from + 8]);
            u64::from_le_bytes(half)
        });
        Issuer { key: (low, high) }
    }

    /// The proof for timestamps up to `upto`.
    pub fn proof(&self, upto: Timestamp) -> Proof {
        Proof { upto, tag: self.tag(upto) }
    }

    /// What a proof proves; nothing, where its tag is another one.
    pub fn proven(&self, proof: Proof) -> Timestamp {
        let holds = same_tag(self.tag(proof.upto), proof.tag);
        if holds { proof.upto } else { Timestamp::ZERO }
    }

    /// The tag of something else that a member says, by the bytes of all that it is about.
    pub fn vouch(&self, bytes: &[u8]) -> u64 {
        #[expect(deprecated, reason = "as above")]
        let mut hasher = SipHasher::new_with_keys(self.key.0, self.key.1);
        // Longer than a timestamp, so it is the tag of none.
        hasher.write(b"vouched:");
        hasher.write(bytes);
        hasher.finish()
    }

    /// Whether `tag` is what a member vouched with for these bytes.
    pub fn has_vouched(&self, bytes: &[u8], tag: u64) -> bool {
        same_tag(self.vouch(bytes), tag)
    }

    fn tag(&self, upto: Timestamp) -> u64 {
        #[expect(deprecated, reason = "as above")]
        let mut hasher = SipHasher::new_with_keys(self.key.0, self.key.1);
        hasher.write_u64(upto.0);
        hasher.finish()
    }
}

/// Takes as long whatever the answer is.
fn same_tag(one: u64, other: u64) -> bool {
    one.ct_eq(&other).to_bool()
}

/// The key is not shown.
impl std::fmt::Debug for Issuer {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Issuer(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_holds_under_its_key_and_for_its_timestamp() {
        let (own, other) = (Issuer::new([7; 16]), Issuer::new([8; 16]));
        let proof = own.proof(Timestamp(1_000));
        assert_eq!(own.proven(proof), Timestamp(1_000));
        assert_eq!(other.proven(proof), Timestamp::ZERO);
        assert_eq!(own.proven(Proof { upto: Timestamp(1_001), ..proof }), Timestamp::ZERO);
        assert_eq!(own.proven(Proof::default()), Timestamp::ZERO);
        assert_eq!(format!("{own:?}"), "Issuer(…)");
        assert_eq!(own.vouch(b"yes"), own.vouch(b"yes"));
        assert!(own.has_vouched(b"yes", own.vouch(b"yes")));
        assert!(!own.has_vouched(b"yes", own.vouch(b"yes") ^ 1));
        assert_ne!(own.vouch(b"yes"), own.vouch(b"no"));
        assert_ne!(own.vouch(b"yes"), other.vouch(b"yes"));
        assert_ne!(own.vouch(&7u64.to_le_bytes()), own.proof(Timestamp(7)).tag);
    }
}
