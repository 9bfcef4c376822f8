//! What delayed actions gave, for as long as whoever asked may ask again.

use super::*;

impl<V: Variant> Table<V> {
    /// Remembers what was told of a transaction, unless nobody can ask for it any more.
    pub fn keep_answers(&mut self, txn: TxnId, answers: Answers) {
        if !answers.is_empty() && !self.is_settled(txn) && !self.is_of_earlier_incarnation(txn) {
            let added = answers_bytes(&answers);
            let replaced = self.answers.insert(txn, answers).map_or(0, |it| answers_bytes(&it));
            let known = self.known_mut(txn.node);
            assert!(replaced <= known.answers, "answers to {txn} were not counted");
            known.answers = known.answers + added - replaced;
            self.answer_bytes = self.answer_bytes + added - replaced;
        }
    }

    /// What was told of a transaction.
    pub fn answers(&self, txn: TxnId) -> Option<Answers> {
        self.answers.get(&txn).cloned()
    }

    /// Whether anything was told of a transaction.
    pub fn has_answers(&self, txn: TxnId) -> bool {
        !self.answers.is_empty() && self.answers.contains_key(&txn)
    }

    /// All that is remembered of it.
    pub fn all_answers(&self) -> Vec<(TxnId, Answers)> {
        self.answers.iter().map(|(txn, answers)| (*txn, answers.clone())).collect()
    }

    pub(super) fn forget_answers(&mut self, first: TxnId, end: TxnId) {
        let freed: usize = self
            .answers
            .extract_if(first..end, |_, _| true)
            .map(|(_, it)| answers_bytes(&it))
            .sum();
        if freed == 0 {
            return;
        }
        let known = self.settled.get_mut(&first.node).expect("whoever asked is known");
        assert!(freed <= known.answers && freed <= self.answer_bytes, "answers were not counted");
        known.answers -= freed;
        self.answer_bytes -= freed;
    }
}
