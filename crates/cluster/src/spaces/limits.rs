//! How much the spaces of a cluster may be: they are on every map, which each server keeps on its
//! disk and shows to whoever connects.
//!
//! It goes in one frame, so where `frame_bytes_max` is small it may be no longer than that.
//!
//! Whoever adds a space is held to this: the server that makes it, and with groups each server that
//! takes new spaces over from the register, which any client may write. Spaces that are known
//! already stay, however many they are.

use muesli_core::limits::ENVELOPE_BYTES;
use muesli_core::{Partitioning, SmallBytes, Wire};
use thiserror::Error;

use crate::spaces::parts::{MapParts, SpaceParts};

/// The longest name of a space, in bytes.
pub const NAME_BYTES_MAX: usize = 255;
/// The most bytes that the splits of a space, or the units that its map names, have together.
pub const SPLIT_BYTES_MAX: usize = 1 << 20;
/// The most spaces of a cluster.
pub const SPACES_MAX: usize = 4_096;
/// The most bytes of a map, encoded. A probe takes answers of twice as many.
pub const MAP_BYTES_MAX: usize = 8 << 20;

/// The limit that a new space would pass.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SpaceLimit {
    /// Its name.
    #[error("a name of {0} bytes is over the limit of {NAME_BYTES_MAX} bytes for that of a space")]
    Name(usize),
    /// Where its partitions are split.
    #[error(
        "range splits of {0} bytes together are over the limit of {SPLIT_BYTES_MAX} bytes for \
         those of a space"
    )]
    Splits(usize),
    /// Where its units are placed.
    #[error(
        "a map of units of {0} bytes is over the limit of {SPLIT_BYTES_MAX} bytes for that of a \
         space"
    )]
    Units(usize),
    /// How many there are.
    #[error("{0} spaces are over the limit of {SPACES_MAX} for those of a cluster")]
    Spaces(usize),
    /// The map.
    #[error(
        "a map of {0} bytes is over the limit of {MAP_BYTES_MAX} bytes for the servers and spaces \
         of a cluster together"
    )]
    Map(usize),
    /// The map, where frames are short.
    #[error(
        "a map of {bytes} bytes, of the servers and spaces of a cluster together, is too long for \
         a frame: `frame_bytes_max` is {most} and must be at least {}, which is {ENVELOPE_BYTES} \
         more than the map",
        bytes.saturating_add(ENVELOPE_BYTES)
    )]
    Frame {
        /// The map's length.
        bytes: usize,
        /// The longest frame.
        most: usize,
    },
}

/// Whether so many spaces may be there, the last of them new: these.
///
/// # Errors
/// The limit that they pass.
pub(crate) fn judge_new(count: usize, new: &[SpaceParts]) -> Result<(), SpaceLimit> {
    if count > SPACES_MAX {
        return Err(SpaceLimit::Spaces(count));
    }
    for SpaceParts { name, partitioning, .. } in new {
        if name.len() > NAME_BYTES_MAX {
            return Err(SpaceLimit::Name(name.len()));
        }
        judge_partitioning(partitioning)?;
    }
    Ok(())
}

fn judge_partitioning(partitioning: &Partitioning) -> Result<(), SpaceLimit> {
    match partitioning {
        Partitioning::Hash | Partitioning::Everywhere => Ok(()),
        Partitioning::Range(splits) => {
            let bytes = splits.iter().map(SmallBytes::len).sum();
            if bytes > SPLIT_BYTES_MAX { Err(SpaceLimit::Splits(bytes)) } else { Ok(()) }
        }
        Partitioning::Unit(units) => {
            let ranges = units.map.ranges().iter();
            let named: usize = ranges.map(|it| it.first.len() + it.last.len()).sum();
            let bytes = named + units.domain.len() + units.parts.len();
            if bytes > SPLIT_BYTES_MAX { Err(SpaceLimit::Units(bytes)) } else { Ok(()) }
        }
    }
}

/// Whether a map with new spaces may be so long.
///
/// # Errors
/// It may not.
pub(crate) fn judge_map(map: &MapParts) -> Result<(), SpaceLimit> {
    let bytes = encoded_bytes(map);
    if bytes > MAP_BYTES_MAX { Err(SpaceLimit::Map(bytes)) } else { Ok(()) }
}

/// Whether a map fits into a frame of a process whose frames are so long at most, with what a
/// handshake says beside it.
///
/// # Errors
/// It does not.
pub fn judge_frame(map: &MapParts, most: usize) -> Result<(), SpaceLimit> {
    let bytes = encoded_bytes(map);
    let fits = bytes.saturating_add(ENVELOPE_BYTES) <= most;
    if fits { Ok(()) } else { Err(SpaceLimit::Frame { bytes, most }) }
}

fn encoded_bytes(map: &MapParts) -> usize {
    let mut bytes = Vec::new();
    map.encode(&mut bytes);
    bytes.len()
}

#[cfg(test)]
mod tests {
    use muesli_core::{NodeId, SpaceOptions};

    use super::*;
    use crate::spaces::error::MapError;
    use crate::spaces::map::{Deal, Map};
    use crate::spaces::register::Register;

    /// A map with room for many splits.
    fn map(group: u16) -> Map {
        let servers = (0..3).map(|node| (NodeId(node), format!("a:{node}"))).collect();
        let deal =
            Deal { repositories: 4, group, partitions_per_repository: 1_000, ..Deal::default() };
        Map::deal(servers, deal).unwrap()
    }

    fn named(name: &str) -> SpaceParts {
        SpaceParts::of(name, &SpaceOptions::default())
    }

    /// Splits in order, of so many bytes each.
    fn split(name: &str, count: u16, bytes: usize) -> SpaceParts {
        let splits = (0..count).map(|at| {
            let mut split = vec![0; bytes];
            split[..2].copy_from_slice(&at.to_be_bytes());
            SmallBytes::from(split)
        });
        SpaceParts { partitioning: Partitioning::Range(splits.collect()), ..named(name) }
    }

    fn refused(made: Result<Map, MapError>) -> SpaceLimit {
        match made.expect_err("it is over a limit") {
            MapError::Space(limit) => limit,
            other => panic!("{other}"),
        }
    }

    #[test]
    fn names_and_splits_have_a_limit() {
        let longest = "n".repeat(NAME_BYTES_MAX);
        let known = map(1).with_space(&named(&longest)).unwrap();
        let longer = known.with_space(&named(&format!("{longest}n")));
        assert_eq!(refused(longer), SpaceLimit::Name(256));
        assert!(known.with_space(&split("s", 1_024, 1 << 10)).is_ok());
        let longer = known.with_space(&split("s", 1_025, 1 << 10));
        assert_eq!(refused(longer), SpaceLimit::Splits(1_049_600));
    }

    #[test]
    fn the_bytes_of_a_map_have_a_limit_that_probes_take() {
        let mut known = map(1);
        let refused = loop {
            let name = format!("s{}", known.catalog.spaces().len());
            match known.with_space(&split(&name, 1_000, 1_000)) {
                Ok(next) => known = next,
                Err(error) => break error.to_string(),
            }
        };
        assert!(refused.contains("limit of 8388608 bytes"), "{refused}");
        assert_eq!(known.catalog.spaces().len(), 8);
        // A space that is there already is found, and a short one has room.
        assert_eq!(known.with_space(&split("s0", 1_000, 1_000)), Ok(known.clone()));
        assert!(known.with_space(&named("short")).is_ok());
    }

    #[test]
    fn a_map_fits_into_a_frame_with_what_a_handshake_says() {
        let known = map(1).with_space(&split("s", 1_000, 1_000)).unwrap();
        let bytes = encoded_bytes(&MapParts::from(&known));
        assert_eq!(judge_frame(&MapParts::from(&known), bytes + ENVELOPE_BYTES), Ok(()));
        let most = bytes + ENVELOPE_BYTES - 1;
        let refused = judge_frame(&MapParts::from(&known), most).unwrap_err();
        assert_eq!(refused, SpaceLimit::Frame { bytes, most });
        let text = refused.to_string();
        let expected = format!("`frame_bytes_max` is {most} and must be at least {}", most + 1);
        assert!(text.contains(&expected) && text.contains(&format!("a map of {bytes} ")), "{text}");
    }

    #[test]
    fn the_number_of_spaces_has_a_limit() {
        let mut catalog = (*map(1).catalog).clone();
        for number in 0..SPACES_MAX {
            catalog = catalog.with_space(&number.to_string(), SpaceOptions::default()).unwrap();
        }
        let known = map(1).with_catalog(catalog.into());
        assert_eq!(refused(known.with_space(&named("more"))), SpaceLimit::Spaces(4_097));
        assert_eq!(known.with_space(&named("7")), Ok(known.clone()));
    }

    #[test]
    fn what_a_register_has_new_is_judged() {
        let known = map(3);
        let grown = |new: Vec<SpaceParts>| {
            let Register { epoch, spaces } = Register::of(&known);
            let epoch = epoch + new.len() as u64;
            let row = Register { epoch, spaces: [spaces, new].concat() };
            row.grown_from(&known)
        };
        assert!(grown(vec![named("a"), named("b")]).is_ok());
        assert_eq!(refused(grown(vec![named(&"n".repeat(256))])), SpaceLimit::Name(256));
        let many = (0..=SPACES_MAX).map(|number| named(&number.to_string())).collect();
        assert_eq!(refused(grown(many)), SpaceLimit::Spaces(4_098));
        let long = (0..9).map(|number| split(&number.to_string(), 1_000, 1_000)).collect();
        assert!(matches!(refused(grown(long)), SpaceLimit::Map(bytes) if bytes > MAP_BYTES_MAX));
        let wide = vec![split("s", 1_025, 1 << 10)];
        assert_eq!(refused(grown(wide)), SpaceLimit::Splits(1_049_600));
    }
}
