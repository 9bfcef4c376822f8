//! Measures what a real node's work costs on this machine, and writes the figures to
//! `calibration.txt`, which is kept in the repository.
//!
//! Run it on a quiet machine: `cargo run --release -p muesli-sim --example calibrate`

use std::path::Path;
use std::{fs, io};

use muesli_protocols::score::Score;
use muesli_sim::calibrate;

fn main() -> io::Result<()> {
    let costs = calibrate::measure::<Score>()?;
    let date = jiff::Zoned::now().date();
    let text = format!(
        "# What a node's work costs, measured by `cargo run --release -p muesli-sim --example \
         calibrate`\n# on {date}, on a machine of {} with {} processors, under SCORe.\n{costs}",
        std::env::consts::ARCH,
        std::thread::available_parallelism()?,
    );
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("calibration.txt");
    fs::write(&path, &text)?;
    print!("{text}");
    Ok(())
}
