//! One readable line for everything that is said, logged or answered.

use std::collections::BTreeMap;
use std::fmt::Display;

use muesli_core::parts::locks::KeyRange;
use muesli_core::{Address, Decision, Envelope, Gave, OpResult, Role, SmallBytes, SpaceId, TxnId};
use muesli_protocols::two_phase::message::{Answers, Found, Prepare, Vote};
use muesli_protocols::two_phase::{Message, Record, Variant};

type Names = BTreeMap<TxnId, String>;

/// A role: `n0` is the coordinator of node 0, `r0` is repository 0.
fn role(address: Address) -> String {
    match address.role {
        Role::Coordinator => format!("n{}", address.node.0),
        Role::Repository(repository) => format!("r{}", repository.0),
    }
}

fn name(txn: TxnId, names: &Names) -> String {
    names.get(&txn).cloned().unwrap_or_else(|| txn.to_string())
}

pub fn text(bytes: &SmallBytes) -> String {
    String::from_utf8_lossy(bytes.as_slice()).into_owned()
}

pub fn value(value: Option<&SmallBytes>) -> String {
    value.map_or_else(|| "nothing".to_owned(), text)
}

fn range(range: &KeyRange) -> String {
    format!("[{}, {})", text(&range.lo), range.hi.as_ref().map_or("end".to_owned(), text))
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(", ")
}

fn found(found: &Found) -> String {
    let stale = if found.newest { "" } else { ", old" };
    format!("{} ({}{stale})", value(found.value.as_ref()), found.version)
}

fn writes(writes: &[(SpaceId, SmallBytes, Option<SmallBytes>)]) -> String {
    joined(writes.iter().map(|(_, key, new)| format!("{}={}", text(key), value(new.as_ref()))))
}

fn prepare<V: Variant>(prepare: &Prepare<V>, names: &Names) -> String {
    let mut line = format!("{} at {}", name(prepare.txn, names), prepare.snapshot);
    if !prepare.reads.is_empty() {
        let reads = prepare.reads.iter().map(|(_, key, at)| format!("{} ({at})", text(key)));
        line += &format!(" read {}", joined(reads));
    }
    if !prepare.scans.is_empty() {
        line += &format!(" scanned {}", joined(prepare.scans.iter().map(range)));
    }
    if !prepare.writes.is_empty() {
        line += &format!(" write {}", writes(&prepare.writes));
    }
    if !prepare.delayed.is_empty() {
        let all = prepare.delayed.iter();
        let shown = all
            .map(|(_, key, it)| format!("{} {} {}", text(key), text(&it.name), text(&it.argument)));
        line += &format!(" later {}", joined(shown));
    }
    for call in prepare.calls() {
        let how = if call.steady { "steadily " } else { "" };
        let keys: Vec<_> = call.keys.iter().map(|(_, key)| text(key)).collect();
        let seen: String = call.ranges.iter().map(|it| format!(" seeing {}", range(it))).collect();
        let (id, keys) = (&call.procedure, keys.join(" "));
        line += &format!(" later {how}{id} on {keys}{seen}: {}", text(&call.arguments));
    }
    if !prepare.asked().is_empty() {
        line += &format!(", asked {}", prepare.asked().len());
    }
    line
}

fn decision<P: Display>(decision: &Decision<P>) -> String {
    match decision {
        Decision::Commit(at) => format!("commit {at}"),
        Decision::Abort(reason) => format!("abort {reason:?}"),
    }
}

fn vote<V: Variant>(vote: &Vote<V>) -> String {
    match vote {
        Vote::Yes(at) => format!("yes {at}"),
        Vote::No(reason) => format!("no {reason:?}"),
        Vote::Decided(end) => format!("it is over: {}", decision(end)),
    }
}

fn given(gave: &Gave) -> String {
    match gave {
        Gave::Value(found) => value(found.as_ref()),
        Gave::Nothing(why) => format!("nothing was done: {}", text(why)),
        Gave::Unknown => "not known".to_owned(),
    }
}

fn gave(answers: &Answers) -> String {
    answers.iter().map(|(number, it)| format!(" {number}: {}", given(it))).collect()
}

fn snapshot(at: &impl Display, first: bool) -> String {
    if first { format!("first, from {at}") } else { format!("at {at}") }
}

fn served(at: Option<&impl Display>) -> String {
    at.map_or_else(|| "too old".to_owned(), |at| format!("at {at}"))
}

fn message<V: Variant>(message: &Message<V>, names: &Names) -> String {
    match message {
        Message::Read(read) => {
            let keys = joined(read.keys.iter().map(|(_, key)| text(key)));
            format!("Read {keys} {}", snapshot(&read.snapshot, read.first))
        }
        Message::ReadReply(reply) => {
            let all = joined(reply.found.iter().map(found));
            format!("ReadReply {}: {all}", served(reply.snapshot.as_ref()))
        }
        Message::Scan(scan) => {
            format!("Scan {} {}", range(&scan.range), snapshot(&scan.snapshot, scan.first))
        }
        Message::ScanReply(reply) => {
            let rows = reply.rows.iter().map(|(key, row)| format!("{}={}", text(key), found(row)));
            format!("ScanReply {}: {}", served(reply.snapshot.as_ref()), joined(rows))
        }
        Message::Prepare(part) => format!("Prepare {}", prepare(part, names)),
        Message::Vote { txn, repository, vote: how, committed } => {
            let at_zero = *committed == V::Snapshot::default();
            let clock = if at_zero { String::new() } else { format!(", clock {committed}") };
            format!("Vote {} r{} {}{clock}", name(*txn, names), repository.0, vote(how))
        }
        Message::Decide { txn, decision: end } => {
            format!("Decide {} {}", name(*txn, names), decision(end))
        }
        Message::Acknowledge { txns, .. } => {
            format!("Acknowledge {}", joined(txns.iter().map(|txn| name(*txn, names))))
        }
        Message::Ran { txn, answers, strayed } => {
            let why =
                strayed.as_ref().map_or_else(String::new, |why| format!(" no: {}", text(why)));
            format!("Ran {}{}{why}", name(*txn, names), gave(answers))
        }
        Message::Ask { txn } => format!("Ask {}", name(*txn, names)),
        Message::Bound { bound, newest } => format!("Bound {bound}, newest {newest}"),
        Message::Watermark { low, newest } => format!("Watermark {low}, newest {newest}"),
    }
}

pub fn envelope<V: Variant>(envelope: &Envelope<Message<V>>, names: &Names) -> String {
    let (from, to) = (role(envelope.from), role(envelope.to));
    format!("{from} -> {to} {}", message(&envelope.message, names))
}

pub fn record<V: Variant>(record: &Record<V>, names: &Names) -> String {
    match record {
        Record::Prepared { prepare: part, at } => {
            format!("Prepared {} proposing {at}", prepare(part, names))
        }
        Record::Refused { txn, reason } => format!("Refused {} {reason:?}", name(*txn, names)),
        Record::Decided { txn, decision: end } => {
            format!("Decided {} {}", name(*txn, names), decision(end))
        }
        Record::Committed { at, writes: all } => format!("Committed at {at} {}", writes(all)),
        Record::Ran { txn, writes: all, answers } => {
            format!("Ran {} {}{}", name(*txn, names), writes(all), gave(answers))
        }
        Record::Ceiling { at } => format!("Ceiling {at}"),
        Record::Low { low } => format!("Low {low:?}"),
    }
}

pub fn result(result: &OpResult) -> String {
    match result {
        OpResult::Value(found) => value(found.as_ref()),
        OpResult::Values(all) => joined(all.iter().map(|found| value(found.as_ref()))),
        OpResult::Rows(rows) => {
            joined(rows.iter().map(|(key, found)| format!("{}={}", text(key), text(found))))
        }
        OpResult::Committed(committed) => format!("committed at {}", committed.at),
        OpResult::Answered(committed, answers) => {
            let all = joined(answers.iter().map(given));
            format!("committed at {}, and told: {all}", committed.at)
        }
        OpResult::Invoked(invoked) => {
            format!("{} at {}", joined(invoked.results.iter().map(text)), invoked.at)
        }
        OpResult::Awake => "awake".to_owned(),
        OpResult::Failed(failure) => failure.to_string(),
    }
}
