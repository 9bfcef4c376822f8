//! Where the processor's time goes, by parts of the system: what `perf report` says of functions,
//! summed up.

/// A part of the system, and how the names of its functions are told.
struct ProfiledPart {
    name: &'static str,
    /// The first of these in a function's name decides.
    paths: &'static [&'static str],
}

/// Parts of the programs, by the crates and modules in names.
const PARTS: &[ProfiledPart] = &[
    ProfiledPart {
        name: "protocol",
        paths: &["muesli_protocols::", "muesli_broadcast::", "muesli_core::parts::"],
    },
    ProfiledPart { name: "group", paths: &["muesli_group::"] },
    ProfiledPart { name: "log and checkpoints", paths: &["muesli_log::", "crc32c", "crc32fast"] },
    ProfiledPart {
        name: "connections and messages",
        paths: &["muesli_cluster::", "muesli_core::wire::", "mio::"],
    },
    ProfiledPart { name: "Redis's commands", paths: &["muesli_resp::"] },
    ProfiledPart {
        name: "transactions and bodies",
        paths: &["muesli::", "muesli_core::", "muesli_threads::"],
    },
    ProfiledPart {
        name: "workload",
        paths: &["muesli_workloads::", "hdrhistogram::", "libm::", "fastrand::", "bank::"],
    },
    ProfiledPart {
        name: "tables and hashes",
        paths: &["hashbrown::", "foldhash::", "core::hash::"],
    },
];

/// Parts by how names of C begin.
const OF_C: &[ProfiledPart] = &[
    ProfiledPart {
        name: "memory",
        paths: &["mi_", "_mi_", "malloc", "free", "calloc", "realloc", "cfree", "__rust_"],
    },
    ProfiledPart {
        name: "bytes copied and compared",
        paths: &["__memmove", "__memcpy", "__memset", "__memcmp", "memcpy", "memmove", "memset"],
    },
];

/// Parts of the kernel, by what is in names.
const KERNEL: &[ProfiledPart] = &[
    ProfiledPart {
        name: "kernel: network",
        paths: &[
            "tcp", "sock", "skb", "inet", "ip_", "net", "loopback", "xmit", "nf_", "napi", "qdisc",
        ],
    },
    ProfiledPart {
        name: "kernel: files and disks",
        paths: &[
            "ext4",
            "jbd2",
            "blk",
            "bio",
            "xfs",
            "vfs_fsync",
            "iomap",
            "folio",
            "writeback",
            "virtblk",
            "page_cache",
            "pagecache",
        ],
    },
    ProfiledPart {
        name: "kernel: waits and wake-ups",
        paths: &[
            "futex", "sched", "epoll", "ep_", "wake", "pick_", "hrtimer", "switch", "eventfd",
            "idle", "dequeue", "enqueue", "halt", "timer", "tick",
        ],
    },
];

/// The part that a function belongs to.
pub fn part_of(function: &str, is_kernel: bool) -> &'static str {
    if is_kernel {
        let found = KERNEL.iter().find(|it| it.paths.iter().any(|path| function.contains(path)));
        return found.map_or("kernel: the rest", |it| it.name);
    }
    if let Some(part) = OF_C.iter().find(|it| it.paths.iter().any(|it| function.starts_with(it))) {
        return part.name;
    }
    let first = |part: &'static ProfiledPart| {
        let places = part.paths.iter().filter_map(|path| word(function, path));
        Some((places.min()?, part.name))
    };
    PARTS.iter().filter_map(first).min().map_or("the rest", |(_, name)| name)
}

/// Where a path begins in a name: not in the midst of another one.
fn word(function: &str, path: &str) -> Option<usize> {
    let is_begin = |at: &usize| {
        let before = function[..*at].chars().next_back();
        before.is_none_or(|it| !it.is_alphanumeric() && it != '_' && it != ':')
    };
    function.match_indices(path).map(|(at, _)| at).find(is_begin)
}

/// A line of `perf report --stdio --no-children --sort sym`: percent, whether it is the kernel's,
/// and the function.
fn read(line: &str) -> Option<(f64, bool, &str)> {
    let line = line.trim();
    let (percent, rest) = line.split_once('%')?;
    let percent: f64 = percent.parse().ok()?;
    let (at, is_kernel) = match (rest.find("[k] "), rest.find("[.] ")) {
        (Some(at), _) => (at, true),
        (None, Some(at)) => (at, false),
        (None, None) => return None,
    };
    Some((percent, is_kernel, rest[at + 4..].trim()))
}

/// What a report says, by parts: the shares of all time in percent, the largest first.
pub fn by_parts(report: &str) -> Vec<(&'static str, f64)> {
    let mut parts: Vec<(&'static str, f64)> = Vec::new();
    for (percent, is_kernel, function) in report.lines().filter_map(read) {
        let name = part_of(function, is_kernel);
        match parts.iter_mut().find(|(it, _)| *it == name) {
            Some((_, sum)) => *sum += percent,
            None => parts.push((name, percent)),
        }
    }
    parts.sort_by(|a, b| b.1.total_cmp(&a.1));
    parts
}

/// The parts as lines with bars, of which one stands for two percent.
pub fn drawn(parts: &[(&'static str, f64)]) -> String {
    let width = parts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let line = |(name, percent): &(&str, f64)| {
        let bar = "█".repeat((percent / 2.0).round() as usize);
        let text = format!("{name:width$} {percent:5.1} % {bar}");
        format!("{}\n", text.trim_end())
    };
    parts.iter().filter(|(_, percent)| *percent >= 0.05).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_belong_to_parts() {
        for (function, part) in [
            ("<muesli::embedded::Engine<P> as muesli_core::client::Engine>::commit", 5),
            ("muesli_protocols::two_phase::coordinator::Coordinator<V>::on_get", 0),
            ("muesli_core::parts::versions::Versions::find", 0),
            ("<muesli_core::data::bytes::SmallBytes as core::hash::Hash>::hash", 5),
            ("core::hash::BuildHasher::hash_one", 7),
            ("hashbrown::table::HashTable<T,A>::find", 7),
            ("<W as muesli_workloads::workload::AnyWorkload>::run::{{closure}}", 6),
        ] {
            assert_eq!(part_of(function, false), PARTS[part].name, "{function}");
        }
        assert_eq!(part_of("_mi_page_malloc_zero", false), "memory");
        assert_eq!(part_of("core::option::Option<&T>::cloned", false), "the rest");
        assert_eq!(part_of("tcp_sendmsg_locked", true), "kernel: network");
        assert_eq!(part_of("try_to_wake_up", true), "kernel: waits and wake-ups");
        assert_eq!(part_of("entry_SYSCALL_64", true), "kernel: the rest");
    }

    #[test]
    fn a_report_is_summed_up() {
        let report = "# Overhead  Symbol\n\
            \x20   60.50%  [k] tcp_ack\n    20.00%  [.] mi_malloc\n     9.50%  [k] tcp_v4_rcv\n\
            \x20   10.00%  [.] muesli_group::member::Member::step\n\n";
        let parts = by_parts(report);
        assert_eq!(parts, [("kernel: network", 70.0), ("memory", 20.0), ("group", 10.0)]);
        let text = drawn(&parts);
        let bar = "█".repeat(35);
        assert!(text.starts_with(&format!("kernel: network  70.0 % {bar}\nmemory  ")), "{text}");
    }
}
