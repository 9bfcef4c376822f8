//! Who reviewed what, and who trusts whom: rows are overwritten, and none comes or goes, so answers
//! are known as far as they do not depend on what was overwritten.

use std::collections::{BTreeMap, BTreeSet};

use super::plans::LoadedReviews;

/// Whose reviews and trust there are.
#[derive(Debug, Default)]
pub(super) struct ReviewStructure {
    of_items: BTreeMap<u64, BTreeSet<u64>>,
    of_users: BTreeMap<u64, BTreeSet<u64>>,
    trust: BTreeMap<u64, BTreeSet<u64>>,
    none: BTreeSet<u64>,
}

impl ReviewStructure {
    /// That of users and items as they are loaded.
    pub fn new(users: &[LoadedReviews], items: &[LoadedReviews]) -> ReviewStructure {
        let others = |all: &[(u64, u16)]| all.iter().map(|it| it.0).collect();
        ReviewStructure {
            of_items: items.iter().map(|it| (it.of, others(&it.reviews))).collect(),
            of_users: users.iter().map(|it| (it.of, others(&it.reviews))).collect(),
            trust: users.iter().map(|it| (it.of, others(&it.trust))).collect(),
            none: BTreeSet::new(),
        }
    }

    /// Who reviewed an item.
    pub fn reviewers(&self, item: u64) -> &BTreeSet<u64> {
        self.of_items.get(&item).unwrap_or(&self.none)
    }

    /// What a user reviewed.
    pub fn reviewed_by(&self, user: u64) -> &BTreeSet<u64> {
        self.of_users.get(&user).unwrap_or(&self.none)
    }

    /// Of whom a user has an opinion.
    pub fn trusted_by(&self, user: u64) -> &BTreeSet<u64> {
        self.trust.get(&user).unwrap_or(&self.none)
    }
}
