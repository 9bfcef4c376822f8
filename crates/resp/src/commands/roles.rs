//! Which role a command needs: read off its flags, and off its subcommand where that decides.

use super::spec::Spec;
use crate::users::UserRole;

/// Commands of which these subcommands are for everybody, and all others for administrators.
const BY_SUBCOMMAND: [(&str, &[&str]); 5] = [
    ("acl", &["cat", "help", "whoami"]),
    (
        "client",
        &[
            "caching",
            "getname",
            "getredir",
            "help",
            "id",
            "info",
            "reply",
            "setinfo",
            "setname",
            "tracking",
            "trackinginfo",
        ],
    ),
    ("config", &["get", "help"]),
    ("function", &["dump", "help", "list", "stats"]),
    ("script", &["debug", "exists", "help", "load"]),
];

/// What takes all data of a database away or exchanges it.
const FOR_ADMINISTRATORS: [&str; 3] = ["flushall", "flushdb", "swapdb"];
/// What changes no data, and is seen by others.
const FOR_WRITERS: [&str; 2] = ["publish", "spublish"];
/// What has Redis's flag of administration, and answers what a client of a cluster asks first.
const FOR_READERS: [&str; 1] = ["cluster"];

fn open_subcommands(spec: &Spec) -> Option<&'static [&'static str]> {
    BY_SUBCOMMAND.iter().find(|it| it.0 == spec.name).map(|it| it.1)
}

/// The role that a command needs with this word behind its name.
pub(crate) fn needed_role(spec: &Spec, second: Option<&[u8]>) -> UserRole {
    if let Some(open) = open_subcommands(spec) {
        let is_it = |it: &&str| second.is_some_and(|word| word.eq_ignore_ascii_case(it.as_bytes()));
        return if open.iter().any(is_it) { UserRole::Read } else { UserRole::Admin };
    }
    let is_of = |names: &[&str]| names.contains(&spec.name);
    match () {
        () if is_of(&FOR_ADMINISTRATORS) => UserRole::Admin,
        () if spec.has("admin") && !is_of(&FOR_READERS) => UserRole::Admin,
        () if spec.writes() || is_of(&FOR_WRITERS) => UserRole::Write,
        () => UserRole::Read,
    }
}

/// What a user is told who may not give a command, in Redis's words.
pub(crate) fn no_permission(user: &str, spec: &Spec, second: Option<&[u8]>) -> String {
    let second = second.map(|it| String::from_utf8_lossy(&it[..it.len().min(128)]));
    let name = match (open_subcommands(spec), second) {
        (Some(_), Some(word)) => format!("{}|{}", spec.name, word.to_ascii_lowercase()),
        _ => spec.name.to_owned(),
    };
    format!("NOPERM User {user} has no permissions to run the '{name}' command")
}

/// Who may give a command, for the manual.
pub(super) fn described_role(spec: &Spec) -> String {
    let name = needed_role(spec, None).name();
    match open_subcommands(spec) {
        _ if spec.has("no_auth") => "everybody".to_owned(),
        None => name.to_owned(),
        Some(open) => {
            let open: Vec<_> = open.iter().map(|it| it.to_ascii_uppercase()).collect();
            format!("{name}; read: {}", open.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::commands::table::{all, find};

    fn needed(command: &str) -> &'static str {
        let words: Vec<_> = command.split(' ').map(str::as_bytes).collect();
        needed_role(find(words[0]).unwrap(), words.get(1).copied()).name()
    }

    #[test]
    fn roles_are_as_documented() {
        for (commands, expected) in [
            ("GET|MGET|KEYS|SCAN|SORT_RO|DUMP|TTL|SUBSCRIBE|MULTI|EXEC|WATCH|EVAL|FCALL", "read"),
            ("INFO|DBSIZE|TIME|PING|SELECT|CLUSTER SLOTS|ROLE|COMMAND DOCS|PUBSUB", "read"),
            ("CLIENT ID|CLIENT setname|CONFIG GET|ACL WHOAMI|SCRIPT LOAD|FUNCTION LIST", "read"),
            ("SET|GETEX|GETDEL|SORT|DEL|EXPIRE|BLPOP|COPY|RESTORE|PUBLISH|SPUBLISH", "write"),
            ("FLUSHALL|FLUSHDB|SWAPDB|CONFIG SET|CONFIG RESETSTAT|CONFIG|CLIENT KILL", "admin"),
            ("CLIENT LIST|CLIENT UNBLOCK|CLIENT NO-EVICT|CLIENT|CLIENT NEW|ACL USERS", "admin"),
            ("ACL LIST|SCRIPT FLUSH|SCRIPT KILL|FUNCTION LOAD|FUNCTION RESTORE", "admin"),
            ("FUNCTION DELETE|FUNCTION KILL|SAVE|SHUTDOWN|DEBUG|MONITOR|REPLICAOF x y", "admin"),
        ] {
            for command in commands.split('|') {
                assert_eq!(needed(command), expected, "{command}");
            }
        }
    }

    /// Where a table of Redis's or of ours gets a new command, it is in one of the classes.
    #[test]
    fn what_writes_is_for_nobody_who_may_only_read() {
        let writers: BTreeSet<_> = all().filter(|it| it.has("write")).map(|it| it.name).collect();
        assert!(writers.len() > 80, "{}", writers.len());
        for spec in all() {
            let role = needed_role(spec, None);
            assert!(!spec.has("write") || role.may(UserRole::Write), "{}", spec.name);
            assert!(!spec.has("readonly") || role == UserRole::Read, "{}", spec.name);
        }
    }

    #[test]
    fn refusals_name_subcommands() {
        let refusal = |name: &str, second: &str| {
            no_permission("ann", find(name.as_bytes()).unwrap(), Some(second.as_bytes()))
        };
        let expected = "NOPERM User ann has no permissions to run the 'config|set' command";
        assert_eq!(refusal("config", "SET"), expected);
        let expected = "NOPERM User ann has no permissions to run the 'set' command";
        assert_eq!(refusal("set", "a"), expected);
    }
}
