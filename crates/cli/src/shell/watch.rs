//! `watch`: what keys have, and what they have whenever one of them has changed.
//!
//! Between two changes it sleeps: the servers tell it of the next one.

use std::future::poll_fn;
use std::io::{Write, stdout};
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use muesli::blocking::block_on;
use muesli::{Db, Error, SmallBytes, Space, Tx};

use super::interrupt::TypedInterrupt;
use super::session::{ShellSession, row_for_programs};
use super::tokens::ShellToken;
use super::values;

/// It sleeps for so long at a time.
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
/// or until Ctrl-C. False: nobody reads any more.
///
/// # Errors
/// They cannot be read.
pub fn watch(session: &ShellSession, tokens: &[ShellToken]) -> anyhow::Result<bool> {
    if session.is_in_transaction() {
        bail!("a transaction sees no changes of others: commit or abort it first");
    }
    let watched = watched(tokens)?;
    let (_, space) = session.current()?;
    block_on(async {
        let mut changes = pin!(show_changes(session, space, &watched));
        let mut typed = pin!(TypedInterrupt::typed(session.interrupt.as_ref()));
        poll_fn(|cx| match (changes.as_mut().poll(cx), typed.as_mut().poll(cx)) {
            (Poll::Ready(ended), _) => Poll::Ready(ended),
            (Poll::Pending, Poll::Ready(())) => Poll::Ready(Ok(true)),
            (Poll::Pending, Poll::Pending) => Poll::Pending,
        })
        .await
    })
}

async fn show_changes(
    session: &ShellSession,
    space: Space,
    watched: &WatchedKeys,
) -> anyhow::Result<bool> {
    let mut seen: Option<Vec<Option<SmallBytes>>> = None;
    let mut left = watched.times;
    while left > 0 {
        let found = next_state(&session.db, space, watched, seen.as_deref()).await?;
        let Some(found) = found else { return Ok(true) };
        for (at, (key, value)) in watched.keys.iter().zip(&found).enumerate() {
            let is_new = seen.as_ref().is_none_or(|seen| seen[at] != *value);
            if is_new && show(session, key, value.as_ref()).is_err() {
                return Ok(false);
            }
        }
        left -= u64::from(seen.is_some());
        seen = Some(found);
    }
    Ok(true)
}

/// What the keys have, as soon as that is something else than this; `None`: it is over.
async fn next_state(
    db: &Db,
    space: Space,
    watched: &WatchedKeys,
    seen: Option<&[Option<SmallBytes>]>,
) -> anyhow::Result<Option<Vec<Option<SmallBytes>>>> {
    let db = db.read_only();
    loop {
        let until = watched.until.filter(|_| seen.is_some());
        let now = Instant::now();
        let left = until.map_or(SLEEPS, |until| until.saturating_duration_since(now));
        if left.is_zero() {
            return Ok(None);
        }
        let (keys, seen) = (watched.keys.clone(), seen.map(<[_]>::to_vec));
        let read = async move |tx: &Tx| {
            let found = tx.get_many(space, keys.clone()).await?;
            if seen.as_ref() == Some(&found) { tx.retry() } else { Ok(found) }
        };
        match db.clone().timeout(left.min(SLEEPS)).transact(read).await {
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use muesli::Options;

    use super::*;
    use crate::shell::tokens::commands;

    #[test]
    fn ctrl_c_ends_a_watch_and_not_the_shell() {
        let db = Db::open(Options::default()).unwrap();
        let mut session = ShellSession::new(db, Vec::new(), "score".to_owned(), false);
        session.create(&commands("notes").unwrap()[0]).unwrap();
        session.interrupt = Some(TypedInterrupt::begin().unwrap());
        let (typed, is_over) = (session.interrupt.as_ref().unwrap().flag(), Arc::default());
        let over = Arc::clone(&is_over);
        let typing = thread::spawn(move || {
            while !AtomicBool::load(&over, Ordering::Relaxed) {
                typed.store(true, Ordering::Relaxed);
                thread::sleep(Duration::from_millis(5));
            }
        });
        assert!(watch(&session, &commands("a b").unwrap()[0]).unwrap());
        is_over.store(true, Ordering::Relaxed);
        typing.join().unwrap();
    }
}
