//! Byte strings to small numbers and back.
//!
//! All strings lie in one buffer; the hash table holds only their numbers. Numbers are given in
//! order of first sight, so nothing depends on the order of the table.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

/// A set of byte strings, each with a number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interner {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    table: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl Interner {
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn bytes(&self, id: u32) -> &[u8] {
        slice(&self.bytes, &self.ends, id)
    }

    /// The number of `string`, new or known; `None` when all numbers are given away.
    pub(crate) fn intern(&mut self, string: &[u8]) -> Option<u32> {
        let Interner { bytes, ends, table, hasher } = self;
        let hash = hasher.hash_one(string);
        if let Some(&id) = table.find(hash, |&id| slice(bytes, ends, id) == string) {
            return Some(id);
        }
        let id = u32::try_from(ends.len()).ok()?;
        bytes.extend_from_slice(string);
        ends.push(bytes.len());
        table.insert_unique(hash, id, |&id| hasher.hash_one(slice(bytes, ends, id)));
        Some(id)
    }
}

fn slice<'a>(bytes: &'a [u8], ends: &[usize], id: u32) -> &'a [u8] {
    let id = id as usize;
    let start = if id == 0 { 0 } else { ends[id - 1] };
    &bytes[start..ends[id]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_strings_share_a_number_and_keep_their_bytes() {
        let mut interner = Interner::default();
        let strings: Vec<Vec<u8>> = (0..1000_u32).map(|i| (i % 700).to_be_bytes().into()).collect();
        for (i, string) in strings.iter().enumerate() {
            assert_eq!(interner.intern(string), Some(i as u32 % 700));
        }
        assert_eq!(interner.len(), 700);
        assert_eq!(interner.bytes(699), 699_u32.to_be_bytes());
        assert_eq!(interner.intern(b""), Some(700));
        assert_eq!(interner.bytes(700), b"");
    }
}
