//! What transactions may take: sizes, times, memory.

use super::super::values::{bytes, limit, nanos, number, put};
use super::ConfigKey;

/// The most ends of transactions that can be kept for clients.
const UNSETTLED: u64 = 1 << 40;

/// The largest number of a repository.
const LEADER_SITE_MOST: u16 = u16::MAX - 1;

pub(super) const TRANSACTIONS: &[ConfigKey] = &[
    ConfigKey {
        name: "key_bytes_max",
        value: "BYTES",
        default: "65536",
        help: "The longest key",
        set: |config, text| bytes(text, &mut config.server.settings.limits.key_bytes),
    },
    ConfigKey {
        name: "value_bytes_max",
        value: "BYTES",
        default: "16777216",
        help: "The longest value",
        set: |config, text| bytes(text, &mut config.server.settings.limits.value_bytes),
    },
    ConfigKey {
        name: "transaction_bytes_max",
        value: "BYTES",
        default: "100663296",
        help: "The largest transaction: keys and values written, keys read by an update, and 16 \
               bytes for each; 64 MiB fit under 2,097,152 keys",
        set: |config, text| bytes(text, &mut config.server.settings.limits.transaction_bytes),
    },
    ConfigKey {
        name: "answer_bytes_max",
        value: "BYTES",
        default: "1073741824",
        help: "The largest answer of one operation of a transaction that this server runs itself",
        set: |config, text| bytes(text, &mut config.server.settings.limits.answer_bytes),
    },
    ConfigKey {
        name: "page_rows_max",
        value: "N",
        default: "1000",
        help: "The most rows that a scan is answered with at a time; the next page is asked for",
        set: |config, text| bytes(text, &mut config.server.settings.limits.page_rows),
    },
    ConfigKey {
        name: "page_bytes_max",
        value: "BYTES",
        default: "262144",
        help: "A page of a scan, or of a read of many keys, ends when it has grown to this",
        set: |config, text| bytes(text, &mut config.server.settings.limits.page_bytes),
    },
    ConfigKey {
        name: "retry_after_ms",
        value: "MS",
        default: "20",
        help: "A request between servers that was not answered for so long is sent again",
        set: |config, text| nanos(text, &mut config.server.settings.retry_after),
    },
    ConfigKey {
        name: "leader_site",
        value: "N",
        default: "0",
        help: "Under certified-multipaxos, the repository whose site orders commits at the start",
        set: |config, text| {
            let site = number(text, 0, u64::from(LEADER_SITE_MOST))?;
            put(&mut config.server.settings.leader_site, site as u16)
        },
    },
    ConfigKey {
        name: "lock_wait_ms",
        value: "MS",
        default: "2",
        help: "A commit waits so long for a lock before it is refused",
        set: |config, text| nanos(text, &mut config.server.settings.lock_wait),
    },
    ConfigKey {
        name: "in_doubt_after_ms",
        value: "MS",
        default: "100",
        help: "A transaction undecided for so long is finished without its client",
        set: |config, text| nanos(text, &mut config.server.settings.in_doubt_after),
    },
    ConfigKey {
        name: "snapshot_lease_ms",
        value: "MS",
        default: "10000",
        help: "A client silent for so long does not hold old versions back any more",
        set: |config, text| nanos(text, &mut config.server.settings.snapshot_lease),
    },
    ConfigKey {
        name: "snapshot_age_max_ms",
        value: "MS",
        default: "60000",
        help: "A transaction open for so long does not hold old versions back any more: its \
               snapshot is too old where they are gone",
        set: |config, text| nanos(text, &mut config.server.settings.snapshot_age_max),
    },
    ConfigKey {
        name: "old_version_bytes",
        value: "BYTES",
        default: "268435456",
        help: "Versions that were replaced and that open snapshots hold take at most about so much \
               memory; then the oldest snapshots are too old",
        set: |config, text| limit(text, &mut config.server.settings.memory.old_limit),
    },
    ConfigKey {
        name: "memory_bytes",
        value: "BYTES",
        default: "9223372036854775807",
        help: "Where keys and versions, and transactions under way, take more memory than this, \
               writes are refused, and nothing else: reads and deletes go on",
        set: |config, text| limit(text, &mut config.server.settings.memory.limit),
    },
    ConfigKey {
        name: "client_lease_ms",
        value: "MS",
        default: "600000",
        help: "Of a client silent for so long a server forgets what nobody can ask for any more",
        set: |config, text| nanos(text, &mut config.server.settings.client_lease),
    },
    ConfigKey {
        name: "unsettled_max",
        value: "N",
        default: "100000",
        help: "Of so many transactions of one client a repository keeps the end, until the client \
               says that it is known everywhere; further ones wait",
        set: |config, text| {
            put(&mut config.server.settings.unsettled_max, number(text, 1, UNSETTLED)? as usize)
        },
    },
    ConfigKey {
        name: "unsettled_total_max",
        value: "N",
        default: "1000000",
        help: "The same of all clients together, each counting as one more; at least \
               `unsettled_max`",
        set: |config, text| {
            let settings = &mut config.server.settings;
            put(&mut settings.unsettled_total_max, number(text, 1, UNSETTLED)? as usize)
        },
    },
];
