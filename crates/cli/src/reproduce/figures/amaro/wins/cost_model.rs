//! What a commit costs by arithmetic, to set beside what is measured.
//!
//! A transaction updates objects on N nodes, of which F are in other racks than its client. Whoever
//! decides, there are N prepares and N votes; with a tree of levels the votes climb on as E merged
//! ones. Decisions go to N participants and to the client. Each message has two ends; those at
//! nodes with data, or with validators, take their processors' time, those at clients' nodes do
//! not count. An end costs as much as a message and its share of a packet of B messages; validating
//! and installing costs w at each participant.
//!
//! | decided by | ends that count | messages between racks |
//! | --- | --- | --- |
//! | the client | 3 N | 3 F |
//! | a participant, or a relay | 5 N - 3 | 3 F + F/N |
//! | a tree, each participant told directly | 5 N + 2 E + 1 | F + up + N (1 - 1/R) + (1 - 1/R) |
//! | a tree, told down the tree | 5 N + 4 E + 1 | F + 2 up + (1 - 1/R) |
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
    /// How many merged votes climb from inner nodes to those above them, where there is a tree.
    pub edges: f64,
    /// Share of objects that are read first.
    pub read: f64,
}

/// What the nodes and the links between racks are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModelledMachines {
    /// Nodes with data, and with validators.
    pub machines: f64,
    /// In so many racks; 1: no links.
    pub racks: f64,
    /// Seconds of an end of a message, of a packet, and of a participant's other work.
    pub message: f64,
    pub packet: f64,
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
pub fn ends(commit: &ModelledCommit, by: DecidedBy) -> f64 {
    let n = commit.participants;
    let deciding = match by {
        DecidedBy::Client => 3.0 * n,
        DecidedBy::Participant => n + 4.0 * (n - 1.0) + 1.0,
        DecidedBy::Tree { down } => 5.0 * n + if down { 4.0 } else { 2.0 } * commit.edges + 1.0,
    };
    deciding + 2.0 * n * commit.read
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
    let end = machines.message + machines.packet / machines.batch;
    let messages = between_racks(commit, machines.racks, by);
    let long = commit.far * (1.0 + commit.read);
    let bytes =
        long * machines.object + commit.far * PREPARE_BYTES + (messages - commit.far) * SHORT_BYTES;
    Demand {
        processors: ends(commit, by) * end + commit.participants * machines.work,
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
    let by_processors = machines.machines / all.processors;
    if all.links > 0.0 { by_processors.min(machines.racks / all.links) } else { by_processors }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF_FAR: ModelledCommit =
        ModelledCommit { participants: 16.0, far: 8.0, racks: 2.0, edges: 2.0, read: 0.0 };
    const DIRECT: DecidedBy = DecidedBy::Tree { down: false };
    const DOWN: DecidedBy = DecidedBy::Tree { down: true };

    #[test]
    fn messages_are_those_that_are_said() {
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
    fn the_scarcest_thing_limits() {
        let machines = ModelledMachines {
            machines: 32.0,
            racks: 2.0,
            message: 1e-6,
            packet: 9e-6,
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
