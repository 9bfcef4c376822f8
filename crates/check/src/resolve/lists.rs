//! What the lists say: who appended which element, and the order of every key.

use super::marks::VersionMarks;
use crate::finding::{Anomaly, Findings};
use crate::history::{History, KeyId, Op, TxnIndex};

/// Who appended each element, and which append to the key it was within its transaction.
pub(super) struct Appends {
    /// By element: the writer and the operation; `None` for elements that were only read.
    pub(super) by_element: Vec<Option<(TxnIndex, u32)>>,
    /// By element: whether it is the last append of its writer to the key.
    pub(super) last: Vec<bool>,
    /// Elements appended a second time: element, second writer.
    again: Vec<(KeyId, u32, TxnIndex)>,
}

impl Appends {
    pub(super) fn new(history: &History) -> Self {
        let elements = history.elements.len();
        let mut appends = Appends {
            by_element: vec![None; elements],
            last: vec![false; elements],
            again: vec![],
        };
        let mut latest = VersionMarks::new(history.keys.len());
        for txn in history.indices() {
            latest.clear();
            for op in history.ops_range(txn) {
                let Op::Append { key, element } = history.ops[op] else { continue };
                match &mut appends.by_element[element as usize] {
                    Some(_) => appends.again.push((key, element, txn)),
                    unset => *unset = Some((txn, op as u32)),
                }
                if let Some(previous) = latest.get(key) {
                    appends.last[previous as usize] = false;
                }
                appends.last[element as usize] = true;
                latest.set(key, element);
            }
        }
        appends
    }

    pub(super) fn writer(&self, element: u32) -> Option<TxnIndex> {
        self.by_element[element as usize].map(|(writer, _)| writer)
    }

    pub(super) fn report_duplicates(
        &self,
        history: &History,
        committed: &[bool],
        findings: &mut Findings,
    ) {
        for (key, element, second) in &self.again {
            let first = self.writer(*element).unwrap_or(*second);
            let both = committed[first.index()] && committed[second.index()];
            findings.add(Anomaly::DuplicateElement, both, || {
                format!(
                    "element {} of {} was appended by {} and by {}",
                    history.show_atom(history.elements[*element as usize]),
                    history.show_key(*key),
                    history.show_name(first),
                    history.show_name(*second),
                )
            });
        }
    }
}

/// The longest list read of every key.
pub(super) struct Orders<'h> {
    pub(super) longest: Vec<&'h [u32]>,
    pub(super) reader: Vec<TxnIndex>,
}

impl<'h> Orders<'h> {
    pub(super) fn new(
        history: &'h History,
        appends: &Appends,
        committed: &[bool],
        findings: &mut Findings,
    ) -> Self {
        let keys = history.keys.len();
        let mut orders = Orders { longest: vec![&[]; keys], reader: vec![TxnIndex(0); keys] };
        let reads = |txn| history.ops_of(txn).iter().filter_map(|op| list_of(history, op));
        for txn in history.indices().filter(|txn| committed[txn.index()]) {
            reads(txn).for_each(|(key, list)| {
                if list.len() > orders.of(key).len() {
                    orders.adopt(txn, key, list);
                }
            });
        }
        // The others may know more committed elements, but never another order.
        let settled =
            |element: &u32| appends.writer(*element).is_some_and(|w| committed[w.index()]);
        for txn in history.indices().filter(|txn| !committed[txn.index()]) {
            reads(txn).for_each(|(key, list)| {
                let known = list.iter().take_while(|element| settled(element)).count();
                if known > orders.of(key).len() && list.starts_with(orders.of(key)) {
                    orders.adopt(txn, key, &list[..known]);
                }
            });
        }
        orders.report_repeated(history, findings);
        orders
    }

    fn adopt(&mut self, reader: TxnIndex, key: KeyId, list: &'h [u32]) {
        self.longest[key.index()] = list;
        self.reader[key.index()] = reader;
    }

    pub(super) fn of(&self, key: KeyId) -> &'h [u32] {
        self.longest[key.index()]
    }

    fn report_repeated(&self, history: &History, findings: &mut Findings) {
        for (key, list) in self.longest.iter().enumerate() {
            let mut sorted = list.to_vec();
            sorted.sort_unstable();
            for pair in sorted.windows(2).filter(|pair| pair[0] == pair[1]) {
                findings.add(Anomaly::DuplicateElement, true, || {
                    format!(
                        "{} read element {} of {} twice in one list",
                        history.show_name(self.reader[key]),
                        history.show_atom(history.elements[pair[0] as usize]),
                        history.show_key(KeyId(key as u32)),
                    )
                });
            }
        }
    }
}

fn list_of<'h>(history: &'h History, op: &Op) -> Option<(KeyId, &'h [u32])> {
    match *op {
        Op::ReadList { key, start, length } => Some((key, history.list_read(start, length))),
        _ => None,
    }
}
