//! Commands that the server carries out itself.

use super::spec::{Body, KeyPositions, NO_KEYS, Spec};

const fn own(
    group: &'static str,
    name: &'static str,
    arity: i32,
    flags: &'static str,
    since: &'static str,
    differs: &'static str,
) -> Spec {
    let (keys, body, complexity) = (NO_KEYS, Body::Server, "O(1)");
    Spec { name, arity, flags, keys, group, since, complexity, differs, body }
}

const NOTHING_TO_SAVE: &str =
    "refused: all is on the disk, or nothing is to be with `--durability memory`";

pub(super) const TABLE: &[Spec] = &[
    own(
        "connection",
        "auth",
        -2,
        "no_multi noscript loading stale fast no_auth",
        "1.0.0",
        "not in MULTI",
    ),
    own(
        "connection",
        "client",
        -2,
        "admin noscript loading stale",
        "2.4.0",
        "no PAUSE, no TRACKING",
    ),
    own("connection", "echo", 2, "loading stale fast", "1.0.0", ""),
    own(
        "connection",
        "hello",
        -1,
        "no_multi noscript loading stale fast no_auth",
        "6.0.0",
        "not in MULTI",
    ),
    own("connection", "ping", -1, "fast", "1.0.0", ""),
    own("connection", "quit", -1, "noscript loading stale fast no_auth", "1.0.0", ""),
    own("connection", "reset", 1, "noscript loading stale fast no_auth", "6.2.0", ""),
    own("connection", "select", 2, "loading stale fast", "1.0.0", ""),
    own(
        "server",
        "acl",
        -2,
        "admin noscript loading stale",
        "6.0.0",
        "WHOAMI, USERS, LIST and CAT alone; users are those of a file",
    ),
    own("server", "bgrewriteaof", 1, "admin noscript", "1.0.0", NOTHING_TO_SAVE),
    own("server", "bgsave", -1, "admin noscript", "1.0.0", NOTHING_TO_SAVE),
    own(
        "server",
        "cluster",
        -2,
        "admin noscript stale",
        "3.0.0",
        "as of a Redis without cluster mode: every server serves every key",
    ),
    own("server", "command", -1, "loading stale", "2.8.13", ""),
    own(
        "server",
        "config",
        -2,
        "admin noscript loading stale",
        "2.0.0",
        "what is about the inside of Redis has no effect; `appendonly` and `appendfsync` \
         are as the server was started",
    ),
    own("server", "debug", -2, "admin noscript loading stale", "1.0.0", "refused"),
    own("server", "info", -1, "loading stale", "1.0.0", "the sections that mean something"),
    own("server", "lastsave", 1, "loading stale fast", "1.0.0", "now"),
    own(
        "server",
        "latency",
        -2,
        "admin noscript loading stale",
        "2.8.13",
        "HISTOGRAM; LATEST and HISTORY are empty",
    ),
    own("server", "monitor", 1, "admin noscript loading stale", "1.0.0", "refused"),
    own("server", "replicaof", 3, "admin noscript stale", "5.0.0", "refused"),
    own("server", "role", 1, "noscript loading stale fast", "2.8.12", ""),
    own("server", "save", 1, "admin no_multi noscript", "1.0.0", NOTHING_TO_SAVE),
    own(
        "server",
        "shutdown",
        -1,
        "admin no_multi noscript loading stale",
        "1.0.0",
        "refused: a signal stops the server",
    ),
    own("server", "slaveof", 3, "admin noscript stale", "1.0.0", "refused"),
    own("server", "slowlog", -2, "admin loading stale", "2.2.12", "of this server's clients"),
    own("server", "time", 1, "loading stale fast", "2.6.0", ""),
    own(
        "generic",
        "wait",
        3,
        "noscript blocking",
        "3.0.0",
        "0 at once: what is acknowledged is where it is to be",
    ),
    own("transactions", "discard", 1, "noscript loading stale fast", "2.0.0", ""),
    own(
        "transactions",
        "exec",
        1,
        "noscript loading stale",
        "1.2.0",
        "one serializable transaction, over any keys of any nodes",
    ),
    own("transactions", "multi", 1, "noscript loading stale fast", "1.2.0", ""),
    own("transactions", "unwatch", 1, "noscript loading stale fast", "2.2.0", ""),
    Spec {
        keys: KeyPositions(1, -1, 1),
        ..own(
            "transactions",
            "watch",
            -2,
            "noscript loading stale fast",
            "2.2.0",
            "for ten minutes; afterwards EXEC may say no",
        )
    },
    own("pubsub", "psubscribe", -2, "pubsub noscript loading stale", "2.0.0", ""),
    own(
        "pubsub",
        "publish",
        3,
        "pubsub loading stale fast",
        "2.0.0",
        "to the subscribers of the same server",
    ),
    own("pubsub", "pubsub", -2, "pubsub loading stale", "2.8.0", ""),
    own("pubsub", "punsubscribe", -1, "pubsub noscript loading stale", "2.0.0", ""),
    own(
        "pubsub",
        "spublish",
        3,
        "pubsub loading stale fast",
        "7.0.0",
        "to the subscribers of the same server",
    ),
    own("pubsub", "ssubscribe", -2, "pubsub noscript loading stale", "7.0.0", ""),
    own("pubsub", "subscribe", -2, "pubsub noscript loading stale", "2.0.0", ""),
    own("pubsub", "sunsubscribe", -1, "pubsub noscript loading stale", "7.0.0", ""),
    own("pubsub", "unsubscribe", -1, "pubsub noscript loading stale", "2.0.0", ""),
];

/// What there is instead of scripts where the server was built without them.
#[cfg(not(feature = "scripts"))]
pub(super) const WITHOUT_SCRIPTS: &[Spec] = &[
    own("scripting", "eval", -3, "noscript", "2.6.0", "refused"),
    own("scripting", "evalsha", -3, "noscript", "2.6.0", "refused"),
    own("scripting", "eval_ro", -3, "noscript", "7.0.0", "refused"),
    own("scripting", "evalsha_ro", -3, "noscript", "7.0.0", "refused"),
    own("scripting", "fcall", -3, "noscript", "7.0.0", "refused"),
    own("scripting", "fcall_ro", -3, "noscript", "7.0.0", "refused"),
    own("scripting", "function", -2, "noscript", "7.0.0", "FLUSH and LIST alone"),
    own("scripting", "script", -2, "noscript", "2.6.0", "FLUSH and EXISTS alone"),
];
