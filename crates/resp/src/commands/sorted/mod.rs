//! Commands of sorted sets.

mod adding;
mod algebra;
mod bounds;
mod members;
mod popping;
mod ranges;
mod reading;
mod removing;

use super::spec::{KeyPositions, NO_KEYS, ONE_KEY, Spec, data};

pub(super) const TABLE: &[Spec] = &[
    data!(
        "sorted-set",
        "bzmpop",
        -5,
        "write blocking movablekeys",
        NO_KEYS,
        "7.0.0",
        "O(keys + members taken × log(members))",
        popping::bzmpop
    ),
    data!(
        "sorted-set",
        "bzpopmax",
        -3,
        "write noscript blocking fast",
        KeyPositions(1, -2, 1),
        "5.0.0",
        "O(log(members))",
        popping::bzpopmax
    ),
    data!(
        "sorted-set",
        "bzpopmin",
        -3,
        "write noscript blocking fast",
        KeyPositions(1, -2, 1),
        "5.0.0",
        "O(log(members))",
        popping::bzpopmin
    ),
    data!(
        "sorted-set",
        "zadd",
        -4,
        "write denyoom fast",
        ONE_KEY,
        "1.2.0",
        "O(members given × log(members))",
        adding::zadd
    ),
    data!("sorted-set", "zcard", 2, "readonly fast", ONE_KEY, "1.2.0", "O(1)", reading::zcard),
    data!(
        "sorted-set",
        "zcount",
        4,
        "readonly fast",
        ONE_KEY,
        "2.0.0",
        "O(members in the range)",
        ranges::zcount
    ),
    data!(
        "sorted-set",
        "zdiff",
        -3,
        "readonly movablekeys",
        NO_KEYS,
        "6.2.0",
        "O(members of all sets)",
        algebra::zdiff
    ),
    data!(
        "sorted-set",
        "zdiffstore",
        -4,
        "write denyoom movablekeys",
        ONE_KEY,
        "6.2.0",
        "O(members of all sets)",
        algebra::zdiffstore
    ),
    data!(
        "sorted-set",
        "zincrby",
        4,
        "write denyoom fast",
        ONE_KEY,
        "1.2.0",
        "O(log(members))",
        adding::zincrby
    ),
    data!(
        "sorted-set",
        "zinter",
        -3,
        "readonly movablekeys",
        NO_KEYS,
        "6.2.0",
        "O(members of all sets)",
        algebra::zinter
    ),
    data!(
        "sorted-set",
        "zintercard",
        -3,
        "readonly movablekeys",
        NO_KEYS,
        "7.0.0",
        "O(members of all sets)",
        algebra::zintercard
    ),
    data!(
        "sorted-set",
        "zinterstore",
        -4,
        "write denyoom movablekeys",
        ONE_KEY,
        "2.0.0",
        "O(members of all sets)",
        algebra::zinterstore
    ),
    data!(
        "sorted-set",
        "zlexcount",
        4,
        "readonly fast",
        ONE_KEY,
        "2.8.9",
        "O(members)",
        ranges::zlexcount
    ),
    data!(
        "sorted-set",
        "zmpop",
        -4,
        "write movablekeys",
        NO_KEYS,
        "7.0.0",
        "O(keys + members taken × log(members))",
        popping::zmpop
    ),
    data!(
        "sorted-set",
        "zmscore",
        -3,
        "readonly fast",
        ONE_KEY,
        "6.2.0",
        "O(members given)",
        reading::zmscore
    ),
    data!(
        "sorted-set",
        "zpopmax",
        -2,
        "write fast",
        ONE_KEY,
        "5.0.0",
        "O(members taken × log(members))",
        popping::zpopmax
    ),
    data!(
        "sorted-set",
        "zpopmin",
        -2,
        "write fast",
        ONE_KEY,
        "5.0.0",
        "O(members taken × log(members))",
        popping::zpopmin
    ),
    data!(
        "sorted-set",
        "zrandmember",
        -2,
        "readonly",
        ONE_KEY,
        "6.2.0",
        "O(1,024 or members asked for)",
        members::zrandmember,
        "of sets with more than 1,024 members some are more likely than others; \
         at most 16,777,216 with repetitions"
    ),
    data!(
        "sorted-set",
        "zrange",
        -4,
        "readonly",
        ONE_KEY,
        "1.2.0",
        "O(members up to the end of the range)",
        ranges::zrange
    ),
    data!(
        "sorted-set",
        "zrangebylex",
        -4,
        "readonly",
        ONE_KEY,
        "2.8.9",
        "O(members)",
        ranges::zrangebylex
    ),
    data!(
        "sorted-set",
        "zrangebyscore",
        -4,
        "readonly",
        ONE_KEY,
        "1.0.5",
        "O(log(members) + members in the range)",
        ranges::zrangebyscore
    ),
    data!(
        "sorted-set",
        "zrangestore",
        -5,
        "write denyoom",
        KeyPositions(1, 2, 1),
        "6.2.0",
        "O(members up to the end of the range)",
        ranges::zrangestore
    ),
    data!("sorted-set", "zrank", 3, "readonly fast", ONE_KEY, "2.0.0", "O(rank)", reading::zrank),
    data!(
        "sorted-set",
        "zrem",
        -3,
        "write fast",
        ONE_KEY,
        "1.2.0",
        "O(members given × log(members))",
        removing::zrem
    ),
    data!(
        "sorted-set",
        "zremrangebylex",
        4,
        "write",
        ONE_KEY,
        "2.8.9",
        "O(members)",
        removing::zremrangebylex
    ),
    data!(
        "sorted-set",
        "zremrangebyrank",
        4,
        "write",
        ONE_KEY,
        "2.0.0",
        "O(members up to the end of the range)",
        removing::zremrangebyrank
    ),
    data!(
        "sorted-set",
        "zremrangebyscore",
        4,
        "write",
        ONE_KEY,
        "1.2.0",
        "O(log(members) + members in the range)",
        removing::zremrangebyscore
    ),
    data!(
        "sorted-set",
        "zrevrange",
        -4,
        "readonly",
        ONE_KEY,
        "1.2.0",
        "O(members up to the end of the range)",
        ranges::zrevrange
    ),
    data!(
        "sorted-set",
        "zrevrangebylex",
        -4,
        "readonly",
        ONE_KEY,
        "2.8.9",
        "O(members)",
        ranges::zrevrangebylex
    ),
    data!(
        "sorted-set",
        "zrevrangebyscore",
        -4,
        "readonly",
        ONE_KEY,
        "2.2.0",
        "O(log(members) + members in the range)",
        ranges::zrevrangebyscore
    ),
    data!(
        "sorted-set",
        "zrevrank",
        3,
        "readonly fast",
        ONE_KEY,
        "2.0.0",
        "O(rank)",
        reading::zrevrank
    ),
    data!("sorted-set", "zscan", -3, "readonly", ONE_KEY, "2.8.0", "O(COUNT)", members::zscan),
    data!("sorted-set", "zscore", 3, "readonly fast", ONE_KEY, "1.2.0", "O(1)", reading::zscore),
    data!(
        "sorted-set",
        "zunion",
        -3,
        "readonly movablekeys",
        NO_KEYS,
        "6.2.0",
        "O(members of all sets)",
        algebra::zunion
    ),
    data!(
        "sorted-set",
        "zunionstore",
        -4,
        "write denyoom movablekeys",
        ONE_KEY,
        "2.0.0",
        "O(members of all sets)",
        algebra::zunionstore
    ),
];
