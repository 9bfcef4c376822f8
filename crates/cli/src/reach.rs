//! The way to servers that run already: all commands with `--connect` wait for them alike, say so
//! alike, and fail alike.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

use anyhow::bail;
use muesli::{Connect, Db};
use muesli_cluster::lifecycle::visit::{Visit, VisitError};

/// How long a server may take to answer.
pub const WITHIN: Duration = Duration::from_secs(1);
/// How long servers are waited for of which none answers: as [`Connect`] waits.
const PATIENCE: Duration = Duration::from_secs(5);
/// Whoever waits for so long is told for what.
const REPORT_AFTER: Duration = Duration::from_millis(500);
/// How often is looked.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The addresses of `--connect`, with commas between.
pub fn addresses(text: &str) -> Vec<String> {
    text.split(',').map(|address| address.trim().to_owned()).collect()
}

/// A database on servers of a cluster, which gives up what is not answered for so long.
///
/// # Errors
/// What the connection says.
pub fn connect(
    addresses: &[String],
    protocol: &str,
    give_up_after: Duration,
) -> Result<Db, muesli::Error> {
    Db::connect_with(Connect {
        addresses: addresses.to_vec(),
        protocol: protocol.to_owned(),
        give_up_after,
        ..Connect::default()
    })
}

/// Visits the first server that answers, and waits until one does. Servers that are just being
/// started are found; one that refuses is not asked again.
///
/// # Errors
/// None of them answers for five seconds, or all that do refuse.
pub fn first(addresses: &[String]) -> anyhow::Result<Visit> {
    let (begun, all) = (Instant::now(), addresses.join(", "));
    let mut is_reported = false;
    loop {
        let (mut trouble, mut may_come) = ("no address was given".to_owned(), false);
        for address in addresses {
            match Visit::begin(address, WITHIN) {
                Ok(visit) => return Ok(visit),
                Err(error) => {
                    may_come |= matches!(error, VisitError::Io { .. });
                    trouble = error.to_string();
                }
            }
        }
        if !may_come {
            bail!("no server of {all} answers: {trouble}");
        }
        if begun.elapsed() >= PATIENCE {
            let within = PATIENCE.as_millis();
            bail!("no server of {all} answered within {within} ms: {trouble}");
        }
        if !is_reported && begun.elapsed() >= REPORT_AFTER && stderr().is_terminal() {
            is_reported = true;
            // A reader that has gone away is no matter.
            let _ = writeln!(stderr(), "waiting for a server at {all} ...");
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_stand_between_commas() {
        assert_eq!(addresses("a:1, b:2"), ["a:1", "b:2"]);
        assert!(first(&[]).is_err_and(|error| error.to_string().contains("no address was given")));
    }
}
