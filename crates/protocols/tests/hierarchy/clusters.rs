//! The clusters that scripts set up here, and the switches of their protocols.

use std::error::Error;

use goldenscript::Command;
use muesli_protocols::hierarchy::{Intervals, Switches};
use muesli_protocols::hierarchy_locking::LockingLeaves;
use muesli_protocols::two_phase::{Breakable, Sabotage, TreeSwitch, TwoPhase};

use crate::harness::scripted::Play;
use crate::harness::scripted::clusters::harness;
use crate::two_phase::switches::switch;

/// Sets up what a command asks for.
pub fn cluster(command: &Command) -> Result<Box<dyn Play>, Box<dyn Error>> {
    let mut args = command.consume_args();
    match args.take_key("protocol").unwrap_or("hierarchy") {
        "hierarchy" => harness::<TwoPhase<Intervals>>(args, Switches::default(), tree_switch),
        "hierarchy-locking" => {
            harness::<TwoPhase<LockingLeaves>>(args, Switches::default(), tree_switch)
        }
        other => Err(format!("no protocol `{other}` here").into()),
    }
}

fn tree_switch(switches: &mut Switches, name: &str, on: bool) -> Result<(), String> {
    match TreeSwitch::named(name) {
        Some(own) => {
            switches.set(own, on);
            Ok(())
        }
        None => switch(&mut switches.family, name, on),
    }
}
