//! Commands of scripts and of libraries of functions.

mod drive;
mod eval;
mod functions;
mod lists;
mod loading;
mod replies;
mod restoring;
mod rows;
mod scripts;

use super::spec::{NO_KEYS, Spec, data};

/// A command that runs a script or function, which may write, or reads alone.
macro_rules! runs {
    ($name:literal, writes, $since:literal, $handler:path, $differs:literal) => {
        data!(
            "scripting",
            $name,
            -3,
            "noscript stale skip_monitor may_replicate no_mandatory_keys movablekeys",
            NO_KEYS,
            $since,
            "of the commands that it calls",
            $handler,
            $differs
        )
    };
    ($name:literal, reads, $since:literal, $handler:path, $differs:literal) => {
        data!(
            "scripting",
            $name,
            -3,
            "readonly noscript stale skip_monitor no_mandatory_keys movablekeys",
            NO_KEYS,
            $since,
            "of the commands that it calls",
            $handler,
            $differs
        )
    };
}

pub(super) const TABLE: &[Spec] = &[
    runs!(
        "eval",
        writes,
        "2.6.0",
        eval::eval,
        "a script that fails has changed nothing; nobody waits for one that runs for long"
    ),
    runs!("evalsha", writes, "2.6.0", eval::eval, "as EVAL"),
    runs!("eval_ro", reads, "7.0.0", eval::eval, "as EVAL"),
    runs!("evalsha_ro", reads, "7.0.0", eval::eval, "as EVAL"),
    runs!("fcall", writes, "7.0.0", eval::fcall, "as EVAL"),
    runs!("fcall_ro", reads, "7.0.0", eval::fcall, "as EVAL"),
    data!(
        "scripting",
        "function",
        -2,
        "noscript may_replicate",
        NO_KEYS,
        "7.0.0",
        "O(libraries)",
        functions::function,
        "DUMP is in a format of Muesli's own, which RESTORE here takes alone"
    ),
    data!(
        "scripting",
        "script",
        -2,
        "noscript",
        NO_KEYS,
        "2.6.0",
        "O(1)",
        scripts::script,
        "DEBUG is refused; KILL ends all scripts that run on this server, also those that have \
         written"
    ),
];
