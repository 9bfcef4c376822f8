//! Which repository is the directory of a key: where static placement puts it.

use muesli_core::parts::locator::Static;
use muesli_core::parts::versions::Version;
use muesli_core::{Catalog, RepositoryId, SmallBytes, SpaceId, Timestamp};

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

/// Who has a key, by a pointer. Bytes from outside may say anything.
pub(in crate::two_phase) fn owner_of_pointer(
    pointer: Version<'_>,
    catalog: &Catalog,
) -> Option<(RepositoryId, Timestamp)> {
    let number = pointer.value?.as_slice().try_into().ok()?;
    let to = RepositoryId(u16::from_le_bytes(number));
    (usize::from(to.0) < catalog.repositories()).then_some((to, pointer.at))
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
