//! Reads of all counters in the middle while others add to them.
//!
//! A transaction that is aborted may leave nothing, at any moment: what is read is judged by what
//! clients knew to be committed before, and by what may have been by the end.

use muesli::Tx;
use muesli_check::abstract_operations::AbstractOperation;

use super::handle::CounterHandle;
use super::recorded::{name, number};
use super::{CounterMemory, Counters, HOT, ledger, open};
use crate::tally::Ended;
use crate::workload::{Seat, ended, transact};

/// Reads them in one snapshot, which is not older than the transaction.
pub(super) async fn read(counters: &Counters, seat: &Seat, memory: &CounterMemory) -> (Ended, u32) {
    let group = &memory.groups[HOT];
    let names: Vec<String> = (0..group.len() as u64).map(|at| name(HOT, at)).collect();
    let (root, place) = (counters.roots.begin(), (HOT, group.len()));
    let strict = root.handle(&seat.db.strict().read_only());
    let before = ledger::bounds(&counters.ledgers, place);
    let (answer, attempts) = transact(&strict, async |tx: &Tx| {
        root.begin_attempt();
        let mut shown = CounterHandle::get_many(tx, group).await?;
        if let Some(layer) = &memory.open {
            open::without_undecided(layer, tx, (&names, &mut shown)).await?;
        }
        for (at, value) in shown.iter().enumerate() {
            root.did(AbstractOperation::Read { counter: number(HOT, at), value: *value });
        }
        Ok(shown)
    })
    .await;
    if let Ok(shown) = &answer {
        let after = ledger::bounds(&counters.ledgers, place);
        let mut own = counters.ledgers.of(seat.client);
        own.totals_read += 1;
        for (at, shows) in shown.iter().enumerate() {
            let (least, most) = (before[at].0, after[at].1);
            if !(least..=most).contains(shows) {
                let complain = || format!("hot counter {at} shows {shows}, not {least}..={most}");
                own.wrong_totals.add(complain);
            }
        }
    }
    let ended = ended(answer);
    root.end(&ended);
    (ended, attempts)
}
