//! How orderers are addressed, and positions are timestamps.

use muesli_core::{RepositoryId, ServiceId, ServiceKind, Timestamp};

/// The orderer beside a repository.
pub fn orderer(site: u16) -> ServiceId {
    ServiceId::new(ServiceKind::Orderer, site)
}

/// The timestamp of what commits at a position of the order.
pub fn timestamp(position: u64) -> Timestamp {
    Timestamp::new(position, RepositoryId(0))
}
