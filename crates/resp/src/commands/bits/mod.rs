//! Commands of bits in strings.

mod counting;
mod fields;
mod operations;
mod single;

use super::spec::{KeyPositions, ONE_KEY, Spec, data};

pub(super) const TABLE: &[Spec] = &[
    data!(
        "bitmap",
        "bitcount",
        -2,
        "readonly",
        ONE_KEY,
        "2.6.0",
        "O(length of the part)",
        counting::bitcount
    ),
    data!(
        "bitmap",
        "bitfield",
        -2,
        "write denyoom",
        ONE_KEY,
        "3.2.0",
        "O(fields given)",
        fields::bitfield
    ),
    data!(
        "bitmap",
        "bitfield_ro",
        -2,
        "readonly fast",
        ONE_KEY,
        "6.0.0",
        "O(fields given)",
        fields::bitfield_ro
    ),
    data!(
        "bitmap",
        "bitop",
        -4,
        "write denyoom",
        KeyPositions(2, -1, 1),
        "2.6.0",
        "O(length × keys)",
        operations::bitop
    ),
    data!(
        "bitmap",
        "bitpos",
        -3,
        "readonly",
        ONE_KEY,
        "2.8.7",
        "O(length of the part)",
        counting::bitpos
    ),
    data!("bitmap", "getbit", 3, "readonly fast", ONE_KEY, "2.2.0", "O(1)", single::getbit),
    data!("bitmap", "setbit", 4, "write denyoom", ONE_KEY, "2.2.0", "O(1)", single::setbit),
];
