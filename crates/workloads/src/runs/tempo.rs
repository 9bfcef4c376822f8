//! How often nodes of a simulated run do what they do once in a while.

use muesli_core::{Nanos, Pace, Settings};
use muesli_sim::time::Span;

use crate::chance::Chance;

/// How often nodes do what they do once in a while, and how long they wait. Short runs show what
/// comes of it only where it is more often than in production.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tempo {
    /// How often nodes tell their oldest snapshot.
    pub gossip_every: Span,
    /// After how long a silent node's snapshots do not count any more.
    pub snapshot_lease: Span,
    /// After how long an open transaction's snapshot does not count any more.
    pub snapshot_age_max: Span,
    /// After how long a silent client is forgotten, where clients come and go.
    pub client_lease: Span,
    /// After how long an operation without an answer fails.
    pub give_up_after: Span,
    /// After how long a transaction is finished without its coordinator.
    pub in_doubt_after: Span,
    /// After how much work what need not be done at once is done.
    pub pace: Pace,
}

impl Tempo {
    /// Makes it so.
    pub fn set(&self, settings: &mut Settings) {
        let nanos = |span: Span| Nanos(span.as_nanos());
        settings.gossip_every = nanos(self.gossip_every);
        settings.snapshot_lease = nanos(self.snapshot_lease);
        settings.snapshot_age_max = nanos(self.snapshot_age_max);
        settings.client_lease = nanos(self.client_lease);
        settings.give_up_after = nanos(self.give_up_after);
        settings.in_doubt_after = nanos(self.in_doubt_after);
        settings.pace = self.pace;
    }

    /// A transaction that is open for so long has no snapshot any more that anybody keeps versions
    /// for, and its node has said so.
    pub fn outlives_snapshots(&self) -> Span {
        self.snapshot_age_max + self.gossip_every.times(4)
    }

    /// For a run of this length: garbage is collected as often as in production or far more often,
    /// and what nodes wait for is over in the run.
    pub fn draw(chance: &mut Chance, run: Span) -> Tempo {
        let part = |chance: &mut Chance, least: Span, most: Span, parts: (u64, u64)| {
            let drawn = run.as_nanos() / chance.between(parts.0, parts.1);
            Span::from_nanos(drawn).max(least).min(most)
        };
        let millis = Span::from_millis;
        let often = chance.below(2) == 0;
        let (gossip_every, pace) = match often {
            false => (millis(5), Pace::default()),
            true => {
                let gossip = Span::from_micros(chance.between(100, 2_000));
                let upper_bound_steps = 1 << chance.between(1, 20);
                let (collect, low) = (chance.between(1, 8) as u32, chance.between(1, 32) as u32);
                let tell_bound_after = chance.between(1, 32);
                let pace = Pace {
                    collect_after: collect,
                    log_low_after: low,
                    tell_bound_after,
                    upper_bound_steps,
                };
                (gossip, pace)
            }
        };
        let usual = |time: Nanos| Span::from_nanos(time.0);
        let waits = Settings::default();
        let snapshot_lease = part(chance, millis(20), usual(waits.snapshot_lease), (3, 20));
        let give_up_after = part(chance, millis(30), usual(waits.give_up_after), (2, 8));
        let in_doubt_after = part(chance, millis(10), usual(waits.in_doubt_after), (4, 40));
        let snapshot_age_max = part(chance, millis(10), usual(waits.snapshot_age_max), (4, 40));
        // Whoever is forgotten must have given up: its requests would be taken up anew.
        let silence = part(chance, millis(10), usual(waits.client_lease), (4, 40));
        let client_lease = give_up_after + silence;
        Tempo {
            gossip_every,
            snapshot_lease,
            snapshot_age_max,
            client_lease,
            give_up_after,
            in_doubt_after,
            pace,
        }
    }
}
