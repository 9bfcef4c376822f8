//! The clusters that scripts set up here, and the switches of their protocols.

use std::error::Error;

use goldenscript::Command;
use muesli_protocols::tfa::{self, OwnedObjects};
use muesli_protocols::two_phase::TwoPhase;

use crate::harness::scripted::Play;
use crate::harness::scripted::clusters::harness;
use crate::two_phase::switches::switch;

/// Sets up what a command asks for.
pub fn cluster(command: &Command) -> Result<Box<dyn Play>, Box<dyn Error>> {
    let mut args = command.consume_args();
    match args.take_key("protocol").unwrap_or("tfa") {
        "tfa" => harness::<TwoPhase<OwnedObjects>>(args, tfa::Switches::staying(), choose),
        "tfa-moving" => harness::<TwoPhase<OwnedObjects>>(args, tfa::Switches::default(), choose),
        other => Err(format!("no protocol `{other}` here").into()),
    }
}

fn choose(switches: &mut tfa::Switches, name: &str, on: bool) -> Result<(), String> {
    switch(&mut switches.family, name, on)
}
