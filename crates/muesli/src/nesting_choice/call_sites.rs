//! The call sites of a program that leave their nesting model to the database, by name.

use std::collections::BTreeMap;
use std::panic::Location;
use std::sync::{Arc, Mutex, MutexGuard};

use super::NestingChoice;
use super::pooled::exchange::PoolRow;
use crate::data::space::Space;

/// No more call sites than so many are told apart, with the one for all others.
const SITES_MOST: usize = 64;
/// The call site of all whose names come later.
const OTHERS: &str = "other call sites";
/// What the keys of rows begin with.
const PREFIX: &str = "nesting choice/";

/// The choices of a process, one for each call site of the program that runs transactions with
/// children. Clones are one.
///
/// Call sites have names, or are known by where in the program they [are](Self::here). There are 64
/// of them at most; all that come later share one choice.
///
/// Nodes that are given the same [space](Self::pooled) choose together, at each call site of one
/// name: all try the same model at the same time, by their clocks, and models are compared by the
/// totals of all nodes. So one that gains by what the others lose by is no reason to choose it.
/// What a node has observed it tells once in a slot (a second or longer), beside its transactions,
/// by one that reads and writes the call site's row, of about a kilobyte, also where the handle is
/// for reading only. A node that does not reach the row chooses by its own transactions.
///
/// ```
/// use muesli::nesting_choice::CallSites;
/// use muesli::{Db, Error, Options, SpaceOptions};
///
/// # fn main() -> Result<(), Error> {
/// let spaces = Options::default().space("accounts", SpaceOptions::default());
/// let db = Db::open(spaces.space("choices", SpaceOptions::default()))?;
/// let accounts = db.space("accounts")?.typed::<u64, i64>();
/// let sites = CallSites::pooled(db.space("choices")?);
/// let paying = db.choosing(&sites.at("payments"));
/// paying.blocking().transact(async move |tx| {
///     tx.nested(async |child| accounts.put(child, &1, &100).await).await
/// })?;
/// assert_eq!(sites.all().len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct CallSites {
    space: Option<Space>,
    sites: Arc<Mutex<BTreeMap<String, NestingChoice>>>,
}

impl CallSites {
    /// Call sites of this process, which chooses by its own transactions.
    pub fn new() -> CallSites {
        CallSites::default()
    }

    /// Call sites of all processes that are given this space of a database. It may have other rows,
    /// whose keys do not begin with `nesting choice/`.
    pub fn pooled(space: Space) -> CallSites {
        CallSites { space: Some(space), ..CallSites::default() }
    }

    fn sites(&self) -> MutexGuard<'_, BTreeMap<String, NestingChoice>> {
        self.sites.lock().unwrap_or_else(|broken| broken.into_inner())
    }

    /// The choice of the call site of this name, for [`Db::choosing`](crate::Db::choosing).
    pub fn at(&self, name: &str) -> NestingChoice {
        let mut sites = self.sites();
        let is_known = sites.contains_key(name);
        let name = if is_known || sites.len() + 1 < SITES_MOST { name } else { OTHERS };
        if let Some(choice) = sites.get(name) {
            return choice.clone();
        }
        let key = format!("{PREFIX}{name}");
        let row = self.space.map(|space| PoolRow { space, key: key.into() });
        let choice = NestingChoice { row, ..NestingChoice::default() };
        sites.insert(name.to_owned(), choice.clone());
        choice
    }

    /// The choice of the call site where this is called: a line and a column of a file of the
    /// program.
    #[track_caller]
    pub fn here(&self) -> NestingChoice {
        self.at(&Location::caller().to_string())
    }

    /// All call sites that were asked for, by name.
    pub fn all(&self) -> Vec<(String, NestingChoice)> {
        self.sites().iter().map(|(name, choice)| (name.clone(), choice.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_same(a: &NestingChoice, b: &NestingChoice) -> bool {
        Arc::ptr_eq(&a.inner, &b.inner)
    }

    #[test]
    fn a_name_is_a_site() {
        let sites = CallSites::new();
        assert!(is_same(&sites.at("orders"), &sites.clone().at("orders")));
        assert!(!is_same(&sites.at("orders"), &sites.at("returns")));
        let names: Vec<_> = sites.all().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["orders", "returns"]);
    }

    #[test]
    fn a_line_of_a_program_is_a_site() {
        let sites = CallSites::new();
        let here = [0, 1].map(|_| sites.here());
        assert!(is_same(&here[0], &here[1]));
        assert!(!is_same(&here[0], &sites.here()));
        assert!(sites.all()[0].0.contains("call_sites.rs:"), "{:?}", sites.all());
    }

    #[test]
    fn there_are_not_more_sites_than_so_many() {
        let sites = CallSites::new();
        let all: Vec<_> = (0..1_000).map(|number| sites.at(&number.to_string())).collect();
        assert_eq!(sites.all().len(), SITES_MOST);
        assert!(is_same(&all[998], &all[999]));
        assert!(is_same(&all[0], &sites.at("0")));
    }
}
