//! Commands of lists.

mod ends;
mod items;
mod moving;

use super::spec::{KeyPositions, NO_KEYS, ONE_KEY, Spec, data};

pub(super) const TABLE: &[Spec] = &[
    data!(
        "list",
        "blmove",
        6,
        "write denyoom noscript blocking",
        KeyPositions(1, 2, 1),
        "6.2.0",
        "O(1)",
        moving::blmove
    ),
    data!(
        "list",
        "blmpop",
        -5,
        "write blocking movablekeys",
        NO_KEYS,
        "7.0.0",
        "O(keys + items taken)",
        ends::blmpop
    ),
    data!(
        "list",
        "blpop",
        -3,
        "write noscript blocking",
        KeyPositions(1, -2, 1),
        "2.0.0",
        "O(keys)",
        ends::blpop
    ),
    data!(
        "list",
        "brpop",
        -3,
        "write noscript blocking",
        KeyPositions(1, -2, 1),
        "2.0.0",
        "O(keys)",
        ends::brpop
    ),
    data!(
        "list",
        "brpoplpush",
        4,
        "write denyoom noscript blocking",
        KeyPositions(1, 2, 1),
        "2.2.0",
        "O(1)",
        moving::brpoplpush
    ),
    data!("list", "lindex", 3, "readonly", ONE_KEY, "1.0.0", "O(1)", items::lindex),
    data!("list", "linsert", 5, "write denyoom", ONE_KEY, "2.2.0", "O(items)", items::linsert),
    data!("list", "llen", 2, "readonly fast", ONE_KEY, "1.0.0", "O(1)", items::llen),
    data!(
        "list",
        "lmove",
        5,
        "write denyoom",
        KeyPositions(1, 2, 1),
        "6.2.0",
        "O(1)",
        moving::lmove
    ),
    data!(
        "list",
        "lmpop",
        -4,
        "write movablekeys",
        NO_KEYS,
        "7.0.0",
        "O(keys + items taken)",
        ends::lmpop
    ),
    data!("list", "lpop", -2, "write fast", ONE_KEY, "1.0.0", "O(items taken)", ends::lpop),
    data!("list", "lpos", -3, "readonly", ONE_KEY, "6.0.6", "O(items)", items::lpos),
    data!(
        "list",
        "lpush",
        -3,
        "write denyoom fast",
        ONE_KEY,
        "1.0.0",
        "O(items given)",
        ends::lpush
    ),
    data!(
        "list",
        "lpushx",
        -3,
        "write denyoom fast",
        ONE_KEY,
        "2.2.0",
        "O(items given)",
        ends::lpushx
    ),
    data!(
        "list",
        "lrange",
        4,
        "readonly",
        ONE_KEY,
        "1.0.0",
        "O(items in the range)",
        items::lrange
    ),
    data!("list", "lrem", 4, "write", ONE_KEY, "1.0.0", "O(items)", items::lrem),
    data!("list", "lset", 4, "write denyoom", ONE_KEY, "1.0.0", "O(1)", items::lset),
    data!("list", "ltrim", 4, "write", ONE_KEY, "1.0.0", "O(items taken away)", items::ltrim),
    data!("list", "rpop", -2, "write fast", ONE_KEY, "1.0.0", "O(items taken)", ends::rpop),
    data!(
        "list",
        "rpoplpush",
        3,
        "write denyoom",
        KeyPositions(1, 2, 1),
        "1.2.0",
        "O(1)",
        moving::rpoplpush
    ),
    data!(
        "list",
        "rpush",
        -3,
        "write denyoom fast",
        ONE_KEY,
        "1.0.0",
        "O(items given)",
        ends::rpush
    ),
    data!(
        "list",
        "rpushx",
        -3,
        "write denyoom fast",
        ONE_KEY,
        "2.2.0",
        "O(items given)",
        ends::rpushx
    ),
];
