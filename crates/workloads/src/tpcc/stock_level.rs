//! Stock-Level: how many of the items of a district's newest twenty orders run short
//! (clause 2.8).

use std::collections::BTreeSet;

use muesli::{Error, Tx};

use super::Tpcc;
use super::ids::{DistrictId, LineId, StockId};
use super::terminal::{Terminal, there};
use crate::tally::Ended;
use crate::workload::{Seat, ended, transact};

/// So many orders are looked at.
const ORDERS: u32 = 20;

/// What one snapshot has.
struct Level {
    /// D_NEXT_O_ID.
    next: u32,
    lines: Vec<LineId>,
    /// Items of which there is less than the threshold.
    short: usize,
}

impl Tpcc {
    pub(super) async fn stock_level(&self, seat: &mut Seat, terminal: &Terminal) -> (Ended, u32) {
        let warehouse = terminal.warehouse(&mut seat.chance);
        let district = self.draw_district(warehouse, &mut seat.chance);
        let threshold = seat.chance.between(10, 20) as u8;
        let (answer, attempts) = transact(&terminal.reader, |tx| async move {
            level(&tx, terminal, district, threshold).await
        })
        .await;
        if let Ok(level) = &answer
            && let Some(wrong) = level.torn()
        {
            let complain = || format!("district {district:?} {wrong}");
            self.ledgers.of(seat.client).wrong_snapshots.add(complain);
        }
        (ended(answer), attempts)
    }
}

async fn level(
    tx: &Tx,
    terminal: &Terminal,
    district: DistrictId,
    threshold: u8,
) -> Result<Level, Error> {
    let tables = &terminal.tables;
    let next = there(tables.next_order.get(tx, &district).await?, "D_NEXT_O_ID")?;
    let line = |order| LineId { order: district.order(order), number: 0 };
    let (from, to) = (line(next.saturating_sub(ORDERS)), line(next));
    let lines = tables.order_lines.range(tx, &from, &to).await?;
    let items: BTreeSet<u32> = lines.iter().map(|(_, line)| line.item).collect();
    let stock = |item| StockId { warehouse: district.warehouse, item };
    let stocks: Vec<_> = items.into_iter().map(stock).collect();
    let rows = tables.stock.get_many(tx, &stocks).await?;
    let mut short = 0;
    for row in rows {
        short += usize::from(there(row, "stock")?.quantity < threshold);
    }
    Ok(Level { next, lines: lines.into_iter().map(|(id, _)| id).collect(), short })
}

impl Level {
    /// What is wrong with it: orders without lines, or more short items than there are lines.
    fn torn(&self) -> Option<String> {
        let orders: BTreeSet<u32> = self.lines.iter().map(|line| line.order.number).collect();
        let expected = ORDERS.min(self.next - 1) as usize;
        if orders.len() != expected {
            return Some(format!("has lines of {} newest orders, not {expected}", orders.len()));
        }
        let lines = self.lines.len();
        (self.short > lines).then(|| format!("has {} of {lines} items short", self.short))
    }
}
