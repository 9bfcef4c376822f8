//! What `CONFIG` tells and sets.

use std::collections::BTreeMap;
use std::time::Duration;

use super::stats::SlowLogLimits;
use crate::protocol::limits::RequestLimits;
use crate::protocol::numbers;

/// What can be set without any effect here, because it is about the inside of Redis.
const WITHOUT_EFFECT: &[(&str, &str)] = &[
    ("activerehashing", "yes"),
    ("active-expire-effort", "1"),
    ("hash-max-listpack-entries", "512"),
    ("hash-max-listpack-value", "64"),
    ("hash-max-ziplist-entries", "512"),
    ("hash-max-ziplist-value", "64"),
    ("latency-monitor-threshold", "0"),
    ("lazyfree-lazy-eviction", "no"),
    ("lazyfree-lazy-expire", "no"),
    ("lazyfree-lazy-server-del", "no"),
    ("lazyfree-lazy-user-del", "no"),
    ("list-compress-depth", "0"),
    ("list-max-listpack-size", "-2"),
    ("list-max-ziplist-size", "-2"),
    ("lfu-decay-time", "1"),
    ("lfu-log-factor", "10"),
    ("maxmemory-samples", "5"),
    ("maxmemory-policy", "noeviction"),
    ("min-replicas-max-lag", "10"),
    ("min-replicas-to-write", "0"),
    ("min-slaves-max-lag", "10"),
    ("min-slaves-to-write", "0"),
    ("set-max-intset-entries", "512"),
    ("slave-serve-stale-data", "yes"),
    ("tracking-table-max-keys", "1000000"),
    ("zset-max-listpack-entries", "128"),
    ("zset-max-listpack-value", "64"),
    ("zset-max-ziplist-entries", "128"),
    ("zset-max-ziplist-value", "64"),
];

/// What is told and cannot be set.
const FIXED: &[(&str, &str)] = &[
    ("appendfsync", "always"),
    ("appendonly", "yes"),
    ("bind", "127.0.0.1"),
    ("cluster-enabled", "no"),
    ("databases", "16"),
    ("dir", "."),
    ("io-threads", "1"),
    ("requirepass", ""),
    ("save", ""),
    ("unixsocket", ""),
];

/// What can be set, and means something.
const SETTINGS: &[(&str, &str)] = &[
    ("busy-reply-threshold", "0"),
    ("client-output-buffer-limit", "normal 0 0 0 slave 0 0 0 pubsub 33554432 8388608 60"),
    ("client-query-buffer-limit", "1073741824"),
    ("maxclients", "10000"),
    ("maxmemory", "0"),
    ("notify-keyspace-events", ""),
    ("loglevel", "notice"),
    ("lua-time-limit", "0"),
    ("proto-max-bulk-len", "536870912"),
    ("script-instructions-limit", "2000000000"),
    ("script-memory-limit", "67108864"),
    ("script-time-limit", "10000"),
    ("slowlog-log-slower-than", "10000"),
    ("slowlog-max-len", "128"),
    ("timeout", "0"),
];

/// The names of one setting.
const BUSY_THRESHOLD: [&str; 2] = ["busy-reply-threshold", "lua-time-limit"];
const LOG_LEVELS: [&str; 4] = ["debug", "verbose", "notice", "warning"];
/// With less memory no script can begin.
const SCRIPT_MEMORY_MIN: u64 = 1 << 20;

/// So many commands that took long can be kept at most: each of them has four kilobytes.
const SLOW_MAX: i64 = 10_000;

/// All that is set.
pub(super) struct RespConfig {
    values: BTreeMap<&'static str, String>,
}

impl RespConfig {
    pub fn new(clients_max: usize, port: u16, durable: bool) -> RespConfig {
        let all = [WITHOUT_EFFECT, FIXED, SETTINGS].into_iter().flatten();
        let mut values: BTreeMap<_, _> = all.map(|(name, it)| (*name, (*it).to_owned())).collect();
        values.insert("maxclients", clients_max.to_string());
        values.insert("port", port.to_string());
        if !durable {
            values.insert("appendfsync", "no".to_owned());
            values.insert("appendonly", "no".to_owned());
        }
        RespConfig { values }
    }

    pub fn all(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.values.iter().map(|(name, value)| (*name, &**value))
    }

    pub fn get(&self, name: &str) -> &str {
        self.values.get(name).map_or("", |it| it)
    }

    fn number(&self, name: &str) -> usize {
        self.get(name).parse().unwrap_or(0)
    }

    /// Sets all of these, or none.
    ///
    /// # Errors
    /// Why not, as Redis says it.
    pub fn set(&mut self, all: &[(String, String)]) -> Result<(), String> {
        let mut checked = Vec::new();
        for (name, value) in all {
            let name = name.to_ascii_lowercase();
            let Some((known, _)) = self.values.get_key_value(&*name) else {
                return Err(format!(
                    "ERR Unknown option or number of arguments for CONFIG SET - '{name}'"
                ));
            };
            let failed = |why: &str| {
                Err(format!(
                    "ERR CONFIG SET failed (possibly related to argument '{name}') - {why}"
                ))
            };
            let is_fixed = FIXED.iter().any(|it| it.0 == name) || name == "port";
            if is_fixed && self.get(&name) != value {
                return failed("can't set immutable config");
            }
            match judged(&name, value) {
                Ok(value) => checked.push((*known, value)),
                Err(why) => return failed(&why),
            }
        }
        for (name, value) in checked {
            if BUSY_THRESHOLD.contains(&name) {
                BUSY_THRESHOLD.iter().for_each(|it| drop(self.values.insert(it, value.clone())));
            } else if name == "client-output-buffer-limit" {
                self.set_output_limits(&value);
            } else {
                self.values.insert(name, value);
            }
        }
        Ok(())
    }

    pub fn requests(&self) -> RequestLimits {
        RequestLimits {
            bulk_bytes: self.number("proto-max-bulk-len"),
            buffer_bytes: self.number("client-query-buffer-limit"),
            ..RequestLimits::default()
        }
    }

    /// Most bytes of replies to a command, or to those of a transaction, after which nothing is
    /// added.
    pub fn reply_bytes_max(&self) -> usize {
        self.number("proto-max-bulk-len")
    }

    /// Most bytes of memory that the process may have; 0: any number.
    pub fn memory_max(&self) -> u64 {
        self.number("maxmemory") as u64
    }

    /// How much a script may take.
    #[cfg(feature = "scripts")]
    pub fn script_limits(&self) -> muesli_scripts::ScriptLimits {
        muesli_scripts::ScriptLimits {
            instructions: self.number("script-instructions-limit") as u64,
            time: std::time::Duration::from_millis(self.number("script-time-limit") as u64),
            memory_bytes: self.number("script-memory-limit"),
        }
    }

    /// After so many milliseconds of a script other clients are refused; 0: never.
    #[cfg(feature = "scripts")]
    pub fn busy_threshold(&self) -> u64 {
        self.number("busy-reply-threshold") as u64
    }

    /// The level from which on lines of scripts are logged.
    #[cfg(feature = "scripts")]
    pub fn log_level(&self) -> u8 {
        let found = LOG_LEVELS.iter().position(|it| *it == self.get("loglevel"));
        found.unwrap_or(2) as u8
    }

    pub fn clients_max(&self) -> usize {
        self.number("maxclients")
    }

    /// Which commands are kept because they took long.
    pub fn slow_log(&self) -> SlowLogLimits {
        // Less than nothing: none are.
        let us = numbers::integer(self.get("slowlog-log-slower-than").as_bytes()).unwrap_or(-1);
        let slower_than = u64::try_from(us).ok().map(Duration::from_micros);
        SlowLogLimits { slower_than, kept: self.number("slowlog-max-len") }
    }

    /// Seconds after which a client that says nothing is closed; 0: never.
    pub fn timeout(&self) -> u64 {
        self.number("timeout") as u64
    }

    /// Most bytes that may wait for a client, at once and for some seconds.
    pub fn output_limit(&self, class: &str) -> (usize, usize, u64) {
        let words: Vec<_> = self.get("client-output-buffer-limit").split(' ').collect();
        let number = |at: usize| words.get(at).and_then(|it| it.parse().ok()).unwrap_or(0);
        let at = words.iter().position(|it| *it == class);
        at.map_or((0, 0, 0), |at| (number(at + 1), number(at + 2), number(at + 3) as u64))
    }

    /// Sets the limits of the classes that are named.
    fn set_output_limits(&mut self, value: &str) {
        let given: Vec<_> = value.split(' ').collect();
        let before = self.get("client-output-buffer-limit").to_owned();
        let before: Vec<_> = before.split(' ').collect();
        let mut words: Vec<&str> = Vec::new();
        for class in before.chunks(4) {
            let new = given.chunks(4).find(|it| it[0] == class[0]);
            words.extend(new.unwrap_or(class));
        }
        self.values.insert("client-output-buffer-limit", words.join(" "));
    }
}

/// A value as it is kept.
fn judged(name: &str, value: &str) -> Result<String, String> {
    match name {
        "client-query-buffer-limit" | "proto-max-bulk-len" => {
            let bytes = memory(value).ok_or("argument must be a memory value")?;
            if bytes < 1 << 20 {
                return Err(
                    "argument must be between 1048576 and 9223372036854775807 inclusive".to_owned()
                );
            }
            Ok(bytes.to_string())
        }
        "maxmemory" => match memory(value) {
            Some(bytes) => Ok(bytes.to_string()),
            None => Err("argument must be a memory value".to_owned()),
        },
        "busy-reply-threshold" | "lua-time-limit" | "maxclients" | "timeout" => {
            match numbers::integer(value.as_bytes()) {
                Some(number) if number >= i64::from(name == "maxclients") => Ok(value.to_owned()),
                _ => Err("argument couldn't be parsed into an integer".to_owned()),
            }
        }
        "script-memory-limit" => match memory(value) {
            Some(bytes) if bytes >= SCRIPT_MEMORY_MIN => Ok(bytes.to_string()),
            _ => Err(format!("argument must be at least {SCRIPT_MEMORY_MIN} bytes")),
        },
        "script-instructions-limit" | "script-time-limit" => {
            match numbers::integer(value.as_bytes()) {
                Some(1..) => Ok(value.to_owned()),
                _ => Err("argument must be a whole number above 0".to_owned()),
            }
        }
        "slowlog-log-slower-than" => match numbers::integer(value.as_bytes()) {
            Some(-1..) => Ok(value.to_owned()),
            _ => Err("argument must be between -1 and 9223372036854775807 inclusive".to_owned()),
        },
        "slowlog-max-len" => match numbers::integer(value.as_bytes()) {
            Some(0..=SLOW_MAX) => Ok(value.to_owned()),
            _ => Err(format!("argument must be between 0 and {SLOW_MAX} inclusive")),
        },
        "loglevel" => match value.to_ascii_lowercase() {
            level if LOG_LEVELS.contains(&&*level) => Ok(level),
            _ => Err("argument(s) must be one of the following: debug, verbose, notice, warning"
                .to_owned()),
        },
        "client-output-buffer-limit" => output_limits(value),
        "notify-keyspace-events" => events(value),
        _ => Ok(value.to_owned()),
    }
}

/// Classes of keyspace events as Redis tells them.
fn events(value: &str) -> Result<String, String> {
    const ALL: &str = "g$lshzxetd";
    if let Some(wrong) = value.chars().find(|it| !"Ag$lshzxeKEtmdn".contains(*it)) {
        return Err(format!("Invalid event class character. Use 'Ag$lshzxeKEtmdn': {wrong}"));
    }
    let is_all = value.contains('A') || ALL.chars().all(|it| value.contains(it));
    let classes = if is_all { "A" } else { ALL };
    let given = |it: &char| value.contains(*it) || is_all && *it == 'A';
    Ok(classes.chars().chain("KEmn".chars()).filter(given).collect())
}

fn output_limits(value: &str) -> Result<String, String> {
    let words: Vec<_> = value.split_ascii_whitespace().collect();
    if words.is_empty() || words.len() % 4 != 0 {
        return Err("Wrong number of arguments in buffer limit configuration.".to_owned());
    }
    let mut kept = Vec::new();
    for limit in words.chunks(4) {
        let class = match limit[0].to_ascii_lowercase().as_str() {
            "normal" => "normal",
            "slave" | "replica" => "slave",
            "pubsub" => "pubsub",
            _ => {
                return Err(
                    "Invalid client class specified in buffer limit configuration.".to_owned()
                );
            }
        };
        let numbers = (memory(limit[1]), memory(limit[2]), limit[3].parse::<u64>().ok());
        let (Some(hard), Some(soft), Some(seconds)) = numbers else {
            return Err("Error in hard, soft or soft_seconds setting in buffer limit \
                configuration."
                .to_owned());
        };
        kept.push(format!("{class} {hard} {soft} {seconds}"));
    }
    Ok(kept.join(" "))
}

/// A number of bytes, with a unit perhaps.
fn memory(value: &str) -> Option<u64> {
    let lower = value.to_ascii_lowercase();
    let digits = lower.trim_end_matches(|it: char| !it.is_ascii_digit());
    let unit = match &lower[digits.len()..] {
        "" | "b" => 1,
        "k" => 1000,
        "kb" => 1 << 10,
        "m" => 1_000_000,
        "mb" => 1 << 20,
        "g" => 1_000_000_000,
        "gb" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(config: &mut RespConfig, name: &str, value: &str) -> Result<(), String> {
        config.set(&[(name.to_owned(), value.to_owned())])
    }

    #[test]
    fn settings_are_judged_and_kept_as_redis_tells_them() {
        let mut config = RespConfig::new(10, 1, true);
        for (name, value, expected) in [
            ("proto-max-bulk-len", "2mb", "2097152"),
            ("maxclients", "20", "20"),
            (
                "client-output-buffer-limit",
                "pubsub 1mb 0 0",
                "normal 0 0 0 slave 0 0 0 pubsub 1048576 0 0",
            ),
            ("notify-keyspace-events", "KEA", "AKE"),
            ("notify-keyspace-events", "El", "lE"),
            ("slowlog-log-slower-than", "-1", "-1"),
            ("slowlog-max-len", "10000", "10000"),
        ] {
            assert_eq!(set(&mut config, name, value), Ok(()), "{name}");
            assert_eq!(config.get(name), expected);
        }
        for (name, value) in [
            ("proto-max-bulk-len", "many"),
            ("maxclients", "0"),
            ("databases", "17"),
            ("nothing", "1"),
            ("client-output-buffer-limit", "normal 1"),
            ("notify-keyspace-events", "KQ"),
            ("slowlog-log-slower-than", "-2"),
            ("slowlog-max-len", "10001"),
        ] {
            assert!(set(&mut config, name, value).is_err(), "{name}");
        }
        assert_eq!(config.output_limit("pubsub"), (1 << 20, 0, 0));
    }

    #[test]
    fn several_settings_are_set_together_or_not_at_all() {
        let mut config = RespConfig::new(10, 1, true);
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let both = [pair("maxclients", "5"), pair("timeout", "x")];
        assert!(config.set(&both).is_err());
        assert_eq!(config.clients_max(), 10);
    }
}
