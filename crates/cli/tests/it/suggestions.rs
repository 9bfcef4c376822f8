//! Of a name that there is not it is said which one was meant.

use crate::commands::{assert_refused, muesli, status, text};

/// What is asked for, and what is asked back.
const MEANT: &[(&[&str], &str)] = &[
    (&["bench", "bank", "--protocol", "scor"], "'score'"),
    (&["bench", "bank", "--protocol", "score,gmuu"], "'gmu'"),
    (&["sim", "bank", "--protocol", "bmuper"], "'bumper'"),
    (&["torture", "--protocol", "granla"], "'granola'"),
    (&["cluster", "up", "--protocol", "scores"], "'score'"),
    (&["admin", "members", "--protocol", "sinfnia"], "'sinfonia'"),
    (&["reproduce", "bumper-fig3", "--protocols", "gmuu"], "'gmu'"),
    (&["start", "--protocol", "scor"], "did you mean `score`?"),
    (&["bench", "bnk"], "'bank'"),
    (&["sim", "tpc"], "'tpcc'"),
    (&["torture", "--faults", "kil"], "'kill'"),
    (&["sim", "bank", "--faults", "crahs"], "did you mean `crash`?"),
    (&["sim", "bank", "--faults", "all,lnk"], "`lnk` is no kind of fault"),
    (&["bench", "bank", "--param", "objcts=4"], "did you mean `objects`?"),
    (&["sim", "bank", "--param", "localty=4"], "did you mean `locality`?"),
    (&["bench", "objects", "--param", "shareing=4"], "did you mean `sharing`?"),
    (&["reproduce", "granola-6.15", "--param", "warehoses=4"], "did you mean `warehouses`?"),
    (&["reproduce", "bumper-fig33"], "'bumper-fig3'"),
    (&["bnech"], "'bench'"),
    (&["cluster", "stauts"], "'status'"),
    (&["admin", "member"], "'members'"),
    (&["bench", "bank", "--protocl", "score"], "'--protocol'"),
    (&["start", "--data-dri", "x"], "'--data-dir'"),
    (&["completions", "bas"], "'bash'"),
];

#[test]
fn a_name_that_is_nearly_one_is_answered_with_that_one() {
    for (arguments, meant) in MEANT {
        assert_refused(arguments, &[meant]);
        let error = text(&muesli(arguments).stderr);
        assert!(!error.contains("[possible values:"), "{arguments:?}: {error}");
    }
}

#[test]
fn a_name_that_is_like_none_is_answered_with_all() {
    assert_refused(&["bench", "bank", "--protocol", "paxos"], &["score", "sinfonia"]);
    assert_refused(&["start", "--protocol", "paxos"], &["`paxos`", "score", "sinfonia"]);
    assert_refused(&["sim", "bank", "--faults", "all,flood"], &["`flood`", "crash, client"]);
    assert_refused(
        &["bench", "bank", "--param", "colour=1"],
        &["`colour`", "objects, ", "locality"],
    );
    assert_refused(&["reproduce", "fig9"], &["bumper-fig3", "granola-6.15"]);
}

#[test]
fn earlier_names_of_protocols_are_taken_still() {
    let line = ["bench", "bank", "--protocol", "2pc,rr", "--transactions", "50", "--clients", "2"];
    let output = muesli(&line);
    assert_eq!(status(&output), 0, "{}", text(&output.stderr));
}

#[test]
fn a_setting_of_a_cluster_is_judged_before_anything_is_made() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("cluster");
    let refused = |set: &str, printed: &str| {
        let dir = dir.to_str().expect("a plain path");
        assert_refused(&["cluster", "up", "--dir", dir, "--set", set], &[printed]);
    };
    refused("protocol=2pc", "give --protocol");
    refused("alive_every=5", "did you mean `alive_every_ms`?");
    refused("alive_every_ms=often", "a number from 1 to");
    refused("alive_every_ms", "expected KEY=VALUE");
    assert!(!dir.exists(), "nothing was made");
}
