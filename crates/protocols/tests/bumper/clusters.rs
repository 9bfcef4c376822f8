//! The clusters that scripts set up here, and the switches of their protocols.

use std::error::Error;

use goldenscript::Command;
use muesli_protocols::bumper::{self, TimeWarp};
use muesli_protocols::canonical_name;
use muesli_protocols::two_phase::{Breakable, Sabotage, TwoPhase};

use crate::harness::stage::Play;
use crate::harness::stage::clusters::stage;
use crate::two_phase::switches::switch;

/// Sets up what a command asks for.
pub fn cluster(command: &Command) -> Result<Box<dyn Play>, Box<dyn Error>> {
    let mut args = command.consume_args();
    match canonical_name(args.take_key("protocol").unwrap_or("score")) {
        "bumper" => stage::<TwoPhase<TimeWarp>>(args, bumper::Rules::default(), bumper_switch),
        "bumper-delaying" => {
            stage::<TwoPhase<TimeWarp>>(args, bumper::Rules::delaying(), bumper_switch)
        }
        "bumper-time-warping" => {
            stage::<TwoPhase<TimeWarp>>(args, bumper::Rules::time_warping(), bumper_switch)
        }
        "bumper-reconciled" => {
            stage::<TwoPhase<TimeWarp>>(args, bumper::Rules::reconciled(), bumper_switch)
        }
        "bumper-printed" => {
            stage::<TwoPhase<TimeWarp>>(args, bumper::Rules::printed(), bumper_switch)
        }
        other => Err(format!("no protocol `{other}` here").into()),
    }
}

fn bumper_switch(rules: &mut bumper::Rules, name: &str, on: bool) -> Result<(), String> {
    match bumper::BumperSwitch::named(name) {
        Some(rule) => rules.set(rule, on),
        None => return switch(&mut rules.family, name, on),
    }
    Ok(())
}
