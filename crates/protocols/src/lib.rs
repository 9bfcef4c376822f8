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
//! * [`hierarchy`]: votes climb a tree of validators, and the lowest one that covers a transaction
//!   decides it; leaves go by intervals of timestamps, or by locks.
//! * [`tfa`]: one version of each object, the newest; the snapshot of a running transaction moves.
//! * [`two_phase`]: what all of these share.
//! * [`certified`]: each site has all data, and certifies commits in the order of a broadcast.
//! * [`sharded`]: the same with data split over shards, each with a broadcast of its own, and one
//!   timestamp for a transaction over several.
//!
//! [`NAMES`] lists them as `--protocol` takes them, and [`choose`] goes from a name to the type.

use muesli_core::Protocol;

use crate::two_phase::policy::Decider;

mod acknowledgements;
pub mod bumper;
pub mod certified;
mod client_quota;
pub mod doubts;
mod forgotten_clients;
pub mod gmu;
pub mod granola;
pub mod hierarchy;
pub mod non_genuine_multiversioning;
pub mod repeatable_read;
pub mod score;
pub mod sharded;
mod sight;
mod sizes;
pub mod tfa;
pub mod two_phase;
pub mod two_phase_commit;
mod unknown_outcomes;

/// What is done with a protocol that was chosen by name, whichever it is.
pub trait Choice {
    /// What comes of it.
    type Output;

    /// Goes on under protocol `P`, whose switches stand as its name says.
    fn chosen<P: Protocol>(self, switches: P::Switches) -> Self::Output;
}

/// The table of protocols: a line each, with its name, its earlier name if it had one, its type and
/// its rules. Earlier names are accepted wherever a name is, and stay in files and handshakes.
macro_rules! protocols {
    ($($name:literal $(was $earlier:literal)? => $protocol:ty, $switches:expr;)+) => {
        /// The names that `--protocol` takes.
        pub const NAMES: &[&str] = &[$($name),+];

        /// Names that protocols had earlier, each with the name that it has now.
        const EARLIER_NAMES: &[(&str, &str)] = &[$($(($earlier, $name),)?)+];

        /// Goes on with the protocol called `name`, or called so earlier.
        ///
        /// # Errors
        /// There is none of this name here; the choice comes back.
        pub fn choose<C: Choice>(name: &str, choice: C) -> Result<C::Output, C> {
            match canonical_name(name) {
                $($name => Ok(choice.chosen::<$protocol>($switches)),)+
                _ => Err(choice),
            }
        }
    };
}

protocols! {
    "score" => score::Score, score::Switches::default();
    "score-waiting" => score::Score, score::Switches::waiting();
    "bumper" => bumper::Bumper, bumper::Switches::default();
    "bumper-time-warping" was "bumper-tw" => bumper::Bumper, bumper::Switches::time_warping();
    "bumper-delaying" was "bumper-da" => bumper::Bumper, bumper::Switches::delaying();
    "bumper-reconciled" => bumper::Bumper, bumper::Switches::reconciled();
    "bumper-waiting" => bumper::Bumper, bumper::Switches::waiting();
    "bumper-printed" => bumper::Bumper, bumper::Switches::printed();
    "gmu" => gmu::Gmu, gmu::Switches::default();
    "gmu-printed" => gmu::Gmu, gmu::Switches::printed();
    "two-phase-commit" was "2pc" =>
        two_phase_commit::TwoPhaseCommit, two_phase_commit::Switches::default();
    "two-phase-commit-waiting" was "2pc-waiting" =>
        two_phase_commit::TwoPhaseCommit, two_phase_commit::Switches::waiting();
    "repeatable-read" was "rr" =>
        repeatable_read::RepeatableRead, repeatable_read::Switches::default();
    "repeatable-read-at-commit" was "rr-at-commit" =>
        repeatable_read::RepeatableRead, repeatable_read::Switches::at_commit();
    "granola" => granola::Granola, granola::Switches::default();
    "granola-passing" => granola::Granola, granola::Switches::out_of_order();
    "granola-on-demand" => granola::Granola, granola::Switches::locks_undone_on_demand();
    "granola-stay" => granola::Granola, granola::Switches::locking_until_idle();
    "granola-unordered" => granola::Granola, granola::Switches::unordered();
    "granola-locking" => granola::Granola, granola::Switches::locking();
    "sinfonia" => granola::Granola, granola::Switches::sinfonia();
    "hierarchy" => hierarchy::HierarchicalValidation, hierarchy::Switches::default();
    "hierarchy-flat" => hierarchy::HierarchicalValidation,
        hierarchy::Switches::default().decided_by(Decider::Coordinator);
    "hierarchy-flat-participant" => hierarchy::HierarchicalValidation,
        hierarchy::Switches::default().decided_by(Decider::Participant);
    "hierarchy-flat-relay" => hierarchy::HierarchicalValidation,
        hierarchy::Switches::default().decided_by(Decider::Relay);
    "hierarchy-printed" =>
        hierarchy::HierarchicalValidation, hierarchy::Switches::printed_for_timestamps();
    "hierarchy-unchecked" =>
        hierarchy::HierarchicalValidation, hierarchy::Switches::unchecked_with_values();
    "hierarchy-flat-unchecked" =>
        hierarchy::HierarchicalValidation, hierarchy::Switches::unchecked_by(Decider::Coordinator);
    "hierarchy-locking" => hierarchy::HierarchicalValidation, hierarchy::Switches::locking();
    "hierarchy-locking-flat" => hierarchy::HierarchicalValidation,
        hierarchy::Switches::locking().decided_by(Decider::Coordinator);
    "hierarchy-locking-flat-participant" => hierarchy::HierarchicalValidation,
        hierarchy::Switches::locking().decided_by(Decider::Participant);
    "hierarchy-locking-flat-relay" => hierarchy::HierarchicalValidation,
        hierarchy::Switches::locking().decided_by(Decider::Relay);
    "hierarchy-locking-unchecked" =>
        hierarchy::HierarchicalValidation, hierarchy::Switches::unchecked();
    "hierarchy-locking-printed" =>
        hierarchy::HierarchicalValidation, hierarchy::Switches::printed_for_locks();
    "tfa" => tfa::Tfa, tfa::Switches::default();
    "tfa-staying" => tfa::Tfa, tfa::Switches::staying();
    "alvin" => certified::Certified, certified::Switches::default();
    "alvin-fast" => certified::Certified, certified::Switches::alvin_fast();
    "alvin-eus" => certified::Certified, certified::Switches::alvin_eus();
    "certified-epaxos" => certified::Certified, certified::Switches::epaxos();
    "certified-generalized" => certified::Certified, certified::Switches::generalized();
    "certified-m2paxos" => certified::Certified, certified::Switches::m2paxos();
    "certified-multipaxos" => certified::Certified, certified::Switches::multipaxos();
    "sharded-epaxos" => sharded::Sharded, sharded::Switches::epaxos();
    "sharded-generalized" => sharded::Sharded, sharded::Switches::generalized();
    "sharded-m2paxos" => sharded::Sharded, sharded::Switches::m2paxos();
    "sharded-multipaxos" => sharded::Sharded, sharded::Switches::multipaxos();
    "sharded-pob" => sharded::Sharded, sharded::Switches::pob();
    "non-genuine-multiversioning" was "ngm" =>
        non_genuine_multiversioning::NonGenuineMultiversioning, two_phase::Switches::default();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq)]
    struct Name;

    impl Choice for Name {
        type Output = &'static str;

        fn chosen<P: Protocol>(self, _switches: P::Switches) -> &'static str {
            P::NAME
        }
    }

    #[test]
    fn every_name_leads_to_a_protocol_and_no_other_does() {
        for name in NAMES {
            let like = match *name {
                // It is Granola held in locking mode, with a master.
                "sinfonia" => "granola",
                _ if name.starts_with("certified-") => "alvin",
                _ => name,
            };
            assert!(choose(name, Name).is_ok_and(|found| like.starts_with(found)), "{name}");
        }
        assert!(choose("scores", Name).is_err());
    }

    #[test]
    fn earlier_names_lead_to_the_same_protocols_and_are_not_listed() {
        for (earlier, now) in EARLIER_NAMES {
            assert!(!NAMES.contains(earlier) && NAMES.contains(now), "{earlier}");
            assert_eq!(choose(earlier, Name), choose(now, Name), "{earlier}");
            assert_eq!(canonical_name(earlier), *now);
            assert_eq!((stored_name(earlier), stored_name(now)), (*earlier, *earlier));
        }
        assert_eq!(choose("2pc", Name), Ok("two-phase-commit"));
        assert_eq!((canonical_name("score"), stored_name("score")), ("score", "score"));
        assert_eq!(canonical_name("3pc"), "3pc");
    }
}
