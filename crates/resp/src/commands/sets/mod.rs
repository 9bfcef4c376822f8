//! Commands of sets.

mod algebra;
mod members;

use super::spec::{KeyPositions, NO_KEYS, ONE_KEY, Spec, data};

pub(super) const TABLE: &[Spec] = &[
    data!(
        "set",
        "sadd",
        -3,
        "write denyoom fast",
        ONE_KEY,
        "1.0.0",
        "O(members given)",
        members::sadd
    ),
    data!("set", "scard", 2, "readonly fast", ONE_KEY, "1.0.0", "O(1)", members::scard),
    data!(
        "set",
        "sdiff",
        -2,
        "readonly",
        KeyPositions(1, -1, 1),
        "1.0.0",
        "O(members of all sets)",
        algebra::sdiff
    ),
    data!(
        "set",
        "sdiffstore",
        -3,
        "write denyoom",
        KeyPositions(1, -1, 1),
        "1.0.0",
        "O(members of all sets)",
        algebra::sdiffstore
    ),
    data!(
        "set",
        "sinter",
        -2,
        "readonly",
        KeyPositions(1, -1, 1),
        "1.0.0",
        "O(members of the smallest × sets)",
        algebra::sinter
    ),
    data!(
        "set",
        "sintercard",
        -3,
        "readonly movablekeys",
        NO_KEYS,
        "7.0.0",
        "O(members of the smallest × sets)",
        algebra::sintercard
    ),
    data!(
        "set",
        "sinterstore",
        -3,
        "write denyoom",
        KeyPositions(1, -1, 1),
        "1.0.0",
        "O(members of the smallest × sets)",
        algebra::sinterstore
    ),
    data!("set", "sismember", 3, "readonly fast", ONE_KEY, "1.0.0", "O(1)", members::sismember),
    data!("set", "smembers", 2, "readonly", ONE_KEY, "1.0.0", "O(members)", members::smembers),
    data!(
        "set",
        "smismember",
        -3,
        "readonly fast",
        ONE_KEY,
        "6.2.0",
        "O(members given)",
        members::smismember
    ),
    data!("set", "smove", 4, "write fast", KeyPositions(1, 2, 1), "1.0.0", "O(1)", members::smove),
    data!(
        "set",
        "spop",
        -2,
        "write fast",
        ONE_KEY,
        "1.0.0",
        "O(1,024 or members taken)",
        members::spop
    ),
    data!(
        "set",
        "srandmember",
        -2,
        "readonly",
        ONE_KEY,
        "1.0.0",
        "O(1,024 or members asked for)",
        members::srandmember,
        "of sets with more than 1,024 members some are more likely than others; \
         at most 16,777,216 with repetitions"
    ),
    data!("set", "srem", -3, "write fast", ONE_KEY, "1.0.0", "O(members given)", members::srem),
    data!("set", "sscan", -3, "readonly", ONE_KEY, "2.8.0", "O(COUNT)", members::sscan),
    data!(
        "set",
        "sunion",
        -2,
        "readonly",
        KeyPositions(1, -1, 1),
        "1.0.0",
        "O(members of all sets)",
        algebra::sunion
    ),
    data!(
        "set",
        "sunionstore",
        -3,
        "write denyoom",
        KeyPositions(1, -1, 1),
        "1.0.0",
        "O(members of all sets)",
        algebra::sunionstore
    ),
];
