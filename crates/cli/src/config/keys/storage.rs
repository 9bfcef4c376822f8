//! What survives the process, and where.

use std::path::PathBuf;

use super::super::values::{bytes, number, put, truth};
use super::ConfigKey;

pub(super) const STORAGE: &[ConfigKey] = &[
    ConfigKey {
        name: "durability",
        value: "memory|log",
        default: "log",
        help: "What survives this process: nothing, or all that was promised",
        set: |config, text| match text {
            "memory" => put(&mut config.durable, false),
            "log" => put(&mut config.durable, true),
            _ => Err("memory or log is wanted".to_owned()),
        },
    },
    ConfigKey {
        name: "data_dir",
        value: "DIR",
        default: "./muesli-data",
        help: "Where the server keeps its files",
        set: |config, text| put(&mut config.data_dir, PathBuf::from(text)),
    },
    ConfigKey {
        name: "trouble_file",
        value: "FILE",
        default: "",
        help: "For tests: while this file holds `slow N`, `fail`, `hang` or `full`, syncs of the \
               log take N milliseconds longer, fail, do not end, or writes find no room; the \
               same file with the extension `clock` holds by how many milliseconds the clock \
               is wrong",
        set: |config, text| {
            put(&mut config.server.trouble, (!text.is_empty()).then(|| PathBuf::from(text)))
        },
    },
    ConfigKey {
        name: "log_segment_bytes",
        value: "BYTES",
        default: "67108864",
        help: "A file of the log that has grown to this is followed by another one",
        set: |config, text| {
            put(&mut config.server.log_segment_bytes, number(text, 1 << 16, 1 << 32)?)
        },
    },
    ConfigKey {
        name: "checkpoint_bytes",
        value: "BYTES",
        default: "268435456",
        help: "When the log has grown by this, and by the size of the last checkpoint, the next \
               one is written beside the running server, and the log cut before it; 0 never",
        set: |config, text| put(&mut config.server.checkpoint_bytes, number(text, 0, 1 << 40)?),
    },
    ConfigKey {
        name: "log_backlog_bytes",
        value: "BYTES",
        default: "67108864",
        help: "With more than this waiting for the disk, nothing is read from clients",
        set: |config, text| bytes(text, &mut config.server.log_backlog_bytes),
    },
    ConfigKey {
        name: "record_collected",
        value: "true|false",
        default: "false",
        help: "Remember the versions of collected deletions: clients that record histories need \
               them",
        set: |config, text| put(&mut config.server.settings.record_collected, truth(text)?),
    },
];
