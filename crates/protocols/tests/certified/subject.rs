//! Certified protocols, as pages show them.

use muesli_broadcast::epochs::{EpochMessage, EpochRecord};
use muesli_core::parts::versions::Versions;
use muesli_core::{Decision, Role, SmallBytes, SpaceId, TxnId};
use muesli_protocols::certified::message::FoundKey;
use muesli_protocols::certified::message::command::CertifiedCommand;
use muesli_protocols::certified::message::moment::ReadMoment;
use muesli_protocols::certified::{Certified, CertifiedSite, Message, Record};

use crate::harness::subject::lines::{joined, name, text, value, writes};
use crate::harness::subject::{Names, Subject, Timer};

impl Subject for Certified {
    const STRICT_UPDATES: bool = true;
    const TRIES_AGAIN: bool = false;

    fn show_message(message: &Message, names: &Names) -> String {
        match message {
            Message::Keys(request) => {
                let keys = joined(request.keys.iter().map(|(_, key)| text(key)));
                format!("Keys {keys}{}", at(&request.moment))
            }
            Message::KeysReply(reply) => {
                let at = reply.snapshot.map_or("too old".to_owned(), |it| it.clock.to_string());
                format!("KeysReply at {at}: {}", joined(reply.found.iter().map(found)))
            }
            Message::Page(request) => {
                format!("Page from {}{}", text(&request.range.lo), at(&request.moment))
            }
            Message::PageReply(reply) => {
                let row =
                    |(key, it): &(SmallBytes, FoundKey)| format!("{}={}", text(key), found(it));
                let at = reply.snapshot.map_or("too old".to_owned(), |it| it.clock.to_string());
                format!("PageReply at {at}: {}", joined(reply.rows.iter().map(row)))
            }
            Message::Commit { command, .. } => format!("Commit {}", commit(command, names)),
            Message::Ended { txn, decision, .. } => {
                format!("Ended {} {}", name(*txn, names), end(*decision))
            }
            Message::NotKnown { txn, .. } => format!("NotKnown {}", name(*txn, names)),
            Message::Ask { txn, .. } => format!("Ask {}", name(*txn, names)),
            Message::Release { readers } => format!("Release {} readers", readers.len()),
            Message::Renew { readers } => format!("Renew {} readers", readers.len()),
            Message::Watch { reads, ranges, .. } => {
                let keys = reads.iter().map(|read| text(&read.key));
                let ranges = ranges.iter().map(|range| format!("from {}", text(&range.seen.lo)));
                format!("Watch {}", joined(keys.chain(ranges)))
            }
            Message::Unwatch { .. } => "Unwatch".to_owned(),
            Message::Changed { .. } => "Changed".to_owned(),
            Message::Broadcast { message, .. } => match message {
                EpochMessage::Ordered { message, .. } => broadcast(&format!("{message:?}")),
                other => other.name().to_owned(),
            },
            Message::Join { member } => format!("Join as {member}"),
            Message::Waits { .. } => "Waits".to_owned(),
            Message::NotFresh { .. } => "NotFresh".to_owned(),
        }
    }

    fn show_record(record: &Record, names: &Names) -> String {
        match record {
            Record::Incarnation { incarnation } => format!("Incarnation {incarnation}"),
            Record::Broadcast { record } => match record {
                EpochRecord::Ordered { record, .. } => broadcast(&format!("{record:?}")),
                other => other.name().to_owned(),
            },
            Record::Named { member } => format!("Named {member}"),
            Record::Ran { id, decision, writes: all, calls: _ } => {
                format!("Ran {id} {}: {}", end(*decision), writes(all))
            }
            Record::Refused { txn, reason, calls: _ } => {
                format!("Refused {}: {reason}", name(*txn, names))
            }
            Record::Forgotten { client } => format!("Forgotten n{}", client.0),
            Record::Certified { id, decision } => format!("Certified {id} {}", end(*decision)),
            Record::Cut { id, counter } => format!("Cut {id} behind {counter}"),
        }
    }

    fn show_participant(participant: &CertifiedSite) -> String {
        format!("{} applied, {} proposed", participant.applied(), participant.proposed())
    }

    fn begins(message: &Message) -> Option<TxnId> {
        match message {
            Message::Commit { command, .. } => Some(command.txn),
            _ => None,
        }
    }

    fn versions(participant: &CertifiedSite, space: SpaceId) -> Option<&Versions> {
        participant.versions(space)
    }

    fn timer(role: Role, _: u32) -> Timer {
        match role {
            Role::Coordinator | Role::Service(_) => Timer::Care,
            Role::Repository(_) => Timer::Wait,
        }
    }
}

/// What a broadcast says: its kind, and the command that it is about.
fn broadcast(text: &str) -> String {
    let (_, inside) = text.split_once(": ").expect("a message in the choice of a broadcast");
    let kind: String = inside.chars().take_while(|it| it.is_alphanumeric()).collect();
    let mut words = inside.split(|it: char| !(it.is_alphanumeric() || it == '-'));
    let is_id = |word: &&str| word.starts_with('m') && word.contains('-');
    words.find(is_id).map_or(kind.clone(), |id| format!("{kind} {id}"))
}

/// Which cut a read asks for, if it does.
fn at(moment: &ReadMoment) -> String {
    match moment {
        ReadMoment::Present | ReadMoment::Known(_) => String::new(),
        ReadMoment::Cut(bound) => format!(" {} ms stale at most", bound.most.as_millis()),
    }
}

fn found(found: &FoundKey) -> String {
    value(found.value.as_ref())
}

fn commit(command: &CertifiedCommand, names: &Names) -> String {
    let reads = joined(command.reads.iter().map(|read| text(&read.key)));
    let writes = command.writes.iter();
    let writes =
        joined(writes.map(|(_, key, new)| format!("{}={}", text(key), value(new.as_ref()))));
    let ranges = match command.ranges.len() {
        0 => String::new(),
        ranges => format!(", {ranges} ranges"),
    };
    format!("{}: reads {reads}{ranges}, writes {writes}", name(command.txn, names))
}

fn end(decision: Decision) -> String {
    match decision {
        Decision::Commit(at) => format!("committed at {at}"),
        Decision::Abort(reason) => format!("aborted: {reason}"),
    }
}
