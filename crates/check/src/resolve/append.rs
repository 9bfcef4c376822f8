//! The black-box route: version order from the values of lists alone.
//!
//! A list that was read spells out the order of all appends before it. The longest list read of a
//! key is its order, every other list must be a prefix of it. Consecutive elements of one
//! transaction make one link of the chain; a transaction whose elements lie apart gets several
//! links and with them a cycle of write dependencies, which is what it deserves. Committed
//! appends that nobody read come after the chain.

use super::history_walk::HistoryWalk;
use super::lists::{Appends, Orders};
use super::{ChainTail, Chains, Label, Link, Resolved, fate};
use crate::finding::{Anomaly, Findings};
use crate::history::{History, KeyId, Op, Status, TxnIndex};

pub(super) fn resolve(history: &History) -> Resolved<'_> {
    let mut findings = Findings::default();
    let appends = Appends::new(history);
    let committed = decide(history, &appends);
    appends.report_duplicates(history, &committed, &mut findings);
    let orders = Orders::new(history, &appends, &committed, &mut findings);
    let (chains, links) = chain(history, &appends, &orders, &committed, &mut findings);
    let tails = tails(history, &appends, &orders, &committed);
    let walk = HistoryWalk::new(history, &committed, findings);
    let mut placer = ListPlacer { appends: &appends, orders: &orders, links: &links, walk };
    history.indices().for_each(|txn| placer.transaction(txn));
    let HistoryWalk { reads, findings, .. } = placer.walk;
    Resolved { tails, ..Resolved::of(history, committed, chains, (reads, findings)) }
}

/// An unknown transaction counts as committed if somebody else read one of its elements.
fn decide(history: &History, appends: &Appends) -> Vec<bool> {
    let mut committed = fate::acknowledged(history);
    if !fate::any_unknown(history) {
        return committed;
    }
    for reader in history.indices() {
        for op in history.ops_of(reader) {
            let Op::ReadList { start, length, .. } = *op else { continue };
            let others = history.list_read(start, length).iter().filter_map(|e| appends.writer(*e));
            for writer in others.filter(|writer| *writer != reader) {
                if history.transaction(writer).status == Status::Unknown {
                    committed[writer.index()] = true;
                }
            }
        }
    }
    committed
}

/// The chains, and for every element of an order its place in them.
fn chain(
    history: &History,
    appends: &Appends,
    orders: &Orders<'_>,
    committed: &[bool],
    findings: &mut Findings,
) -> (Chains, Vec<u32>) {
    let mut chains = Chains { starts: vec![0], links: Vec::new() };
    let mut positions = vec![0; history.elements.len()];
    for key in (0..history.keys.len() as u32).map(KeyId) {
        let first_link = chains.links.len();
        let mut previous: Option<(TxnIndex, u32)> = None;
        for element in orders.of(key) {
            let append = appends.by_element[*element as usize];
            let Some((writer, op)) = append.filter(|(writer, _)| committed[writer.index()]) else {
                positions[*element as usize] = (chains.links.len() - first_link) as u32;
                continue;
            };
            let label = Label::Element(*element);
            match previous {
                Some((same, earlier)) if same == writer => {
                    if op < earlier {
                        findings.add(Anomaly::IncompatibleOrder, true, || {
                            let name = history.show_name(writer);
                            let key = history.show_key(key);
                            format!("the appends of {name} to {key} took effect in another order")
                        });
                    }
                    let last = chains.links.len() - 1;
                    chains.links[last].label = label;
                }
                _ => chains.links.push(Link { writer, label }),
            }
            previous = Some((writer, op));
            positions[*element as usize] = (chains.links.len() - first_link) as u32;
        }
        chains.starts.push(chains.links.len() as u32);
    }
    (chains, positions)
}

/// Committed writers with an append that is missing from the order of its key.
fn tails(
    history: &History,
    appends: &Appends,
    orders: &Orders<'_>,
    committed: &[bool],
) -> Vec<ChainTail> {
    let mut observed = vec![false; history.elements.len()];
    for list in &orders.longest {
        list.iter().for_each(|element| observed[*element as usize] = true);
    }
    let mut unobserved: Vec<(KeyId, TxnIndex)> = Vec::new();
    for (element, append) in appends.by_element.iter().enumerate() {
        let Some((writer, op)) = append else { continue };
        if committed[writer.index()] && !observed[element] {
            let Op::Append { key, .. } = history.ops[*op as usize] else { continue };
            unobserved.push((key, *writer));
        }
    }
    unobserved.sort_unstable();
    unobserved.dedup();
    let of_one_key = unobserved.chunk_by(|a, b| a.0 == b.0);
    of_one_key
        .map(|group| ChainTail {
            key: group[0].0,
            writers: group.iter().map(|(_, writer)| *writer).collect(),
        })
        .collect()
}

/// Walks the transactions and collects the places they read.
struct ListPlacer<'a> {
    appends: &'a Appends,
    orders: &'a Orders<'a>,
    /// The place of every ordered element in the chain of its key.
    links: &'a [u32],
    /// Its numbers are how many elements the transaction has appended so far per key.
    walk: HistoryWalk<'a>,
}

impl ListPlacer<'_> {
    fn transaction(&mut self, txn: TxnIndex) {
        for op in self.walk.begin(txn) {
            match self.walk.history.ops[op] {
                Op::Append { key, .. } => {
                    let appended = self.walk.own.get(key).unwrap_or(0);
                    self.walk.own.set(key, appended + 1);
                }
                Op::ReadList { key, start, length } => {
                    let list = self.walk.history.list_read(start, length);
                    self.read(txn, op, key, list);
                }
                Op::Read { .. } | Op::Write { .. } | Op::Delete { .. } | Op::Scan { .. } => {}
            }
        }
    }

    fn read(&mut self, txn: TxnIndex, op: usize, key: KeyId, list: &[u32]) {
        let appended = self.walk.own.get(key).unwrap_or(0) as usize;
        let Some(outside) = self.without_own(txn, op, key, list, appended) else {
            return self.walk.add(
                Anomaly::InternalRead,
                txn,
                key,
                || "without exactly its own appends last",
            );
        };
        let prefix = outside.len().min(self.orders.of(key).len());
        if outside != &self.orders.of(key)[..prefix] || outside.len() > prefix {
            self.misread(txn, key, outside);
            return;
        }
        let foreign = self.report_foreign(txn, key, outside);
        let position = match outside.last() {
            None => 0,
            Some(last) => {
                let intermediate = !self.appends.last[*last as usize];
                let writer = self.appends.writer(*last);
                if !foreign && intermediate && writer != Some(txn) {
                    self.walk.add(
                        Anomaly::IntermediateRead,
                        txn,
                        key,
                        || "between two appends of another",
                    );
                    return;
                }
                self.links[*last as usize]
            }
        };
        self.walk.place(txn, (key, position), |_| "twice, with different lists".to_owned());
    }

    /// The part of `list` that others wrote, if the rest is what `txn` appended before `op`.
    fn without_own<'l>(
        &self,
        txn: TxnIndex,
        op: usize,
        key: KeyId,
        list: &'l [u32],
        appended: usize,
    ) -> Option<&'l [u32]> {
        let (outside, own) = list.split_at(list.len().checked_sub(appended)?);
        if outside.iter().any(|element| self.appends.writer(*element) == Some(txn)) {
            return None;
        }
        let before = self.walk.history.ops_range(txn).start..op;
        let mut expected = self.walk.history.ops[before].iter().filter_map(|op| match *op {
            Op::Append { key: to, element } if to == key => Some(element),
            _ => None,
        });
        let exact = own.iter().all(|element| expected.next() == Some(*element));
        exact.then_some(outside)
    }

    /// Elements of the list that no committed transaction appended.
    fn report_foreign(&mut self, txn: TxnIndex, key: KeyId, list: &[u32]) -> bool {
        let mut foreign = false;
        for element in list {
            match self.appends.writer(*element) {
                None => {
                    foreign = true;
                    self.walk.add(
                        Anomaly::UnknownVersion,
                        txn,
                        key,
                        || "with an element nobody appended",
                    );
                }
                Some(writer) if !self.walk.committed[writer.index()] && writer != txn => {
                    foreign = true;
                    let writer = self.walk.history.show_name(writer);
                    let how = format!("with an element of {writer}, which did not commit");
                    self.walk.add(Anomaly::DirtyRead, txn, key, || how);
                }
                Some(_) => {}
            }
        }
        foreign
    }

    /// The list is no prefix of the order of its key.
    fn misread(&mut self, txn: TxnIndex, key: KeyId, list: &[u32]) {
        self.report_foreign(txn, key, list);
        let longest = self.walk.history.show_name(self.orders.reader[key.index()]);
        let how = format!("as a list that is no prefix of the one {longest} read");
        self.walk.add(Anomaly::IncompatibleOrder, txn, key, || how);
    }
}
