//! Abstract locks: who may hold one at the same time.
//!
//! A lock has a name, any bytes, and its holders are scopes, each with the modes that its open
//! children asked for. Which modes go together a [`CompatibilityMatrix`] says, of which two are
//! made already: readers and one writer, and mutual exclusion.

use std::fmt;
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};

use super::rows::ScopeId;
use crate::error::Error;

/// So many modes a matrix may have.
const MODES_MAX: usize = 32;

/// Which modes of a lock scopes may hold at the same time. Clients that use one lock must mean the
/// same matrix by its name: another one is refused.
///
/// ```
/// use muesli::open_nesting::CompatibilityMatrix;
///
/// // Deposits go together and reads go together, and they do not go with each other.
/// let modes = ["read", "deposit"];
/// let account =
///     CompatibilityMatrix::new("account", &modes, &[("read", "read"), ("deposit", "deposit")])?;
/// let deposit = account.mode("deposit")?;
/// assert!(deposit.goes_with(&deposit) && !deposit.goes_with(&account.mode("read")?));
/// # Ok::<_, muesli::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct CompatibilityMatrix {
    name: Arc<str>,
    modes: Arc<[String]>,
    /// For each mode, those that go with it, as bits.
    compatible: Arc<[u32]>,
}

impl fmt::Debug for CompatibilityMatrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CompatibilityMatrix").field(&self.name).finish()
    }
}

impl CompatibilityMatrix {
    /// A matrix of this name: its modes, and the pairs of them that go together, in whichever
    /// order.
    ///
    /// # Errors
    /// [`Error::Options`]: no mode or more than 32, two of one name, or a pair of one that there is
    /// not.
    pub fn new(
        name: &str,
        modes: &[&str],
        compatible: &[(&str, &str)],
    ) -> Result<CompatibilityMatrix, Error> {
        let fault = |what: String| Error::Options(format!("compatibility matrix `{name}`: {what}"));
        if modes.is_empty() || modes.len() > MODES_MAX {
            return Err(fault(format!("it has {} modes, 1 to {MODES_MAX} may be", modes.len())));
        }
        if let Some(at) = (1..modes.len()).find(|at| modes[..*at].contains(&modes[*at])) {
            return Err(fault(format!("mode `{}` is there twice", modes[at])));
        }
        let find = |mode: &str| {
            let at = modes.iter().position(|it| *it == mode);
            at.ok_or_else(|| fault(format!("there is no mode `{mode}`")))
        };
        let mut rows = vec![0_u32; modes.len()];
        for (one, other) in compatible {
            let (one, other) = (find(one)?, find(other)?);
            rows[one] |= 1 << other;
            rows[other] |= 1 << one;
        }
        let modes = modes.iter().map(|mode| (*mode).to_owned()).collect();
        Ok(CompatibilityMatrix { name: name.into(), modes, compatible: rows.into() })
    }

    /// A mode of it.
    ///
    /// # Errors
    /// [`Error::Options`]: there is none of this name.
    pub fn mode(&self, name: &str) -> Result<LockMode, Error> {
        let at = self.modes.iter().position(|it| it == name);
        let at = at.ok_or_else(|| {
            let (own, modes) = (&self.name, self.modes.join(", "));
            let text = format!("compatibility matrix `{own}`: no mode `{name}`, only {modes}");
            Error::Options(text)
        })?;
        Ok(LockMode { matrix: self.clone(), at: at as u8 })
    }

    /// A number that tells this matrix from others of its name.
    fn fingerprint(&self) -> u32 {
        let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
        let modes = self.modes.iter().flat_map(|mode| mode.bytes().chain([0]));
        let rows = self.compatible.iter().flat_map(|row| row.to_le_bytes());
        modes.chain(rows).fold(0x811c_9dc5, step)
    }
}

static READ_WRITE: LazyLock<CompatibilityMatrix> = LazyLock::new(|| {
    let matrix = CompatibilityMatrix::new("read/write", &["read", "write"], &[("read", "read")]);
    matrix.expect("it has two modes")
});

static EXCLUSIVE: LazyLock<CompatibilityMatrix> = LazyLock::new(|| {
    CompatibilityMatrix::new("exclusive", &["exclusive"], &[]).expect("it has one mode")
});

/// How a lock is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockMode {
    matrix: CompatibilityMatrix,
    at: u8,
}

impl LockMode {
    /// Goes with other readers: for what only looks, and for answers that change nothing.
    pub fn read() -> LockMode {
        LockMode { matrix: READ_WRITE.clone(), at: 0 }
    }

    /// Goes with nobody.
    pub fn write() -> LockMode {
        LockMode { matrix: READ_WRITE.clone(), at: 1 }
    }

    /// Mutual exclusion, for locks that have no other mode.
    pub fn exclusive() -> LockMode {
        LockMode { matrix: EXCLUSIVE.clone(), at: 0 }
    }

    /// Whether two scopes may hold a lock so.
    pub fn goes_with(&self, other: &LockMode) -> bool {
        self.matrix == other.matrix && self.admits(other.bit())
    }

    /// Its bit among the modes of its matrix.
    pub(super) fn bit(&self) -> u32 {
        1 << self.at
    }

    fn admits(&self, held: u32) -> bool {
        held & !self.matrix.compatible[usize::from(self.at)] == 0
    }
}

/// A scope that holds a lock, and the modes in which it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct LockHolder {
    scope: ScopeId,
    modes: u32,
}

/// The holders of a lock.
///
/// Invariants: a scope is named once, with some mode; a lock that nobody holds has no row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LockRow {
    matrix: String,
    fingerprint: u32,
    holders: Vec<LockHolder>,
}

impl LockRow {
    /// The row of a lock that nobody holds.
    pub fn free(mode: &LockMode) -> LockRow {
        let (matrix, fingerprint) = (mode.matrix.name.to_string(), mode.matrix.fingerprint());
        LockRow { matrix, fingerprint, holders: Vec::new() }
    }

    /// The first holder that does not go with this mode, other than these `own` ones.
    ///
    /// # Errors
    /// [`Error::Nesting`]: the lock is used with another matrix.
    pub fn conflict(&self, mode: &LockMode, own: &[ScopeId]) -> Result<Option<ScopeId>, Error> {
        let matrix = &mode.matrix;
        if *self.matrix != *matrix.name || self.fingerprint != matrix.fingerprint() {
            return Err(Error::Nesting(format!(
                "it is held in a mode of the compatibility matrix `{}` and asked for in a mode of \
                 `{}`, or of another one of that name: a lock has one matrix",
                self.matrix, matrix.name
            )));
        }
        let others = self.holders.iter().filter(|holder| !own.contains(&holder.scope));
        Ok(others.clone().find(|holder| !mode.admits(holder.modes)).map(|holder| holder.scope))
    }

    /// A scope holds it in this mode, too; whether it did not before.
    pub fn add(&mut self, scope: ScopeId, mode: &LockMode) -> bool {
        self.add_modes(scope, mode.bit())
    }

    /// A scope that holds it does so in these modes from now on, and not at all where there are
    /// none.
    pub fn keep_modes(&mut self, scope: ScopeId, modes: u32) {
        let own = |holder: &LockHolder| holder.scope == scope;
        match self.holders.iter_mut().find(|holder| own(holder)) {
            Some(holder) if modes != 0 => holder.modes = modes,
            Some(_) => self.holders.retain(|holder| !own(holder)),
            None => {}
        }
        self.assert_invariants();
    }

    fn add_modes(&mut self, scope: ScopeId, modes: u32) -> bool {
        let before = match self.holders.iter_mut().find(|holder| holder.scope == scope) {
            Some(holder) => {
                let more = holder.modes | modes;
                std::mem::replace(&mut holder.modes, more)
            }
            None => {
                self.holders.push(LockHolder { scope, modes });
                0
            }
        };
        self.assert_invariants();
        before | modes != before
    }

    /// A scope does not hold it any more, and another one does in its place, if it is given.
    pub fn release(&mut self, scope: ScopeId, heir: Option<ScopeId>) {
        let Some(at) = self.holders.iter().position(|holder| holder.scope == scope) else { return };
        let holder = self.holders.remove(at);
        if let Some(heir) = heir {
            self.add_modes(heir, holder.modes);
        }
        self.assert_invariants();
    }

    pub fn is_free(&self) -> bool {
        self.holders.is_empty()
    }

    fn assert_invariants(&self) {
        for holder in &self.holders {
            let same = self.holders.iter().filter(|it| it.scope == holder.scope).count();
            assert_eq!(same, 1, "{} holds it once: {self:?}", holder.scope);
            assert_ne!(holder.modes, 0, "it holds it in some mode: {self:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: ScopeId = ScopeId(1);
    const TWO: ScopeId = ScopeId(2);
    const THREE: ScopeId = ScopeId(3);

    fn held(by: &[(ScopeId, &LockMode)]) -> LockRow {
        let mut row = LockRow::free(by[0].1);
        by.iter().for_each(|(scope, mode)| {
            row.add(*scope, mode);
        });
        row
    }

    #[test]
    fn readers_go_together_and_writers_go_with_nobody() {
        let (read, write) = (LockMode::read(), LockMode::write());
        let readers = held(&[(ONE, &read), (TWO, &read)]);
        assert_eq!(readers.conflict(&read, &[THREE]), Ok(None));
        assert_eq!(readers.conflict(&write, &[THREE]), Ok(Some(ONE)));
        assert_eq!(
            readers.conflict(&write, &[ONE]),
            Ok(Some(TWO)),
            "its own mode is not in the way"
        );
        assert_eq!(readers.conflict(&write, &[ONE, TWO]), Ok(None), "nor are its ancestors'");
        let writer = held(&[(ONE, &read), (ONE, &write)]);
        assert_eq!(writer.conflict(&read, &[TWO]), Ok(Some(ONE)));
        assert_eq!(writer.conflict(&read, &[ONE]), Ok(None));
    }

    #[test]
    fn mutual_exclusion_is_for_one() {
        let lock = LockMode::exclusive();
        assert_eq!(held(&[(ONE, &lock)]).conflict(&lock, &[TWO]), Ok(Some(ONE)));
    }

    #[test]
    fn a_matrix_says_what_goes_together_in_both_directions() {
        let pairs = [("add", "add"), ("read", "read"), ("add", "size")];
        let matrix = CompatibilityMatrix::new("m", &["add", "read", "size"], &pairs).unwrap();
        let mode = |name: &str| matrix.mode(name).unwrap();
        let expected = [("add", "101"), ("read", "010"), ("size", "100")];
        for (name, row) in expected {
            let goes = |other: &str| if mode(name).goes_with(&mode(other)) { '1' } else { '0' };
            let found: String = ["add", "read", "size"].into_iter().map(goes).collect();
            assert_eq!(found, row, "{name}");
        }
        let row = held(&[(ONE, &mode("add")), (ONE, &mode("read"))]);
        assert_eq!(row.conflict(&mode("add"), &[TWO]), Ok(Some(ONE)), "all of its modes count");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for (modes, pairs) in
            [(&[][..], &[][..]), (&["a", "a"], &[]), (&["a"], &[("a", "b")]), (&["a"; 33], &[])]
        {
            let made = CompatibilityMatrix::new("m", modes, pairs);
            assert!(matches!(made, Err(Error::Options(_))), "{modes:?}");
        }
        let matrix = CompatibilityMatrix::new("read/write", &["read"], &[]).unwrap();
        assert!(matches!(matrix.mode("write"), Err(Error::Options(_))));
        let row = held(&[(ONE, &LockMode::read())]);
        for other in [matrix.mode("read").unwrap(), LockMode::exclusive()] {
            assert!(matches!(row.conflict(&other, &[TWO]), Err(Error::Nesting(_))), "{other:?}");
        }
    }

    #[test]
    fn a_lock_is_released_or_handed_on() {
        let (read, write) = (LockMode::read(), LockMode::write());
        let mut row = held(&[(ONE, &read), (TWO, &read)]);
        row.release(ONE, None);
        row.release(THREE, None);
        assert_eq!(row, held(&[(TWO, &read)]));
        row.add(TWO, &write);
        row.add(THREE, &read);
        row.release(TWO, Some(THREE));
        assert_eq!(row.conflict(&read, &[ONE]), Ok(Some(THREE)), "with all of its modes");
        row.keep_modes(THREE, 1 << read.at);
        assert_eq!(row.conflict(&read, &[ONE]), Ok(None), "without what was taken since");
        row.keep_modes(TWO, 1 << read.at);
        assert_eq!(row, held(&[(THREE, &read)]), "who does not hold it does not by this");
        row.keep_modes(THREE, 0);
        assert!(row.is_free());
    }
}
