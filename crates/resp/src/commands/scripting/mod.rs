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

pub(super) const TABLE: &[Spec] = &[
    data!(
        "scripting",
        "eval",
        -3,
        "noscript stale skip_monitor may_replicate no_mandatory_keys movablekeys",
        NO_KEYS,
        "2.6.0",
        "of the commands that it calls",
        eval::eval,
        "a script that fails has changed nothing; nobody waits for one that runs for long"
    ),
    data!(
        "scripting",
        "evalsha",
        -3,
        "noscript stale skip_monitor may_replicate no_mandatory_keys movablekeys",
        NO_KEYS,
        "2.6.0",
        "of the commands that it calls",
        eval::eval,
        "as EVAL"
    ),
    data!(
        "scripting",
        "eval_ro",
        -3,
        "readonly noscript stale skip_monitor no_mandatory_keys movablekeys",
        NO_KEYS,
        "7.0.0",
        "of the commands that it calls",
        eval::eval,
        "as EVAL"
    ),
    data!(
        "scripting",
        "evalsha_ro",
        -3,
        "readonly noscript stale skip_monitor no_mandatory_keys movablekeys",
        NO_KEYS,
        "7.0.0",
        "of the commands that it calls",
        eval::eval,
        "as EVAL"
    ),
    data!(
        "scripting",
        "fcall",
        -3,
        "noscript stale skip_monitor may_replicate no_mandatory_keys movablekeys",
        NO_KEYS,
        "7.0.0",
        "of the commands that it calls",
        eval::fcall,
        "as EVAL"
    ),
    data!(
        "scripting",
        "fcall_ro",
        -3,
        "readonly noscript stale skip_monitor no_mandatory_keys movablekeys",
        NO_KEYS,
        "7.0.0",
        "of the commands that it calls",
        eval::fcall,
        "as EVAL"
    ),
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
