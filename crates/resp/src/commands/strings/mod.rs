//! Commands of strings.

mod lcs;
mod numbers;
mod parts;
mod values;

use super::spec::{KeyPositions, ONE_KEY, Spec, data};

pub(super) const TABLE: &[Spec] = &[
    data!(
        "string",
        "append",
        3,
        "write denyoom fast",
        ONE_KEY,
        "2.0.0",
        "O(length of the addition)",
        parts::append
    ),
    data!("string", "decr", 2, "write denyoom fast", ONE_KEY, "1.0.0", "O(1)", numbers::decr),
    data!("string", "decrby", 3, "write denyoom fast", ONE_KEY, "1.0.0", "O(1)", numbers::decrby),
    data!("string", "get", 2, "readonly fast", ONE_KEY, "1.0.0", "O(length)", values::get),
    data!("string", "getdel", 2, "write fast", ONE_KEY, "6.2.0", "O(length)", values::getdel),
    data!("string", "getex", -2, "write fast", ONE_KEY, "6.2.0", "O(length)", values::getex),
    data!(
        "string",
        "getrange",
        4,
        "readonly",
        ONE_KEY,
        "2.4.0",
        "O(length of the part)",
        parts::getrange
    ),
    data!(
        "string",
        "getset",
        3,
        "write denyoom fast",
        ONE_KEY,
        "1.0.0",
        "O(length)",
        values::getset
    ),
    data!("string", "incr", 2, "write denyoom fast", ONE_KEY, "1.0.0", "O(1)", numbers::incr),
    data!("string", "incrby", 3, "write denyoom fast", ONE_KEY, "1.0.0", "O(1)", numbers::incrby),
    data!(
        "string",
        "incrbyfloat",
        3,
        "write denyoom fast",
        ONE_KEY,
        "2.6.0",
        "O(1)",
        numbers::incrbyfloat,
        "sums of decimal numbers are exact up to 19 digits; others are those of doubles"
    ),
    data!(
        "string",
        "lcs",
        -3,
        "readonly",
        KeyPositions(1, 2, 1),
        "7.0.0",
        "O(product of both lengths)",
        lcs::lcs,
        "both lengths together at most 32 million pairs"
    ),
    data!(
        "string",
        "mget",
        -2,
        "readonly fast",
        KeyPositions(1, -1, 1),
        "1.0.0",
        "O(keys)",
        values::mget
    ),
    data!(
        "string",
        "mset",
        -3,
        "write denyoom",
        KeyPositions(1, -1, 2),
        "1.0.1",
        "O(keys)",
        values::mset
    ),
    data!(
        "string",
        "msetnx",
        -3,
        "write denyoom",
        KeyPositions(1, -1, 2),
        "1.0.1",
        "O(keys)",
        values::msetnx
    ),
    data!("string", "psetex", 4, "write denyoom", ONE_KEY, "2.6.0", "O(length)", values::psetex),
    data!("string", "set", -3, "write denyoom", ONE_KEY, "1.0.0", "O(length)", values::set),
    data!("string", "setex", 4, "write denyoom", ONE_KEY, "2.0.0", "O(length)", values::setex),
    data!("string", "setnx", 3, "write denyoom fast", ONE_KEY, "1.0.0", "O(length)", values::setnx),
    data!(
        "string",
        "setrange",
        4,
        "write denyoom",
        ONE_KEY,
        "2.2.0",
        "O(length of the part)",
        parts::setrange
    ),
    data!("string", "strlen", 2, "readonly fast", ONE_KEY, "2.2.0", "O(1)", parts::strlen),
    data!(
        "string",
        "substr",
        4,
        "readonly",
        ONE_KEY,
        "1.0.0",
        "O(length of the part)",
        parts::getrange
    ),
];
