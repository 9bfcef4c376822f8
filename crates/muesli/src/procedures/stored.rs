//! What a stored procedure is: its name and version, what is declared of it, and its code.

use muesli_core::{Footprint, ProcedureId, Refuses, SmallBytes, SpaceId, Stop};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::keys::Keys;
use crate::data::space::Space;

/// Tells from the arguments all that a procedure may touch.
pub type TouchesFn<A> = fn(&Spaces<'_>, &A) -> Result<Footprint, Stop>;

/// Tells from the arguments the keys whose values all participants of a call are told.
pub type SharesFn<A> = fn(&Spaces<'_>, &A) -> Result<Vec<(Space, SmallBytes)>, Stop>;

/// A procedure in Rust, with typed arguments and a typed answer; both travel in the postcard
/// format.
pub trait StoredProcedure: 'static {
    /// Its name.
    const NAME: &'static str;
    /// Its version, from 1.
    const VERSION: u32 = 1;
    /// Whether it never writes.
    const READ_ONLY: bool = false;
    /// Whether it may refuse, and by what.
    const REFUSES: Refuses = Refuses::Alone;
    /// What it may touch at most; `None`: anything at its repository.
    const TOUCHES: Option<TouchesFn<Self::Arguments>> = None;
    /// Keys of its repository, among those that it may touch, whose values all repositories of the
    /// call are told before any of their procedures runs ([`Keys::shared`]). So they can come to the
    /// same decision by what only one of them has: such a refusal is [`Refuses::Alike`], and the
    /// call is independent. It costs a message delay more.
    const SHARES: Option<SharesFn<Self::Arguments>> = None;
    /// What it touches, and whether it comes to its end, does not depend on what it finds. Delayed
    /// ([`Tx::defer_run`](crate::Tx::defer_run)), it may then run beside others on the same keys.
    /// One that is wrong about this and goes wrong in its turn changes nothing there.
    const STEADY: bool = false;
    /// What it is given.
    type Arguments: Serialize + DeserializeOwned;
    /// What it gives.
    type Answer: Serialize + DeserializeOwned + 'static;

    /// What it does.
    ///
    /// # Errors
    /// It refuses ([`Stop::Refused`]); or an error of `keys`, which is to be handed on.
    fn run(keys: &mut Keys<'_>, arguments: Self::Arguments) -> Result<Self::Answer, Stop>;
}

/// The spaces of a database by name, where a footprint is told.
pub struct Spaces<'a> {
    pub(super) find: &'a dyn Fn(&str) -> Result<SpaceId, Stop>,
}

impl Spaces<'_> {
    /// The space called `name`.
    ///
    /// # Errors
    /// There is none.
    pub fn space(&self, name: &str) -> Result<Space, Stop> {
        (self.find)(name).map(Space::numbered)
    }
}

/// Its name and version, as a node knows it by.
pub fn id_of<P: StoredProcedure>() -> ProcedureId {
    ProcedureId { name: P::NAME.into(), version: P::VERSION }
}
