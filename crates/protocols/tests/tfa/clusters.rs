//! The clusters that scripts set up here, and the switches of their protocols.

use std::error::Error;

use goldenscript::Command;
use muesli_protocols::canonical_name;
use muesli_protocols::tfa::{self, Objects, Placement};
use muesli_protocols::two_phase::TwoPhase;

use crate::harness::scripted::Play;
use crate::harness::scripted::clusters::harness;
use crate::two_phase::switches::switch;

/// Sets up what a command asks for.
pub fn cluster(command: &Command) -> Result<Box<dyn Play>, Box<dyn Error>> {
    let mut args = command.consume_args();
    match canonical_name(args.take_key("protocol").unwrap_or("score")) {
        "tfa" => harness::<TwoPhase<Objects>>(args, tfa::Switches::default(), tfa_switch),
        other => Err(format!("no protocol `{other}` here").into()),
    }
}

fn tfa_switch(switches: &mut tfa::Switches, name: &str, on: bool) -> Result<(), String> {
    match name {
        "moves" => switches.choice = if on { Placement::Moves } else { Placement::Stays },
        other => return switch(&mut switches.family, other, on),
    }
    Ok(())
}
