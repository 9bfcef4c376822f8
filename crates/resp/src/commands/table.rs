//! All commands, by name, and where their keys are.

use std::collections::HashMap;
use std::sync::LazyLock;

#[cfg(feature = "scripts")]
use super::scripting;
use super::spec::Spec;
use super::{bits, generic, hashes, lists, server, sets, sorted, strings};
use crate::protocol::numbers;

const TABLES: [&[Spec]; 9] = [
    bits::TABLE,
    generic::TABLE,
    hashes::TABLE,
    lists::TABLE,
    #[cfg(feature = "scripts")]
    scripting::TABLE,
    #[cfg(not(feature = "scripts"))]
    server::WITHOUT_SCRIPTS,
    server::TABLE,
    sets::TABLE,
    sorted::TABLE,
    strings::TABLE,
];

static BY_NAME: LazyLock<HashMap<&'static str, &'static Spec>> =
    LazyLock::new(|| all().map(|spec| (spec.name, spec)).collect());

/// All commands.
pub(crate) fn all() -> impl Iterator<Item = &'static Spec> {
    TABLES.into_iter().flatten()
}

/// The longest name of a command.
const NAME_MAX: usize = 24;

/// The command of a name, in letters of any size.
pub(crate) fn find(name: &[u8]) -> Option<&'static Spec> {
    let mut lower = [0; NAME_MAX];
    let lower = lower.get_mut(..name.len())?;
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    BY_NAME.get(std::str::from_utf8(lower).ok()?).copied()
}

/// The keys among the words of a command.
pub(crate) fn keys_of<'a>(spec: &Spec, words: &[&'a [u8]]) -> Vec<&'a [u8]> {
    let mut keys = Vec::new();
    let (first, last, step) = (spec.keys.0, spec.keys.1, spec.keys.2);
    if first > 0 {
        let end = if last < 0 { words.len() as i32 + last } else { last };
        let places = (first..=end).step_by(step as usize);
        keys.extend(places.filter_map(|at| words.get(at as usize).copied()));
    }
    if spec.name == "sort" {
        // The last one counts.
        let mut stores = words.windows(2).skip(1).filter(|it| it[0].eq_ignore_ascii_case(b"store"));
        keys.extend(stores.next_back().map(|it| it[1]));
    }
    let counted = match spec.name {
        "blmpop" | "bzmpop" | "zdiffstore" | "zinterstore" | "zunionstore" => 2,
        "eval" | "evalsha" | "eval_ro" | "evalsha_ro" | "fcall" | "fcall_ro" => 2,
        "lmpop" | "sintercard" | "zdiff" | "zinter" | "zintercard" | "zmpop" | "zunion" => 1,
        _ => return keys,
    };
    let count = words.get(counted).copied().and_then(numbers::integer).unwrap_or(0);
    keys.extend(words.iter().skip(counted + 1).take(count.max(0) as usize));
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_is_there_once_and_has_what_the_manual_tells() {
        let mut names: Vec<_> = all().map(|it| it.name).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
        for spec in all() {
            assert!(spec.name.len() <= NAME_MAX && spec.arity != 0, "{}", spec.name);
            assert!(!spec.complexity.is_empty() && !spec.since.is_empty(), "{}", spec.name);
        }
    }

    #[test]
    fn keys_are_found() {
        for (words, expected) in [
            ("get a", "a"),
            ("mset a 1 b 2", "a b"),
            ("blpop a b 0", "a b"),
            ("zunionstore a 2 b c", "a b c"),
            ("lmpop 2 a b LEFT", "a b"),
            ("object encoding a", "a"),
            ("fcall f 1 a b", "a"),
            ("ping", ""),
        ] {
            let words: Vec<_> = words.split(' ').map(str::as_bytes).collect();
            let spec = find(words[0]).unwrap();
            let keys: Vec<_> = keys_of(spec, &words).into_iter().map(<[u8]>::to_vec).collect();
            assert_eq!(String::from_utf8(keys.join(&b' ')).unwrap(), expected);
        }
    }
}
