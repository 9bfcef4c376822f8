//! Numbers as Prometheus reads them: its text format, version 0.0.4.

use std::collections::BTreeMap;
use std::fmt::Write;

use muesli_cluster::{NumberKind, STATUS_NUMBERS};

use super::PortNumbers;

/// Numbers of `INFO` that say nothing of how the server does.
const LEFT_OUT: [&str; 5] =
    ["tcp_port", "process_id", "arch_bits", "redis_git_sha1", "uptime_in_days"];
/// Those that only grow, beside those that are called totals.
const GROWING: [&str; 3] = ["rejected_connections", "expired_keys", "rdb_changes_since_last_save"];

/// A metric, with what it is of each source.
struct Metric {
    about: String,
    kind: NumberKind,
    /// Labels, and the number.
    samples: Vec<(String, u64)>,
}

/// All numbers that were measured, and how long the process has had what memory.
pub fn metrics(all: &[PortNumbers]) -> String {
    let mut metrics: BTreeMap<String, Metric> = BTreeMap::new();
    let mut add = |(name, about, kind): (String, String, NumberKind), sample| {
        let empty = || Metric { about, kind, samples: Vec::new() };
        metrics.entry(name).or_insert_with(empty).samples.push(sample);
    };
    for measured in all {
        let port = if measured.is_redis { "redis" } else { "native" };
        let about = "1: the server answers there".to_owned();
        let up = ("muesli_up".to_owned(), about, NumberKind::Gauge);
        add(up, (format!("port=\"{port}\""), u64::from(measured.trouble.is_none())));
        for (node, numbers) in &measured.numbers {
            for (name, number) in numbers {
                let described = match measured.is_redis {
                    true if LEFT_OUT.contains(&&**name) => continue,
                    true => (of_redis(name), String::new()),
                    false => of_status(name, *node),
                };
                add(described.0, (described.1, *number));
            }
        }
    }
    let version = env!("CARGO_PKG_VERSION");
    let about = "the version of the program, as a label".to_owned();
    let info = ("muesli_info".to_owned(), about, NumberKind::Gauge);
    add(info, (format!("version=\"{version}\""), 1));
    write(&metrics) + &commands(all)
}

/// How often commands of Redis clients were given, and how long they took.
fn commands(all: &[PortNumbers]) -> String {
    let all: Vec<_> = all.iter().flat_map(|it| &it.commands).collect();
    let mut out = String::new();
    if all.is_empty() {
        return out;
    }
    let name = "muesli_redis_command_microseconds";
    let about = "time of commands, the commit and the disk included, without waits for others";
    let _ = write!(out, "# HELP {name} {about}\n# TYPE {name} summary\n");
    for command in &all {
        let label = format!("command=\"{}\"", command.name);
        for (quantile, us) in &command.quantiles {
            let _ = writeln!(out, "{name}{{{label},quantile=\"{quantile}\"}} {us}");
        }
        let _ = writeln!(out, "{name}_sum{{{label}}} {}", command.count("usec"));
        let _ = writeln!(out, "{name}_count{{{label}}} {}", command.count("calls"));
    }
    for (what, about) in
        [("failed", "commands answered by an error"), ("rejected", "commands that were not run")]
    {
        let name = format!("muesli_redis_command_{what}");
        let _ = write!(out, "# HELP {name} {about}\n# TYPE {name} counter\n");
        for command in &all {
            let count = command.count(&format!("{what}_calls"));
            let _ = writeln!(out, "{name}{{command=\"{}\"}} {count}", command.name);
        }
    }
    out
}

/// A number that a loop says of itself: its name, what it is, and its labels.
fn of_status(name: &str, node: u32) -> ((String, String, NumberKind), String) {
    let node = format!("node=\"{node}\"");
    if let Some(known) = STATUS_NUMBERS.iter().find(|it| it.name == name) {
        return ((metric(name), known.about.to_owned(), known.kind), node);
    }
    let validator = name.strip_prefix("validator-").and_then(|it| it.split_once('-'));
    match validator.filter(|(number, _)| number.bytes().all(|it| it.is_ascii_digit())) {
        Some((number, what)) => {
            let about = format!("votes at a validator of the tree: {what}");
            let kind = if what == "waiting" { NumberKind::Gauge } else { NumberKind::Counter };
            let labels = format!("{node},validator=\"{number}\"");
            ((metric(&format!("validator-{what}")), about, kind), labels)
        }
        None => {
            let about = "messages between drivers that were judged".to_owned();
            ((metric(name), about, NumberKind::Counter), node)
        }
    }
}

/// A number of `INFO`.
fn of_redis(name: &str) -> (String, String, NumberKind) {
    let grows = name.starts_with("total_") || GROWING.contains(&name);
    let kind = if grows { NumberKind::Counter } else { NumberKind::Gauge };
    (metric(&format!("redis_{name}")), format!("`{name}` of the command INFO"), kind)
}

/// A name as Prometheus takes it: letters, digits and underscores.
fn metric(name: &str) -> String {
    let plain = |it: char| if it.is_ascii_alphanumeric() { it } else { '_' };
    format!("muesli_{}", name.chars().map(plain).collect::<String>())
}

fn write(metrics: &BTreeMap<String, Metric>) -> String {
    let mut out = String::new();
    for (name, Metric { about, kind, samples }) in metrics {
        let kind = match kind {
            NumberKind::Counter => "counter",
            NumberKind::Gauge => "gauge",
        };
        let _ = write!(out, "# HELP {name} {about}\n# TYPE {name} {kind}\n");
        for (labels, number) in samples {
            let _ = match labels.is_empty() {
                true => writeln!(out, "{name} {number}"),
                false => writeln!(out, "{name}{{{labels}}} {number}"),
            };
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::sources::CommandNumbers;
    use super::*;

    fn owned((name, number): (&str, u64)) -> (String, u64) {
        (name.to_owned(), number)
    }

    fn measured(is_redis: bool, numbers: &[(&str, u64)]) -> PortNumbers {
        let numbers = numbers.iter().copied().map(owned).collect();
        PortNumbers { is_redis, numbers: vec![(3, numbers)], ..PortNumbers::default() }
    }

    #[test]
    fn each_number_has_its_kind_and_its_labels() {
        let native =
            measured(false, &[("in-doubt", 2), ("validator-7-merged", 9), ("map-taken", 1)]);
        let mut redis = measured(true, &[("total_commands_processed", 5), ("tcp_port", 6379)]);
        redis.commands.push(CommandNumbers {
            name: "get".to_owned(),
            counts: [("calls", 3), ("usec", 12), ("failed_calls", 1)].map(owned).into(),
            quantiles: vec![("0.99".to_owned(), 5.023)],
        });
        let text = metrics(&[native, redis]);
        for line in [
            "# TYPE muesli_in_doubt gauge",
            "muesli_in_doubt{node=\"3\"} 2",
            "# TYPE muesli_validator_merged counter",
            "muesli_validator_merged{node=\"3\",validator=\"7\"} 9",
            "muesli_map_taken{node=\"3\"} 1",
            "# TYPE muesli_redis_total_commands_processed counter",
            "muesli_redis_total_commands_processed 5",
            "# TYPE muesli_redis_command_microseconds summary",
            "muesli_redis_command_microseconds{command=\"get\",quantile=\"0.99\"} 5.023",
            "muesli_redis_command_microseconds_sum{command=\"get\"} 12",
            "muesli_redis_command_microseconds_count{command=\"get\"} 3",
            "muesli_redis_command_failed{command=\"get\"} 1",
            "muesli_redis_command_rejected{command=\"get\"} 0",
            "muesli_up{port=\"native\"} 1",
            "muesli_up{port=\"redis\"} 1",
        ] {
            assert!(text.lines().any(|it| it == line), "{line} is not in\n{text}");
        }
        assert!(!text.contains("tcp_port"), "{text}");
        let silent =
            PortNumbers { trouble: Some("no answer".to_owned()), ..PortNumbers::default() };
        assert!(metrics(&[silent]).contains("muesli_up{port=\"native\"} 0\n"));
    }

    #[test]
    fn a_metric_is_described_once_and_before_its_samples() {
        let two = [measured(false, &[("clients", 1)]), measured(false, &[("clients", 2)])];
        let text = metrics(&two);
        assert_eq!(text.matches("# TYPE muesli_clients ").count(), 1, "{text}");
        assert_eq!(text.matches("\nmuesli_clients{").count(), 2, "{text}");
    }
}
