//! The clusters that scripts set up here, and the switches of their protocols.

use std::error::Error;

use goldenscript::Command;
use muesli_protocols::canonical_name;
use muesli_protocols::gmu::{self, Vectors};
use muesli_protocols::two_phase::{Breakable, Sabotage, TwoPhase};

use crate::harness::scripted::Play;
use crate::harness::scripted::clusters::harness;
use crate::two_phase::switches::switch;

/// Sets up what a command asks for.
pub fn cluster(command: &Command) -> Result<Box<dyn Play>, Box<dyn Error>> {
    let mut args = command.consume_args();
    match canonical_name(args.take_key("protocol").unwrap_or("score")) {
        "gmu" => harness::<TwoPhase<Vectors>>(args, gmu::Switches::default(), gmu_switch),
        "gmu-printed" => harness::<TwoPhase<Vectors>>(args, gmu::Switches::printed(), gmu_switch),
        other => Err(format!("no protocol `{other}` here").into()),
    }
}

fn gmu_switch(switches: &mut gmu::Switches, name: &str, on: bool) -> Result<(), String> {
    match gmu::GmuSwitch::named(name) {
        Some(named) => switches.set(named, on),
        None => return switch(&mut switches.family, name, on),
    }
    Ok(())
}
