//! Configurations: which places of a group vote, one set of them after the other.
//!
//! # The problem
//! A group is to get more members, or fewer, while it works. Members hear of that at different
//! times; and two majorities of different sets of members need have nobody in common.
//!
//! # The idea
//! A configuration is an instance of the consensus by itself. It ends by an entry of its own log
//! that names the next one: once that is decided, nothing that comes after it in this configuration
//! counts, and the next one begins with exactly the entries up to it. So each of them begins where
//! the one before has ended for certain, whoever is asked, and there is only ever one next one.
//!
//! # Why no two of them decide different things
//! What a configuration decides is settled by its own majorities alone, as ever; and so is the
//! entry that ends it, of which there can be only one. A member takes part in the next one only if
//! it knows that entry to be decided, or has it from somebody who does. So all members of the next
//! one agree on its first entries, on its number and on who they are, and it is a new instance for
//! all of them. Messages say which configuration they are of, and those of another one are not
//! listened to.
//!
//! Ballots are larger in later configurations, so whoever follows the largest goes with the newest.

use muesli_core::wire_struct;

/// The first byte of an entry that ends a configuration. No record begins with it.
pub(crate) const MARK: u8 = 255;

/// Which places vote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Configuration {
    /// Which time the members were chosen, from 1. 0 is none.
    pub number: u32,
    /// The epoch of the placement that it was chosen by.
    pub epoch: u64,
    /// The places, in ascending order.
    pub places: Vec<u16>,
}

wire_struct!(Configuration { number: u32, epoch: u64, places: Vec<u16> });

impl Configuration {
    /// The first one of a group.
    pub fn first(places: Vec<u16>) -> Configuration {
        Configuration { number: 1, epoch: 0, places }
    }

    /// The one after this, of these places, as a placement of this epoch says.
    pub fn next(&self, epoch: u64, places: Vec<u16>) -> Configuration {
        Configuration { number: self.number + 1, epoch, places }
    }

    /// Whether a place votes.
    pub fn has(&self, place: u16) -> bool {
        self.places.contains(&place)
    }

    /// The places that vote beside this one.
    pub fn others(&self, place: u16) -> impl Iterator<Item = u16> + '_ {
        self.places.iter().copied().filter(move |&other| other != place)
    }

    /// How many places are a majority.
    pub fn majority(&self) -> usize {
        self.places.len() / 2 + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configurations_follow_each_other() {
        let first = Configuration::first(vec![0, 1, 2]);
        let next = first.next(7, vec![0, 1, 2, 5]);
        assert_eq!((next.number, next.epoch, next.majority()), (2, 7, 3));
        assert!(next.has(5) && !first.has(5) && first.majority() == 2);
        assert_eq!(next.others(1).collect::<Vec<_>>(), [0, 2, 5]);
    }
}
