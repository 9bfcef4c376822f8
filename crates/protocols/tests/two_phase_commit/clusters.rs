//! The clusters that scripts set up here, and the switches of their protocols.

use std::error::Error;

use goldenscript::Command;
use muesli_protocols::canonical_name;
use muesli_protocols::two_phase::TwoPhase;
use muesli_protocols::two_phase_commit::{self, TryLocks, WriteLocks};

use crate::harness::scripted::Play;
use crate::harness::scripted::clusters::harness;
use crate::two_phase::switches::switch;

/// Sets up what a command asks for.
pub fn cluster(command: &Command) -> Result<Box<dyn Play>, Box<dyn Error>> {
    let mut args = command.consume_args();
    match canonical_name(args.take_key("protocol").unwrap_or("score")) {
        "two-phase-commit" => harness::<TwoPhase<TryLocks>>(
            args,
            two_phase_commit::Switches::default(),
            locking_switch,
        ),
        other => Err(format!("no protocol `{other}` here").into()),
    }
}

fn locking_switch(
    switches: &mut two_phase_commit::Switches,
    name: &str,
    on: bool,
) -> Result<(), String> {
    match name {
        "waits" => switches.choice = if on { WriteLocks::WaitedFor } else { WriteLocks::Tried },
        other => return switch(&mut switches.family, other, on),
    }
    Ok(())
}
