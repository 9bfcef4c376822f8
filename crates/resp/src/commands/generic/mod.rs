//! Commands of keys of any type, and of databases.

mod databases;
mod dump;
mod expiry;
mod iterating;
mod keys;
mod moving;
mod objects;
mod sort;

use super::spec::{KeyPositions, NO_KEYS, ONE_KEY, Spec, data};

pub(super) const TABLE: &[Spec] = &[
    data!(
        "generic",
        "copy",
        -3,
        "write denyoom",
        KeyPositions(1, 2, 1),
        "6.2.0",
        "O(members)",
        moving::copy
    ),
    data!(
        "generic",
        "del",
        -2,
        "write",
        KeyPositions(1, -1, 1),
        "1.0.0",
        "O(keys)",
        keys::del,
        "members of collections are taken away afterwards, as by UNLINK"
    ),
    data!(
        "generic",
        "dump",
        2,
        "readonly",
        ONE_KEY,
        "2.6.0",
        "O(members)",
        dump::dump,
        "in a format of Muesli's own, which RESTORE here takes alone"
    ),
    data!(
        "generic",
        "exists",
        -2,
        "readonly fast",
        KeyPositions(1, -1, 1),
        "1.0.0",
        "O(keys)",
        keys::exists
    ),
    data!("generic", "expire", -3, "write fast", ONE_KEY, "1.0.0", "O(1)", expiry::expire),
    data!("generic", "expireat", -3, "write fast", ONE_KEY, "1.2.0", "O(1)", expiry::expireat),
    data!(
        "generic",
        "expiretime",
        2,
        "readonly fast",
        ONE_KEY,
        "7.0.0",
        "O(1)",
        expiry::expiretime
    ),
    data!("generic", "keys", 2, "readonly", NO_KEYS, "1.0.0", "O(keys)", iterating::keys),
    data!("generic", "move", 3, "write fast", ONE_KEY, "1.0.0", "O(1)", moving::move_key),
    data!(
        "generic",
        "object",
        -2,
        "readonly",
        KeyPositions(2, 2, 1),
        "2.2.3",
        "O(1)",
        objects::object,
        "encodings are told as Redis would choose them; idle times and frequencies are zero"
    ),
    data!("generic", "persist", 2, "write fast", ONE_KEY, "2.2.0", "O(1)", expiry::persist),
    data!("generic", "pexpire", -3, "write fast", ONE_KEY, "2.6.0", "O(1)", expiry::pexpire),
    data!("generic", "pexpireat", -3, "write fast", ONE_KEY, "2.6.0", "O(1)", expiry::pexpireat),
    data!(
        "generic",
        "pexpiretime",
        2,
        "readonly fast",
        ONE_KEY,
        "7.0.0",
        "O(1)",
        expiry::pexpiretime
    ),
    data!("generic", "pttl", 2, "readonly fast", ONE_KEY, "2.6.0", "O(1)", expiry::pttl),
    data!(
        "generic",
        "randomkey",
        1,
        "readonly",
        NO_KEYS,
        "1.0.0",
        "O(log(keys))",
        iterating::randomkey,
        "some keys are more likely than others"
    ),
    data!("generic", "rename", 3, "write", KeyPositions(1, 2, 1), "1.0.0", "O(1)", moving::rename),
    data!(
        "generic",
        "renamenx",
        3,
        "write fast",
        KeyPositions(1, 2, 1),
        "1.0.0",
        "O(1)",
        moving::renamenx
    ),
    data!(
        "generic",
        "restore",
        -4,
        "write denyoom",
        ONE_KEY,
        "2.6.0",
        "O(members × log(members))",
        dump::restore,
        "of what DUMP gave here"
    ),
    data!("generic", "scan", -2, "readonly", NO_KEYS, "2.8.0", "O(COUNT)", iterating::scan),
    data!(
        "generic",
        "sort",
        -2,
        "write denyoom movablekeys",
        ONE_KEY,
        "1.0.0",
        "O(members × log(members))",
        sort::sort
    ),
    data!(
        "generic",
        "sort_ro",
        -2,
        "readonly movablekeys",
        ONE_KEY,
        "7.0.0",
        "O(members × log(members))",
        sort::sort_ro
    ),
    data!(
        "generic",
        "touch",
        -2,
        "readonly fast",
        KeyPositions(1, -1, 1),
        "3.2.1",
        "O(keys)",
        keys::exists
    ),
    data!("generic", "ttl", 2, "readonly fast", ONE_KEY, "1.0.0", "O(1)", expiry::ttl),
    data!("generic", "type", 2, "readonly fast", ONE_KEY, "1.0.0", "O(1)", keys::type_of),
    data!(
        "generic",
        "unlink",
        -2,
        "write fast",
        KeyPositions(1, -1, 1),
        "4.0.0",
        "O(keys)",
        keys::del
    ),
    data!("server", "dbsize", 1, "readonly fast", NO_KEYS, "1.0.0", "O(1)", databases::dbsize),
    data!(
        "server",
        "flushall",
        -1,
        "write",
        NO_KEYS,
        "1.0.0",
        "O(1)",
        databases::flushall,
        "what was there is taken away afterwards, with SYNC as well"
    ),
    data!(
        "server",
        "flushdb",
        -1,
        "write",
        NO_KEYS,
        "1.0.0",
        "O(1)",
        databases::flushdb,
        "what was there is taken away afterwards, with SYNC as well"
    ),
    data!("server", "swapdb", 3, "write fast", NO_KEYS, "4.0.0", "O(1)", databases::swapdb),
    data!(
        "server",
        "memory",
        -2,
        "readonly",
        KeyPositions(2, 2, 1),
        "4.0.0",
        "O(SAMPLES)",
        objects::memory,
        "USAGE alone, of what is in rows; DOCTOR knows nothing"
    ),
];
