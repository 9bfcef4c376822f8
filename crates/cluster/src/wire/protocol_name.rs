//! What processes of a cluster call what they speak: a protocol, and whether in groups.

use muesli_registry::{canonical_name, stored_name};

/// What servers and clients of a cluster speak: the protocol, and that of groups around it.
pub(crate) fn spoken(protocol: &str, group: u16) -> String {
    let name = stored_name(protocol);
    if group > 1 { format!("{name} in groups of {group}") } else { name.to_owned() }
}

/// Whether what is spoken keeps spaces that are everywhere.
pub(crate) fn keeps_everywhere(spoken: &str) -> bool {
    let name = spoken.split(' ').next().unwrap_or(spoken);
    muesli_registry::protocol(name, None).is_ok_and(|it| it.keeps_everywhere())
}

/// Whether two say the same protocol, under whichever of its names.
pub(crate) fn is_same_protocol(one: &str, other: &str) -> bool {
    fn parts(spoken: &str) -> (&str, &str) {
        let (name, groups) = spoken.split_at(spoken.find(' ').unwrap_or(spoken.len()));
        (canonical_name(name), groups)
    }
    parts(one) == parts(other)
}
