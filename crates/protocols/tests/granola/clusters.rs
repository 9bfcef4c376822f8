//! The clusters that scripts set up here, and the switches of their protocols.

use std::error::Error;

use goldenscript::Command;
use muesli_protocols::canonical_name;
use muesli_protocols::granola::{self, Granola, LockingExit, Ordering, SharedData};
use muesli_protocols::two_phase::{Breakable, Sabotage};

use crate::harness::stage::Play;
use crate::harness::stage::clusters::stage;

/// Sets up what a command asks for.
pub fn cluster(command: &Command) -> Result<Box<dyn Play>, Box<dyn Error>> {
    let mut args = command.consume_args();
    match canonical_name(args.take_key("protocol").unwrap_or("score")) {
        "granola" => stage::<Granola>(args, granola::Rules::default(), granola_switch),
        "granola-locking" => stage::<Granola>(args, granola::Rules::locking(), granola_switch),
        "sinfonia" => stage::<Granola>(args, granola::Rules::sinfonia(), granola_switch),
        other => Err(format!("no protocol `{other}` here").into()),
    }
}

fn granola_switch(rules: &mut granola::Rules, name: &str, on: bool) -> Result<(), String> {
    match (name, on) {
        ("undo_on_demand", _) => rules.locking_exit = LockingExit::UndoOnDemand,
        ("stay", _) => rules.locking_exit = LockingExit::Stay,
        ("passes", true) => rules.ordering = Ordering::OutOfOrder,
        ("passes", false) => rules.ordering = Ordering::Timestamps,
        ("tells", true) => rules.shared_data = SharedData::Told,
        ("tells", false) => rules.shared_data = SharedData::Coordinated,
        (other, _) => {
            let rule =
                granola::GranolaSwitch::named(other).ok_or_else(|| format!("no rule `{other}`"))?;
            rules.set(rule, on);
        }
    }
    Ok(())
}
