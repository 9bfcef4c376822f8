//! The clusters that scripts set up here, and the switches of their protocols.

use std::error::Error;

use goldenscript::Command;
use muesli_protocols::canonical_name;
use muesli_protocols::non_genuine_multiversioning::Everybody;
use muesli_protocols::two_phase::{self, TwoPhase};

use crate::harness::scripted::Play;
use crate::harness::scripted::clusters::harness;
use crate::two_phase::switches::switch;

/// Sets up what a command asks for.
pub fn cluster(command: &Command) -> Result<Box<dyn Play>, Box<dyn Error>> {
    let mut args = command.consume_args();
    match canonical_name(args.take_key("protocol").unwrap_or("score")) {
        "non-genuine-multiversioning" => {
            harness::<TwoPhase<Everybody>>(args, two_phase::Switches::default(), switch)
        }
        other => Err(format!("no protocol `{other}` here").into()),
    }
}
