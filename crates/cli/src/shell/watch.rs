//! `watch`: what keys have, and what they have whenever one of them has changed.
//!
//! Between two changes it sleeps: the servers tell it of the next one, and nobody polls.

use std::io::{Write, stdout};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use muesli::{Error, SmallBytes, Tx};

use super::interrupt::TypedInterrupt;
use super::session::{ShellSession, row_for_programs};
use super::tokens::ShellToken;
use super::values;

/// Who watches looks so often whether it was interrupted.
const LOOKS_EVERY: Duration = Duration::from_millis(200);
/// It sleeps for so long at a time where nobody can interrupt it but by ending the process.
const SLEEPS: Duration = Duration::from_secs(3_600);

/// What is watched, and for how long.
struct WatchedKeys {
    keys: Vec<SmallBytes>,
    /// It is over after so many changes.
    times: u64,
    /// Or then.
    until: Option<Instant>,
}

/// `KEY .. [times N] [within SECONDS]`.
fn watched(tokens: &[ShellToken]) -> anyhow::Result<WatchedKeys> {
    let mut watched = WatchedKeys { keys: Vec::new(), times: u64::MAX, until: None };
    let mut tokens = tokens.iter();
    while let Some(token) = tokens.next() {
        if token.is("times") {
            let times = tokens.next().and_then(|token| token.text().parse().ok());
            watched.times = times.filter(|it| *it > 0).context("`times` takes a number from 1")?;
        } else if token.is("within") {
            let seconds = tokens.next().and_then(|token| token.text().parse::<f64>().ok());
            let within = seconds.and_then(|it| Duration::try_from_secs_f64(it).ok());
            let within = within.context("`within` takes seconds, such as 2.5")?;
            let until = Instant::now().checked_add(within);
            watched.until = Some(until.context("`within` takes fewer seconds")?);
        } else {
            watched.keys.push(SmallBytes::new(&token.bytes));
        }
    }
    if watched.keys.is_empty() {
        bail!("`watch` takes keys");
    }
    Ok(watched)
}

/// Shows what keys have, and then each that has changed, as often as asked, for as long as asked,
/// or until Ctrl-C.
///
/// # Errors
/// They cannot be read.
pub fn watch(session: &ShellSession, tokens: &[ShellToken]) -> anyhow::Result<String> {
    if session.is_in_transaction() {
        bail!("a transaction sees no changes of others: commit or abort it first");
    }
    let watched = watched(tokens)?;
    if let Some(interrupt) = &session.interrupt {
        interrupt.wait();
    }
    let ended = show_changes(session, &watched);
    if let Some(interrupt) = &session.interrupt {
        interrupt.end();
    }
    ended.map(|()| String::new())
}

fn show_changes(session: &ShellSession, watched: &WatchedKeys) -> anyhow::Result<()> {
    let mut seen: Option<Vec<Option<SmallBytes>>> = None;
    let mut left = watched.times;
    while left > 0 {
        let Some(found) = next_state(session, watched, seen.as_deref())? else { return Ok(()) };
        for (at, (key, value)) in watched.keys.iter().zip(&found).enumerate() {
            let is_new = seen.as_ref().is_none_or(|seen| seen[at] != *value);
            if is_new && show(session, key, value.as_ref()).is_err() {
                return Ok(()); // Nobody reads any more.
            }
        }
        left -= u64::from(seen.is_some());
        seen = Some(found);
    }
    Ok(())
}

/// What the keys have, as soon as that is something else than this; `None`: it is over.
fn next_state(
    session: &ShellSession,
    watched: &WatchedKeys,
    seen: Option<&[Option<SmallBytes>]>,
) -> anyhow::Result<Option<Vec<Option<SmallBytes>>>> {
    let (_, space) = session.current()?;
    loop {
        let most = if session.interrupt.is_some() { LOOKS_EVERY } else { SLEEPS };
        let now = Instant::now();
        let left = watched.until.map_or(most, |until| until.saturating_duration_since(now));
        let is_over = seen.is_some() && left.is_zero();
        if is_over || session.interrupt.as_ref().is_some_and(TypedInterrupt::was_typed) {
            return Ok(None);
        }
        let db = match seen {
            Some(_) => session.db.read_only().timeout(left.min(most)),
            None => session.db.read_only(),
        };
        let (keys, seen) = (watched.keys.clone(), seen.map(<[_]>::to_vec));
        let read = async move |tx: &Tx| {
            let found = tx.get_many(space, keys.clone()).await?;
            if seen.as_ref() == Some(&found) { tx.retry() } else { Ok(found) }
        };
        match db.blocking().transact(read) {
            Ok(found) => return Ok(Some(found)),
            Err(Error::TransactionTimeout { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn show(
    session: &ShellSession,
    key: &SmallBytes,
    value: Option<&SmallBytes>,
) -> std::io::Result<()> {
    let (key, value) = (key.as_slice(), value.map(SmallBytes::as_slice));
    let mut out = stdout().lock();
    match session.json {
        true => writeln!(out, "{}", row_for_programs(key, value))?,
        false => {
            let value = value.map_or_else(|| "(absent)".to_owned(), values::shown_value);
            writeln!(out, "{}\t{value}", values::shown(key))?;
        }
    }
    out.flush()
}
