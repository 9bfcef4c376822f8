//! The page of limits against the code: `docs/running/limits.md` has a row for each limit, with its
//! number.

use std::path::Path;

use super::keys::{self, ConfigKey};

/// The page.
const PAGE: &str = include_str!("../../../../docs/running/limits.md");

/// Keys whose numbers limit nothing: which server and cluster it is, how long a loop looks for more
/// before it sleeps, and how messages wait for each other.
const NO_LIMITS: [&str; 7] = [
    "node",
    "cluster",
    "leader_site",
    "watch_for_us",
    "batch",
    "batch_timeout_us",
    "commits_per_command",
];

/// Limits that have no key: the file that declares one, how it does, and a part of the row that
/// says so.
const DECLARED: &[(&str, &str, &str)] = &[
    (
        "cluster/src/spaces/limits.rs",
        "NAME_BYTES_MAX: usize = 255;",
        "| name of a space | 255 bytes |",
    ),
    (
        "muesli/src/plans/running/survey.rs",
        "STATEMENTS_MAX: u64 = 1 << 18;",
        "each element of a list counted | 262,144 |",
    ),
    (
        "cluster/src/spaces/limits.rs",
        "SPLIT_BYTES_MAX: usize = 1 << 20;",
        "| 1 MiB together, and fewer",
    ),
    (
        "cluster/src/spaces/limits.rs",
        "SPACES_MAX: usize = 4_096;",
        "| spaces of a cluster | 4,096 |",
    ),
    ("cluster/src/spaces/limits.rs", "MAP_BYTES_MAX: usize = 8 << 20;", "as encoded | 8 MiB |"),
    (
        "cluster/src/wire/hello.rs",
        "HELLO_BYTES_MAX: usize = 64 << 10;",
        "| frame of a handshake | 64 KiB:",
    ),
    (
        "cluster/src/connections/connection.rs",
        "PROBE_BYTES_MAX: usize = 16 << 10;",
        "| frame of a probe | 16 KiB |",
    ),
    (
        "cluster/src/connections/connection.rs",
        "PROBE_OUTGOING_BYTES_HIGH: usize = 64 << 10;",
        "sent to a probe | 64 KiB, or an answer |",
    ),
    (
        "cluster/src/connections/connection.rs",
        "ADMIN_BYTES_MAX: usize = 16 << 20;",
        "| frame of an administrator | 16 MiB |",
    ),
    (
        "cluster/src/connections/connection.rs",
        "PROGRESS_BYTES: usize = 1 << 20;",
        "who is let in | 10 s for each 1 MiB of it",
    ),
    (
        "cluster/src/lifecycle/visit.rs",
        "ANSWER_BYTES_MAX: usize = 16 << 20;",
        "| answer to a probe or an administrator | 16 MiB |",
    ),
    (
        "cluster/src/admission/budget.rs",
        "SHORT_BYTES: usize = 64 << 10;",
        "and strangers, over 64 KiB |",
    ),
    (
        "cluster/src/wire/progress.rs",
        "PROGRESS_REPORTS_MAX: usize = 256;",
        "logs of servers told in a handshake | 256 |",
    ),
    (
        "cluster/src/mailbox/entry_point.rs",
        "JOBS_MAX: usize = 1 << 16;",
        "a client or a server | 65,536 at a loop |",
    ),
    (
        "cluster/src/storage/node_log.rs",
        "PIECE_BYTES: usize = 32 << 10;",
        "| piece of a checkpoint | 32 KiB,",
    ),
    (
        "core/src/data/ids.rs",
        "REPOSITORY_BITS: u32 = 12;",
        "| repositories | 4,096; 455 with `group`",
    ),
    (
        "core/src/settings/batching.rs",
        "BATCH_MAX: usize = 1024;",
        "| messages that wait to leave together for one node | 1,024 (`batch`), and 64 KiB",
    ),
    (
        "core/src/settings/options.rs",
        "GIVE_UP_MOST: Nanos = Nanos::from_millis(120_000);",
        "10 s, 2 minutes at most |",
    ),
    (
        "core/src/settings/options.rs",
        "lock_waiters_max: 10_000,",
        "| 10,000 (`lock_waiters_max`), and",
    ),
    (
        "core/src/settings/secret.rs",
        "SECRET_BYTES_MAX: usize = 4096;",
        "| secret | 16 to 4,096 bytes |",
    ),
    ("group/src/layout.rs", "PLACES: u16 = 9;", "| members of a group | 9 |"),
    (
        "group/src/placement.rs",
        "EPOCHS_AHEAD_MAX: u64 = 1 << 16;",
        "| at most 65,536 ahead of the one known |",
    ),
    (
        "group/src/replica/transfer/load.rs",
        "ALONE_TICKS: u64 = 150;",
        "| 150 ticks of 20 ms, 3 s |",
    ),
    (
        "group/src/replica/long.rs",
        "LONG_BYTES: usize = 1 << 20;",
        "takes in a message of 1 MiB and more",
    ),
    (
        "group/src/replica/transfer/serve.rs",
        "FORGET_TICKS: u64 = 500;",
        "| forgotten after 500 ticks, 10 s |",
    ),
    (
        "log/src/format/frame.rs",
        "PAYLOAD_MAX: usize = 128 << 20;",
        "| record of the log | 128 MiB |",
    ),
    (
        "muesli/src/embedded/mod.rs",
        "JOBS_MAX: usize = 1 << 16;",
        "a client or a server | 65,536 at a loop |",
    ),
    (
        "muesli/src/embedded/mod.rs",
        "if !(1..=1024).contains(&options.loops)",
        "in the process | 1,024, from 1 |",
    ),
    ("muesli/src/embedded/mod.rs", "if options.masters > 1024", "that decide (Sinfonia) | 1,024 |"),
    (
        "muesli/src/embedded/links/ring.rs",
        "MESSAGES_MAX: usize = 1024;",
        "| 1,024 under way to each, and 4,096 that wait",
    ),
    (
        "muesli/src/embedded/exchange.rs",
        "BACKLOG_MAX: usize = 4096;",
        "| 1,024 under way to each, and 4,096 that wait",
    ),
    (
        "muesli/src/embedded/closing.rs",
        "DECIDED_WITHIN: Duration = Duration::from_secs(10);",
        "| 10 s embedded, 1 s for",
    ),
    (
        "muesli/src/options.rs",
        "CLOSE_WITHIN: Duration = Duration::from_secs(1);",
        "when the database is closed | 1 s |",
    ),
    ("muesli/src/retry.rs", "attempts: 100,", "| attempts of `transact` at a transaction | 100;"),
    (
        "muesli/src/retry.rs",
        "pause_max: Duration::from_millis(10),",
        "as long each time, and 10 ms at most |",
    ),
    (
        "muesli/src/remote/mod.rs",
        "connect_within: Duration::from_secs(5),",
        "answered who connects | 5 s;",
    ),
    (
        "muesli/src/remote/mod.rs",
        "give_up_after: Duration::from_secs(10),",
        "waits for an answer | 10 s,",
    ),
    (
        "protocols/src/unknown_outcomes.rs",
        "UNKNOWN_MAX: usize = 10_000;",
        "`Db::outcome` | 10,000 of a coordinator |",
    ),
    (
        "protocols/src/two_phase/coordinator/ending/failed.rs",
        "REMEMBERED: usize = 256;",
        "their end | 256 of a coordinator, under every",
    ),
    (
        "protocols/src/granola/coordinator/mod.rs",
        "FAILED_MAX: usize = 256;",
        "their end | 256 of a coordinator, under every",
    ),
    (
        "protocols/src/two_phase/participant/waits/reads.rs",
        "READS_MAX: usize = 65_536;",
        "for their snapshot | 65,536 at a repository, and",
    ),
    (
        "protocols/src/two_phase/participant/encounter_locks.rs",
        "LOCKS_BYTES_MAX: usize = 128 << 20;",
        "for one, 128 MiB (or that,",
    ),
    (
        "protocols/src/granola/participant/votes/early_votes.rs",
        "EARLY_MAX: usize = 4096;",
        "| on 4,096 transactions at a repository |",
    ),
    (
        "protocols/src/granola/participant/copies/feed.rs",
        "PIECE_BYTES: usize = 64 << 10;",
        "(Granola, Sinfonia) | 64 KiB, or one change |",
    ),
    (
        "core/src/parts/migration.rs",
        "PIECE_BYTES: usize = 64 << 10;",
        "(Granola, Sinfonia) | 64 KiB, or one change |",
    ),
    (
        "protocols/src/granola/participant/copies/feed.rs",
        "CHANGES_MAX: usize = 64 << 20;",
        "(Granola) | 64 MiB at a repository |",
    ),
    (
        "core/src/parts/migration.rs",
        "CHANGES_MAX: usize = 64 << 20;",
        "(Granola, Sinfonia) | 64 MiB a partition |",
    ),
    (
        "protocols/src/doubts.rs",
        "CLIENTS_ASKED_MAX: usize = 256;",
        "in doubt of nothing of this client, 256 clients",
    ),
    ("resp/src/engine/interpreters.rs", "RUNNING_MAX: usize = 128;", "| scripts at a time | 128 |"),
    (
        "resp/src/keyspace/scope.rs",
        "EFFECT_BYTES_MAX: usize = 16 << 20;",
        "of a transaction with scripts | 16 MiB, with 64 bytes for each |",
    ),
    (
        "resp/src/keyspace/events.rs",
        "EFFECT_BYTES: usize = 64;",
        "of a transaction with scripts | 16 MiB, with 64 bytes for each |",
    ),
    (
        "scripts/src/running/asking.rs",
        "LOG_BYTES_MAX: usize = 1024;",
        "| a line of `redis.log` | 1,024 bytes |",
    ),
    (
        "resp/src/server/stats/mod.rs",
        "ERROR_CODES_MAX: usize = 128;",
        "counts apart | 128, of 32 letters, digits or `_` |",
    ),
    (
        "resp/src/server/stats/mod.rs",
        "ERROR_CODE_BYTES_MAX: usize = 32;",
        "counts apart | 128, of 32 letters, digits or `_` |",
    ),
    ("resp/src/users/file.rs", "FILE_BYTES_MAX: u64 = 1 << 20;", "| the file of users | 1 MiB |"),
    (
        "resp/src/users/file.rs",
        "USERS_MAX: usize = 1000;",
        "| users | 1,000, with names of 64 bytes |",
    ),
    (
        "resp/src/users/file.rs",
        "NAME_BYTES_MAX: usize = 64;",
        "| users | 1,000, with names of 64 bytes |",
    ),
    (
        "resp/src/users/hashes.rs",
        "MEMORY_KIB_MAX: u32 = 256 << 10;",
        "| 256 MiB of memory, 10 passes, 8 lanes |",
    ),
    (
        "resp/src/users/hashes.rs",
        "PASSES_MAX: u32 = 10;",
        "| 256 MiB of memory, 10 passes, 8 lanes |",
    ),
    (
        "resp/src/users/hashes.rs",
        "PARALLEL_MAX: u32 = 8;",
        "| 256 MiB of memory, 10 passes, 8 lanes |",
    ),
    (
        "resp/src/users/hashes.rs",
        "PASSWORD_BYTES_MAX: usize = 1024;",
        "| a password | 1,024 bytes |",
    ),
    ("resp/src/users/checking.rs", "THREADS: usize = 2;", "with the memory of its hash | 2 |"),
    (
        "resp/src/users/checking.rs",
        "WAITING_MAX: usize = 64;",
        "| passwords that wait to be checked | 64, one of each client |",
    ),
    (
        "resp/src/server/front.rs",
        "STRANGERS_WAIT: Duration = Duration::from_secs(60);",
        "| how long such a client may say nothing of who it is | 60 s |",
    ),
    (
        "rdb/src/strings.rs",
        "STRING_BYTES_MAX: usize = 512 << 20;",
        "| a string of an RDB file, or a packed block of elements | 512 MiB |",
    ),
    (
        "resp/src/import/survey.rs",
        "KEY_BYTES_BESIDE: usize = 536;",
        "| a key, field or member of such a file | 65,000 bytes |",
    ),
    (
        "resp/src/import/writing.rs",
        "UNFINISHED_FOR: u64 = 3_600_000;",
        "| how long an unfinished key stays of an import that was cut short | one hour |",
    ),
    (
        "cli/src/data/redis.rs",
        "PATIENCE: Duration = Duration::from_secs(60);",
        "| how long a Redis that runs may send nothing | 60 s |",
    ),
    (
        "threads/src/lib.rs",
        "THREADS_MAX: usize = 256;",
        "| threads of a loop for procedures | 256 |",
    ),
];

/// Rows of the page's tables.
fn rows() -> impl Iterator<Item = &'static str> {
    PAGE.lines().filter(|line| line.starts_with("| "))
}

/// With a comma between thousands, as the page writes numbers.
fn with_commas(number: u64) -> String {
    let digits = number.to_string();
    let mut printed = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            printed.push(',');
        }
        printed.push(digit);
    }
    printed
}

/// The default of a key as the page writes it.
fn shown_default(key: &ConfigKey) -> String {
    let number: u64 = key.default.parse().unwrap();
    let in_units = |units: &[(u64, &str)]| {
        let found = units.iter().find(|(size, _)| number >= *size && number.is_multiple_of(*size));
        let &(size, unit) = found.unwrap_or(&(1, ""));
        format!("{} {unit}", with_commas(number / size))
    };
    match key.value {
        "BYTES" if number == i64::MAX as u64 => "none".to_owned(),
        "BYTES" => in_units(&[(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "bytes")]),
        "MS" => {
            in_units(&[(60_000, "minutes"), (1_000, "s"), (1, "ms")]).replace("1 minutes", "60 s")
        }
        _ => with_commas(number),
    }
}

/// Whether a text has this number with its unit, and not as a part of a longer one.
fn has_number(text: &str, number: &str) -> bool {
    text.match_indices(number).any(|(place, _)| {
        let part = |it: Option<char>| it.is_some_and(|it| it.is_alphanumeric() || it == ',');
        let (before, after) = (&text[..place], text[place + number.len()..].chars().next());
        !part(before.chars().next_back()) && !after.is_some_and(char::is_alphanumeric)
    })
}

/// The page names each key that takes a number, in a row of a table, with its default.
#[test]
fn the_page_of_limits_names_all_keys_of_numbers_with_their_defaults() {
    let is_number = |key: &&ConfigKey| ["N", "BYTES", "MS", "US"].contains(&key.value);
    let limits = keys::all().filter(is_number).filter(|key| !NO_LIMITS.contains(&key.name));
    let limits: Vec<_> = limits.collect();
    assert!(limits.len() > 40, "{}", limits.len());
    let is_shown = |key: &&&ConfigKey| {
        let (name, default) = (format!("`{}`", key.name), shown_default(key));
        rows().any(|row| row.contains(&name) && has_number(row, &default))
    };
    let missing = limits.iter().filter(|key| !is_shown(key));
    let missing: Vec<_> = missing.map(|key| (key.name, shown_default(key))).collect();
    assert!(
        missing.is_empty(),
        "docs/running/limits.md lacks rows with these defaults: {missing:?}"
    );
}

/// Limits without keys are what the page says.
#[test]
fn the_page_of_limits_says_what_the_code_declares() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for (file, declared, printed) in DECLARED {
        let code = std::fs::read_to_string(crates.join(file));
        let code = code.unwrap_or_else(|error| panic!("{file}: {error}"));
        assert!(code.contains(declared), "{file} has no `{declared}`: change {printed:?}, too");
        assert!(rows().any(|row| row.contains(printed)), "limits.md has no row with {printed:?}");
    }
}

#[test]
fn numbers_are_found_whole() {
    assert!(has_number("| 10 s, 2 minutes", "10 s") && has_number("(10 s)", "10 s"));
    assert!(
        !has_number("110 s", "10 s")
            && !has_number("1,000 s", "000 s")
            && !has_number("10 seconds", "10 s")
    );
    assert_eq!((with_commas(1), with_commas(12_000)), ("1".to_owned(), "12,000".to_owned()));
}
