//! The run of a command's procedures on the newest versions: the same result wherever the same
//! commits that conflict were applied.

use std::cell::LazyCell;
use std::collections::BTreeSet;

use muesli_core::parts::execution::{Execution, SharedDataFn, shared_keys};
use muesli_core::parts::transaction::TransactionSets;
use muesli_core::{Catalog, Settings, SmallBytes, Stop};

use super::CertifiedData;
use crate::certified::message::command::{CertifiedCommand, ReplicatedCall};

impl CertifiedData<'_> {
    /// Runs the procedures of a command: what they gave; what they wrote is in the sets.
    ///
    /// # Errors
    /// One refused, or did what it may not.
    ///
    /// # Panics
    /// This node does not know one of them, and so cannot do what the others do.
    pub fn run(
        &self,
        command: &CertifiedCommand,
        sets: &mut TransactionSets,
        (current, settings): (&Catalog, &Settings),
        recording: bool,
    ) -> Result<Vec<SmallBytes>, Stop> {
        // All sites see the spaces that there were where it was proposed.
        let (count, earlier) = (
            usize::from(command.spaces),
            LazyCell::new(|| current.with_first_spaces(usize::from(command.spaces))),
        );
        let catalog = if current.spaces().len() == count { current } else { &*earlier };
        let known = |call: &ReplicatedCall| settings.procedures.get(&call.procedure);
        let shared: BTreeSet<_> = command
            .calls
            .iter()
            .filter_map(|call| Some((call, known(call)?)))
            .flat_map(|(call, it)| shared_keys(it, call.partition, catalog, &call.arguments))
            .collect();
        for (space, key) in shared.iter().filter(|_| recording) {
            let found = self.newest(*space, key);
            sets.operations.read(*space, key, found.at, found.value);
        }
        let tell = |space, key: &SmallBytes| {
            shared.contains(&(space, key.clone())).then(|| self.newest(space, key))
        };
        let tell: Option<SharedDataFn<'_>> = if shared.is_empty() { None } else { Some(&tell) };
        let execution = Execution::new(catalog, settings, self.spaces, sets, recording);
        let mut execution = execution.sharing(tell).counting_live_rows();
        let named = |call: &ReplicatedCall| -> Vec<u16> {
            let is_same = |it: &&ReplicatedCall| {
                it.procedure == call.procedure && it.arguments == call.arguments
            };
            command.calls.iter().filter(is_same).map(|it| it.partition).collect()
        };
        let calls = command.calls.iter().map(|call| {
            assert!(
                known(call).is_some(),
                "other sites have ordered a call of {}, which this one does not know: start it \
                 with the same procedures",
                call.procedure
            );
            let one = (&call.procedure, call.partition);
            match known(call).is_some_and(|it| it.places.is_some()) {
                true => execution.call_among(&named(call), one, &call.arguments),
                false => execution.call(one.0, one.1, &call.arguments),
            }
        });
        let results = calls.collect::<Result<Vec<_>, _>>()?;
        let given: usize = results.iter().map(SmallBytes::len).sum();
        let most = settings.limits.transaction_bytes;
        match given.saturating_add(sets.written_bytes()) <= most {
            true => Ok(results),
            false => Err(Stop::Faulty(format!(
                "what procedures wrote and gave is more than the allowed {most} bytes \
                 (`transaction_bytes_max`)"
            ))),
        }
    }
}
