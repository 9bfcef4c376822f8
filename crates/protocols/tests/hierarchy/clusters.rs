//! The clusters that scripts set up here, and the switches of their protocols.

use std::error::Error;

use goldenscript::Command;
use muesli_protocols::hierarchy::{HierarchicalValidation, Switches};
use muesli_protocols::two_phase::{Breakable, Sabotage, TreeSwitch};

use crate::harness::scripted::Play;
use crate::harness::scripted::clusters::harness;
use crate::two_phase::switches::switch;

/// Sets up what a command asks for.
pub fn cluster(command: &Command) -> Result<Box<dyn Play>, Box<dyn Error>> {
    let mut args = command.consume_args();
    let switches = match args.take_key("protocol").unwrap_or("hierarchy") {
        "hierarchy" => Switches::default(),
        "hierarchy-locking" => Switches::locking(),
        other => return Err(format!("no protocol `{other}` here").into()),
    };
    harness::<HierarchicalValidation>(args, switches, tree_switch)
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
