//! Partitions follow their use while servers run (`follow_every_s`): what `muesli partition watch
//! --apply` does, by the servers themselves. The one with the lowest number of those that have not
//! left the cluster does it; the others look whether they are that one.

use std::thread;
use std::time::Duration;

use anyhow::Context;
use muesli::Connect;
use muesli_placement::online::{FollowDecision, MoveTerms};

use super::announce::announce;
use crate::config::Config;
use crate::partition::online::{FollowedCluster, LiveCluster, PeriodEvent, servers_of};

/// Begins to follow, if that is configured; this server answers at `address`.
///
/// # Errors
/// An address has no port.
pub fn serve(config: &Config, address: &str) -> anyhow::Result<()> {
    let follow = &config.follow;
    if follow.every.is_zero() {
        return Ok(());
    }
    let terms = MoveTerms {
        rows_most: follow.rows_most,
        ms_most: follow.ms_most as f64,
        ..MoveTerms::default()
    };
    let (own, loops) = (config.server.node.0, config.loops.max(1) as u32);
    // Where others reach this server need not be where it reaches itself.
    let elsewhere = config.server.dial.iter().map(|(node, at)| (node.0, &**at));
    let mut dial = Vec::new();
    for (process, at) in elsewhere.filter(|(it, _)| *it != own).chain([(own, address)]) {
        for number in 0..loops {
            dial.push((process * loops + number, of_loop(at, number)?));
        }
    }
    let mut follower = ServerFollower {
        every: follow.every,
        own,
        loops,
        connect: Connect {
            addresses: vec![address.to_owned()],
            dial,
            cluster: config.server.cluster.0,
            protocol: config.server.protocol.clone(),
            secret: config.server.secret.clone(),
            ..Connect::default()
        },
        terms,
        followed: None,
        period: 0,
        last_failure: String::new(),
    };
    thread::spawn(move || follower.run());
    Ok(())
}

/// Where a loop of a process answers whose first one answers at `address`.
fn of_loop(address: &str, number: u32) -> anyhow::Result<String> {
    let parts = address.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
    let (host, port): (&str, u32) = parts.with_context(|| format!("`{address}` has no port"))?;
    Ok(format!("{host}:{}", port + number))
}

/// A server that looks whether it is to move partitions, and does.
struct ServerFollower {
    every: Duration,
    /// This server's number, and how many loops each server has.
    own: u32,
    loops: u32,
    connect: Connect,
    terms: MoveTerms,
    /// While it is the one that moves partitions.
    followed: Option<FollowedCluster>,
    period: u64,
    /// What has failed in the last period, which is not said again.
    last_failure: String,
}

impl ServerFollower {
    /// For as long as the process runs.
    fn run(&mut self) {
        loop {
            thread::sleep(self.every);
            self.period += 1;
            let failed_before = std::mem::take(&mut self.last_failure);
            let mut followed = self.followed.take();
            let is_kept = self.end_period(&mut followed, &failed_before);
            match is_kept {
                Ok(true) => self.followed = followed,
                Ok(false) => {}
                Err(error) => self.tell(&PeriodEvent::Failed { error: &error }, &failed_before),
            }
        }
    }

    /// Ends a period, or begins the first one; whether it is the one that moves partitions.
    fn end_period(
        &mut self,
        followed: &mut Option<FollowedCluster>,
        failed_before: &str,
    ) -> anyhow::Result<bool> {
        let servers = servers_of(&self.connect.addresses, &self.connect.dial)?;
        if servers.first().is_none_or(|(lowest, _)| lowest.0 / self.loops != self.own) {
            return Ok(false);
        }
        match followed {
            Some(followed) => followed.end_period(&mut |event| self.tell(event, failed_before)),
            None => {
                let cluster = LiveCluster::with(self.connect.clone())?;
                // Where partitions cannot move this says why.
                cluster.partitions()?;
                *followed = Some(FollowedCluster::begin(cluster, self.terms, true)?);
            }
        }
        Ok(true)
    }

    /// Says what was done, and what fails and has not in the period before.
    fn tell(&mut self, event: &PeriodEvent<'_>, failed_before: &str) {
        let is_shown = match event {
            PeriodEvent::Decided { decided, .. } => {
                matches!(decided, FollowDecision::Apply { .. } | FollowDecision::Undo { .. })
            }
            PeriodEvent::Moved { .. } => true,
            PeriodEvent::Failed { error } => {
                self.last_failure = format!("{error:#}");
                self.last_failure != failed_before
            }
        };
        if is_shown {
            let line = event.line(self.period, true);
            announce(&format!("partitions follow their use: {}", line.trim_start()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_answer_at_ports_that_are_counted_up() {
        assert_eq!(of_loop("[::1]:7400", 2).unwrap(), "[::1]:7402");
        assert!(of_loop("host", 0).unwrap_err().to_string().contains("`host` has no port"));
    }
}
