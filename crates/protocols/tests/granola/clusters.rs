//! The clusters that scripts set up here, and the switches of their protocols.

use std::error::Error;

use goldenscript::Command;
use muesli_protocols::canonical_name;
use muesli_protocols::granola::{self, Granola, LockingExit, Ordering, SharedData};
use muesli_protocols::two_phase::{Breakable, Sabotage};

use crate::harness::scripted::Play;
use crate::harness::scripted::clusters::harness;

/// Sets up what a command asks for.
pub fn cluster(command: &Command) -> Result<Box<dyn Play>, Box<dyn Error>> {
    let mut args = command.consume_args();
    match canonical_name(args.take_key("protocol").unwrap_or("score")) {
        "granola" => harness::<Granola>(args, granola::Switches::default(), granola_switch),
        "granola-locking" => harness::<Granola>(args, granola::Switches::locking(), granola_switch),
        "sinfonia" => harness::<Granola>(args, granola::Switches::sinfonia(), granola_switch),
        other => Err(format!("no protocol `{other}` here").into()),
    }
}

fn granola_switch(switches: &mut granola::Switches, name: &str, on: bool) -> Result<(), String> {
    match (name, on) {
        ("undo_on_demand", _) => switches.locking_exit = LockingExit::UndoOnDemand,
        ("stay", _) => switches.locking_exit = LockingExit::Stay,
        ("passes", true) => switches.ordering = Ordering::OutOfOrder,
        ("passes", false) => switches.ordering = Ordering::Timestamps,
        ("tells", true) => switches.shared_data = SharedData::WithVotes,
        ("tells", false) => switches.shared_data = SharedData::Coordinated,
        (other, _) => {
            let named =
                granola::GranolaSwitch::named(other).ok_or_else(|| format!("no rule `{other}`"))?;
            switches.set(named, on);
        }
    }
    Ok(())
}
