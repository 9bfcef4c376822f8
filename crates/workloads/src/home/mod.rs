//! Workloads in which every node has a copy of the data of its own: its *home copy*.
//!
//! The benchmark port behind Bumper's evaluation (section VI) is built like this, and
//! `muesli reproduce` runs it for Bumper's figures: [`lists`], [`records`] and [`vacation`].
//!
//! There are `homes` copies. The keys of a copy begin with its number, and ranges keep a copy
//! together on one repository and its replicas. A client's home is its number modulo `homes`; in
//! the simulator, with as many copies as nodes, it is the copy of the client's own node.
//!
//! Read-only transactions and local updates use the home copy. A *remote* update reads another
//! copy, and writes nothing there but a *private key*: one for each client and copy, which no other
//! client writes and nobody reads. So, with one client for each copy, only one client writes a
//! copy, and no transaction both misses a version and is missed itself: the owner of a copy misses
//! nothing, and nobody reads what a remote update writes. A protocol that can serialize a
//! transaction before what it missed (Bumper) has no reason to abort any of these; one that cannot
//! (SCORe) aborts remote updates that missed a write of the owner.
//!
//! What makes runs checkable: whatever is written without being read carries its writer's number
//! and must be that writer's last write; everything else is counted, or follows from what was
//! added and removed.

mod ledger;
pub mod lists;
pub mod records;
mod rows;
pub mod vacation;

use muesli::{Index, Partitioning, SpaceOptions};

use crate::parameters::{Parameter, ParameterKind, Values};

/// How many copies there are.
const HOMES: Parameter = Parameter::new(
    "homes",
    "4",
    ParameterKind::Count(1, 4_096),
    "Copies of the data; a client's home copy is its number modulo this. Best as many as nodes.",
);

/// The copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Homes(u32);

impl Homes {
    fn new(values: &Values) -> Homes {
        Homes(values.count("homes") as u32)
    }

    /// All of them.
    fn all(self) -> std::ops::Range<u32> {
        0..self.0
    }

    /// That of a client.
    fn of(self, client: u32) -> u32 {
        client % self.0
    }

    /// A space whose keys begin with the number of a copy, on so many repositories: each copy on
    /// one of them, as evenly as can be.
    fn space(self, repositories: usize) -> SpaceOptions {
        let parts = (repositories as u64).min(u64::from(self.0));
        let first = |part: u64| (part * u64::from(self.0)).div_ceil(parts) as u32;
        let splits = (1..parts).map(|part| first(part).to_be_bytes().to_vec().into());
        SpaceOptions { index: Index::Hash, partitioning: Partitioning::Range(splits.collect()) }
    }
}

/// The kind of the private keys, which are numbered by their clients.
const PRIVATE: u8 = b'p';

#[cfg(test)]
mod tests {
    use super::rows::key;
    use super::*;

    #[test]
    fn copies_are_whole_and_even() {
        for (homes, repositories, splits) in [(4, 4, 3), (4, 2, 1), (5, 3, 2), (2, 8, 1), (1, 3, 0)]
        {
            let Partitioning::Range(found) = Homes(homes).space(repositories).partitioning else {
                panic!()
            };
            assert_eq!(found.len(), splits, "{homes} on {repositories}");
            assert!(found.windows(2).all(|pair| pair[0] < pair[1]));
            for split in &found {
                let home = u32::from_be_bytes(split.as_slice().try_into().unwrap());
                assert!(key(home - 1, 255, u32::MAX) < *split && *split < key(home, 0, 0));
            }
        }
        let Partitioning::Range(found) = Homes(4).space(4).partitioning else { panic!() };
        let firsts: Vec<_> = (1..4_u32).map(|home| home.to_be_bytes().to_vec()).collect();
        assert_eq!(found.iter().map(|it| it.as_slice().to_vec()).collect::<Vec<_>>(), firsts);
    }
}
