//! Connections: how many, how long, and how much may wait on them.

use std::time::Duration;

use muesli_core::batching::BATCH_MAX;
use muesli_core::{BatchLinks, Nanos};

use super::super::values::{bytes, millis, number, put};
use super::ConfigKey;

pub(super) const NETWORK: &[ConfigKey] = &[
    ConfigKey {
        name: "frame_bytes_max",
        value: "BYTES",
        default: "117440512",
        help: "The longest frame, at least 65,536 bytes more than the largest transaction; a \
               message that does not fit is not sent, and a connection that sends a longer one \
               is closed",
        set: |config, text| bytes(text, &mut config.server.network.frame_bytes_max),
    },
    ConfigKey {
        name: "connections_max",
        value: "N",
        default: "12000",
        help: "The most connections; further ones are told so and closed",
        set: |config, text| {
            put(&mut config.server.network.connections_max, number(text, 1, 1_000_000)? as usize)
        },
    },
    ConfigKey {
        name: "connections_reserved",
        value: "N",
        default: "64",
        help: "So many more are kept for servers and administrators",
        set: |config, text| {
            put(&mut config.server.network.connections_reserved, number(text, 1, 4096)? as usize)
        },
    },
    ConfigKey {
        name: "incoming_bytes_total",
        value: "BYTES",
        default: "268435456",
        help: "The most bytes of unfinished frames that are held for clients and strangers \
               together; further long frames are not read until there is room",
        set: |config, text| bytes(text, &mut config.server.network.incoming_bytes_total),
    },
    ConfigKey {
        name: "outgoing_bytes_high",
        value: "BYTES",
        default: "4194304",
        help: "With more than this waiting to be sent to a client, nothing is read from it",
        set: |config, text| bytes(text, &mut config.server.network.outgoing_bytes_high),
    },
    ConfigKey {
        name: "outgoing_bytes_max",
        value: "BYTES",
        default: "268435456",
        help: "With more than this waiting for one connection, it is closed",
        set: |config, text| bytes(text, &mut config.server.network.outgoing_bytes_max),
    },
    ConfigKey {
        name: "outgoing_bytes_total",
        value: "BYTES",
        default: "536870912",
        help: "With more than this waiting for all connections, nothing is read from clients",
        set: |config, text| bytes(text, &mut config.server.network.outgoing_bytes_total),
    },
    ConfigKey {
        name: "batch",
        value: "N",
        default: "1",
        help: "So many messages for one node leave together, and wait for each other; 1: nothing \
               waits",
        set: |config, text| {
            put(&mut config.batch.size, number(text, 1, BATCH_MAX as u64)? as usize)
        },
    },
    ConfigKey {
        name: "batch_timeout_us",
        value: "US",
        default: "1000",
        help: "The first message of a batch waits for so long at most",
        set: |config, text| {
            let micros = number(text, 1, 1_000_000)?;
            put(&mut config.batch.timeout, Nanos::from_micros(micros))
        },
    },
    ConfigKey {
        name: "batch_links",
        value: "all|tree|up|down",
        default: "all",
        help: "Over which links messages leave in batches: all; to validators above (up), from \
               validators to what is below them (down), or both (tree)",
        set: |config, text| {
            let links = text.parse::<BatchLinks>().map_err(|error| error.to_string())?;
            put(&mut config.batch.links, links)
        },
    },
    ConfigKey {
        name: "commits_per_command",
        value: "N",
        default: "1",
        help: "Under alvin and certified-*, so many commits of a site are ordered as one at most, \
               where four such are under way; 1: each by itself",
        set: |config, text| {
            put(&mut config.batch.commits, number(text, 1, BATCH_MAX as u64)? as usize)
        },
    },
    ConfigKey {
        name: "watch_for_us",
        value: "US",
        default: "50",
        help: "For so long after something came, a loop looks for more before it sleeps; 0: never",
        set: |config, text| {
            let micros = number(text, 0, 1_000_000)?;
            put(&mut config.server.network.watch_for, Duration::from_micros(micros))
        },
    },
    ConfigKey {
        name: "alive_every_ms",
        value: "MS",
        default: "1000",
        help: "A connection that was not written to for so long gets a sign of life",
        set: |config, text| millis(text, &mut config.server.network.alive_every),
    },
    ConfigKey {
        name: "dead_after_ms",
        value: "MS",
        default: "5000",
        help: "A connection that was silent for so long is closed",
        set: |config, text| millis(text, &mut config.server.network.dead_after),
    },
    ConfigKey {
        name: "hello_within_ms",
        value: "MS",
        default: "5000",
        help: "A connection must say who it is within this",
        set: |config, text| millis(text, &mut config.server.network.hello_within),
    },
    ConfigKey {
        name: "slow_after_ms",
        value: "MS",
        default: "10000",
        help: "A frame must be whole, and a crowded connection have room again, within this",
        set: |config, text| millis(text, &mut config.server.network.slow_after),
    },
    ConfigKey {
        name: "redial_first_ms",
        value: "MS",
        default: "20",
        help: "The first pause before a lost server is dialled again; it doubles",
        set: |config, text| millis(text, &mut config.server.network.redial_first),
    },
    ConfigKey {
        name: "redial_most_ms",
        value: "MS",
        default: "1000",
        help: "The longest such pause",
        set: |config, text| millis(text, &mut config.server.network.redial_most),
    },
];
