//! The switches that all protocols with two phases have.

use muesli_protocols::two_phase::{self, Breakable, LockWaits, Sabotage};

/// Turns a rule of the family on or off.
pub fn switch(switches: &mut two_phase::Switches, name: &str, on: bool) -> Result<(), String> {
    if name == "waits_for_all" {
        switches.lock_waits = if on { LockWaits::ForAll } else { LockWaits::Ordered };
        return Ok(());
    }
    let named = two_phase::FamilySwitch::named(name).ok_or_else(|| format!("no rule `{name}`"))?;
    switches.set(named, on);
    Ok(())
}
