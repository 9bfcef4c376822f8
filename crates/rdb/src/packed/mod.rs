//! Elements that are packed in one string, in four ways.

mod bytes;
mod intset;
mod listpack;
mod ziplist;
mod zipmap;

use crate::error::RdbErrorKind;
use bytes::{AFTER_END, COUNT, Damage, PackedBytes};

/// How elements are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PackedEncoding {
    Ziplist,
    Listpack,
    Intset,
    Zipmap,
}

impl PackedEncoding {
    fn name(self) -> &'static str {
        match self {
            PackedEncoding::Ziplist => "ziplist",
            PackedEncoding::Listpack => "listpack",
            PackedEncoding::Intset => "intset",
            PackedEncoding::Zipmap => "zipmap",
        }
    }
}

/// The entries of a packed string, one after the other.
pub(crate) struct PackedEntries {
    encoding: PackedEncoding,
    bytes: PackedBytes,
    /// How many are still to come, where that is known.
    left: Option<u64>,
    /// Of a ziplist the length of the entry before, of an intset the size of a member.
    number: usize,
    /// Of a zipmap: the next one is a value.
    is_value: bool,
    is_over: bool,
}

impl PackedEntries {
    /// # Errors
    /// The string does not begin as such ones do.
    pub fn open(encoding: PackedEncoding, bytes: Vec<u8>) -> Result<PackedEntries, RdbErrorKind> {
        let mut bytes = PackedBytes::new(bytes);
        let begun = match encoding {
            PackedEncoding::Ziplist => ziplist::begin(&mut bytes).map(|count| (count, 0)),
            PackedEncoding::Listpack => listpack::begin(&mut bytes).map(|count| (count, 0)),
            PackedEncoding::Intset => intset::begin(&mut bytes),
            PackedEncoding::Zipmap => zipmap::begin(&mut bytes).map(|count| (count, 0)),
        };
        match begun {
            Ok((left, number)) => {
                let (is_value, is_over) = (false, false);
                Ok(PackedEntries { encoding, bytes, left, number, is_value, is_over })
            }
            Err(why) => Err(damaged(encoding, bytes.at(), why)),
        }
    }

    /// The next entry; `None` at the end.
    ///
    /// # Errors
    /// What comes next makes no sense.
    pub fn next(&mut self) -> Result<Option<Vec<u8>>, RdbErrorKind> {
        if self.is_over {
            return Ok(None);
        }
        let at = self.bytes.at();
        let found = self.read().map_err(|why| damaged(self.encoding, at, why))?;
        self.is_over = found.is_none();
        Ok(found)
    }

    fn read(&mut self) -> Result<Option<Vec<u8>>, Damage> {
        let bytes = &mut self.bytes;
        let found = match self.encoding {
            PackedEncoding::Ziplist => ziplist::next(bytes, &mut self.number)?,
            PackedEncoding::Listpack => listpack::next(bytes)?,
            PackedEncoding::Intset => intset::next(bytes, self.number)?,
            PackedEncoding::Zipmap => zipmap::next(bytes, &mut self.is_value)?,
        };
        if let Some(left) = &mut self.left {
            match found {
                Some(_) => *left = left.checked_sub(1).ok_or(COUNT)?,
                None if *left > 0 => return Err(COUNT),
                None => {}
            }
        }
        if found.is_none() && !bytes.is_at_end() {
            return Err(AFTER_END);
        }
        Ok(found)
    }
}

fn damaged(encoding: PackedEncoding, at: usize, why: Damage) -> RdbErrorKind {
    RdbErrorKind::Packed { encoding: encoding.name(), at, why }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All entries, or what is wrong.
    pub fn entries(encoding: PackedEncoding, bytes: &[u8]) -> Result<Vec<String>, String> {
        let mut all = Vec::new();
        let wrong = |error: RdbErrorKind| error.to_string();
        let mut packed = PackedEntries::open(encoding, bytes.to_vec()).map_err(wrong)?;
        while let Some(entry) = packed.next().map_err(wrong)? {
            all.push(String::from_utf8_lossy(&entry).into_owned());
        }
        Ok(all)
    }
}
