//! Transcripts: each script under `transcripts/` plays one scenario message by message, and what
//! the nodes did is printed below its commands. `UPDATE_GOLDENFILES=1 cargo test` rewrites them;
//! the difference is then read, not trusted.
//!
//! The commands are those of [`stage::script`]. A trap of the protocol has a script with the rule
//! that avoids it, and where the rule has a switch, a second one, `…_broken`, without it.

mod judge;
mod stage;

use test_each_file::test_each_path;

test_each_path! { for ["txt"] in "crates/protocols/tests/transcripts" => transcript }

fn transcript([path]: [&std::path::Path; 1]) {
    goldenscript::run(&mut stage::Script::default(), path).expect("a script that runs");
}
