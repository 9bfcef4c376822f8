//! What is ordered, and how fast it is asked for.

use muesli_broadcast::{BatchLimits, BroadcastChoice, BroadcastSettings, Command, ObjectSet};
use muesli_core::Nanos;
use muesli_sim::random::Random;
use thiserror::Error;

/// Objects of a node that one command of the preparation touches.
const PREPARED_AT_ONCE: u64 = 256;

/// Commands, and clients that issue them (Turcu 2015, section 10.3).
///
/// Each node has clients. A client issues a command, sleeps for its think time, and issues the next
/// one, whether the first has come to its end or not; while a node has as many commands in flight
/// as it may have, its clients skip theirs. Without a think time a node issues a command whenever
/// it may: that is the most that it can have ordered.
#[derive(Clone, Debug, PartialEq)]
pub struct CommandLoad {
    /// How many nodes there are, each a member.
    pub nodes: usize,
    /// How many clients each has.
    pub clients: u32,
    /// How long a client sleeps after each command.
    pub think: Nanos,
    /// How many commands a node has in flight at most.
    pub limit: usize,
    /// How many bytes a command says.
    pub payload: usize,
    /// How many objects each node has.
    pub objects: u64,
    /// The share of simple commands that are of an object of their own node, in percent; others are
    /// of one of another node.
    pub locality: f64,
    /// The share of commands that are of two objects, one of their own node and one of another, in
    /// percent.
    pub complex: f64,
}

/// A run: which broadcast, what it orders, for how long.
#[derive(Clone, Debug, PartialEq)]
pub struct CommandPlan {
    /// Which broadcast.
    pub broadcast: BroadcastChoice,
    /// What it orders.
    pub load: CommandLoad,
    /// So many commands of a node are ordered as one at most (1: each by itself).
    pub batch: usize,
    /// So many of these are under way at once.
    pub batches: usize,
    /// Whether what is to be sent to a member leaves in one packet, as far as it has gathered
    /// there; else each message is a packet.
    pub batching: bool,
    /// How many cores a node has, in the simulator.
    pub cores: usize,
    /// What is not answered in so long is said again; other times of members are as they are by
    /// default.
    pub retry_after: Nanos,
    /// How long clients run before they are measured, and then.
    pub warm_up: Nanos,
    /// How long they are measured.
    pub measured: Nanos,
    /// They stop earlier once so many commands were measured.
    pub most: u64,
    /// Where chance comes from.
    pub seed: u64,
}

impl Default for CommandPlan {
    fn default() -> CommandPlan {
        CommandPlan {
            broadcast: BroadcastChoice::default(),
            load: CommandLoad {
                nodes: 3,
                clients: 64,
                think: Nanos(0),
                limit: 64,
                payload: 16,
                objects: 100,
                locality: 100.0,
                complex: 0.0,
            },
            batch: 1,
            batches: BatchLimits::default().open,
            batching: true,
            cores: 4,
            retry_after: BroadcastSettings::default().retry_after,
            warm_up: Nanos::from_millis(20),
            measured: Nanos::from_millis(200),
            most: 100_000,
            seed: 1,
        }
    }
}

/// A plan that cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoPlan {
    /// A number that cannot be.
    #[error("{name} {found} cannot be; allowed are {allowed}")]
    Number {
        /// Of what.
        name: &'static str,
        /// The number.
        found: String,
        /// Which ones can be.
        allowed: String,
    },
    /// No change of a plan.
    #[error("`{text}` is no parameter of commands: expected NAME=VALUE with a name of {names}")]
    Parameter {
        /// What was given.
        text: String,
        /// The names.
        names: String,
    },
    /// There is no such broadcast.
    #[error("no broadcast is called `{name}`; there are: {known}")]
    Broadcast {
        /// What was asked for.
        name: String,
        /// The names.
        known: String,
    },
}

/// What can be changed of a plan by its name, with what it is.
pub const PARAMETERS: &[(&str, &str)] = &[
    ("payload", "bytes of a command"),
    (
        "think-us",
        "microseconds that a client sleeps after each command; 0: as fast as the limit lets",
    ),
    ("limit", "commands that a node has in flight at most"),
    ("locality", "share of simple commands on objects of their own node, in percent"),
    ("complex", "share of commands on two objects, one of them of another node, in percent"),
    ("objects", "objects of each node"),
    ("batch", "commands of a node that are ordered as one at most; 1: each by itself"),
    ("batches", "these that a node has under way at most"),
    ("batching", "whether messages to one member share packets: true or false"),
    ("cores", "cores of a node, in the simulator"),
    ("retry-ms", "what is not answered in so many milliseconds is said again"),
    ("most", "clients stop after so many measured commands"),
];

impl CommandPlan {
    /// Changes what `name=value` names.
    ///
    /// # Errors
    /// Nothing is called so, or it cannot have this value.
    pub fn change(&mut self, text: &str) -> Result<(), NoPlan> {
        let wrong = || NoPlan::Parameter {
            text: text.to_owned(),
            names: PARAMETERS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", "),
        };
        let (name, value) = text.split_once('=').ok_or_else(wrong)?;
        if name == "batching" {
            self.batching = value.parse().map_err(|_| wrong())?;
            return Ok(());
        }
        let number: f64 = value.parse().map_err(|_| wrong())?;
        if !(0.0..=1e9).contains(&number) {
            return Err(wrong());
        }
        let load = &mut self.load;
        match name {
            "payload" => load.payload = number as usize,
            "think-us" => load.think = Nanos((number * 1e3) as u64),
            "limit" => load.limit = number as usize,
            "locality" => load.locality = number,
            "complex" => load.complex = number,
            "objects" => load.objects = number as u64,
            "batch" => self.batch = number as usize,
            "batches" => self.batches = number as usize,
            "cores" => self.cores = number as usize,
            "retry-ms" => self.retry_after = Nanos((number * 1e6) as u64),
            "most" => self.most = number as u64,
            _ => return Err(wrong()),
        }
        Ok(())
    }

    /// The choice of a broadcast by its name.
    ///
    /// # Errors
    /// There is none.
    pub fn broadcast(name: &str) -> Result<BroadcastChoice, NoPlan> {
        BroadcastChoice::named(name).ok_or_else(|| {
            let known = BroadcastChoice::all().into_iter().map(|(name, _)| name);
            let known = known.collect::<Vec<_>>().join(", ");
            NoPlan::Broadcast { name: name.to_owned(), known }
        })
    }

    /// Whether it can be run.
    ///
    /// # Errors
    /// It cannot, for this reason.
    pub fn check(&self) -> Result<(), NoPlan> {
        let load = &self.load;
        let within = |name, found: u64, least: u64, most: u64| {
            let allowed = format!("{least} to {most}");
            let number = NoPlan::Number { name, found: found.to_string(), allowed };
            if (least..=most).contains(&found) { Ok(()) } else { Err(number) }
        };
        within("nodes", load.nodes as u64, 1, 99)?;
        within("clients", u64::from(load.clients), 1, 10_000)?;
        within("limit", load.limit as u64, 1, 100_000)?;
        within("payload", load.payload as u64, 0, 65_536)?;
        within("objects", load.objects, 1, 100_000)?;
        within("commands of a batch", self.batch as u64, 1, 10_000)?;
        within("batches", self.batches as u64, 1, 1_000)?;
        within("cores", self.cores as u64, 1, 1_024)?;
        within("think time (ns)", load.think.0, 0, 60_000_000_000)?;
        within("most commands", self.most, 1, 100_000_000)?;
        within("retry (ns)", self.retry_after.0, 1_000_000, 60_000_000_000)?;
        within("measured time (ns)", self.measured.0, 1, 3_600_000_000_000)?;
        within("warm-up (ns)", self.warm_up.0, 0, 3_600_000_000_000)?;
        for (name, share) in [("locality", load.locality), ("complex", load.complex)] {
            let allowed = "0 to 100 percent".to_owned();
            if !(0.0..=100.0).contains(&share) {
                return Err(NoPlan::Number { name, found: share.to_string(), allowed });
            }
        }
        if load.nodes == 1 && (load.locality < 100.0 || load.complex > 0.0) {
            let allowed = "locality 100 and complex 0 where there is no other node".to_owned();
            return Err(NoPlan::Number { name: "nodes", found: "1".to_owned(), allowed });
        }
        Ok(())
    }

    /// The times of members.
    pub fn settings(&self) -> BroadcastSettings {
        BroadcastSettings { retry_after: self.retry_after, ..BroadcastSettings::default() }
    }
}

impl CommandLoad {
    /// How many objects there are, of all nodes; their numbers are from 0.
    pub fn all_objects(&self) -> u64 {
        self.objects * self.nodes as u64
    }

    /// Commands by which a node first touches all of its objects, so that what is measured is how a
    /// broadcast goes on, and not how it begins.
    pub fn preparation(&self, node: usize) -> Vec<Command> {
        let (first, end) = (node as u64 * self.objects, (node as u64 + 1) * self.objects);
        let starts = (first..end).step_by(PREPARED_AT_ONCE as usize);
        starts.map(|start| self.command(start..end.min(start + PREPARED_AT_ONCE))).collect()
    }

    /// The next command of a node.
    pub fn draw(&self, node: usize, random: &mut Random) -> Command {
        let is_complex = self.complex > 0.0 && random.chance(self.complex / 100.0);
        let is_local = self.locality >= 100.0 || random.chance(self.locality / 100.0);
        match (is_complex, is_local) {
            (true, _) => self.command([self.own(node, random), self.other(node, random)]),
            (false, true) => self.command([self.own(node, random)]),
            (false, false) => self.command([self.other(node, random)]),
        }
    }

    fn own(&self, node: usize, random: &mut Random) -> u64 {
        node as u64 * self.objects + random.below(self.objects)
    }

    fn other(&self, node: usize, random: &mut Random) -> u64 {
        let step = 1 + random.below(self.nodes as u64 - 1);
        let other = (node as u64 + step) % self.nodes as u64;
        self.own(other as usize, random)
    }

    fn command(&self, objects: impl IntoIterator<Item = u64>) -> Command {
        Command {
            objects: ObjectSet::writes(objects).into(),
            payload: vec![7; self.payload].into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use muesli_sim::random::Seed;

    use super::*;

    fn load() -> CommandLoad {
        CommandLoad { nodes: 3, objects: 10, ..CommandPlan::default().load }
    }

    #[test]
    fn commands_touch_what_their_shares_say() {
        let numbers = |load: &CommandLoad| -> Vec<Vec<u64>> {
            let mut random = Seed::new(1).stream();
            let draw = |_| load.draw(1, &mut random).objects.iter().map(|it| it.number).collect();
            (0..1_000).map(draw).collect()
        };
        let own = |number: &u64| (10..20).contains(number);
        assert!(numbers(&load()).iter().all(|it| it.len() == 1 && own(&it[0])));
        let remote = CommandLoad { locality: 0.0, ..load() };
        assert!(numbers(&remote).iter().all(|it| it.len() == 1 && !own(&it[0])));
        let complex = CommandLoad { complex: 50.0, ..load() };
        let two = numbers(&complex).into_iter().filter(|it| it.len() == 2).collect::<Vec<_>>();
        assert!((400..600).contains(&two.len()), "{}", two.len());
        assert!(two.iter().all(|it| it.iter().filter(|number| own(number)).count() == 1));
        let many = CommandLoad { objects: 600, ..load() };
        let prepared = many.preparation(2);
        assert_eq!(prepared.iter().map(|it| it.objects.len()).collect::<Vec<_>>(), [256, 256, 88]);
        assert_eq!(prepared[2].objects.iter().last().map(|it| it.number), Some(1_799));
    }

    #[test]
    fn a_plan_that_cannot_be_says_what_can() {
        let changed = |text: &str| {
            let mut plan = CommandPlan::default();
            plan.change(text).and_then(|()| plan.check()).map_err(|it| it.to_string())
        };
        assert_eq!(changed("complex=50"), Ok(()));
        assert!(changed("complex=101").unwrap_err().contains("0 to 100 percent"));
        assert!(changed("batch=0").unwrap_err().contains("1 to 10000"));
        assert!(changed("limit=0").unwrap_err().contains("1 to 100000"));
        assert!(changed("colour=1").unwrap_err().contains("locality, complex"));
        let alone = CommandPlan {
            load: CommandLoad { nodes: 1, complex: 1.0, ..load() },
            ..CommandPlan::default()
        };
        assert!(alone.check().unwrap_err().to_string().contains("no other node"));
        let unknown = CommandPlan::broadcast("paxos").unwrap_err().to_string();
        for (name, _) in BroadcastChoice::all() {
            assert!(unknown.contains(name) && CommandPlan::broadcast(name).is_ok());
        }
    }
}
