//! The clusters that scripts set up here, and the switches of their protocols.

use std::error::Error;

use goldenscript::Command;
use muesli_protocols::bumper::{self, TimeWarp};
use muesli_protocols::canonical_name;
use muesli_protocols::two_phase::{Breakable, Sabotage, TwoPhase};

use crate::harness::scripted::Play;
use crate::harness::scripted::clusters::harness;
use crate::two_phase::switches::switch;

/// Sets up what a command asks for.
pub fn cluster(command: &Command) -> Result<Box<dyn Play>, Box<dyn Error>> {
    let mut args = command.consume_args();
    match canonical_name(args.take_key("protocol").unwrap_or("score")) {
        "bumper" => harness::<TwoPhase<TimeWarp>>(args, bumper::Switches::default(), bumper_switch),
        "bumper-delaying" => {
            harness::<TwoPhase<TimeWarp>>(args, bumper::Switches::delaying(), bumper_switch)
        }
        "bumper-time-warping" => {
            harness::<TwoPhase<TimeWarp>>(args, bumper::Switches::time_warping(), bumper_switch)
        }
        "bumper-reconciled" => {
            harness::<TwoPhase<TimeWarp>>(args, bumper::Switches::reconciled(), bumper_switch)
        }
        "bumper-printed" => {
            harness::<TwoPhase<TimeWarp>>(args, bumper::Switches::printed(), bumper_switch)
        }
        other => Err(format!("no protocol `{other}` here").into()),
    }
}

fn bumper_switch(switches: &mut bumper::Switches, name: &str, on: bool) -> Result<(), String> {
    match bumper::BumperSwitch::named(name) {
        Some(named) => switches.set(named, on),
        None => return switch(&mut switches.family, name, on),
    }
    Ok(())
}
