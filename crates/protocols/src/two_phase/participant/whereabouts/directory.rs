//! Which repository is the directory of a key: where static placement puts it.

use muesli_core::parts::locator::Static;
use muesli_core::{Catalog, RepositoryId, SmallBytes, SpaceId};

use crate::two_phase::Variant;
use crate::two_phase::participant::Participant;

/// The repository where static placement puts a key: its directory.
pub(in crate::two_phase) fn directory_of(
    space: SpaceId,
    key: &SmallBytes,
    catalog: &Catalog,
) -> RepositoryId {
    let mut replicas = Static.replicas_of(catalog.partition(space, key), catalog);
    replicas.next().expect("every partition has its replicas")
}

impl<V: Variant> Participant<V> {
    /// Whether static placement puts a key here.
    pub(in crate::two_phase::participant) fn is_directory_of(
        &self,
        space: SpaceId,
        key: &SmallBytes,
        catalog: &Catalog,
    ) -> bool {
        Static.holds(self.id, catalog.partition(space, key), catalog)
    }
}
