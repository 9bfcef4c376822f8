//! Transcripts: each script under `transcripts/` plays one scenario message by message, and what
//! the nodes did is printed below its commands. `UPDATE_GOLDENFILES=1 cargo test` rewrites them;
//! the difference is then read, not trusted.
//!
//! The commands are those of `stage::script`. A trap of the protocol has a script with the rule
//! that avoids it, and where the rule has a switch, a second one, `…_broken`, without it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use test_each_file::test_each_path;

test_each_path! { for ["txt"] in "crates/protocols/tests/transcripts" => transcript }

fn transcript([path]: [&Path; 1]) {
    goldenscript::run(&mut crate::stage::Script::default(), path).expect("a script that runs");
}

/// The scripts by name, with their text.
fn scripts() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts");
    let files = fs::read_dir(folder).expect("the folder of scripts");
    let paths = files.map(|file| file.expect("a readable entry").path());
    let read = |path: PathBuf| {
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        (name, fs::read_to_string(&path).expect("scripts are text"))
    };
    paths.map(read).collect()
}

/// Scripts of what repeatable read lets happen.
const WEAK: [&str; 2] = ["rr_a_read_is_repeated.txt", "rr_write_skew_and_lost_updates_pass.txt"];

#[test]
fn every_trap_has_its_script() {
    let scripts = scripts();
    for trap in 'a'..='n' {
        let named = |name: &str| name.starts_with(&format!("trap_{trap}_"));
        assert!(scripts.iter().any(|(name, _)| named(name)), "no script for trap {trap}");
    }
}

#[test]
fn without_its_rule_a_script_shows_the_anomaly_and_with_it_does_not() {
    let mut broken = BTreeMap::<&str, u32>::new();
    for (name, text) in scripts() {
        let breaks = name.ends_with("_broken.txt");
        if name.starts_with("gmu_") {
            assert_eq!(text.contains("not eus: "), breaks, "{name}");
            continue;
        }
        let promises_it = !WEAK.contains(&name.as_str());
        assert_eq!(text.contains("not serializable: "), breaks || !promises_it, "{name}");
        let families = ["bumper", "granola", "sinfonia"];
        let family = families.into_iter().find(|it| name.starts_with(it)).unwrap_or("score");
        *broken.entry(family).or_default() += u32::from(breaks);
    }
    assert_eq!(broken["score"], 9, "SCORe: one for each of eight rules, and one without floors");
    assert_eq!(broken["bumper"], 12, "Bumper: one for each of its rules, and three for deletions");
    assert_eq!(broken["granola"], 2, "what chance seldom shows, and no lease of a client");
    assert_eq!(broken["sinfonia"], 1, "its readers' votes");
}
