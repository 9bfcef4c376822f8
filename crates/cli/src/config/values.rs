//! How the texts of a configuration become values, and what is said of those that do not.

use std::time::Duration;

use muesli_core::Nanos;
use muesli_registry::{is_known, names as protocol_names};

use crate::names;

/// Takes a value.
pub(super) fn put<T>(place: &mut T, value: T) -> Result<(), String> {
    *place = value;
    Ok(())
}

/// Takes a text as it is.
pub(super) fn text_of(text: &str, place: &mut String) -> Result<(), String> {
    text.clone_into(place);
    Ok(())
}

/// The name of a protocol, or one that it had earlier.
pub(super) fn protocol(text: &str) -> Result<String, String> {
    if is_known(text) {
        return Ok(text.to_owned());
    }
    Err(match names::nearest(text, protocol_names()) {
        None => format!("there is no such protocol; there are: {}", protocol_names().join(", ")),
        meant => format!("there is no such protocol{}", names::question(meant)),
    })
}

/// A number within bounds; `_` may divide its digits.
pub(super) fn number(text: &str, least: u64, most: u64) -> Result<u64, String> {
    let message = || format!("a number from {least} to {most} is wanted");
    let number: u64 = text.replace('_', "").parse().map_err(|_| message())?;
    if (least..=most).contains(&number) { Ok(number) } else { Err(message()) }
}

/// Takes a time in milliseconds, of an hour at most.
pub(super) fn nanos(text: &str, place: &mut Nanos) -> Result<(), String> {
    put(place, Nanos::from_millis(number(text, 1, 3_600_000)?))
}

/// Takes a limit in bytes, of a mebibyte at least.
pub(super) fn limit(text: &str, place: &mut u64) -> Result<(), String> {
    *place = number(text, 1 << 20, u64::MAX >> 1)?;
    Ok(())
}

/// Takes a size or a count, of 2 GiB at most.
pub(super) fn bytes(text: &str, place: &mut usize) -> Result<(), String> {
    *place = number(text, 1, 1 << 31)? as usize;
    Ok(())
}

/// Takes a time in milliseconds, of a day at most.
pub(super) fn millis(text: &str, place: &mut Duration) -> Result<(), String> {
    *place = Duration::from_millis(number(text, 1, 86_400_000)?);
    Ok(())
}

/// True or false.
pub(super) fn truth(text: &str) -> Result<bool, String> {
    text.parse().map_err(|_| "true or false is wanted".to_owned())
}
