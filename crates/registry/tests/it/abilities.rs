//! What protocols can do is told by name.

use muesli_core::Nanos;
use muesli_core::outcome::BOUNDING_PROTOCOLS;
use muesli_registry::{
    bounds_staleness, check_caches, check_masters, check_shards, check_strict, check_tree,
    timestamp_step,
};

#[test]
fn protocols_can_what_their_families_can() {
    let lax = ["repeatable-read", "repeatable-read-at-commit"];
    for name in muesli_protocols::NAMES {
        let sinfonia = *name == "sinfonia";
        let granola = sinfonia || name.starts_with("granola");
        assert_eq!(check_masters(name, 1).is_ok(), sinfonia, "{name}");
        assert!(check_masters(name, 0).is_ok(), "{name}");
        let strict = sinfonia || !(granola || lax.contains(name));
        assert_eq!(check_strict(name, true).is_ok(), strict, "{name}");
        assert!(check_strict(name, false).is_ok(), "{name}");
        assert_eq!(bounds_staleness(name), strict, "{name}");
        assert_eq!(BOUNDING_PROTOCOLS.contains(name), strict, "an error names those: {name}");
        assert_eq!(timestamp_step(name).is_ok(), granola, "{name}");
        assert_eq!(check_caches(name, true).is_ok(), granola, "{name}");
        assert!(check_caches(name, false).is_ok(), "{name}");
        let coordinators = name.ends_with("-flat") || *name == "hierarchy-flat-unchecked";
        let tree = name.starts_with("hierarchy") && !coordinators;
        assert_eq!(check_tree(name, true).is_ok(), tree, "{name}");
        assert_eq!(check_shards(name, true).is_ok(), name.starts_with("sharded-"), "{name}");
        assert!(check_shards(name, false).is_ok(), "{name}");
    }
    assert_eq!(timestamp_step("granola"), Ok(Nanos(1_024)));
    assert!(check_strict("2pc", true).is_ok(), "an earlier name");
}

#[test]
fn no_protocol_is_named_that_there_is_not() {
    let known = |name: &&str| muesli_protocols::NAMES.contains(name);
    assert_eq!(BOUNDING_PROTOCOLS.iter().find(|name| !known(name)), None);
}

#[test]
fn what_cannot_be_is_said_with_what_can() {
    let error = check_strict("granola", true).unwrap_err().to_string();
    assert!(error.contains("`granola` has no strict") && error.contains("score"), "{error}");
    let error = timestamp_step("score").unwrap_err().to_string();
    assert!(error.contains("`score` has no timestamp") && error.contains("granola-passing"));
    let error = check_tree("score", true).unwrap_err().to_string();
    assert!(error.contains("`score` goes by no tree") && error.contains("hierarchy-locking"));
    let error = check_shards("alvin", true).unwrap_err().to_string();
    assert!(error.contains("`alvin` has no shards") && error.contains("sharded-pob"), "{error}");
    let error = check_masters("score", 2).unwrap_err().to_string();
    assert!(error.contains("`score` has no masters") && error.contains("sinfonia"), "{error}");
}
