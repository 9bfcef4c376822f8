//! Commands of hashes.

mod fields;
mod whole;

use super::spec::{ONE_KEY, Spec, data};

pub(super) const TABLE: &[Spec] = &[
    data!("hash", "hdel", -3, "write fast", ONE_KEY, "2.0.0", "O(fields given)", fields::hdel),
    data!("hash", "hexists", 3, "readonly fast", ONE_KEY, "2.0.0", "O(1)", fields::hexists),
    data!("hash", "hget", 3, "readonly fast", ONE_KEY, "2.0.0", "O(1)", fields::hget),
    data!("hash", "hgetall", 2, "readonly", ONE_KEY, "2.0.0", "O(fields)", whole::hgetall),
    data!("hash", "hincrby", 4, "write denyoom fast", ONE_KEY, "2.0.0", "O(1)", fields::hincrby),
    data!(
        "hash",
        "hincrbyfloat",
        4,
        "write denyoom fast",
        ONE_KEY,
        "2.6.0",
        "O(1)",
        fields::hincrbyfloat
    ),
    data!("hash", "hkeys", 2, "readonly", ONE_KEY, "2.0.0", "O(fields)", whole::hkeys),
    data!("hash", "hlen", 2, "readonly fast", ONE_KEY, "2.0.0", "O(1)", whole::hlen),
    data!("hash", "hmget", -3, "readonly fast", ONE_KEY, "2.0.0", "O(fields given)", fields::hmget),
    data!(
        "hash",
        "hmset",
        -4,
        "write denyoom fast",
        ONE_KEY,
        "2.0.0",
        "O(fields given)",
        fields::hmset
    ),
    data!(
        "hash",
        "hrandfield",
        -2,
        "readonly",
        ONE_KEY,
        "6.2.0",
        "O(1,024 or fields asked for)",
        whole::hrandfield,
        "of hashes with more than 1,024 fields some are more likely than others; \
         at most 16,777,216 with repetitions"
    ),
    data!("hash", "hscan", -3, "readonly", ONE_KEY, "2.8.0", "O(COUNT)", whole::hscan),
    data!(
        "hash",
        "hset",
        -4,
        "write denyoom fast",
        ONE_KEY,
        "2.0.0",
        "O(fields given)",
        fields::hset
    ),
    data!("hash", "hsetnx", 4, "write denyoom fast", ONE_KEY, "2.0.0", "O(1)", fields::hsetnx),
    data!("hash", "hstrlen", 3, "readonly fast", ONE_KEY, "3.2.0", "O(1)", fields::hstrlen),
    data!("hash", "hvals", 2, "readonly", ONE_KEY, "2.0.0", "O(fields)", whole::hvals),
];
