//! `cargo xtask explore`: the small scopes of protocols and broadcasts, to their last state.

use super::{Done, program};

pub fn run() -> Done {
    let crates = ["-p", "muesli-protocols", "-p", "muesli-broadcast"];
    let mut test = program("cargo");
    test.args(["test", "--locked"]).args(crates).arg("explore");
    super::run(test.env("MUESLI_EXPLORE_WHOLE", "1"))
}
