//! Granola, and Sinfonia, which is made of it.

use muesli_core::parts::spaces::Newest;
use muesli_core::parts::versions::Versions;
use muesli_core::{Role, SpaceId, Timestamp, TxnId};
use muesli_protocols::granola::message::{
    Agreement, FoundVersion, News, PartAnswer, PartData, Refusal, ReplyOutcome, Request, Task,
    TimestampVote, VoteOrder, Write,
};
use muesli_protocols::granola::message::{Fetched, Load};
use muesli_protocols::granola::message::{Move, Owners};
use muesli_protocols::granola::{Granola, Message, Participant, Record};

use crate::harness::subject::lines::{joined, name, text, value, writes};
use crate::harness::subject::{Names, Subject, Timer};

/// Begins another attempt, at a coordinator.
const AGAIN_TIMER: u32 = 2;
/// Ends the waits for locking mode, at a repository.
const LOCK_TIMER: u32 = 2;

impl Subject for Granola {
    const STRICT_UPDATES: bool = false;
    const TRIES_AGAIN: bool = true;

    fn show_message(message: &Message, names: &Names) -> String {
        match message {
            Message::Request(asked) => format!("Request {}", request(asked, names)),
            Message::Vote { txn, ballot: how, order: number, .. } => {
                format!("Vote {} {}{}", name(*txn, names), ballot(how), order(number.as_ref()))
            }
            Message::WhichPosition { .. } => "WhichPosition".to_owned(),
            Message::AskDoubts { clients, .. } => format!("AskDoubts {clients:?}"),
            Message::NoDoubts { clients, .. } => format!("NoDoubts {clients:?}"),
            Message::Position { order, at, voted, .. } => {
                let voted = joined(voted.iter().map(|txn| name(*txn, names)));
                format!("Position {} at {at}, voted up to {voted}", order.number)
            }
            Message::Decide { txn, ballot: how, .. } => {
                format!("Decide {} {}", name(*txn, names), ballot(how))
            }
            Message::Ask { request, ballot: how, .. } => {
                format!("Ask {}, for one {}", name(request.txn, names), ballot(how))
            }
            Message::Reply { txn, end: how, .. } => {
                format!("Reply {} {}", name(*txn, names), end(how))
            }
            Message::Tell { txn, shared: all } => {
                format!("Tell {}: {}", name(*txn, names), data(all))
            }
            Message::Acknowledge { txns, .. } => {
                format!("Acknowledge {}", joined(txns.iter().map(|txn| name(*txn, names))))
            }
            Message::Follow { has } => {
                format!("Follow {}, has {} pieces, up to {}", has.stream, has.pieces, has.upto)
            }
            Message::News { stream, news: data, .. } => format!("News {stream} {}", news(data)),
            Message::Fetch { partition, has, .. } => {
                format!("Fetch partition {partition}, has {}", fetched(has))
            }
            Message::Load { partition, load: data, .. } => {
                format!("Load partition {partition}: {}", load(data))
            }
            Message::Watch { reads: watched, .. } => {
                let reads =
                    watched.reads.iter().map(|(_, key, at)| format!("{} ({at})", text(key)));
                let scans = watched.scans.iter().map(|(partition, seen)| {
                    format!("from {} in partition {partition}", text(&seen.range.lo))
                });
                format!("Watch {}", joined(reads.chain(scans)))
            }
            Message::Unwatch { .. } => "Unwatch".to_owned(),
            Message::Changed { .. } => "Changed".to_owned(),
        }
    }

    fn show_record(record: &Record, names: &Names) -> String {
        match record {
            Record::Voted { request, at } => {
                format!("Voted {} proposing {at}", name(request.txn, names))
            }
            Record::Against { txn, ballot: how } => {
                format!("Against {} {}", name(*txn, names), ballot(how))
            }
            Record::Done { txn, at, writes: all, .. } => {
                format!("Done {} at {at}: {}", name(*txn, names), writes(all))
            }
            Record::Dropped { txn, end: how } => {
                format!("Dropped {} {}", name(*txn, names), end(how))
            }
            Record::SharedData { txn, shared: all } => {
                format!("Told {}: {}", name(*txn, names), data(all))
            }
            Record::Staged { partition, anew, keys: all } => {
                let anew = if *anew { ", anew" } else { "" };
                format!("Staged partition {partition}{anew}: {}", keys(all))
            }
            Record::UpperBound { at } => format!("Ceiling {at}"),
            Record::Reached { at } => format!("Reached {at}"),
        }
    }

    fn show_participant(participant: &Participant) -> String {
        let mode = if participant.is_locking() { "locking" } else { "timestamp" };
        let (done, waiting) = (participant.done(), participant.waiting());
        let remembered = participant.remembered();
        let early = match participant.early_votes() {
            0 => String::new(),
            early => format!(", votes on {early} without requests"),
        };
        format!("{mode} mode, done {done}, {waiting} waiting, {remembered} remembered{early}")
    }

    fn begins(message: &Message) -> Option<TxnId> {
        match message {
            Message::Request(request) => Some(request.txn),
            Message::Vote { .. }
            | Message::WhichPosition { .. }
            | Message::Position { .. }
            | Message::AskDoubts { .. }
            | Message::NoDoubts { .. }
            | Message::Decide { .. }
            | Message::Tell { .. }
            | Message::Ask { .. }
            | Message::Reply { .. }
            | Message::Follow { .. }
            | Message::News { .. }
            | Message::Fetch { .. }
            | Message::Load { .. }
            | Message::Watch { .. }
            | Message::Unwatch { .. }
            | Message::Changed { .. }
            | Message::Acknowledge { .. } => None,
        }
    }

    fn versions(participant: &Participant, space: SpaceId) -> Option<&Versions> {
        participant.spaces().get(space)
    }

    fn timer(role: Role, timer: u32) -> Timer {
        match (role, timer) {
            (Role::Coordinator, AGAIN_TIMER) | (Role::Repository(_), LOCK_TIMER) => Timer::Wait,
            (Role::Coordinator, 0) => Timer::Idle,
            _ => Timer::Care,
        }
    }
}

fn news(news: &News) -> String {
    match news {
        News::Piece { number, .. } => format!("piece {number}"),
        News::Changes { upto, changes: all, .. } => format!("up to {upto}: {}", changes(all)),
        News::Unknown => "unknown".to_owned(),
    }
}

fn changes(all: &[(Timestamp, Vec<Write>)]) -> String {
    joined(all.iter().map(|(at, all)| format!("{at}: {}", writes(all))))
}

fn fetched(has: &Fetched) -> String {
    format!("{} pieces and {} changes", has.pieces, has.changes)
}

fn load(load: &Load) -> String {
    match load {
        Load::Piece { number, keys: all } => format!("piece {number}: {}", keys(all)),
        Load::Changes { changes: all, whole, .. } => {
            let whole = if *whole { ", which is all" } else { "" };
            format!("changes {}{whole}", changes(all))
        }
        Load::Unknown => "unknown".to_owned(),
    }
}

fn keys(all: &[Newest]) -> String {
    let key =
        |(_, key, at, found): &Newest| format!("{}={} ({at})", text(key), value(found.as_ref()));
    joined(all.iter().map(key))
}

fn request(request: &Request, names: &Names) -> String {
    let how = match (request.agreement, request.read_only) {
        (Agreement::Alone, false) => "alone",
        (Agreement::Alone, true) => "alone, reading",
        (Agreement::Independent, false) => "independent",
        (Agreement::Independent, true) => "independent, reading",
        (Agreement::Coordinated, _) => "coordinated",
    };
    let parts = joined(request.parts.iter().map(|part| task(&part.task)));
    format!("{} {how}, above {}: {parts}", name(request.txn, names), request.lower_bound)
}

fn task(task: &Task) -> String {
    match task {
        Task::Call { procedure, arguments, .. } => {
            format!("{} {}", text(&procedure.name), text(arguments))
        }
        Task::Read(keys) => format!("read {}", joined(keys.iter().map(|(_, key)| text(key)))),
        Task::Scan { range, .. } => format!("scan from {}", text(&range.lo)),
        Task::Install(install) => {
            let reads =
                joined(install.reads.iter().map(|(_, key, at)| format!("{} ({at})", text(key))));
            format!("check {reads} write {}", writes(&install.writes))
        }
        Task::Take { from } => format!("take from r{}", from.0),
        Task::Move(order) => {
            let Move { partition, from, to, epoch, has } = &**order;
            let has = fetched(has);
            format!(
                "move partition {partition} from r{} to r{}, epoch {epoch}, {has}",
                from.0, to.0
            )
        }
        Task::Names => "names".to_owned(),
    }
}

fn data(data: &[PartData]) -> String {
    let keys = data.iter().flat_map(|(_, keys)| keys);
    let value = |found: &FoundVersion| found.value.as_ref().map_or_else(|| "-".to_owned(), text);
    joined(keys.map(|(_, key, found)| format!("{}={}", text(key), value(found))))
}

fn ballot(ballot: &TimestampVote) -> String {
    match ballot {
        TimestampVote::Commit(at) => format!("commit {at}"),
        TimestampVote::Conflict => "conflict".to_owned(),
        TimestampVote::Moved(at) => format!("moved, known at {at}"),
        TimestampVote::Abort(at, why) => format!("abort {at}, {}", refusal(why)),
    }
}

fn order(order: Option<&VoteOrder>) -> String {
    order.map_or_else(String::new, |order| format!(", number {}", order.number))
}

fn refusal(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Refused(reason) => text(reason),
        Refusal::Faulty(text) => text.clone(),
        Refusal::Aborted(reason) => reason.to_string(),
    }
}

fn end(end: &ReplyOutcome) -> String {
    match end {
        ReplyOutcome::Done { at, answers } => {
            let given = answers.iter().map(|(_, answer)| match answer {
                PartAnswer::Given(result) => text(result),
                PartAnswer::Found(all) => format!("{} found", all.len()),
                PartAnswer::Rows(rows, _) => format!("{} rows", rows.len()),
                PartAnswer::Installed => "installed".to_owned(),
                PartAnswer::Absent(all) => format!("installed, {} absent", all.len()),
                PartAnswer::Taken { has, whole } => {
                    format!("{}{}", fetched(has), if *whole { ", which is all" } else { "" })
                }
                PartAnswer::Names(all) => {
                    let holders =
                        |it: &Owners| joined(it.holders.iter().map(|it| format!("r{}", it.0)));
                    joined(all.iter().map(|(partition, it)| {
                        format!("partition {partition} at {}, epoch {}", holders(it), it.epoch)
                    }))
                }
            });
            format!("done at {at}: {}", joined(given))
        }
        ReplyOutcome::Conflict => "conflict".to_owned(),
        ReplyOutcome::Moved { at } => format!("moved, known at {at}"),
        ReplyOutcome::Refused { at, refusal: why } => format!("refused at {at}, {}", refusal(why)),
    }
}
