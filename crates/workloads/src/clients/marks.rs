//! Marks: keys that transactions read, delete and insert again beside what else they do.
//!
//! Few workloads delete keys and insert the same ones again, and what is wrong with deletions that
//! are collected, or are not, shows nowhere else. So whatever is searched for faults can have some
//! of its transactions use a few keys of a space of their own. Nothing is promised of these keys
//! but what the histories are judged by.

use muesli::procedures::{Keys, Spaces, StoredProcedure, TouchesFn, fragment, with};
use muesli::{
    Action, Db, Error, Footprint, Fragment, Procedures, Range, Refuses, SmallBytes, Space,
    SpaceOptions, Stop, Touched, Tx,
};

use crate::chance::Chance;
use crate::parameters::{Parameter, ParameterKind, Values};

/// The space with the marks.
const SPACE: &str = "marks";
/// How many marks there are.
const MARKS: u64 = 6;
/// At most so many are used by one transaction.
const USED_MOST: u64 = 3;

/// The parameter of workloads that have marks.
pub const PARAMETER: Parameter = Parameter::new(
    "marks",
    "0",
    ParameterKind::Percent,
    "Share of transactions that also read, delete and insert again keys of a space of their own.",
);

/// How many of the changes of marks look at nothing first.
pub const BLIND: Parameter = Parameter::new(
    "blind-marks",
    "0",
    ParameterKind::Percent,
    "Share of the changes of marks that put or delete one without reading it.",
);

/// What a transaction does with a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Reads it.
    Read(u64),
    /// Deletes it if it is there, inserts it if not.
    Toggle(u64),
    /// Puts it, whether it is there or not.
    Put(u64),
    /// Deletes it, whether it is there or not.
    Delete(u64),
    /// Puts it if it is not there, by a delayed action.
    DelayedPut(u64),
    /// Toggles it, by a delayed procedure.
    DelayedToggle(u64),
    /// Scans the marks from it on.
    Scan(u64),
}

/// The marks of a workload.
#[derive(Clone, Copy, Debug)]
pub struct Marks {
    share: f64,
    blind: f64,
    delayed: bool,
}

impl Marks {
    /// As the parameters say.
    pub fn new(values: &Values) -> Marks {
        let (share, blind) = (values.number(PARAMETER.name), values.number(BLIND.name));
        Marks { share, blind, delayed: false }
    }

    /// The same; half of all changes are left to the transaction's turn.
    pub fn delayed(self, delayed: bool) -> Marks {
        Marks { delayed, ..self }
    }

    /// Their space, if they are used.
    pub fn space(&self) -> Option<(&'static str, SpaceOptions)> {
        (self.share > 0.0).then(|| (SPACE, SpaceOptions::default()))
    }

    /// What a transaction does with them. Nothing is drawn where they are not used.
    pub fn draw(&self, chance: &mut Chance) -> Vec<Use> {
        if self.share == 0.0 || !chance.percent(self.share) {
            return Vec::new();
        }
        let one = |chance: &mut Chance| {
            let mark = chance.below(MARKS);
            let change = chance.below(8);
            match change {
                0..4 if self.delayed && chance.percent(50.0) => match change < 2 {
                    true => Use::DelayedPut(mark),
                    false => Use::DelayedToggle(mark),
                },
                0..4 if self.blind > 0.0 && chance.percent(self.blind) => {
                    if change < 2 {
                        Use::Put(mark)
                    } else {
                        Use::Delete(mark)
                    }
                }
                0..4 => Use::Toggle(mark),
                4..7 => Use::Read(mark),
                _ => Use::Scan(mark),
            }
        };
        (0..chance.between(1, USED_MOST)).map(|_| one(chance)).collect()
    }

    /// What a transaction that only reads does with them.
    pub fn draw_reads(&self, chance: &mut Chance) -> Vec<Use> {
        let read = |it| match it {
            Use::Read(_) | Use::Scan(_) => it,
            Use::Toggle(mark) | Use::Put(mark) | Use::Delete(mark) => Use::Read(mark),
            Use::DelayedPut(mark) | Use::DelayedToggle(mark) => Use::Read(mark),
        };
        self.draw(chance).into_iter().map(read).collect()
    }
}

fn key(mark: u64) -> SmallBytes {
    SmallBytes::from(&*format!("m{mark}"))
}

/// Does it, as a part of a transaction.
///
/// # Errors
/// What the database says.
pub async fn perform(tx: &Tx, db: &Db, uses: &[Use]) -> Result<(), Error> {
    if uses.is_empty() {
        return Ok(());
    }
    let space = db.space(SPACE)?;
    for it in uses {
        match *it {
            Use::Read(mark) => drop(tx.get(space, key(mark)).await?),
            Use::Scan(mark) => drop(tx.scan(space, Range::of(key(mark)..)).await?),
            Use::Put(mark) => tx.put(space, key(mark), "here").await?,
            Use::Delete(mark) => tx.delete(space, key(mark)).await?,
            Use::DelayedPut(mark) => {
                tx.defer(space, key(mark), Action::put_if_absent("here")).await?;
            }
            Use::DelayedToggle(mark) => {
                tx.defer_run::<ToggleMark>(space.place(key(mark)), &(space, mark)).await?;
            }
            Use::Toggle(mark) => match tx.get(space, key(mark)).await? {
                Some(_) => tx.delete(space, key(mark)).await?,
                None => tx.put(space, key(mark), "here").await?,
            },
        }
    }
    Ok(())
}

/// The procedures that use marks.
pub fn procedures() -> Procedures {
    with::<ToggleMark>(with::<ReadMark>(Procedures::default()))
}

/// The same in one round; a scan reads its first mark, and no change is blind.
///
/// # Errors
/// There is no such space.
pub fn fragments(db: &Db, uses: &[Use]) -> Result<Vec<Fragment>, Error> {
    if uses.is_empty() {
        return Ok(Vec::new());
    }
    let space = db.space(SPACE)?;
    let one = |it: &Use| match *it {
        Use::Toggle(mark)
        | Use::Put(mark)
        | Use::Delete(mark)
        | Use::DelayedPut(mark)
        | Use::DelayedToggle(mark) => {
            fragment::<ToggleMark>(space.place(key(mark)), &(space, mark))
        }
        Use::Read(mark) | Use::Scan(mark) => {
            fragment::<ReadMark>(space.place(key(mark)), &(space, mark))
        }
    };
    uses.iter().map(one).collect()
}

/// Reads a mark: its space and number; whether it is there.
struct ReadMark;

impl StoredProcedure for ReadMark {
    const NAME: &'static str = "mark-read";
    const READ_ONLY: bool = true;
    const REFUSES: Refuses = Refuses::Never;
    const TOUCHES: Option<TouchesFn<(Space, u64)>> = Some(|_: &Spaces<'_>, (space, mark)| {
        Ok(Footprint { reads: vec![touched(*space, *mark)], writes: Vec::new() })
    });
    type Arguments = (Space, u64);
    type Answer = bool;

    fn run(keys: &mut Keys<'_>, (space, mark): (Space, u64)) -> Result<bool, Stop> {
        Ok(keys.get(space, &key(mark))?.is_some())
    }
}

/// Deletes a mark that is there, inserts one that is not: its space and number.
struct ToggleMark;

impl StoredProcedure for ToggleMark {
    const NAME: &'static str = "mark-toggle";
    const REFUSES: Refuses = Refuses::Never;
    const TOUCHES: Option<TouchesFn<(Space, u64)>> = Some(|_: &Spaces<'_>, (space, mark)| {
        Ok(Footprint { reads: Vec::new(), writes: vec![touched(*space, *mark)] })
    });
    type Arguments = (Space, u64);
    type Answer = ();

    fn run(keys: &mut Keys<'_>, (space, mark): (Space, u64)) -> Result<(), Stop> {
        match keys.get(space, &key(mark))? {
            Some(_) => keys.delete(space, key(mark)),
            None => keys.put(space, key(mark), "here"),
        }
    }
}

fn touched(space: Space, mark: u64) -> Touched {
    Touched::Key(space.id(), key(mark))
}

#[cfg(test)]
mod tests {
    use muesli::procedures::DryRun;

    use super::*;

    #[test]
    fn a_mark_comes_and_goes() {
        let mut dry_run = DryRun::new(&[SPACE]);
        let space = dry_run.space(SPACE);
        for there in [false, true, false] {
            assert_eq!(dry_run.run::<ReadMark>(&(space, 3)), Ok(there));
            assert_eq!(dry_run.run::<ToggleMark>(&(space, 3)), Ok(()));
        }
    }

    fn all_marked(blind: f64) -> Marks {
        Marks { share: 100.0, blind, delayed: false }
    }

    #[test]
    fn blind_changes_are_as_many_as_asked_for() {
        let mut chance = Chance::new(1, 0, 1);
        let all: Vec<_> = (0..50).flat_map(|_| all_marked(100.0).draw(&mut chance)).collect();
        let blind = |it: &&Use| matches!(it, Use::Put(_) | Use::Delete(_));
        assert!(all.iter().filter(blind).count() > 10);
        assert!(!all.iter().any(|it| matches!(it, Use::Toggle(_))), "{all:?}");
    }

    #[test]
    fn changes_are_delayed_where_that_is_asked_for() {
        let mut chance = Chance::new(1, 0, 1);
        let marks = all_marked(0.0).delayed(true);
        let all: Vec<_> = (0..50).flat_map(|_| marks.draw(&mut chance)).collect();
        for wanted in [Use::DelayedPut(0), Use::DelayedToggle(0), Use::Toggle(0)] {
            let alike = |it: &&Use| std::mem::discriminant(*it) == std::mem::discriminant(&wanted);
            assert!(all.iter().filter(alike).count() > 3, "{wanted:?}: {all:?}");
        }
    }

    #[test]
    fn nothing_is_drawn_of_marks_that_are_not_used() {
        let (mut one, mut other) = (Chance::new(1, 0, 1), Chance::new(1, 0, 1));
        assert_eq!(Marks { share: 0.0, blind: 0.0, delayed: false }.draw(&mut one), []);
        assert_eq!(one.below(1 << 40), other.below(1 << 40));
        let all: Vec<_> = (0..50).flat_map(|_| all_marked(0.0).draw(&mut one)).collect();
        let toggles = all.iter().filter(|it| matches!(it, Use::Toggle(_))).count();
        assert!(toggles > 10 && all.len() > toggles + 10, "{all:?}");
        let reads = all_marked(0.0).draw_reads(&mut one);
        assert!(!reads.iter().any(|it| matches!(it, Use::Toggle(_))), "{reads:?}");
    }
}
