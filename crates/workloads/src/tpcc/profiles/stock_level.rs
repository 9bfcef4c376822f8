//! Stock-Level: how many of the items of a district's newest twenty orders run short
//! (clause 2.8).

use std::collections::BTreeSet;

use muesli::{Error, KeyRange, Tx};
use serde::{Deserialize, Serialize};

use crate::parted::PartsTx;
use crate::tally::Ended;
use crate::tpcc::Tpcc;
use crate::tpcc::ids::{DistrictId, LineId, StockId};
use crate::tpcc::terminal::{Terminal, there};
use crate::workload::{Seat, ended};

/// So many orders are looked at.
pub(in crate::tpcc) const ORDERS: u32 = 20;

/// What one snapshot has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::tpcc) struct StockLevelAsked {
    /// D_NEXT_O_ID.
    pub next: u32,
    /// How many of the newest orders have lines.
    pub orders: u32,
    /// How many lines those have.
    pub lines: u32,
    /// Items of which there is less than the threshold.
    pub short: u32,
}

impl Tpcc {
    pub(in crate::tpcc) async fn stock_level(
        &self,
        seat: &mut Seat,
        terminal: &Terminal,
    ) -> (Ended, u32) {
        let warehouse = terminal.warehouse(&mut seat.chance);
        let district = self.draw_district(warehouse, &mut seat.chance);
        let threshold = seat.chance.between(10, 20) as u8;
        let (answer, attempts) = terminal
            .reader
            .transact(async |tx| self.level(tx, terminal, district, threshold).await)
            .await;
        if let Ok(level) = &answer {
            self.judge_level(seat, district, *level);
        }
        (ended(answer), attempts)
    }

    /// Complains of a level that no snapshot can have.
    pub(in crate::tpcc) fn judge_level(
        &self,
        seat: &Seat,
        district: DistrictId,
        level: StockLevelAsked,
    ) {
        let wrong = level.torn().map(|wrong| format!("district {district:?} {wrong}"));
        self.complain_of_snapshot(seat, wrong);
    }

    async fn level(
        &self,
        tx: PartsTx<'_>,
        terminal: &Terminal,
        district: DistrictId,
        threshold: u8,
    ) -> Result<StockLevelAsked, Error> {
        let (tables, nesting) = (&terminal.tables, &self.nesting);
        let read_next = async |tx: &Tx| tables.next_order.get(tx, &district).await;
        let next = there(nesting.part(tx, read_next).await?, "D_NEXT_O_ID")?;
        let line = |order| LineId { order: district.order(order), number: 0 };
        let (from, to) = (line(next.saturating_sub(ORDERS)), line(next));
        let newest = KeyRange::of(from..to);
        let scan = async |tx: &Tx| tables.order_lines.range(tx, newest.clone()).await;
        let lines = nesting.part(tx, scan).await?;
        let items: BTreeSet<u32> = lines.iter().map(|(_, line)| line.item).collect();
        let stock = |item| StockId { warehouse: district.warehouse, item };
        let stocks: Vec<_> = items.into_iter().map(stock).collect();
        let rows =
            nesting.part(tx, async |tx: &Tx| tables.stock.get_many(tx, &stocks).await).await?;
        let mut short = 0;
        for row in rows {
            short += u32::from(there(row, "stock")?.quantity < threshold);
        }
        let orders: BTreeSet<u32> = lines.iter().map(|(line, _)| line.order.number).collect();
        let (orders, lines) = (orders.len() as u32, lines.len() as u32);
        Ok(StockLevelAsked { next, orders, lines, short })
    }
}

impl StockLevelAsked {
    /// What is wrong with it: orders without lines, or more short items than there are lines.
    fn torn(&self) -> Option<String> {
        let StockLevelAsked { orders, lines, short, .. } = *self;
        let expected = ORDERS.min(self.next - 1);
        if orders != expected {
            return Some(format!("has lines of {orders} newest orders, not {expected}"));
        }
        (short > lines).then(|| format!("has {short} of {lines} items short"))
    }
}
