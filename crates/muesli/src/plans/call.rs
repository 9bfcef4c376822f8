//! Calling plans: the fragments follow from the arguments.

use muesli_core::parts::execution;
use muesli_core::{Class, Fragment, Invoked, Place, Procedure, Stop};

use super::procedure_plan::{PlannedProcedure, id_of};
use super::registration::{places, run_planned};
use crate::database::handle::Db;
use crate::error::Error;
use crate::procedures::encoding::{decode_answer, encode};

impl Db {
    /// The fragments of a call of a plan: one in each partition where it has something to do, all
    /// with the same arguments.
    ///
    /// # Errors
    /// [`Error::Codec`] where the arguments cannot be serialized; [`Error::Procedure`] where a
    /// space is missing, or is dealt otherwise than the plan's table, or the call does nothing.
    pub fn plan_fragments<P: PlannedProcedure>(
        &self,
        arguments: &P::Arguments,
    ) -> Result<Vec<Fragment>, Error> {
        let arguments = encode(arguments)?;
        let procedure = Procedure::new(run_planned::<P>).at(places::<P>);
        let catalog = self.catalog_of_keys();
        let located = execution::places(&procedure, &catalog, &arguments);
        let located = located.map_err(|stop| match stop {
            Stop::Faulty(text) => Error::Procedure(text),
            Stop::Refused(reason) => {
                Error::Refused(String::from_utf8_lossy(reason.as_slice()).into_owned())
            }
        })?;
        let fragment = |(_, key): (u16, muesli_core::LocatedKey)| Fragment {
            procedure: id_of::<P>(),
            place: Place::Key(key.space, key.key),
            arguments: arguments.clone(),
        };
        let fragments: Vec<_> = located.into_iter().flatten().map(fragment).collect();
        match fragments.is_empty() {
            true => Err(Error::Procedure(format!(
                "this call of `{}` has nothing to do: none of its steps is at any unit",
                P::NAME
            ))),
            false => Ok(fragments),
        }
    }

    /// Runs a plan: all of its steps at one point of the serial order, or none. Conflicts are
    /// retried as [`transact`](Self::transact) does.
    ///
    /// # Errors
    /// As [`invoke`](Self::invoke) and [`plan_fragments`](Self::plan_fragments).
    pub async fn run_plan<P: PlannedProcedure>(
        &self,
        arguments: &P::Arguments,
    ) -> Result<P::Answer, Error> {
        let fragments = self.plan_fragments::<P>(arguments)?;
        answer::<P>(&self.invoke(Class::Auto, fragments).await?)
    }
}

/// What a call of a plan answered: that of the participants which knows it.
///
/// # Errors
/// [`Error::Codec`] where none of them is such an answer.
pub fn answer<P: PlannedProcedure>(invoked: &Invoked) -> Result<P::Answer, Error> {
    for result in &invoked.results {
        if let Some(answer) = decode_answer::<Option<P::Answer>>(result)? {
            return Ok(answer);
        }
    }
    Err(Error::Codec(format!("no participant of `{}` has answered", P::NAME)))
}
