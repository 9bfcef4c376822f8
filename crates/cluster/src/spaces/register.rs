//! The register: the spaces of a database of groups, kept in the database itself.
//!
//! Where repositories live on groups, any server may go for good, so none of them may be the one
//! who makes the spaces. A row beside that of the placement holds them; whoever wants a space reads
//! it, writes the next one in the same transaction, and tells the servers afterwards
//! ([`Client::register`](crate::Client::register)), who tell each other. So epochs follow each
//! other whoever asks, and what nobody was told, because a client died before, the next one who
//! asks finds.
//!
//! Any client may write any row. One that makes no sense keeps nobody from making spaces for long:
//! a server that reads it writes the spaces that it knows over it, and a client that finds it has
//! the servers read it.

use muesli_core::wire::Wire;
use muesli_core::{SmallBytes, SpaceOptions, wire_struct};

use crate::spaces::error::MapError;
use crate::spaces::limits;
use crate::spaces::map::Map;
use crate::spaces::parts::{MapParts, SpaceParts};

pub use muesli_group::placement::SPACE;

/// The key of the row, in the space of the placement, [`SPACE`].
pub const KEY: &[u8] = b"spaces";

/// The row. Before the first space is made there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Register {
    /// The epoch of the spaces.
    pub epoch: u64,
    /// The spaces, in the order of their numbers.
    pub spaces: Vec<SpaceParts>,
}

wire_struct!(Register { epoch: u64, spaces: Vec<SpaceParts> });

impl Register {
    /// What a map says.
    pub fn of(map: &Map) -> Register {
        let MapParts { epoch, spaces, .. } = MapParts::from(map);
        Register { epoch, spaces }
    }

    /// The register that this row holds.
    ///
    /// # Errors
    /// It holds none.
    pub fn of_row(row: &SmallBytes) -> Result<Register, String> {
        Register::decode_all(row.as_slice()).map_err(|error| format!("the row is damaged: {error}"))
    }

    /// The row that holds this register.
    pub fn to_row(&self) -> SmallBytes {
        let mut bytes = Vec::new();
        self.encode(&mut bytes);
        SmallBytes::from(bytes)
    }

    /// This map with these spaces, or with its own if it knows of more.
    fn in_map(&self, map: &Map) -> Result<Map, MapError> {
        if self.epoch <= map.catalog.epoch {
            return Ok(map.clone());
        }
        let known = map.catalog.spaces().len().min(self.spaces.len());
        limits::judge_new(self.spaces.len(), &self.spaces[known..])?;
        let Register { epoch, spaces } = self.clone();
        let next = Map::try_from(MapParts { epoch, spaces, ..MapParts::from(map) })?;
        limits::judge_map(&MapParts::from(&next))?;
        Ok(next)
    }

    /// This map with these spaces, if they are its own and some after them: so grows a register
    /// that only those wrote who make spaces.
    ///
    /// # Errors
    /// They are others, do not fit, or are over a limit.
    pub fn grown_from(&self, map: &Map) -> Result<Map, MapError> {
        let before = Register::of(map);
        if self.epoch <= before.epoch {
            return Ok(map.clone());
        }
        let more = self.spaces.len().saturating_sub(before.spaces.len()) as u64;
        // A map that has heard of no space yet takes any: a server that joins begins so.
        let fits = self.epoch - before.epoch == more && self.spaces.starts_with(&before.spaces);
        if !fits && before.epoch > 0 {
            return Err(MapError::Register { known: before.epoch, found: self.epoch });
        }
        self.in_map(map)
    }

    /// The row with one more space; the same, where the space is there already.
    ///
    /// # Errors
    /// It exists with other options, or does not fit the cluster of this map; or the register does
    /// not go on from the spaces of this map.
    pub fn with_space(
        &self,
        name: &str,
        options: &SpaceOptions,
        map: &Map,
    ) -> Result<Register, MapError> {
        Ok(Register::of(&self.grown_from(map)?.with_space(&SpaceParts::of(name, options))?))
    }
}

#[cfg(test)]
mod tests {
    use muesli_core::NodeId;

    use super::*;
    use crate::spaces::map::Deal;

    fn map() -> Map {
        let servers = (0..3).map(|node| (NodeId(node), format!("a:{node}"))).collect();
        Map::deal(servers, Deal { repositories: 2, group: 3, ..Deal::default() }).unwrap()
    }

    #[test]
    fn spaces_follow_each_other_whoever_asks_and_whatever_they_had_heard() {
        let (first, hash) = (map(), SpaceOptions::default());
        let one = Register::of(&first).with_space("a", &hash, &first).unwrap();
        assert_eq!((one.epoch, one.spaces.len()), (first.catalog.epoch + 1, 2));
        // Who has not heard of the first makes the second.
        let two = one.with_space("b", &hash, &first).unwrap();
        assert_eq!((two.epoch, two.spaces[2].name.as_str()), (one.epoch + 1, "b"));
        assert_eq!(two.with_space("a", &hash, &first), Ok(two.clone()));
        let ordered = SpaceOptions { index: muesli_core::Index::Hash, ..hash.clone() };
        assert!(two.with_space("a", &ordered, &first).is_err());
        assert_eq!(Register::of_row(&two.to_row()), Ok(two.clone()));
        assert!(Register::of_row(&SmallBytes::new(b"tea")).unwrap_err().contains("damaged"));
        // Nobody who makes spaces writes epochs that do not count them.
        for epoch in [two.epoch + 1, u64::MAX] {
            let wrong = Register { epoch, ..two.clone() };
            let refused = wrong.with_space("c", &hash, &first).unwrap_err();
            assert!(refused.to_string().contains("does not go on"), "{refused}");
            let refused = wrong.with_space("c", &hash, &first.unplaced()).unwrap_err();
            assert!(refused.to_string().contains(&format!("epoch {epoch}")), "{refused}");
        }
        // Of a row that went back, because its loss was accepted, and a map the newer one counts.
        let grown = two.grown_from(&first).unwrap();
        assert_eq!(one.with_space("c", &hash, &grown).unwrap().epoch, two.epoch + 1);
    }
}
