//! Types of values, and how each is encoded.

use crate::packed::PackedEncoding;

/// Redis's types of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RdbKind {
    /// Bytes.
    String,
    /// Items in order.
    List,
    /// Members.
    Set,
    /// Members with scores.
    Sorted,
    /// Fields with values.
    Hash,
}

impl RdbKind {
    /// All of them.
    pub const ALL: [RdbKind; 5] =
        [RdbKind::String, RdbKind::List, RdbKind::Set, RdbKind::Sorted, RdbKind::Hash];

    /// As Redis's `TYPE` has it.
    pub fn name(self) -> &'static str {
        match self {
            RdbKind::String => "string",
            RdbKind::List => "list",
            RdbKind::Set => "set",
            RdbKind::Sorted => "zset",
            RdbKind::Hash => "hash",
        }
    }
}

/// How the elements of a value are in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueEncoding {
    /// A count, and each as strings.
    Plain,
    /// A count, and each as a string and a score in eight bytes.
    BinaryScores,
    /// One string, in which they are packed.
    Packed(PackedEncoding),
    /// A count of nodes, each a ziplist.
    Ziplists,
    /// A count of nodes, each an item alone or a listpack.
    Nodes,
}

/// What the number of a type stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueType {
    Read(RdbKind, ValueEncoding),
    /// A name of values that are not read.
    Refused(&'static str),
    /// A value of a module, whose name comes first.
    Module,
    /// Nothing.
    Unknown,
}

pub(crate) fn value_type(number: u8) -> ValueType {
    use PackedEncoding::{Intset, Listpack, Ziplist, Zipmap};
    let packed = |kind, encoding| ValueType::Read(kind, ValueEncoding::Packed(encoding));
    match number {
        0 => ValueType::Read(RdbKind::String, ValueEncoding::Plain),
        1 => ValueType::Read(RdbKind::List, ValueEncoding::Plain),
        2 => ValueType::Read(RdbKind::Set, ValueEncoding::Plain),
        3 => ValueType::Read(RdbKind::Sorted, ValueEncoding::Plain),
        4 => ValueType::Read(RdbKind::Hash, ValueEncoding::Plain),
        5 => ValueType::Read(RdbKind::Sorted, ValueEncoding::BinaryScores),
        6 => ValueType::Refused("values of modules of Redis 4.0 before its release (type 6)"),
        7 => ValueType::Module,
        9 => packed(RdbKind::Hash, Zipmap),
        10 => packed(RdbKind::List, Ziplist),
        11 => packed(RdbKind::Set, Intset),
        12 => packed(RdbKind::Sorted, Ziplist),
        13 => packed(RdbKind::Hash, Ziplist),
        14 => ValueType::Read(RdbKind::List, ValueEncoding::Ziplists),
        15 | 19 | 21 => ValueType::Refused("streams"),
        16 => packed(RdbKind::Hash, Listpack),
        17 => packed(RdbKind::Sorted, Listpack),
        18 => ValueType::Read(RdbKind::List, ValueEncoding::Nodes),
        20 => packed(RdbKind::Set, Listpack),
        22..=25 => ValueType::Refused("hashes whose fields expire (`HEXPIRE` of Redis 7.4)"),
        _ => ValueType::Unknown,
    }
}
