//! What simulated nodes run on: their processor and their network.
//!
//! [`MachineModel::measured`] is this project's own node on the machine where it was calibrated.
//! The others stand for the clusters of papers, so that their figures can be set beside ours.
//! The papers name processors and networks and print no costs, so the costs here are **estimates,
//! made before any figure was run and not fitted to one**:
//!
//! * A message costs about 100 µs of a 2.13 GHz core, both ends together: what a remote call
//!   through a Java group-communication stack of that time costs in marshalling, system calls and
//!   handing over between threads. Touching a key costs a few microseconds.
//! * One way over gigabit Ethernet between virtual machines takes about 100 µs and an exponential
//!   tail of 50 µs; between physical ones 50 µs and 25 µs. A channel carries 125 MB/s.
//! * A node's times (when a request is repeated, a lock given up, the oldest snapshot told) are
//!   meant for messages of microseconds. Where messages cost fifty times that, they are longer.
//! * Granola's repositories are lean C++ and Java over a network library of their own: a message
//!   costs 11 µs, both ends together. This one is fitted, to the 60 000 transactions a second of
//!   one repository (figure 6.2); running a procedure costs 1.5 µs a key read or written, and a
//!   lock and its undo record as much as either, as the thesis says of its TPC-C (section 6.7.1).
//!   Its log is a group of replicas: a sync takes as long as a round trip to them, and the next
//!   batch does not wait for it.
//! * A data node of Amaro's thesis is Riak in Erlang on two virtual cores, which are a core and a
//!   half of 2.3 GHz: a message that is alone in its packet costs as much of it as Java's, nine
//!   tenths of that for the packet, and one for the message. Its root has four cores, and every one
//!   of them works as fast as a data node, whose data has one thread. What is fitted is how long
//!   messages are under way beyond the 100 µs between virtual machines, at random: 1.4 ms, so that
//!   two-phase commit takes 33 ms with 100 clients (section 4.2.2). Waits in queues of the runtime
//!   that take no processor's time must be meant by that.
//! * A node is one server. Where it has several cores its work goes as many times as fast as
//!   client threads and the stack can use at once; that makes single steps faster than they were.
//!
//! Only ratios between protocols on one machine are compared with the papers'; absolute figures
//! say no more than that the estimates are of the right size.

pub mod cores;
pub mod geography;
pub mod racks;

use std::time::Duration;

use muesli::Retry;
use muesli_core::{Nanos, Settings};
use muesli_sim::hardware::costs::Costs;
use muesli_sim::hardware::disk::DiskSpeed;
use muesli_sim::latency::Latency;
use muesli_sim::network::topology::ChannelClass;
use muesli_sim::time::Span;
use thiserror::Error;

use geography::Geography;
use racks::RackModel;

/// A kind of node with its network.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineModel {
    /// What it is, in a few words.
    pub about: &'static str,
    /// What its work costs.
    pub costs: Costs,
    /// What work costs on nodes that have validators and no data; `None`: the same.
    pub validator_costs: Option<Costs>,
    /// How far it is from any other.
    pub network: ChannelClass,
    /// Which of them share links to all others.
    pub racks: RackModel,
    /// How many nodes with data are cores of one machine; 0 or 1: each is a machine.
    pub cores: usize,
    /// The sites at which they are in turn, far from each other; `None`: they are at one.
    pub geography: Option<Geography>,
    /// The times of nodes are so many times their usual ones.
    pub patience: u64,
    /// Clients run on so many nodes of their own, without repositories; 0: beside these.
    pub client_nodes: usize,
    /// How fast what is done is made stable; `None`: it is not.
    pub log: Option<DiskSpeed>,
    /// How clients try again what met a conflict.
    pub retry: Retry,
    /// How long a prepare waits for a lock; `None`: as `patience` says.
    pub lock_wait: Option<Nanos>,
}

/// A change of a machine that cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{0}` is no change of a machine: expected one of pauses=true, pauses=false, model=NAME, and \
     lock-wait-ms=N, message-us=N, read-us=N, validate-us=N, tail-us=N, packet-us=N, patience=N, \
     rack-nodes=N, rack-packets=N, rack-mb=N, cores=N, core-us=N; a model is one of \
     measured, bumper-cluster, bumper-port, cloud-tm, hyflow, hyflow2-core, hyflow2-machine, \
     alvin-site, m2paxos-node, amaro-cluster, future-grid"
)]
pub struct NoChange(String);

/// With a random pause before each attempt that doubles up to 5 ms, a hundred times at most.
const WITH_PAUSES: Retry = Retry {
    attempts: 100,
    pause: Duration::from_micros(20),
    pause_max: Duration::from_millis(5),
    child_retries: 4,
};
/// At once, for as long as it takes.
const AT_ONCE: Retry = Retry {
    attempts: u32::MAX,
    pause: Duration::ZERO,
    pause_max: Duration::ZERO,
    child_retries: 4,
};

/// A machine's name, and what makes its model.
pub type NamedModel = (&'static str, fn() -> MachineModel);

/// The machines that figures are run on, by name.
pub const MODELS: &[NamedModel] = &[
    ("measured", MachineModel::measured),
    ("bumper-cluster", MachineModel::bumper_cluster),
    ("bumper-port", MachineModel::bumper_port),
    ("cloud-tm", MachineModel::cloud_tm),
    ("hyflow", MachineModel::hyflow),
    ("hyflow2-core", MachineModel::hyflow2_core),
    ("hyflow2-machine", MachineModel::hyflow2_machine),
    ("alvin-site", MachineModel::alvin_site),
    ("m2paxos-node", MachineModel::m2paxos_node),
    ("amaro-cluster", MachineModel::amaro_cluster),
    ("future-grid", MachineModel::future_grid),
];

impl MachineModel {
    /// The times of a node, as somebody who runs it on this machine would set them.
    pub fn set_times(&self, settings: &mut Settings) {
        // Locks are held for a few message times, not for the length of a gossip's round.
        let usual = Nanos(settings.lock_wait.0 * (self.patience / 10).max(1));
        settings.lock_wait = self.lock_wait.unwrap_or(usual);
        // Many nodes tell snapshots more seldom by themselves.
        settings.gossip_every = Nanos(settings.gossip_every.0 * (self.patience / 5).max(1));
        let times = [&mut settings.retry_after, &mut settings.in_doubt_after];
        times.into_iter().for_each(|time| *time = Nanos(time.0 * self.patience));
        self.geography.iter().for_each(|geography| geography.prepare(settings));
    }

    /// Changes one thing, given as `name=value`, to see what it decides: whether clients pause
    /// before they try again, how long a prepare waits for a lock, and what a message (both ends),
    /// reading a key, and validating it or looking up its read timestamp cost, and a packet (both
    /// ends); how long a message is under way on average beyond the least that it is; by how much
    /// the times of nodes are longer than usual; and how many nodes with data a rack has, with the
    /// packets and the megabytes a second of its links; and how many nodes with data are cores of
    /// one machine, with what it costs to hand something over to another one (both ends). Or takes
    /// another machine in its place, one of [`MODELS`], with `model=name`.
    ///
    /// # Errors
    /// There is no such change.
    pub fn change(&mut self, text: &str) -> Result<(), NoChange> {
        let wrong = || NoChange(text.to_owned());
        let (name, value) = text.split_once('=').ok_or_else(wrong)?;
        if name == "pauses" {
            let pauses: bool = value.parse().map_err(|_| wrong())?;
            self.retry = if pauses { WITH_PAUSES } else { AT_ONCE };
            return Ok(());
        }
        if name == "model" {
            let (_, model) = MODELS.iter().find(|(known, _)| *known == value).ok_or_else(wrong)?;
            *self = model();
            return Ok(());
        }
        let number: f64 = value.parse().map_err(|_| wrong())?;
        // Packets a second are millions; everything else is less.
        if !(0.0..=1e9).contains(&number) {
            return Err(wrong());
        }
        let micros = |micros: f64| Span::from_nanos((micros * 1e3) as u64);
        let costs = &mut self.costs;
        match name {
            "lock-wait-ms" => self.lock_wait = Some(Nanos((number * 1e6) as u64)),
            "message-us" => {
                (costs.receive, costs.send) = (micros(number * 0.55), micros(number * 0.45));
            }
            "packet-us" => {
                (costs.fetch, costs.flush) = (micros(number * 0.55), micros(number * 0.45));
            }
            "read-us" => costs.read = micros(number),
            "validate-us" => costs.validate = micros(number),
            "tail-us" => self.network.latency = self.network.latency.with_mean_tail(micros(number)),
            "patience" => self.patience = (number as u64).max(1),
            "cores" => self.cores = number as usize,
            "core-us" => costs.core = micros(number / 2.0),
            "rack-nodes" => self.racks.nodes = number as usize,
            "rack-packets" => self.racks.link.packets = number as u64,
            "rack-mb" => self.racks.link.bandwidth = (number * 1e6) as u64,
            _ => return Err(wrong()),
        }
        Ok(())
    }

    /// This project's own node, as calibrated, in one rack.
    pub fn measured() -> MachineModel {
        MachineModel {
            about: "Muesli's own node as calibrated, 10 Gbit/s",
            costs: Costs::measured(),
            validator_costs: None,
            racks: RackModel::default(),
            cores: 0,
            geography: None,
            network: channel(40, 20, 1_250_000_000),
            patience: 1,
            client_nodes: 0,
            log: None,
            retry: WITH_PAUSES,
            lock_wait: None,
        }
    }

    /// A node of Bumper's evaluation (section VI): a virtual machine with one core of a 2.13 GHz
    /// Xeon E5506, 160 of them over gigabit Ethernet.
    pub fn bumper_cluster() -> MachineModel {
        java_machine(
            "virtual machine, 1 core at 2.13 GHz, Java, gigabit Ethernet",
            1.0,
            channel(100, 50, 125_000_000),
        )
    }

    /// The same with clients that try again at once and never give up, as those of the benchmark
    /// port do.
    pub fn bumper_port() -> MachineModel {
        MachineModel { retry: AT_ONCE, ..MachineModel::bumper_cluster() }
    }

    /// A node of the Cloud-TM cluster (GMU, section VI): eight cores of 2.13 GHz Xeon E5506, of
    /// which four client threads keep about four busy, over gigabit Ethernet.
    pub fn cloud_tm() -> MachineModel {
        java_machine(
            "8 cores at 2.13 GHz, Java, gigabit Ethernet",
            0.25,
            channel(50, 25, 125_000_000),
        )
    }

    /// A node of the testbed of Turcu's dissertation (sections 4.3 and 5.3): one core of a 1.9 GHz
    /// Opteron, with links of a millisecond from end to end.
    pub fn hyflow() -> MachineModel {
        java_machine(
            "1 core at 1.9 GHz, Java, links of 1 ms",
            1.12,
            channel(1_000, 20, 125_000_000),
        )
    }

    /// A node of Hyflow2's first experiment (section 6.6): one of 48 cores of an Opteron, a process
    /// each, which reach each other over the loopback interface.
    pub fn hyflow2_core() -> MachineModel {
        java_machine(
            "1 of 48 cores at 1.9 GHz, Java, loopback",
            1.12,
            channel(20, 10, 1_250_000_000),
        )
    }

    /// A node of its second one: 24 cores of an Opteron, over gigabit Ethernet.
    pub fn hyflow2_machine() -> MachineModel {
        java_machine(
            "24 cores at 1.9 GHz, Java, gigabit Ethernet",
            1.12 / 24.0,
            channel(50, 25, 125_000_000),
        )
    }

    /// A node of Alvin's evaluation (Turcu 2015, section 9.4): a virtual machine of a cloud with
    /// eight cores, in Go, at one of seven sites. A message costs as much of a core as Go's network
    /// stack and encoding take together, about 20 µs both ends, and all of it goes eight times as
    /// fast.
    pub fn alvin_site() -> MachineModel {
        let span = |micros: f64| Span::from_nanos((micros * 1_000.0 / 8.0) as u64);
        let costs = Costs {
            tick: span(1.0),
            receive: span(11.0),
            send: span(9.0),
            operation: span(2.0),
            read: span(1.0),
            validate: span(1.0),
            install: span(2.0),
            byte_picos: 250,
            ..java(0.0)
        };
        let network = channel(250, 50, 125_000_000);
        let about = "virtual machine, 8 cores, Go, at seven regions of a cloud";
        let geography = Some(Geography::seven());
        MachineModel { costs, geography, ..java_machine(about, 1.0, network) }
    }

    /// A node of M²Paxos's evaluation (Turcu 2015, section 10.3): one of up to 49 virtual machines
    /// in one placement group of a cloud, whose network was measured at more than 7.9 Gbit/s a
    /// node. What its work costs is what Muesli's own costs as calibrated, not Go's; how far it is
    /// from the others is an estimate, made before any figure was run.
    pub fn m2paxos_node() -> MachineModel {
        MachineModel {
            about: "virtual machine of a placement group, 7.9 Gbit/s, Muesli's own costs",
            network: channel(75, 25, 987_500_000),
            ..MachineModel::measured()
        }
    }

    /// A repository of the Granola thesis (section 6.1.3): one core of a 3.2 GHz Xeon of 2005, ten
    /// machines with clients, gigabit Ethernet, and replication as far away as `replication`.
    pub fn granola_cluster(replication: Span) -> MachineModel {
        let (micros, sync) = (Span::from_micros, Latency::Constant(replication));
        MachineModel {
            about: "1 core at 3.2 GHz (2005), gigabit Ethernet, ten machines with clients",
            costs: Costs {
                tick: micros(1),
                fetch: Span::ZERO,
                flush: Span::ZERO,
                core: Span::ZERO,
                receive: micros(6),
                send: micros(5),
                operation: micros(1),
                read: Span::from_nanos(1_500),
                validate: Span::from_nanos(1_500),
                install: Span::from_nanos(1_500),
                log: micros(1),
                sync: replication,
                byte_picos: 2_000,
            },
            validator_costs: None,
            racks: RackModel::default(),
            cores: 0,
            geography: None,
            network: channel(70, 20, 125_000_000),
            patience: 10,
            client_nodes: 10,
            log: Some(DiskSpeed { sync, bandwidth: 0, at_once: IN_FLIGHT }),
            retry: WITH_PAUSES,
            lock_wait: None,
        }
    }

    /// A data node of the thesis on validation by a tree (Amaro 2018, section 4.1): a virtual
    /// machine with two cores of a cloud, Riak in Erlang, one thread for the data; a connection for
    /// each client; the root on a machine with four cores.
    pub fn amaro_cluster() -> MachineModel {
        MachineModel {
            about: "virtual machine, 2 cores (cloud), Erlang, one thread; the root on 4 cores",
            costs: erlang(1),
            validator_costs: Some(erlang(4)),
            racks: RackModel::default(),
            cores: 0,
            geography: None,
            network: channel(100, AMARO_TAIL, 250_000_000),
            patience: SLOW,
            client_nodes: 100,
            log: None,
            retry: WITH_PAUSES,
            lock_wait: None,
        }
    }

    /// A node of FutureGrid (GMU, section VI): a virtual machine with two cores of a 2.93 GHz
    /// Xeon X5570, one client thread, over gigabit Ethernet.
    pub fn future_grid() -> MachineModel {
        java_machine(
            "virtual machine, 2 cores at 2.93 GHz, Java, gigabit Ethernet",
            2.13 / 2.93 / 1.5,
            channel(100, 50, 125_000_000),
        )
    }
}

/// A machine that runs the papers' Java, by how much of a core's time an operation takes.
fn java_machine(about: &'static str, share: f64, network: ChannelClass) -> MachineModel {
    MachineModel {
        about,
        costs: java(share),
        validator_costs: None,
        racks: RackModel::default(),
        cores: 0,
        geography: None,
        network,
        patience: SLOW,
        client_nodes: 0,
        log: None,
        retry: WITH_PAUSES,
        lock_wait: None,
    }
}

/// So many batches are on their way to the replicas of a repository at a time.
const IN_FLIGHT: usize = 1_000;
/// How long a message of Amaro's system is under way on average beyond the least, in microseconds:
/// the one number of this model that is fitted, to 33 ms of two-phase commit with 100 clients.
const AMARO_TAIL: u64 = 1_366;
/// How much longer the times of nodes are on the papers' machines.
const SLOW: u64 = 50;

fn channel(least_micros: u64, tail_micros: u64, bandwidth: u64) -> ChannelClass {
    let (least, mean_tail) = (Span::from_micros(least_micros), Span::from_micros(tail_micros));
    ChannelClass { latency: Latency::Exponential { least, mean_tail }, bandwidth }
}

/// The costs of a Java data grid on one core of 2.13 GHz, times `factor`.
fn java(factor: f64) -> Costs {
    let span = |micros: f64| Span::from_nanos((micros * 1_000.0 * factor) as u64);
    Costs {
        tick: span(1.0),
        fetch: span(0.0),
        flush: span(0.0),
        core: Span::ZERO,
        receive: span(55.0),
        send: span(45.0),
        operation: span(5.0),
        read: span(3.0),
        validate: span(5.0),
        install: span(5.0),
        log: span(0.0),
        sync: span(0.0),
        byte_picos: (2_000.0 * factor) as u64,
    }
}

/// The costs of a message-passing runtime on two cores of 2.3 GHz that are a core and a half, by
/// how many such machines work at it. What Java's messages cost is, to nine tenths, a cost of the
/// packet: system calls, framing, and handing over to the process that it is for.
fn erlang(machines: u64) -> Costs {
    let span = |micros: f64| Span::from_nanos((micros * 617.0) as u64 / machines);
    Costs {
        tick: span(1.0),
        fetch: span(49.5),
        flush: span(40.5),
        core: Span::ZERO,
        receive: span(5.5),
        send: span(4.5),
        operation: span(5.0),
        read: span(3.0),
        validate: span(5.0),
        install: span(5.0),
        log: Span::ZERO,
        sync: Span::ZERO,
        byte_picos: 1_234 / machines,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_changed_or_nothing() {
        let port = MachineModel::bumper_port();
        let changed = |text: &str| {
            let mut machine = port.clone();
            machine.change(text).map(|()| machine)
        };
        let validate = changed("validate-us=2").unwrap();
        assert_eq!(validate.costs.validate, Span::from_micros(2));
        assert_eq!(MachineModel { costs: port.costs, ..validate }, port);
        assert_eq!(changed("pauses=true").unwrap(), MachineModel::bumper_cluster());
        let mut settings = Settings::default();
        changed("lock-wait-ms=0.5").unwrap().set_times(&mut settings);
        assert_eq!(settings.lock_wait, Nanos(500_000));
        let tail = changed("tail-us=7").unwrap().network.latency;
        let (least, mean_tail) = (Span::from_micros(100), Span::from_micros(7));
        assert_eq!(tail, Latency::Exponential { least, mean_tail });
        let mut racked = port.clone();
        let changes = ["rack-nodes=8", "rack-packets=2e5", "rack-mb=12.5", "patience=9"];
        changes.iter().for_each(|text| racked.change(text).unwrap());
        let RackModel { nodes, link } = racked.racks;
        assert_eq!((nodes, link.packets, link.bandwidth), (8, 200_000, 12_500_000));
        assert_eq!(racked.patience, 9);
        let mut cores = port.clone();
        ["cores=8", "core-us=0.3"].iter().for_each(|text| cores.change(text).unwrap());
        assert_eq!((cores.cores, cores.costs.core), (8, Span::from_nanos(150)));
        for (name, model) in MODELS {
            assert_eq!(changed(&format!("model={name}")).unwrap(), model());
        }
        assert!(changed("model=abacus").is_err());
        for text in ["validate-us", "validate-us=-1", "validate-us=NaN", "pauses=1", "colour=1"] {
            assert!(changed(text).unwrap_err().to_string().contains(text), "{text}");
        }
    }

    #[test]
    fn more_cores_are_faster_and_all_are_slower_than_ours() {
        let [ours, one, two, eight] = [
            MachineModel::measured(),
            MachineModel::bumper_cluster(),
            MachineModel::future_grid(),
            MachineModel::cloud_tm(),
        ];
        let message = |machine: &MachineModel| machine.costs.receive + machine.costs.send;
        assert!(message(&one) > message(&two) && message(&two) > message(&eight));
        assert!(message(&eight) > message(&ours));
    }
}
