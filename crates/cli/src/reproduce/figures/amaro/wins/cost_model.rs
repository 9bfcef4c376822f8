//! What a commit costs by arithmetic, to set beside what is measured.
//!
//! A transaction updates objects on N nodes, of which F are in other racks than its client. Whoever
//! decides, there are N prepares and N votes; with a tree of levels the votes climb on as E merged
//! ones. Decisions go to N participants and to the client. Each message has two ends; those at
//! nodes with data, or with validators, take their processors' time, those at clients' nodes do
//! not count. An end costs as much as a message and its share of a packet of B messages, which
//! costs less to take in than to send; validating and installing costs w at each participant.
//!
//! | decided by | ends that count | messages between racks |
//! | --- | --- | --- |
//! | the client | 3 N | 3 F |
//! | a participant, or a relay | 5 N - 3 | 3 F + F/N |
//! | a tree, each participant told directly | 5 N + 2 E + 1 | F + up + N (1 - 1/R) + (1 - 1/R) |
//! | a tree, told down the tree | 5 N + 4 E + 1 | F + 2 up + (1 - 1/R) |
//!
//! Where nodes are cores of T machines, an inner node for each, ends within a machine cost a
//! message and a handover and no packet: all of votes to it and of decisions from it, 4 N, and
//! those of merged votes and decisions where the root's validator is on the same machine; and what
//! a participant that decides says to others of its machine, 4 (N/T - 1).
//!
//! A prepare, and an answer to a read, has an object's bytes; everything else is short.
//!
//! `up` is the number of merged votes that leave their rack: one for each of the T racks that take
//! part, but for that of the root's validator, which is any of R racks: T (1 - 1/R). Reads before
//! that are 2 N messages more, 2 F of them between racks. Committed transactions a second are as
//! many as the processors, or the links, have time for: whatever is the least.

/// Who decides, as far as messages go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DecidedBy {
    /// The coordinator.
    Client,
    /// One of the participants.
    Participant,
    /// The root, or the lowest inner node above all participants.
    Tree {
        /// Whether decisions go down the tree, and not to each participant directly.
        down: bool,
    },
}

/// What a transaction is, and where its objects are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModelledCommit {
    pub participants: f64,
    /// Those in other racks than the client's.
    pub far: f64,
    /// Racks that take part, the client's included if it does.
    pub racks: f64,
    /// Machines that take part, and all of them: participants are cores of these; all alike where a
    /// node is a machine.
    pub machines: (f64, f64),
    /// How many merged votes climb from inner nodes to those above them, where there is a tree.
    pub edges: f64,
    /// Share of objects that are read first.
    pub read: f64,
}

/// What the nodes and the links between racks are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModelledMachines {
    /// Nodes with data, and with validators.
    pub nodes: f64,
    /// In so many racks; 1: no links.
    pub racks: f64,
    /// How many of them are cores of one machine; 1: each is a machine.
    pub cores: f64,
    /// Seconds of an end of a message, of taking in a packet and of sending it, of an end of a
    /// handover to another core, and of a participant's other work.
    pub message: f64,
    pub fetch: f64,
    pub flush: f64,
    pub handover: f64,
    pub work: f64,
    /// How many messages share a packet.
    pub batch: f64,
    /// Seconds that a packet occupies a link, and a byte; 0: no time.
    pub link_packet: f64,
    pub link_byte: f64,
    /// Bytes of an object.
    pub object: f64,
}

/// Bytes of a prepare beside its object, and of any other message, as they were measured.
const PREPARE_BYTES: f64 = 147.0;
const SHORT_BYTES: f64 = 46.0;

/// What a transaction needs of nodes and of links, in seconds of one of them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Demand {
    processors: f64,
    links: f64,
}

/// Ends of messages at nodes that count.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MessageEnds {
    /// Of messages from other machines.
    pub received: f64,
    /// Of those to other machines.
    pub sent: f64,
    /// Of those between cores of one machine.
    pub within: f64,
}

impl MessageEnds {
    /// All of them.
    #[cfg(test)]
    fn all(self) -> f64 {
        self.received + self.sent + self.within
    }

    /// And so many messages, both of whose ends count, of which a share stays within a machine.
    fn and_between(self, messages: f64, within: f64) -> MessageEnds {
        let apart = messages * (1.0 - within);
        MessageEnds {
            received: self.received + apart,
            sent: self.sent + apart,
            within: self.within + 2.0 * messages * within,
        }
    }
}

/// Ends of messages at nodes that count, by how many of these are cores of one machine.
pub fn ends(commit: &ModelledCommit, cores: f64, by: DecidedBy) -> MessageEnds {
    let ModelledCommit { participants: n, edges, machines: (touched, all), read, .. } = *commit;
    let reads = MessageEnds { received: n * read, sent: n * read, within: 0.0 };
    // Where each node is a machine, nothing stays within one.
    let near = |share: f64| if cores > 1.0 { share } else { 0.0 };
    let prepared = MessageEnds { received: reads.received + n, ..reads };
    let answered = MessageEnds { sent: reads.sent + 1.0, ..prepared };
    match by {
        DecidedBy::Client => {
            MessageEnds { received: prepared.received + n, sent: reads.sent + n, ..reads }
        }
        DecidedBy::Participant => {
            let others = n - 1.0;
            let share = (n / touched - 1.0) / others.max(1.0);
            answered.and_between(2.0 * others, near(share))
        }
        DecidedBy::Tree { down } => {
            let votes = answered.and_between(n, near(1.0));
            let edges = if down { 2.0 } else { 1.0 } * edges;
            let merged = votes.and_between(edges, near(1.0 / all));
            merged.and_between(n, near(if down { 1.0 } else { 1.0 / all }))
        }
    }
}

/// Messages that leave their rack.
pub fn between_racks(commit: &ModelledCommit, racks: f64, by: DecidedBy) -> f64 {
    let ModelledCommit { participants: n, far, racks: touched, read, .. } = *commit;
    let elsewhere = 1.0 - 1.0 / racks;
    let deciding = match by {
        DecidedBy::Client => 3.0 * far,
        // Its rack is as far from the others as the client's is, and as far from the client.
        DecidedBy::Participant => 3.0 * far + far / n,
        DecidedBy::Tree { .. } if touched <= 1.0 => 3.0 * far,
        DecidedBy::Tree { down, .. } => {
            let up = touched * elsewhere;
            far + up + if down { up } else { n * elsewhere } + elsewhere
        }
    };
    deciding + 2.0 * far * read
}

fn demand(commit: &ModelledCommit, machines: &ModelledMachines, by: DecidedBy) -> Demand {
    let ends = ends(commit, machines.cores, by);
    let end = |shared: f64| machines.message + shared / machines.batch;
    let saying = ends.received * end(machines.fetch)
        + ends.sent * end(machines.flush)
        + ends.within * end(machines.handover);
    let messages = between_racks(commit, machines.racks, by);
    let long = commit.far * (1.0 + commit.read);
    let bytes =
        long * machines.object + commit.far * PREPARE_BYTES + (messages - commit.far) * SHORT_BYTES;
    Demand {
        processors: saying + commit.participants * machines.work,
        links: messages * machines.link_packet / machines.batch + bytes * machines.link_byte,
    }
}

/// Committed transactions a second of this mix, by shares that make 1.
pub fn throughput(
    mix: &[(f64, ModelledCommit)],
    machines: &ModelledMachines,
    by: DecidedBy,
) -> f64 {
    let all = mix.iter().fold(Demand::default(), |all, (share, commit)| {
        let one = demand(commit, machines, by);
        Demand {
            processors: all.processors + share * one.processors,
            links: all.links + share * one.links,
        }
    });
    let by_processors = machines.nodes / all.processors;
    if all.links > 0.0 { by_processors.min(machines.racks / all.links) } else { by_processors }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF_FAR: ModelledCommit = ModelledCommit {
        participants: 16.0,
        far: 8.0,
        racks: 2.0,
        machines: (16.0, 32.0),
        edges: 2.0,
        read: 0.0,
    };
    const DIRECT: DecidedBy = DecidedBy::Tree { down: false };
    const DOWN: DecidedBy = DecidedBy::Tree { down: true };

    #[test]
    fn messages_are_those_that_are_said() {
        let ends = |commit: &ModelledCommit, by| ends(commit, 1.0, by).all();
        assert_eq!(ends(&HALF_FAR, DecidedBy::Client), 48.0);
        assert_eq!((ends(&HALF_FAR, DIRECT), ends(&HALF_FAR, DOWN)), (85.0, 89.0));
        let read = ModelledCommit { read: 1.0, ..HALF_FAR };
        assert_eq!(ends(&read, DecidedBy::Client), 80.0);
        let between = |by| between_racks(&HALF_FAR, 2.0, by);
        assert_eq!(between(DecidedBy::Client), 24.0);
        assert_eq!(between(DecidedBy::Participant), 24.5);
        assert_eq!((between(DIRECT), between(DOWN)), (8.0 + 1.0 + 8.0 + 0.5, 8.0 + 2.0 + 0.5));
        assert_eq!(between_racks(&read, 2.0, DecidedBy::Client), 40.0);
        let near = ModelledCommit { far: 0.0, racks: 1.0, ..HALF_FAR };
        assert_eq!(between_racks(&near, 2.0, DOWN), 0.0, "who is in one rack is decided there");
    }

    #[test]
    fn what_stays_within_a_machine_is_no_packet() {
        // Sixteen cores of two machines, of four.
        let commit = ModelledCommit { machines: (2.0, 4.0), read: 1.0, ..HALF_FAR };
        let of = |by| ends(&commit, 8.0, by);
        assert_eq!(
            of(DecidedBy::Client),
            MessageEnds { received: 16.0 + 32.0, sent: 16.0 + 16.0, within: 0.0 }
        );
        let deciding = of(DecidedBy::Participant);
        assert_eq!(deciding.within, 4.0 * 7.0);
        assert_eq!(deciding.received + deciding.sent, 32.0 + 16.0 + 4.0 * 8.0 + 1.0);
        let tree = of(DOWN);
        assert_eq!((tree.received, tree.sent), (16.0 + 16.0 + 3.0, 16.0 + 1.0 + 3.0));
        assert_eq!(tree.within, 64.0 + 2.0);
        let alone = ModelledCommit { machines: (1.0, 4.0), edges: 0.0, read: 0.0, ..HALF_FAR };
        let tree = ends(&alone, 8.0, DOWN);
        assert_eq!((tree.received, tree.sent), (16.0, 1.0), "one machine decides by itself");
    }

    #[test]
    fn the_scarcest_thing_limits() {
        let machines = ModelledMachines {
            nodes: 32.0,
            racks: 2.0,
            cores: 1.0,
            message: 1e-6,
            fetch: 9e-6,
            flush: 9e-6,
            handover: 0.0,
            work: 2e-6,
            batch: 1.0,
            link_packet: 0.0,
            link_byte: 0.0,
            object: 100.0,
        };
        let of = |machines: &ModelledMachines, by| throughput(&[(1.0, HALF_FAR)], machines, by);
        let near = |left: f64, right: f64| assert!((left / right - 1.0).abs() < 1e-9, "{left}");
        near(of(&machines, DecidedBy::Client), 32.0 / (48.0 * 1e-5 + 16.0 * 2e-6));
        let batched = ModelledMachines { batch: 10.0, ..machines };
        near(of(&batched, DecidedBy::Client), 32.0 / (48.0 * 1.9e-6 + 16.0 * 2e-6));
        assert!(of(&batched, DOWN) < of(&batched, DecidedBy::Client), "a tree says more");
        let scarce = ModelledMachines { link_packet: 1e-4, ..batched };
        near(of(&scarce, DecidedBy::Client), 2.0 / 24e-5);
        near(of(&scarce, DOWN) / of(&scarce, DecidedBy::Client), 24.0 / 10.5);
        let narrow = ModelledMachines { link_byte: 1e-6, ..batched };
        let prepares = 8.0 * 247.0;
        near(of(&narrow, DecidedBy::Client), 2e6 / (prepares + 16.0 * 46.0));
        near(of(&narrow, DOWN), 2e6 / (prepares + 2.5 * 46.0));
        let near_too =
            [(0.5, HALF_FAR), (0.5, ModelledCommit { far: 0.0, racks: 1.0, ..HALF_FAR })];
        let mixed = throughput(&near_too, &scarce, DecidedBy::Client);
        near(mixed, 2.0 * of(&scarce, DecidedBy::Client));
    }
}
