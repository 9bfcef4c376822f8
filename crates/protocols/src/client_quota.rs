//! How much a repository keeps of transactions of clients.
//!
//! A client that does not say which of its transactions are settled gets no further ones in.

use muesli_core::Settings;

/// How much a repository may keep of clients.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientQuota {
    /// So many transactions of one.
    pub entries: usize,
    /// So many bytes of answers to one.
    pub bytes: usize,
    /// So many transactions and clients in all.
    pub all: usize,
}

impl ClientQuota {
    /// The one that a node is set to.
    pub fn of(settings: &Settings) -> ClientQuota {
        ClientQuota {
            entries: settings.unsettled_max,
            bytes: settings.limits.transaction_bytes,
            all: settings.unsettled_total_max,
        }
    }
}
