//! What protocols promise, as the checker judges it.

use muesli_check::Level;
use muesli_core::Isolation;
use muesli_registry::offers_strict;

/// How the names of protocols begin whose transactions read at one timestamp each.
const SNAPSHOT_FAMILIES: [&str; 6] =
    ["score", "bumper", "two-phase-commit", "hierarchy", "tfa", "non-genuine-multiversioning"];

/// The check that holds under every protocol, whatever it promises.
pub(crate) const ENDS: &str = "everything that was begun ends";

/// What a protocol promises, as the checker judges it; `None` for one that there is not.
pub fn guarantee(protocol: &str) -> Option<(Level, muesli_check::Options)> {
    guarantee_of(protocol, false)
}

/// The same, where all transactions are strict if `strict` says so and the protocol has such.
pub fn guarantee_of(protocol: &str, strict: bool) -> Option<(Level, muesli_check::Options)> {
    let isolation = muesli_registry::protocol(protocol, None).ok()?.isolation();
    let level = match isolation {
        _ if strict && offers_strict(protocol) => Level::StrictSerializable,
        Isolation::Serializable => Level::Serializable,
        Isolation::StrictSerializable => Level::StrictSerializable,
        Isolation::ExtendedUpdateSerializable
        | Isolation::ExtendedUpdateSerializableWithoutSessions => Level::Eus,
        Isolation::RepeatableRead => Level::Rr,
    };
    let session_order = match isolation {
        Isolation::RepeatableRead | Isolation::ExtendedUpdateSerializableWithoutSessions => false,
        Isolation::Serializable
        | Isolation::StrictSerializable
        | Isolation::ExtendedUpdateSerializable => true,
    };
    Some((level, muesli_check::Options { session_order, ..Default::default() }))
}

/// What the protocol promises of every attempt, aborted or undone in part, if that is more than it
/// promises of all transactions: that it sees the database as it was in one serial order of all, or
/// a consistent snapshot of it.
pub fn guarantee_of_attempts(protocol: &str) -> Option<Level> {
    match protocol {
        it if it.ends_with("-printed") || it.ends_with("-unchecked") => None,
        "gmu" | "alvin" | "alvin-fast" => Some(Level::Eus),
        it if it.starts_with("certified-") || it.starts_with("sharded-") => Some(Level::Eus),
        it if SNAPSHOT_FAMILIES.iter().any(|family| it.starts_with(family)) => {
            Some(Level::SerializableAttempts)
        }
        _ => None,
    }
}

/// Whether the protocol promises that a check of this name holds. One that promises less than
/// workloads count on may lose updates: then totals change, lists lose elements, rows that belong
/// together do not fit, and that is no fault of it.
pub fn is_guaranteed(protocol: &str, check: &str) -> bool {
    let little = guarantee(protocol).is_some_and(|(level, _)| level == Level::Rr);
    !little || check == ENDS
}
