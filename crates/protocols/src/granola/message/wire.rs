//! The bytes of messages and records.
//!
//! Layouts are fixed: a byte for the kind, then the fields in the order in which they are
//! declared. [`is_about`] is the second half of what is checked as messages come in: bytes that
//! decode may still name a repository or a space that is not there, and inside nobody asks again.

use muesli_core::parts::spaces::Newest;
use muesli_core::ranges::KeyRange;
use muesli_core::wire::{Reader, Wire, WireError};
use muesli_core::{
    Abort, Catalog, EVERYWHERE, NodeId, ProcedureId, RepositoryId, SmallBytes, SpaceId, Timestamp,
    TxnId, wire_enum, wire_struct,
};

use super::{
    Agreement, Fetched, Few, Followed, FoundVersion, Holding, Install, Load, Message, Move, News,
    Noted, Owners, Part, PartAnswer, PartData, Record, Refusal, ReplyOutcome, Repositories,
    Request, SeenRange, Shown, Task, TimestampVote, VoteOrder, WatchedReads, Write,
};
use crate::doubts::ClientsUntil;

/// By hand for what only histories need, which costs nothing elsewhere.
impl Wire for FoundVersion {
    const LEAST_BYTES: usize = 9;

    fn encode(&self, out: &mut Vec<u8>) {
        self.version.encode(out);
        match &self.value {
            Some(value) => {
                out.push(1);
                value.encode(out);
            }
            None if self.collected == Timestamp::ZERO => out.push(0),
            None => {
                out.push(2);
                self.collected.encode(out);
            }
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<FoundVersion, WireError> {
        let (version, mut collected) = (Timestamp::decode(input)?, Timestamp::ZERO);
        let value = match input.variant("value that was found", 3)? {
            0 => None,
            1 => Some(SmallBytes::decode(input)?),
            _ => {
                collected = Timestamp::decode(input)?;
                None
            }
        };
        Ok(FoundVersion { version, value, collected })
    }
}
wire_struct!(SeenRange { range: KeyRange, at: Timestamp, live: u64 });
wire_struct!(VoteOrder { stream: Timestamp, number: u64 });
wire_struct!(Shown { repository: RepositoryId, ballot: TimestampVote, about: u64, tag: u64 });
wire_struct!(Followed { stream: u64, pieces: u32, upto: Timestamp });
wire_struct!(Part { partition: u16, owners: Option<std::sync::Arc<Owners>>, task: Task });
wire_struct!(Install {
    reads: Vec<(SpaceId, SmallBytes, Timestamp)>,
    scans: Vec<SeenRange>,
    writes: Vec<Write>,
});

wire_struct!(WatchedReads {
    reads: Vec<(SpaceId, SmallBytes, Timestamp)>,
    scans: Vec<(u16, SeenRange)>,
});

wire_struct!(Request {
    txn: TxnId,
    settled_below: u64,
    lower_bound: Timestamp,
    agreement: Agreement,
    read_only: bool,
    follower_read: bool,
    master: Option<NodeId>,
    participants: Repositories,
    parts: Few<Part>,
});

/// Nothing: see there.
impl Wire for Noted {
    const LEAST_BYTES: usize = 0;

    fn encode(&self, _out: &mut Vec<u8>) {}

    fn decode(_input: &mut Reader<'_>) -> Result<Noted, WireError> {
        Ok(Noted::default())
    }
}

wire_enum!(Agreement, "agreement" {
    0 => Alone,
    1 => Independent,
    2 => Coordinated,
});

wire_enum!(Task, "task" {
    0 => Call { procedure: ProcedureId, arguments: SmallBytes, shares: bool, spaces: u16 },
    1 => Read(keys: Vec<(SpaceId, SmallBytes)>),
    2 => Scan { range: KeyRange, reverse: bool, limit: u64 },
    3 => Install(install: Box<Install>),
    4 => Take { from: RepositoryId },
    5 => Move(order: Box<Move>),
    6 => Names,
});

wire_enum!(Refusal, "refusal" {
    0 => Refused(reason: SmallBytes),
    1 => Faulty(text: String),
    2 => Aborted(reason: Abort),
});

wire_enum!(TimestampVote, "ballot" {
    0 => Commit(at: Timestamp),
    1 => Conflict,
    2 => Abort(at: Timestamp, refusal: Refusal),
    3 => Moved(at: Timestamp),
});

wire_enum!(PartAnswer, "answer" {
    0 => Given(result: SmallBytes),
    1 => Found(all: Vec<FoundVersion>),
    2 => Rows(rows: Vec<(SmallBytes, FoundVersion)>, seen_to: Option<SmallBytes>),
    3 => Installed,
    4 => Taken { has: Fetched, whole: bool },
    5 => Names(all: Vec<(u16, Owners)>),
    6 => Absent(all: Vec<(SpaceId, SmallBytes, Timestamp)>),
});

wire_enum!(ReplyOutcome, "end" {
    0 => Done { at: Timestamp, answers: Few<(u16, PartAnswer)> },
    1 => Conflict,
    2 => Refused { at: Timestamp, refusal: Refusal },
    3 => Moved { at: Timestamp },
});

wire_enum!(News, "news" {
    0 => Piece { number: u32, bytes: SmallBytes },
    1 => Changes {
        upto: Timestamp,
        changes: Vec<(Timestamp, Vec<Write>)>,
        held: Vec<(u16, Holding)>
    },
    2 => Unknown,
});

wire_enum!(Message, "message" {
    0 => Request(request: std::sync::Arc<Request>),
    1 => Vote {
        txn: TxnId,
        repository: RepositoryId,
        ballot: TimestampVote,
        about: u64,
        tag: u64,
        order: Option<VoteOrder>
    },
    2 => Ask {
        request: std::sync::Arc<Request>,
        repository: RepositoryId,
        ballot: TimestampVote
    },
    3 => Reply { txn: TxnId, repository: RepositoryId, end: ReplyOutcome, noted: Noted },
    4 => Acknowledge { repository: RepositoryId, txns: Vec<TxnId> },
    5 => Decide { txn: TxnId, ballot: TimestampVote, shown: Vec<Shown> },
    6 => WhichPosition { repository: RepositoryId },
    7 => Position {
        repository: RepositoryId,
        order: VoteOrder,
        at: Timestamp,
        voted: Vec<TxnId>
    },
    8 => Follow { has: Followed },
    9 => News { repository: RepositoryId, stream: u64, news: News },
    10 => Tell { txn: TxnId, shared: Vec<PartData> },
    11 => Fetch { repository: RepositoryId, partition: u16, has: Fetched },
    12 => Load {
        repository: RepositoryId,
        partition: u16,
        stream: Timestamp,
        source: Timestamp,
        load: Load
    },
    13 => AskDoubts { asked: u64, clients: Vec<ClientsUntil> },
    14 => NoDoubts {
        repository: RepositoryId,
        asked: u64,
        clients: Vec<ClientsUntil>
    },
    15 => Watch { request: u64, reads: Box<WatchedReads> },
    16 => Unwatch { request: u64 },
    17 => Changed { repository: RepositoryId, request: u64 },
});

wire_enum!(Record, "record" {
    0 => Voted { request: std::sync::Arc<Request>, at: Timestamp },
    1 => Against { txn: TxnId, ballot: TimestampVote },
    2 => Done { txn: TxnId, at: Timestamp, writes: Vec<Write>, end: ReplyOutcome },
    3 => Dropped { txn: TxnId, end: ReplyOutcome },
    4 => UpperBound { at: Timestamp },
    5 => Reached { at: Timestamp },
    6 => SharedData { txn: TxnId, shared: Vec<PartData> },
    7 => Staged { partition: u16, anew: bool, keys: Vec<Newest> },
});

/// Whether everything that a message names is there.
pub(in super::super) fn is_about(message: &Message, catalog: &Catalog) -> bool {
    let there = |repository: &RepositoryId| usize::from(repository.0) < catalog.repositories();
    match message {
        Message::Request(request) => request_is_about(request, catalog),
        Message::Ask { request, repository, .. } => {
            there(repository) && request_is_about(request, catalog)
        }
        // What is told is looked up by who asks for it, and is nothing that is written.
        Message::Follow { .. }
        | Message::Tell { .. }
        | Message::AskDoubts { .. }
        | Message::Unwatch { .. } => true,
        Message::Watch { reads, .. } => watched_is_about(reads, catalog),
        Message::Decide { shown, .. } => shown.iter().all(|it| there(&it.repository)),
        Message::News { repository, news, .. } => {
            let written = |space: &SpaceId| catalog.space(*space).is_some();
            there(repository)
                && match news {
                    News::Changes { changes, .. } => {
                        changes.iter().flat_map(|(_, all)| all).all(|write| written(&write.0))
                    }
                    News::Piece { .. } | News::Unknown => true,
                }
        }
        Message::Fetch { repository, partition, .. } => {
            there(repository) && usize::from(*partition) < catalog.partitions()
        }
        Message::Load { repository, partition, load, .. } => {
            there(repository)
                && usize::from(*partition) < catalog.partitions()
                && load_is_about(load, *partition, catalog)
        }
        Message::Vote { repository, .. }
        | Message::WhichPosition { repository }
        | Message::Position { repository, .. }
        | Message::NoDoubts { repository, .. }
        | Message::Reply { repository, .. }
        | Message::Changed { repository, .. }
        | Message::Acknowledge { repository, .. } => there(repository),
    }
}

fn watched_is_about(watched: &WatchedReads, catalog: &Catalog) -> bool {
    let there = |partition: &u16| catalog.has_partition(*partition);
    watched.reads.iter().all(|(space, ..)| catalog.space(*space).is_some())
        && watched.scans.iter().all(|(of, seen)| there(of) && is_of_space(&seen.range, catalog))
}

/// Whether the space of a range is there: one without an order can be listed.
fn is_of_space(range: &KeyRange, catalog: &Catalog) -> bool {
    catalog.space(range.space).is_some()
}

fn request_is_about(request: &Request, catalog: &Catalog) -> bool {
    let known = |part: &Part| task_is_about(&part.task, catalog);
    is_placed(request, catalog) && request.parts.iter().all(known)
}

/// The same but for spaces, which some may know before others.
pub(in super::super) fn is_placed(request: &Request, catalog: &Catalog) -> bool {
    let repositories = catalog.repositories();
    let ascending = request.participants.windows(2).all(|pair| pair[0] < pair[1]);
    let there = request.participants.iter().all(|it| usize::from(it.0) < repositories);
    let alone = request.agreement != Agreement::Alone || request.participants.len() == 1;
    let parts = request.parts.iter().all(|part| part_is_placed(part, catalog));
    let numbered = request.parts.len() <= usize::from(u16::MAX);
    let moves = request.moving().is_none_or(|order| {
        let all = [order.from, order.to];
        let votes = request.agreement == Agreement::Independent && !request.read_only;
        let alone = request.parts.len() == 1;
        votes && alone && all.iter().all(|it| request.participants.contains(it))
    });
    ascending && there && alone && parts && numbered && moves
}

fn part_is_placed(part: &Part, catalog: &Catalog) -> bool {
    let there = |it: &RepositoryId| usize::from(it.0) < catalog.repositories();
    let holders = part.owners.iter().flat_map(|owners| &owners.holders);
    // What is everywhere moves nowhere.
    let stays = part.owners.is_none() && !matches!(part.task, Task::Take { .. } | Task::Move(_));
    let is_known = catalog.has_partition(part.partition) && (stays || part.partition != EVERYWHERE);
    let is_sound = match &part.task {
        Task::Take { from } => there(from),
        Task::Move(order) => {
            let known = there(&order.from) && there(&order.to) && order.from != order.to;
            known && order.partition == part.partition
        }
        _ => true,
    };
    is_known && is_sound && holders.into_iter().all(there)
}

/// Keys of a partition, and of no other.
fn load_is_about(load: &Load, partition: u16, catalog: &Catalog) -> bool {
    let here = |space: SpaceId, key: &SmallBytes| {
        catalog.space(space).is_some() && catalog.partition(space, key) == partition
    };
    match load {
        Load::Piece { keys, .. } => keys.iter().all(|(space, key, ..)| here(*space, key)),
        Load::Changes { changes, .. } => {
            let mut all = changes.iter().flat_map(|(_, writes)| writes);
            all.all(|(space, key, _)| here(*space, key))
        }
        Load::Unknown => true,
    }
}

fn task_is_about(task: &Task, catalog: &Catalog) -> bool {
    let known = |space: &SpaceId| catalog.space(*space).is_some();
    match task {
        Task::Call { spaces, .. } => usize::from(*spaces) <= catalog.spaces().len(),
        Task::Take { .. } | Task::Move(_) | Task::Names => true,
        Task::Read(keys) => keys.iter().all(|(space, _)| known(space)),
        Task::Scan { range, .. } => is_of_space(range, catalog),
        Task::Install(install) => {
            install.reads.iter().all(|(space, ..)| known(space))
                && install.scans.iter().all(|seen| is_of_space(&seen.range, catalog))
                && install.writes.iter().all(|(space, ..)| known(space))
        }
    }
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
