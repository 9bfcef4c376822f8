//! Partitions follow their use while servers run (`follow_every_s`): what `muesli partition watch
//! --apply` does, by the servers themselves. The one with the lowest number among those that answer
//! does it; the others look whether they are that one.

use std::thread;
use std::time::Duration;

use muesli::Connect;
use muesli_core::NodeId;
use muesli_placement::online::{FollowDecision, MoveTerms};

use super::announce::announce;
use crate::config::Config;
use crate::partition::online::{FollowedCluster, LiveCluster, PeriodEvent};

/// Begins to follow, if that is configured; this server answers at `address`.
pub fn serve(config: &Config, address: &str) {
    let follow = &config.follow;
    if follow.every.is_zero() {
        return;
    }
    let terms = MoveTerms {
        rows_most: follow.rows_most,
        ms_most: follow.ms_most as f64,
        ..MoveTerms::default()
    };
    let mut follower = ServerFollower {
        every: follow.every,
        own: NodeId(config.server.node.0 * config.loops as u32),
        connect: Connect {
            addresses: vec![address.to_owned()],
            cluster: config.server.cluster.0,
            protocol: config.server.protocol.clone(),
            secret: config.server.secret.clone(),
            ..Connect::default()
        },
        terms,
        is_in_charge: false,
        period: 0,
        said: String::new(),
    };
    thread::spawn(move || follower.run());
}

/// A server that looks whether it is to move partitions, and does.
struct ServerFollower {
    every: Duration,
    /// This server's first loop.
    own: NodeId,
    connect: Connect,
    terms: MoveTerms,
    /// Whether it was the one that moves partitions in the last period.
    is_in_charge: bool,
    period: u64,
    /// The last thing that failed, which is not said again and again.
    said: String,
}

impl ServerFollower {
    /// For as long as the process runs.
    fn run(&mut self) {
        let mut followed = None;
        loop {
            thread::sleep(self.every);
            self.period += 1;
            if let Err(error) = self.end_period(&mut followed) {
                self.tell(&PeriodEvent::Failed { error: &error });
            }
        }
    }

    fn end_period(&mut self, followed: &mut Option<FollowedCluster>) -> anyhow::Result<()> {
        let Some(followed) = followed else {
            let cluster = LiveCluster::with(self.connect.clone())?;
            // Where partitions cannot move this says why.
            cluster.partitions()?;
            *followed = Some(FollowedCluster::begin(cluster, self.terms.clone(), true)?);
            return Ok(());
        };
        let was_in_charge = self.is_in_charge;
        self.is_in_charge = followed.lowest_that_answers()? == Some(self.own);
        match (was_in_charge, self.is_in_charge) {
            (true, true) => followed.end_period(&mut |event| self.tell(event)),
            (false, true) => followed.begin_again()?,
            (_, false) => {}
        }
        Ok(())
    }

    /// Says what was done, and what fails for the first time.
    fn tell(&mut self, event: &PeriodEvent<'_>) {
        let is_told = match event {
            PeriodEvent::Decided { decided, .. } => {
                self.said.clear();
                matches!(decided, FollowDecision::Apply { .. } | FollowDecision::Undo { .. })
            }
            PeriodEvent::Moved { .. } => true,
            PeriodEvent::Failed { error } => {
                let text = format!("{error:#}");
                let is_new = self.said != text;
                self.said = text;
                is_new
            }
        };
        if is_told {
            let line = event.line(self.period, true);
            announce(&format!("partitions follow their use: {}", line.trim_start()));
        }
    }
}
