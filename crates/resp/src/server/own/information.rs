//! `INFO`.

use std::fmt::Write;

use super::ServerCall;
use super::connections::REDIS_VERSION;
use crate::keyspace::rows::DATABASES;
use crate::keyspace::scope::KeyScope;
use crate::keyspace::stop::CommandStop;
use crate::protocol::reply::RespReply;
use crate::server::execute::stop_reply;
use crate::server::shared::{Shared, resident_bytes};

/// The sections before that of the data, in order.
const SECTIONS: [&str; 10] = [
    "server",
    "clients",
    "memory",
    "persistence",
    "stats",
    "replication",
    "cpu",
    "commandstats",
    "latencystats",
    "errorstats",
];
/// Those that are told where they are asked for, or all are.
const ASKED_FOR: [&str; 2] = ["commandstats", "latencystats"];
/// So many percent of calls took no longer.
const PERCENTILES: [(&str, f64); 3] = [("p50", 50.0), ("p99", 99.0), ("p99.9", 99.9)];

pub(super) async fn info(asked: ServerCall<'_>) -> RespReply {
    let words: Vec<_> = (1..asked.len()).map(|at| asked.text(at).to_ascii_lowercase()).collect();
    let mut text = details(asked.shared, &words);
    if is_wanted(&words, "keyspace") {
        match asked.shared.transact(keyspace).await {
            Ok(keyspace) => {
                head(&mut text, "keyspace");
                text.push_str(&keyspace);
            }
            Err(stop) => return stop_reply(stop),
        }
    }
    RespReply::Verbatim(text)
}

fn is_wanted(words: &[String], section: &str) -> bool {
    let is_default = !ASKED_FOR.contains(&section);
    words.is_empty() && is_default
        || words.iter().any(|it| match &**it {
            "all" | "everything" => true,
            "default" => is_default,
            other => other == section,
        })
}

fn head(text: &mut String, section: &str) {
    if !text.is_empty() {
        text.push_str("\r\n");
    }
    let _ = write!(text, "# {}{}\r\n", section[..1].to_ascii_uppercase(), &section[1..]);
}

/// All that is asked for but what the data say.
pub(super) fn details(shared: &Shared, words: &[String]) -> String {
    let mut text = String::new();
    for section in SECTIONS {
        if !is_wanted(words, section) {
            continue;
        }
        head(&mut text, section);
        match section {
            "server" => server(shared, &mut text),
            "clients" => clients(shared, &mut text),
            "memory" => memory(shared, &mut text),
            "persistence" => persistence(shared, &mut text),
            "stats" => stats(shared, &mut text),
            "replication" => replication(shared, &mut text),
            "cpu" => cpu(&mut text),
            "commandstats" => command_stats(shared, &mut text),
            "latencystats" => latency_stats(shared, &mut text),
            _ => {
                for (code, count) in &*shared.stats.error_codes.borrow() {
                    line(&mut text, &format!("errorstat_{code}"), format!("count={count}"));
                }
            }
        }
    }
    text
}

fn line(text: &mut String, name: &str, value: impl std::fmt::Display) {
    let _ = write!(text, "{name}:{value}\r\n");
}

fn server(shared: &Shared, text: &mut String) {
    line(text, "redis_version", REDIS_VERSION);
    line(text, "muesli_version", env!("CARGO_PKG_VERSION"));
    line(text, "redis_git_sha1", "00000000");
    line(text, "redis_mode", "standalone");
    line(text, "os", std::env::consts::OS);
    line(text, "arch_bits", usize::BITS);
    line(text, "process_id", std::process::id());
    line(text, "run_id", &shared.run_id);
    line(text, "tcp_port", shared.port);
    line(text, "uptime_in_seconds", shared.since.elapsed().as_secs());
    line(text, "uptime_in_days", shared.since.elapsed().as_secs() / 86_400);
}

fn clients(shared: &Shared, text: &mut String) {
    line(text, "connected_clients", shared.clients.borrow().len());
    line(text, "cluster_connections", 0);
    line(text, "maxclients", shared.config.borrow().clients_max());
    line(text, "blocked_clients", shared.blocked.count());
    line(text, "tracking_clients", 0);
}

fn memory(shared: &Shared, text: &mut String) {
    line(text, "used_memory", resident_bytes());
    line(text, "used_memory_rss", resident_bytes());
    line(text, "maxmemory", shared.config.borrow().memory_max());
    line(text, "maxmemory_policy", "noeviction");
    #[cfg(feature = "scripts")]
    scripts(shared, text);
}

#[cfg(feature = "scripts")]
fn scripts(shared: &Shared, text: &mut String) {
    let engine = &shared.engine;
    let ((count, bytes), memory) = (engine.cache.size(), engine.interpreters.memory());
    let set = engine.libraries.borrow().1.clone();
    line(text, "used_memory_lua", memory);
    line(text, "used_memory_vm_eval", memory);
    line(text, "used_memory_vm_functions", 0);
    line(text, "used_memory_scripts_eval", bytes);
    line(text, "number_of_cached_scripts", count);
    line(text, "number_of_functions", set.functions());
    line(text, "number_of_libraries", set.libraries.len());
}

fn persistence(shared: &Shared, text: &mut String) {
    line(text, "loading", 0);
    line(text, "async_loading", 0);
    line(text, "rdb_changes_since_last_save", shared.stats.changes.get());
    line(text, "rdb_bgsave_in_progress", 0);
    line(text, "rdb_last_bgsave_status", "ok");
    line(text, "aof_enabled", u8::from(shared.durable));
    line(text, "aof_rewrite_in_progress", 0);
    line(text, "aof_last_write_status", "ok");
}

fn stats(shared: &Shared, text: &mut String) {
    let stats = &shared.stats;
    line(text, "total_connections_received", stats.connections.get());
    line(text, "total_commands_processed", stats.commands.get());
    line(text, "rejected_connections", stats.refused.get());
    line(text, "expired_keys", stats.expired.get());
    line(text, "evicted_keys", 0);
    line(text, "total_error_replies", stats.errors.get());
    line(text, "total_transactions", stats.transactions.get());
}

fn replication(shared: &Shared, text: &mut String) {
    line(text, "role", "master");
    line(text, "connected_slaves", 0);
    line(text, "master_replid", &shared.run_id);
    line(text, "master_repl_offset", 0);
}

fn cpu(text: &mut String) {
    // In hundredths of a second, behind the name of the process.
    let status = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = status.rsplit_once(") ").map_or("", |it| it.1);
    let mut times = after_name.split(' ').skip(11).map(|it| it.parse().unwrap_or(0.0) / 100.0);
    let (user, system) = (times.next().unwrap_or(0.0), times.next().unwrap_or(0.0));
    let _ = write!(text, "used_cpu_sys:{system:.6}\r\nused_cpu_user:{user:.6}\r\n");
}

fn command_stats(shared: &Shared, text: &mut String) {
    shared.stats.times.each(|it| {
        let (us, calls) = (it.total.as_micros(), it.calls);
        let each = it.total.as_secs_f64() * 1e6 / (calls.max(1) as f64);
        let (rejected, failed) = (it.rejected, it.failed);
        let counts = format!(
            "calls={calls},usec={us},usec_per_call={each:.2},rejected_calls={rejected},\
             failed_calls={failed}"
        );
        line(text, &format!("cmdstat_{}", it.spec.name), counts);
    });
}

fn latency_stats(shared: &Shared, text: &mut String) {
    shared.stats.times.each(|it| {
        let shown = PERCENTILES.map(|(name, at)| format!("{name}={:.3}", it.percentile_us(at)));
        if it.calls > 0 {
            line(text, &format!("latency_percentiles_usec_{}", it.spec.name), shown.join(","));
        }
    });
}

async fn keyspace(scope: &KeyScope<'_>) -> Result<String, CommandStop> {
    let mut text = String::new();
    for db in 0..DATABASES as u8 {
        let keys = scope.keys(db).await?;
        if keys > 0 {
            line(&mut text, &format!("db{db}"), format!("keys={keys},expires=0,avg_ttl=0"));
        }
    }
    Ok(text)
}
