//! Updates that are numbered where they happen: a row counts its updates, and each is answered
//! with its number. So the order in which they happened is known after a run, and what they must
//! have left.

use std::fmt::Debug;

use crate::tally::Ended;

/// Updates of one row: those that were answered, by number, and those that may have happened.
#[derive(Clone, Debug)]
pub(crate) struct NumberedUpdates<T> {
    sure: Vec<(u64, T)>,
    perhaps: Vec<T>,
}

impl<T> Default for NumberedUpdates<T> {
    fn default() -> NumberedUpdates<T> {
        NumberedUpdates { sure: Vec::new(), perhaps: Vec::new() }
    }
}

impl<T: Copy + Debug> NumberedUpdates<T> {
    /// Notes an update by how it ended, with the number that it was answered with; without one it
    /// found nothing to update.
    pub fn note(&mut self, what: T, ended: &Ended, number: Option<u64>) {
        match (ended, number) {
            (Ended::Committed, Some(number)) => self.sure.push((number, what)),
            (Ended::Unknown, _) => self.perhaps.push(what),
            (Ended::Committed | Ended::RolledBack | Ended::Failed(_), _) => {}
        }
    }

    /// Adds those of another client.
    pub fn extend(&mut self, other: &NumberedUpdates<T>) {
        self.sure.extend_from_slice(&other.sure);
        self.perhaps.extend_from_slice(&other.perhaps);
    }

    /// The same updates, numbered from the one after so many that were there before.
    pub fn after(&self, before: u64) -> NumberedUpdates<T> {
        let number = |(number, what): &(u64, T)| (number.saturating_sub(before), *what);
        let sure = self.sure.iter().map(number).collect();
        NumberedUpdates { sure, perhaps: self.perhaps.clone() }
    }

    /// What happened first, then, and so on, of a row that counts so many; `None`: one of those
    /// that may have happened.
    ///
    /// # Errors
    /// It cannot be so: two have one number, or one is missing or too much.
    pub fn in_order(&self, count: u64) -> Result<Vec<Option<T>>, String> {
        let sure = self.sure.len() as u64;
        if !(sure..=sure + self.perhaps.len() as u64).contains(&count) {
            let perhaps = self.perhaps.len();
            return Err(format!("{count} updates, not {sure} and at most {perhaps} more"));
        }
        let mut all: Vec<Option<T>> = vec![None; count as usize];
        for (number, what) in &self.sure {
            let place = number.checked_sub(1).and_then(|place| all.get_mut(place as usize));
            match place {
                Some(place @ None) => *place = Some(*what),
                Some(Some(_)) => return Err(format!("two updates have number {number}")),
                None => return Err(format!("an update has number {number} of {count}")),
            }
        }
        Ok(all)
    }

    /// Those that may have happened.
    pub fn perhaps(&self) -> &[T] {
        &self.perhaps
    }

    /// Whether a value can be what the last of so many updates has left, of a row that was loaded
    /// with another one.
    ///
    /// # Errors
    /// It cannot, or as [`in_order`](Self::in_order).
    pub fn judge_last(
        &self,
        count: u64,
        is_loaded: bool,
        is_left_by: impl Fn(T) -> bool,
    ) -> Result<(), String> {
        let fits = match self.in_order(count)?.last() {
            None => is_loaded,
            Some(Some(last)) => is_left_by(*last),
            Some(None) => self.perhaps.iter().any(|it| is_left_by(*it)),
        };
        fits.then_some(()).ok_or_else(|| format!("the last of {count} updates has not left this"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn updates_are_in_the_order_of_their_numbers() {
        let mut updates = NumberedUpdates::default();
        updates.note('b', &Ended::Committed, Some(3));
        updates.note('a', &Ended::Committed, Some(1));
        updates.note('?', &Ended::Unknown, None);
        updates.note('x', &Ended::Committed, None);
        updates.note('y', &Ended::RolledBack, None);
        assert_eq!(updates.in_order(3), Ok(vec![Some('a'), None, Some('b')]));
        assert!(updates.in_order(2).is_err(), "the last one is missing");
        assert!(updates.in_order(4).is_err(), "nobody did so many");
        assert_eq!(updates.judge_last(3, false, |it| it == 'b'), Ok(()));
        assert!(updates.judge_last(3, false, |it| it == 'a').is_err());
        let mut other = NumberedUpdates::default();
        other.note('c', &Ended::Committed, Some(3));
        updates.extend(&other);
        let twice = updates.in_order(3).unwrap_err();
        assert!(twice.contains("number 3"), "{twice}");
        assert!(NumberedUpdates::<char>::default().judge_last(0, false, |_| true).is_err());
    }
}
