//! The switches that all protocols with two phases have.

use muesli_protocols::two_phase::{self, Breakable, LockWaits, Sabotage};

/// Turns a rule of the family on or off.
pub fn switch(rules: &mut two_phase::Rules, name: &str, on: bool) -> Result<(), String> {
    if name == "waits_for_all" {
        rules.lock_waits = if on { LockWaits::ForAll } else { LockWaits::Ordered };
        return Ok(());
    }
    let rule = two_phase::FamilySwitch::named(name).ok_or_else(|| format!("no rule `{name}`"))?;
    rules.set(rule, on);
    Ok(())
}
