//! `cargo xtask explore`: the small scopes of the protocols, to their last state.

use super::{Done, program};

pub fn run() -> Done {
    let test = ["test", "--locked", "-p", "muesli-protocols", "explore"];
    super::run(program("cargo").args(test).env("MUESLI_EXPLORE_WHOLE", "1"))
}
