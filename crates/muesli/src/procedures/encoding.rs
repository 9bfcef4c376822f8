//! The arguments and answers of stored procedures as bytes.

use muesli_core::{Fragment, Invoked, Place, SmallBytes};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::stored::{StoredProcedure, id_of};
use crate::error::Error;

/// The fragment that runs `P` at a place.
///
/// # Errors
/// [`Error::Codec`] where the arguments cannot be serialized.
pub fn fragment<P: StoredProcedure>(
    place: Place,
    arguments: &P::Arguments,
) -> Result<Fragment, Error> {
    Ok(Fragment { procedure: id_of::<P>(), place, arguments: encode(arguments)? })
}

/// What a fragment that ran `P` answered.
///
/// # Errors
/// [`Error::Codec`] where it is no such answer.
pub fn answer<P: StoredProcedure>(result: &SmallBytes) -> Result<P::Answer, Error> {
    decode_answer(result)
}

/// What the only fragment of a call, which ran `P`, answered.
///
/// # Errors
/// As [`answer`].
pub(crate) fn first_answer<P: StoredProcedure>(done: &Invoked) -> Result<P::Answer, Error> {
    answer::<P>(done.results.first().unwrap_or(&SmallBytes::EMPTY))
}

/// An answer as a value of a type; bytes that it leaves are a sign that it is of another one.
pub(crate) fn decode_answer<T: DeserializeOwned>(result: &SmallBytes) -> Result<T, Error> {
    let type_ = std::any::type_name::<T>();
    match postcard::take_from_bytes(result.as_slice()) {
        Ok((answer, [])) => Ok(answer),
        Ok((_, rest)) => {
            let (all, left) = (result.len(), rest.len());
            Err(Error::Codec(format!("the answer is no `{type_}`: {left} of {all} bytes are left")))
        }
        Err(error) => Err(Error::Codec(format!("the answer is no `{type_}`: {error}"))),
    }
}

pub(crate) fn encode<T: Serialize + ?Sized>(value: &T) -> Result<SmallBytes, Error> {
    let bytes = postcard::to_stdvec(value).map_err(|error| Error::Codec(error.to_string()))?;
    Ok(bytes.into())
}
