//! Transaction protocols, each in a folder of its own, composed from the parts of `muesli-core`.
//!
//! * [`score`]: multi-version, genuine partial replication, one-copy serializable; read-only
//!   transactions never abort.
//! * [`bumper`]: SCORe whose updates may commit in the past, and delay what they need not see.
//! * [`two_phase_commit`]: two-phase commit with locks, the plain way that others are compared
//!   with.
//! * [`repeatable_read`]: reads of the newest versions, and locks for writes alone.
//! * [`gmu`]: snapshots are vectors: update serializable, no clock is shared.
//! * [`granola`]: one-round transactions, ordered by timestamps that their participants agree on;
//!   and, as a baseline, Sinfonia's: locks, and a master that counts votes.
//! * [`non_genuine_multiversioning`]: SCORe with everybody taking part in every update.
//! * [`two_phase`]: what all of these share.
//!
//! [`NAMES`] lists them as `--protocol` takes them, and [`choose`] goes from a name to the type.

use muesli_core::{Nanos, Protocol};
use thiserror::Error;

pub mod bumper;
pub mod doubts;
pub mod gmu;
pub mod granola;
pub mod non_genuine_multiversioning;
pub mod repeatable_read;
mod sabotage;
pub mod score;
mod sizes;
pub mod two_phase;
pub mod two_phase_commit;

/// What is done with a protocol that was chosen by name, whichever it is.
pub trait Choice {
    /// What comes of it.
    type Output;

    /// Goes on under protocol `P`, whose switches stand as its name says.
    fn chosen<P: Protocol>(self, rules: P::Rules) -> Self::Output;
}

/// A protocol that there is not.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no protocol `{name}`; there are: {}", NAMES.join(", "))]
pub struct UnknownProtocol {
    /// As it was asked for.
    pub name: String,
}

/// The table of protocols: a line each, with its name, its earlier name if it had one, its type and
/// its rules. Earlier names are accepted wherever a name is, and stay in files and handshakes.
macro_rules! protocols {
    ($($name:literal $(was $earlier:literal)? => $protocol:ty, $rules:expr;)+) => {
        /// The names that `--protocol` takes.
        pub const NAMES: &[&str] = &[$($name),+];

        /// Names that protocols had earlier, each with the name that it has now.
        const EARLIER_NAMES: &[(&str, &str)] = &[$($(($earlier, $name),)?)+];

        /// Goes on with the protocol called `name`, or called so earlier.
        ///
        /// # Errors
        /// There is none.
        pub fn choose<C: Choice>(name: &str, choice: C) -> Result<C::Output, UnknownProtocol> {
            match canonical_name(name) {
                $($name => Ok(choice.chosen::<$protocol>($rules)),)+
                _ => Err(UnknownProtocol { name: name.to_owned() }),
            }
        }
    };
}

protocols! {
    "score" => score::Score, score::Rules::default();
    "score-waiting" => score::Score, score::Rules::waiting();
    "bumper" => bumper::Bumper, bumper::Rules::default();
    "bumper-time-warping" was "bumper-tw" => bumper::Bumper, bumper::Rules::time_warping();
    "bumper-delaying" was "bumper-da" => bumper::Bumper, bumper::Rules::delaying();
    "bumper-reconciled" => bumper::Bumper, bumper::Rules::reconciled();
    "bumper-waiting" => bumper::Bumper, bumper::Rules::waiting();
    "bumper-printed" => bumper::Bumper, bumper::Rules::printed();
    "gmu" => gmu::Gmu, gmu::Rules::default();
    "gmu-printed" => gmu::Gmu, gmu::Rules::printed();
    "two-phase-commit" was "2pc" =>
        two_phase_commit::TwoPhaseCommit, two_phase_commit::Rules::default();
    "two-phase-commit-waiting" was "2pc-waiting" =>
        two_phase_commit::TwoPhaseCommit, two_phase_commit::Rules::waiting();
    "repeatable-read" was "rr" =>
        repeatable_read::RepeatableRead, repeatable_read::Rules::default();
    "repeatable-read-at-commit" was "rr-at-commit" =>
        repeatable_read::RepeatableRead, repeatable_read::Rules::at_commit();
    "granola" => granola::Granola, granola::Rules::default();
    "granola-passing" => granola::Granola, granola::Rules::out_of_order();
    "granola-on-demand" => granola::Granola, granola::Rules::locks_undone_on_demand();
    "granola-stay" => granola::Granola, granola::Rules::locking_until_idle();
    "granola-unordered" => granola::Granola, granola::Rules::unordered();
    "granola-locking" => granola::Granola, granola::Rules::locking();
    "sinfonia" => granola::Granola, granola::Rules::sinfonia();
    "non-genuine-multiversioning" was "ngm" =>
        non_genuine_multiversioning::NonGenuineMultiversioning, two_phase::Rules::default();
}

/// The name that `--protocol` lists for a protocol that is called `name`, or was earlier. What is
/// no protocol is given back as it is.
pub fn canonical_name(name: &str) -> &str {
    let found = EARLIER_NAMES.iter().find(|(earlier, _)| *earlier == name);
    found.map_or(name, |(_, now)| *now)
}

/// The name under which a protocol is in files and handshakes: the first that it had, so that data
/// and processes of every version agree on it. What is no protocol is given back as it is.
pub fn stored_name(name: &str) -> &str {
    let found = EARLIER_NAMES.iter().find(|(_, now)| *now == name);
    found.map_or(name, |(earlier, _)| *earlier)
}

/// Whether there is a protocol of this name, or was earlier.
pub fn is_known(name: &str) -> bool {
    NAMES.contains(&canonical_name(name))
}

/// Masters on nodes of their own under a protocol that has none.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("protocol `{name}` has no masters; these have: {}", with_masters().join(", "))]
pub struct NoMasters {
    /// The protocol.
    pub name: String,
}

/// Strict transactions alone under a protocol whose order does not keep real time for them.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "protocol `{name}` has no strict transactions, whose order keeps real time; these have: {}",
    with_strict().join(", ")
)]
pub struct NotStrict {
    /// The protocol.
    pub name: String,
}

/// A timestamp lease under a protocol whose timestamps follow no clock.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "protocol `{name}` has no timestamp leases, as its timestamps follow no clock; these have: {}",
    with_timestamp_leases().join(", ")
)]
pub struct NoTimestampLeases {
    /// The protocol.
    pub name: String,
}

/// The protocols whose masters may be put on nodes of their own.
pub fn with_masters() -> Vec<&'static str> {
    struct Asked;
    impl Choice for Asked {
        type Output = bool;

        fn chosen<P: Protocol>(self, rules: P::Rules) -> bool {
            P::has_masters(&rules)
        }
    }
    NAMES.iter().copied().filter(|name| choose(name, Asked) == Ok(true)).collect()
}

/// Whether the protocol called `name` keeps real time for transactions that ask for it
/// (`TxnOptions::strict`). What is no protocol does not.
pub fn offers_strict(name: &str) -> bool {
    struct Asked;
    impl Choice for Asked {
        type Output = bool;

        fn chosen<P: Protocol>(self, rules: P::Rules) -> bool {
            P::offers_strict(&rules)
        }
    }
    choose(name, Asked) == Ok(true)
}

/// The protocols that have strict transactions.
pub fn with_strict() -> Vec<&'static str> {
    NAMES.iter().copied().filter(|name| offers_strict(name)).collect()
}

/// Whether replaced versions are kept for open transactions under the protocol called `name`
/// ([`Protocol::KEEPS_OLD_VERSIONS`]). What is no protocol keeps none.
pub fn keeps_old_versions(name: &str) -> bool {
    struct Asked;
    impl Choice for Asked {
        type Output = bool;

        fn chosen<P: Protocol>(self, _: P::Rules) -> bool {
            P::KEEPS_OLD_VERSIONS
        }
    }
    choose(name, Asked) == Ok(true)
}

/// How long a step of timestamps is under the protocol called `name`, if they follow clocks
/// ([`Protocol::TIMESTAMP_STEP`]), as a client's timestamp lease needs.
///
/// # Errors
/// They do not. What is no protocol has none either.
pub fn timestamp_step(name: &str) -> Result<Nanos, NoTimestampLeases> {
    struct Asked;
    impl Choice for Asked {
        type Output = Option<Nanos>;

        fn chosen<P: Protocol>(self, _: P::Rules) -> Option<Nanos> {
            P::TIMESTAMP_STEP
        }
    }
    let step = choose(name, Asked).ok().flatten();
    step.ok_or_else(|| NoTimestampLeases { name: name.to_owned() })
}

/// The protocols under which clients may have timestamp leases.
pub fn with_timestamp_leases() -> Vec<&'static str> {
    NAMES.iter().copied().filter(|name| timestamp_step(name).is_ok()).collect()
}

/// Looks whether all transactions under the protocol called `name` can be strict, if they are to
/// be.
///
/// # Errors
/// They are to be, and cannot.
pub fn check_strict(name: &str, strict: bool) -> Result<(), NotStrict> {
    let fits = !strict || offers_strict(name);
    if fits { Ok(()) } else { Err(NotStrict { name: name.to_owned() }) }
}

/// Looks whether the protocol called `name` can have so many masters on nodes of their own.
///
/// # Errors
/// It has none, and is to have some. What is no protocol has none either.
pub fn check_masters(name: &str, masters: usize) -> Result<(), NoMasters> {
    let fits = masters == 0 || with_masters().contains(&canonical_name(name));
    if fits { Ok(()) } else { Err(NoMasters { name: name.to_owned() }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Name;

    impl Choice for Name {
        type Output = &'static str;

        fn chosen<P: Protocol>(self, _rules: P::Rules) -> &'static str {
            P::NAME
        }
    }

    #[test]
    fn every_name_leads_to_a_protocol_and_no_other_does() {
        for name in NAMES {
            // Sinfonia is Granola held in locking mode, with a master.
            let like = if *name == "sinfonia" { "granola" } else { name };
            assert!(choose(name, Name).is_ok_and(|found| like.starts_with(found)), "{name}");
            assert_eq!(check_masters(name, 1).is_ok(), *name == "sinfonia", "{name}");
            assert!(check_masters(name, 0).is_ok(), "{name}");
        }
        let error = choose("scores", Name).unwrap_err().to_string();
        assert!(NAMES.iter().all(|name| error.contains(name)), "{error}");
        let lax = ["repeatable-read", "repeatable-read-at-commit"];
        for name in NAMES {
            let strict =
                *name == "sinfonia" || !(name.starts_with("granola") || lax.contains(name));
            assert_eq!(check_strict(name, true).is_ok(), strict, "{name}");
            assert!(check_strict(name, false).is_ok(), "{name}");
        }
        let error = check_strict("granola", true).unwrap_err().to_string();
        assert!(error.contains("`granola` has no strict") && error.contains("score"), "{error}");
        for name in NAMES {
            let follows_clocks = *name == "sinfonia" || name.starts_with("granola");
            assert_eq!(timestamp_step(name).is_ok(), follows_clocks, "{name}");
        }
        assert_eq!(timestamp_step("granola"), Ok(Nanos(1_024)));
        let error = timestamp_step("score").unwrap_err().to_string();
        assert!(error.contains("`score` has no timestamp") && error.contains("granola-passing"));
        let error = check_masters("score", 2).unwrap_err().to_string();
        assert!(error.contains("`score` has no masters") && error.contains("sinfonia"), "{error}");
    }

    #[test]
    fn earlier_names_lead_to_the_same_protocols_and_are_not_listed() {
        for (earlier, now) in EARLIER_NAMES {
            assert!(!NAMES.contains(earlier) && NAMES.contains(now), "{earlier}");
            assert_eq!(choose(earlier, Name), choose(now, Name), "{earlier}");
            assert_eq!(canonical_name(earlier), *now);
            assert_eq!((stored_name(earlier), stored_name(now)), (*earlier, *earlier));
            assert_eq!(check_strict(earlier, true).is_ok(), check_strict(now, true).is_ok());
            assert!(is_known(earlier) && is_known(now) && check_masters(earlier, 0).is_ok());
        }
        assert_eq!(choose("2pc", Name), Ok("two-phase-commit"));
        assert_eq!((canonical_name("score"), stored_name("score")), ("score", "score"));
        assert_eq!(canonical_name("3pc"), "3pc");
        assert!(!is_known("3pc"));
    }
}
