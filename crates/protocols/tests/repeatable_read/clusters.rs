//! The clusters that scripts set up here, and the switches of their protocols.

use std::error::Error;

use goldenscript::Command;
use muesli_protocols::canonical_name;
use muesli_protocols::repeatable_read::{self, LockTime, NewestVersions};
use muesli_protocols::two_phase::TwoPhase;

use crate::harness::scripted::Play;
use crate::harness::scripted::clusters::harness;
use crate::two_phase::switches::switch;

/// Sets up what a command asks for.
pub fn cluster(command: &Command) -> Result<Box<dyn Play>, Box<dyn Error>> {
    let mut args = command.consume_args();
    match canonical_name(args.take_key("protocol").unwrap_or("score")) {
        "repeatable-read" => {
            harness::<TwoPhase<NewestVersions>>(args, Default::default(), rr_switch)
        }
        other => Err(format!("no protocol `{other}` here").into()),
    }
}

fn rr_switch(switches: &mut repeatable_read::Switches, name: &str, on: bool) -> Result<(), String> {
    match name {
        "locks_at_writes" => switches.choice = if on { LockTime::Write } else { LockTime::Commit },
        other => return switch(&mut switches.family, other, on),
    }
    Ok(())
}
