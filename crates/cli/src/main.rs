//! The binary `muesli`.

fn main() {}
