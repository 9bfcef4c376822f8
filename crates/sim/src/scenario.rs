//! A scenario: the options of a simulated run, as a command line gives them.
//!
//! It prints as the one command that repeats the run. The plan of faults is drawn from the seed,
//! so it is named only if it was given; a failing run can be cut down by [`Scenario::shrunk`] and
//! then names what is left of its plan.

use std::fmt;

use crate::fault::FaultKinds;
use crate::plan::{Plan, PlanShape};
use crate::random::Seed;
use crate::time::{Span, VirtualTime};

/// What is run. Two runs of one scenario are the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// The protocol, by name.
    pub protocol: String,
    /// What the clients do, by name.
    pub workload: String,
    /// Where all chance comes from.
    pub seed: Seed,
    /// How many nodes there are.
    pub nodes: u32,
    /// How many repositories hold each key.
    pub replicas: u32,
    /// How many clients there are in all.
    pub clients: u32,
    /// How long clients begin new transactions, and by when all faults are repaired.
    pub time: Span,
    /// The kinds of faults that are drawn.
    pub faults: FaultKinds,
    /// How many faults are drawn at most.
    pub faults_max: u32,
    /// The plan of faults, if it is not to be drawn.
    pub plan: Option<Plan>,
}

impl Scenario {
    /// The plan: the one given, or else the one that the seed draws.
    pub fn plan(&self) -> Plan {
        let drawn = || {
            let shape = PlanShape {
                nodes: self.nodes,
                clients: self.clients,
                horizon: VirtualTime::ZERO + self.time,
                kinds: self.faults.clone(),
                faults_max: self.faults_max,
            };
            shape.draw(self.seed)
        };
        self.plan.clone().unwrap_or_else(drawn)
    }

    /// The same scenario with as few faults as still make it fail: faults are left out one after
    /// the other, as long as the run without them fails as well.
    pub fn shrunk(&self, mut fails: impl FnMut(&Scenario) -> bool) -> Scenario {
        let mut smallest = Scenario { plan: Some(self.plan()), ..self.clone() };
        let mut place = self.plan().faults().len();
        while place > 0 {
            place -= 1;
            let fewer = Scenario { plan: Some(smallest.plan().without(place)), ..smallest.clone() };
            if fails(&fewer) {
                smallest = fewer;
            }
        }
        smallest
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Scenario { protocol, workload, seed, nodes, replicas, clients, .. } = self;
        write!(out, "muesli sim --protocol {protocol} --workload {workload} --seed {seed}")?;
        write!(out, " --nodes {nodes} --replicas {replicas} --clients {clients}")?;
        write!(out, " --time {}", self.time)?;
        match &self.plan {
            Some(plan) => write!(out, " --plan '{plan}'"),
            None => write!(out, " --faults {} --faults-max {}", self.faults, self.faults_max),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::Fault;

    fn scenario() -> Scenario {
        Scenario {
            protocol: "score".into(),
            workload: "bank".into(),
            seed: Seed::new(7),
            nodes: 4,
            replicas: 2,
            clients: 8,
            time: Span::from_secs(8),
            faults: FaultKinds::all(),
            faults_max: 12,
            plan: None,
        }
    }

    #[test]
    fn prints_the_command_that_repeats_it() {
        let command = "muesli sim --protocol score --workload bank --seed 7 --nodes 4 --replicas 2 \
                       --clients 8 --time 8s --faults all --faults-max 12";
        assert_eq!(scenario().to_string(), command);
        let plan = "horizon 8s; 1s+1s crash n1";
        let given = Scenario { plan: plan.parse().ok(), ..scenario() };
        assert!(given.to_string().ends_with(" --time 8s --plan 'horizon 8s; 1s+1s crash n1'"));
        assert_eq!(given.plan().to_string(), plan);
    }

    #[test]
    fn shrinking_leaves_the_faults_that_matter() {
        let crashes = |scenario: &Scenario| {
            let plan = scenario.plan();
            plan.faults().iter().filter(|timed| matches!(timed.fault, Fault::Crash(_))).count()
        };
        let failing = (0..).map(|seed| Scenario { seed: Seed::new(seed), ..scenario() });
        let failing =
            failing.into_iter().find(|it| crashes(it) >= 2 && it.plan().faults().len() > 4);
        let failing = failing.expect("some seed draws two crashes among other faults");
        let shrunk = failing.shrunk(|fewer| crashes(fewer) >= 1);
        assert_eq!((crashes(&shrunk), shrunk.plan().faults().len()), (1, 1));
        assert!(failing.plan().faults().contains(&shrunk.plan().faults()[0]));
    }
}
