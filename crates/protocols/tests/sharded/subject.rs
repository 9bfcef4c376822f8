//! Sharded protocols, as pages show them.

use muesli_core::parts::versions::Versions;
use muesli_core::{Decision, Nanos, Role, SmallBytes, SpaceId, Timestamp, TxnId};
use muesli_protocols::certified::message::FoundKey;
use muesli_protocols::certified::message::command::CertifiedCommand;
use muesli_protocols::sharded::locator::ShardId;
use muesli_protocols::sharded::message::ShardAnswer;
use muesli_protocols::sharded::{Message, Record, ShardMember, Sharded};

use crate::harness::subject::lines::{joined, name, text, value, writes};
use crate::harness::subject::{Names, Subject, Timer};

impl Subject for Sharded {
    const STRICT_UPDATES: bool = false;
    const TRIES_AGAIN: bool = false;

    fn show_message(message: &Message, names: &Names) -> String {
        match message {
            Message::Keys(request) => {
                let keys = joined(request.keys.iter().map(|(_, key)| text(key)));
                format!("Keys {keys}{}", at(request.snapshot))
            }
            Message::KeysReply(reply) => {
                let found = joined(reply.found.iter().map(found));
                format!("KeysReply{}: {found}", at(reply.snapshot))
            }
            Message::Page(request) => {
                format!("Page from {}{}", text(&request.range.lo), at(request.snapshot))
            }
            Message::PageReply(reply) => {
                let row =
                    |(key, it): &(SmallBytes, FoundKey)| format!("{}={}", text(key), found(it));
                format!("PageReply{}: {}", at(reply.snapshot), joined(reply.rows.iter().map(row)))
            }
            Message::Commit { command, participants, .. } => {
                format!("Commit {} of {}", commit(command, names), shards(participants))
            }
            Message::Ended { txn, decision, calls: _ } => {
                format!("Ended {} {}", name(*txn, names), end(*decision))
            }
            Message::NotKnown { txn } => format!("NotKnown {}", name(*txn, names)),
            Message::Release { readers } => format!("Release {} readers", readers.len()),
            Message::Renew { readers } => format!("Renew {} readers", readers.len()),
            Message::Broadcast { message, .. } => broadcast(&format!("{message:?}")),
            Message::Answer { txn, answer } => {
                format!("{} {}", name(*txn, names), shown(*answer))
            }
            Message::Ask { txn, in_doubt, .. } => {
                let in_doubt = if *in_doubt { ", in doubt" } else { "" };
                format!("Ask {}{in_doubt}", name(*txn, names))
            }
            Message::AskClock { bound, .. } if bound.most > Nanos(0) => {
                format!("AskClock, {} ms old at most", bound.most.as_millis())
            }
            Message::AskClock { .. } => "AskClock".to_owned(),
            Message::NotFresh { .. } => "NotFresh".to_owned(),
            Message::ClockReply { clock, .. } => format!("ClockReply {clock}"),
            Message::Watch { reads, ranges, .. } => {
                format!("Watch {} keys, {} ranges", reads.len(), ranges.len())
            }
            Message::Unwatch { .. } => "Unwatch".to_owned(),
            Message::Changed { .. } => "Changed".to_owned(),
        }
    }

    fn show_record(record: &Record, names: &Names) -> String {
        match record {
            Record::Broadcast { record } => broadcast(&format!("{record:?}")),
            Record::Voted { txn, at, objection, writes: all, calls } => {
                let wrote =
                    if calls.is_some() { format!(": {}", writes(all)) } else { String::new() };
                let answer = shown(ShardAnswer::Voted { at: *at, objection: *objection });
                format!("{} {answer}{wrote}", name(*txn, names))
            }
            Record::Ended { txn, decision } => format!("{} {}", name(*txn, names), end(*decision)),
        }
    }

    fn show_participant(participant: &ShardMember) -> String {
        let (clock, remembered) = (participant.clock(), participant.remembered());
        format!("clock {clock}, {remembered} remembered")
    }

    fn begins(message: &Message) -> Option<TxnId> {
        match message {
            Message::Commit { command, .. } => Some(command.txn),
            _ => None,
        }
    }

    fn versions(participant: &ShardMember, space: SpaceId) -> Option<&Versions> {
        participant.versions(space)
    }

    fn timer(role: Role, _: u32) -> Timer {
        match role {
            Role::Coordinator | Role::Service(_) => Timer::Care,
            Role::Repository(_) => Timer::Wait,
        }
    }
}

fn at(snapshot: Option<Timestamp>) -> String {
    snapshot.map_or(String::new(), |it| format!(" at {}", it.counter()))
}

fn shards(all: &[ShardId]) -> String {
    joined(all.iter().map(|shard| format!("s{}", shard.0)))
}

fn shown(answer: ShardAnswer) -> String {
    match answer {
        ShardAnswer::Proposed { at } => format!("proposed at {at}"),
        ShardAnswer::Voted { at, objection: None } => format!("voted yes at {at}"),
        ShardAnswer::Voted { at, objection: Some(reason) } => format!("voted no at {at}: {reason}"),
        ShardAnswer::Ended { decision } => format!("ended, {}", end(decision)),
        ShardAnswer::Settled => "settled".to_owned(),
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
