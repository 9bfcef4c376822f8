//! The clusters that scripts set up here, and the switches of their protocols.

use std::error::Error;

use goldenscript::Command;
use muesli_protocols::sharded::{Sharded, ShardedSwitch, Switches};
use muesli_protocols::two_phase::{Breakable, Sabotage};

use crate::harness::scripted::Play;
use crate::harness::scripted::clusters::harness;

/// Sets up what a command asks for.
pub fn cluster(command: &Command) -> Result<Box<dyn Play>, Box<dyn Error>> {
    let mut args = command.consume_args();
    let switches = match args.take_key("protocol").unwrap_or("sharded-multipaxos") {
        "sharded-epaxos" => Switches::epaxos(),
        "sharded-generalized" => Switches::generalized(),
        "sharded-m2paxos" => Switches::m2paxos(),
        "sharded-multipaxos" => Switches::multipaxos(),
        "sharded-pob" => Switches::pob(),
        other => return Err(format!("no protocol `{other}` here").into()),
    };
    harness::<Sharded>(args, switches, switch)
}

fn switch(switches: &mut Switches, name: &str, on: bool) -> Result<(), String> {
    let named = ShardedSwitch::named(name).ok_or_else(|| format!("no rule `{name}`"))?;
    switches.set(named, on);
    Ok(())
}
