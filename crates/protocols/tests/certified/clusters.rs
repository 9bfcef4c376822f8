//! The clusters that scripts set up here, and the switches of their protocols.

use std::error::Error;

use goldenscript::Command;
use muesli_protocols::certified::{Certified, CertifiedSwitch, Switches};
use muesli_protocols::two_phase::{Breakable, Sabotage};

use crate::harness::scripted::Play;
use crate::harness::scripted::clusters::harness;

/// Sets up what a command asks for.
pub fn cluster(command: &Command) -> Result<Box<dyn Play>, Box<dyn Error>> {
    let mut args = command.consume_args();
    let switches = match args.take_key("protocol").unwrap_or("alvin") {
        "alvin" => Switches::default(),
        "alvin-fast" => Switches::alvin_fast(),
        "alvin-eus" => Switches::alvin_eus(),
        "certified-epaxos" => Switches::epaxos(),
        "certified-generalized" => Switches::generalized(),
        "certified-m2paxos" => Switches::m2paxos(),
        "certified-multipaxos" => Switches::multipaxos(),
        other => return Err(format!("no protocol `{other}` here").into()),
    };
    harness::<Certified>(args, switches, switch)
}

fn switch(switches: &mut Switches, name: &str, on: bool) -> Result<(), String> {
    let named = CertifiedSwitch::named(name).ok_or_else(|| format!("no rule `{name}`"))?;
    switches.set(named, on);
    Ok(())
}
