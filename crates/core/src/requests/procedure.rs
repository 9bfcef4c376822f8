//! Procedures: deterministic code that runs where its keys live.
//!
//! A one-round transaction does not read, think and write from afar: its client names, once, what
//! is to be run at each repository that takes part, and the repositories run it (Granola thesis,
//! section 2.1). A procedure is a *name and version* and bytes of arguments, which can be sent and
//! logged; the function belongs to the nodes, which know it by that name. It must be the same
//! function on every node, and depend on nothing but its arguments and the keys that it is shown:
//! every member of a repository's group runs it, and again after a crash.
//!
//! What a procedure *may* do is declared with it: whether it writes, whether it may refuse, and
//! which keys it can possibly touch. The declaration is what makes a class safe to choose.

use std::any::{TypeId, type_name};
use std::collections::BTreeMap;
use std::fmt;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::bytes::SmallBytes;
use crate::catalog::Catalog;
use crate::ids::{RepositoryId, SpaceId, Timestamp};
use crate::ranges::{Row, Scan};
use crate::wire_struct;

/// Which procedure: a change of what it does is a new version, so that callers and nodes that are
/// of two minds find out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcedureId {
    /// Its name.
    pub name: SmallBytes,
    /// Its version, from 1.
    pub version: u32,
}

wire_struct!(ProcedureId { name: SmallBytes, version: u32 });

impl fmt::Display for ProcedureId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} v{}", String::from_utf8_lossy(self.name.as_slice()), self.version)
    }
}

/// Where a fragment runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// At the repository that holds this key.
    Key(SpaceId, SmallBytes),
    /// At this repository.
    Repository(RepositoryId),
}

/// The part of a one-round transaction that one repository runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// What runs.
    pub procedure: ProcedureId,
    /// Where. Fragments at one repository run there in the order of the call.
    pub place: Place,
    /// What it is given.
    pub arguments: SmallBytes,
}

/// How the repositories of a one-round transaction agree (Granola thesis, section 1.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Class {
    /// The best one that is safe by what its procedures declare.
    #[default]
    Auto,
    /// One repository takes part.
    Single,
    /// Several, each of which comes to the same decision without asking: none refuses, or all do
    /// by data that all have.
    Independent,
    /// Several, which vote, as each may refuse.
    Coordinated,
}

/// A one-round transaction as a client asks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// How its repositories agree.
    pub class: Class,
    /// What runs where; at least one.
    pub fragments: Vec<Fragment>,
}

/// What the client of a one-round transaction that committed is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invoked {
    /// Its place in the serial order.
    pub at: Timestamp,
    /// What each fragment gave, in the order of the call.
    pub results: Vec<SmallBytes>,
}

/// Why a fragment did not come to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The procedure refuses, for a reason of its own: the transaction has no effect.
    Refused(SmallBytes),
    /// It did what it may not do; the text says what, and what is allowed.
    Faulty(String),
}

/// What is written under a key; `None` deletes.
pub type NewValue = Option<SmallBytes>;

/// The keys of a repository, as a procedure that runs there sees them. An error goes up through
/// the procedure by `?`; one that swallows it is stopped nevertheless.
pub trait Store {
    /// The space called `name`.
    ///
    /// # Errors
    /// There is none.
    fn space(&self, name: &str) -> Result<SpaceId, Stop>;
    /// The value of a key, the procedure's own writes included.
    ///
    /// # Errors
    /// The key lives elsewhere or was not declared, or too much was done.
    fn get(&mut self, space: SpaceId, key: &SmallBytes) -> Result<Option<SmallBytes>, Stop>;
    /// Writes a key; `None` deletes it.
    ///
    /// # Errors
    /// As for [`get`](Self::get); a limit of sizes; or the procedure was declared to read only.
    fn put(&mut self, space: SpaceId, key: SmallBytes, value: NewValue) -> Result<(), Stop>;
    /// The keys of a range that live here, the procedure's own writes included.
    ///
    /// # Errors
    /// As for [`get`](Self::get), or the space has no order.
    fn scan(&mut self, scan: &Scan) -> Result<Vec<Row>, Stop>;
    /// What a key that some procedure of the call [shares](Procedure::shares) had before the
    /// transaction, wherever it lives; `None`: nobody tells, since whoever holds it has a vote of
    /// its own.
    ///
    /// # Errors
    /// Nobody declared that it is told, or too much was done.
    fn shared(
        &mut self,
        space: SpaceId,
        key: &SmallBytes,
    ) -> Result<Option<Option<SmallBytes>>, Stop>;
    /// Whether a key may be read by this fragment of the call, or written; where it may not,
    /// another fragment sees to it. A key that is everywhere may be read by all.
    fn is_here(&self, _space: SpaceId, _key: &SmallBytes, _writes: bool) -> bool {
        true
    }
    /// The longest value that may be written, and the longest result.
    fn value_bytes_max(&self) -> usize {
        usize::MAX
    }
}

/// The function of a procedure.
pub type ProcedureFn = fn(&mut dyn Store, &SmallBytes) -> Result<SmallBytes, Stop>;

/// Whether a procedure may refuse, and by what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Refuses {
    /// Never.
    Never,
    /// By its arguments, or by data that every participant of the transaction holds alike or is
    /// [told](Store::shared): all that are given the same refuse together.
    Alike,
    /// By data that is only here.
    #[default]
    Alone,
}

/// A key or a range that a procedure may touch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Touched {
    /// One key.
    Key(SpaceId, SmallBytes),
    /// The keys of `[lo, hi)`; `hi` `None` is open.
    Range(SpaceId, SmallBytes, Option<SmallBytes>),
    /// Any key of a space.
    Space(SpaceId),
}

/// All that a procedure may touch, whatever the data says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// What it may read.
    pub reads: Vec<Touched>,
    /// What it may write.
    pub writes: Vec<Touched>,
}

/// Tells the footprint from the arguments alone; it may resolve names of spaces.
pub type FootprintFn =
    fn(&dyn Fn(&str) -> Result<SpaceId, Stop>, &SmallBytes) -> Result<Footprint, Stop>;

/// Tells from the arguments alone which keys are told to all participants; it may resolve names of
/// spaces.
pub type SharesFn = fn(
    &dyn Fn(&str) -> Result<SpaceId, Stop>,
    &SmallBytes,
) -> Result<Vec<(SpaceId, SmallBytes)>, Stop>;

/// A key that a procedure touches, as far as its partition needs it to be known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LocatedKey {
    /// Its space.
    pub space: SpaceId,
    /// Its first parts, or all of it.
    pub key: SmallBytes,
    /// Whether it may be written.
    pub writes: bool,
}

/// Tells from the arguments alone where a call has fragments: each of them runs the same procedure
/// with the same arguments, and does what is of its partition.
pub type PlacesFn = fn(&Catalog, &SmallBytes) -> Result<Vec<LocatedKey>, Stop>;

/// A procedure and what is declared of it.
#[derive(Clone, Copy, Debug)]
pub struct Procedure {
    /// What it does.
    pub run: ProcedureFn,
    /// It never writes.
    pub read_only: bool,
    /// Whether it may refuse.
    pub refuses: Refuses,
    /// What it may touch at most; `None`: anything at its repository.
    pub footprint: Option<FootprintFn>,
    /// What it touches, and whether it comes to its end, does not depend on what it finds.
    pub steady: bool,
    /// Keys of its repository, among those that it may touch, whose values all participants are
    /// told before they run; `None`: it tells nothing.
    pub shares: Option<SharesFn>,
    /// Where a call of it has fragments; `None`: whoever calls it knows. Where it is told, a call
    /// that lacks one of them is refused by all.
    pub places: Option<PlacesFn>,
    /// The type of what it answers, where that is known.
    pub answer: Option<AnswerType>,
}

/// The type of a procedure's answer, as it is called in the program that knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerType {
    /// What tells it from others in this process.
    pub id: TypeId,
    /// Its name, for errors.
    pub name: &'static str,
}

impl AnswerType {
    /// This type.
    pub fn of<T: 'static>() -> AnswerType {
        AnswerType { id: TypeId::of::<T>(), name: type_name::<T>() }
    }
}

impl Procedure {
    /// A procedure of which nothing is known but what it does: it may write, refuse, and touch
    /// anything.
    pub const fn new(run: ProcedureFn) -> Procedure {
        let (refuses, footprint) = (Refuses::Alone, None);
        let (shares, places, answer) = (None, None, None);
        Procedure {
            run,
            read_only: false,
            refuses,
            footprint,
            steady: false,
            shares,
            places,
            answer,
        }
    }

    /// It never writes.
    #[must_use]
    pub const fn read_only(self) -> Procedure {
        Procedure { read_only: true, ..self }
    }

    /// Whether it may refuse.
    #[must_use]
    pub const fn refuses(self, refuses: Refuses) -> Procedure {
        Procedure { refuses, ..self }
    }

    /// What it touches, and whether it comes to its end, does not depend on what it finds: delayed,
    /// it may run beside others on the same keys.
    #[must_use]
    pub const fn steady(self) -> Procedure {
        Procedure { steady: true, ..self }
    }

    /// Which keys of its repository all participants are told of.
    #[must_use]
    pub const fn shares(self, shares: SharesFn) -> Procedure {
        Procedure { shares: Some(shares), ..self }
    }

    /// Where a call of it has fragments.
    #[must_use]
    pub const fn at(self, places: PlacesFn) -> Procedure {
        Procedure { places: Some(places), ..self }
    }

    /// What it may touch at most.
    #[must_use]
    pub const fn touches(self, footprint: FootprintFn) -> Procedure {
        Procedure { footprint: Some(footprint), ..self }
    }
}

/// The procedures that a node knows.
#[derive(Clone, Default)]
pub struct Procedures {
    by_id: BTreeMap<ProcedureId, Procedure>,
    /// The same, to be found at once.
    found: HashMap<ProcedureId, Procedure, FixedState>,
}

impl Procedures {
    /// These and one more, or another one by a name and version that are taken.
    #[must_use]
    pub fn with(mut self, name: &str, version: u32, procedure: Procedure) -> Procedures {
        let id = ProcedureId { name: name.into(), version };
        self.by_id.insert(id.clone(), procedure);
        self.found.insert(id, procedure);
        self
    }

    /// These and others; of those that both have, the others'.
    #[must_use]
    pub fn and(mut self, others: &Procedures) -> Procedures {
        self.by_id.extend(others.by_id.iter().map(|(id, procedure)| (id.clone(), *procedure)));
        self.found.extend(others.found.iter().map(|(id, procedure)| (id.clone(), *procedure)));
        self
    }

    /// The procedure of that name and version.
    pub fn get(&self, id: &ProcedureId) -> Option<&Procedure> {
        self.found.get(id)
    }

    /// All names and versions, in order.
    pub fn ids(&self) -> impl Iterator<Item = &ProcedureId> {
        self.by_id.keys()
    }
}

/// Equal if they know the same names and versions.
impl PartialEq for Procedures {
    fn eq(&self, other: &Procedures) -> bool {
        self.ids().eq(other.ids())
    }
}

impl Eq for Procedures {}

impl fmt::Debug for Procedures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.ids()).finish()
    }
}
