//! The clusters that scripts set up here, and the switches of their protocols.

use std::error::Error;

use goldenscript::Command;
use muesli_protocols::hierarchy::{self, HierarchySwitch, Intervals};
use muesli_protocols::hierarchy_locking::LockingLeaves;
use muesli_protocols::two_phase::{Breakable, Sabotage, Switches, TwoPhase};

use crate::harness::scripted::Play;
use crate::harness::scripted::clusters::harness;
use crate::two_phase::switches::switch;

/// Sets up what a command asks for.
pub fn cluster(command: &Command) -> Result<Box<dyn Play>, Box<dyn Error>> {
    let mut args = command.consume_args();
    match args.take_key("protocol").unwrap_or("hierarchy") {
        "hierarchy" => {
            harness::<TwoPhase<Intervals>>(args, hierarchy::Switches::default(), interval_switch)
        }
        "hierarchy-locking" => {
            harness::<TwoPhase<LockingLeaves>>(args, Switches::default(), switch)
        }
        other => Err(format!("no protocol `{other}` here").into()),
    }
}

fn interval_switch(switches: &mut hierarchy::Switches, name: &str, on: bool) -> Result<(), String> {
    match HierarchySwitch::named(name) {
        Some(own) => {
            switches.set(own, on);
            Ok(())
        }
        None => switch(&mut switches.family, name, on),
    }
}
