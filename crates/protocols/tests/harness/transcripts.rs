//! Transcripts: each script under `transcripts/` plays one scenario message by message, and what
//! the nodes did is printed below its commands. `UPDATE_GOLDENFILES=1 cargo test` rewrites them;
//! the difference is then read, not trusted. Each protocol has a folder.
//!
//! The commands are those of `harness::script`. A trap of the protocol has a script with the rule
//! that avoids it, and where the rule has a switch, a second one, `…_broken`, without it.

use std::fs;
use std::path::{Path, PathBuf};

use super::scripted::Script;
use super::scripted::clusters::Clusters;

/// Plays a script, and compares its output.
pub fn transcript(clusters: Clusters, path: &Path) {
    goldenscript::run(&mut Script::new(clusters), path).expect("a script that runs");
}

/// The scripts of a protocol by name, with their text.
pub fn scripts(protocol: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts").join(protocol);
    let files = fs::read_dir(folder).expect("the folder of scripts");
    let mut paths: Vec<_> = files.map(|file| file.expect("a readable entry").path()).collect();
    paths.sort();
    let read = |path: PathBuf| {
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        (name, fs::read_to_string(&path).expect("scripts are text"))
    };
    paths.into_iter().map(read).collect()
}

/// How many scripts of a protocol run with a rule broken. These show the anomaly, and so do those
/// that are named, of what the protocol lets happen; no others do.
pub fn broken(protocol: &str, anomaly: &str, lets_happen: &[&str]) -> usize {
    let mut count = 0;
    for (name, text) in scripts(protocol) {
        let breaks = name.ends_with("_broken.txt");
        let expected = breaks || lets_happen.contains(&name.as_str());
        assert_eq!(text.contains(anomaly), expected, "{name}");
        count += usize::from(breaks);
    }
    count
}
