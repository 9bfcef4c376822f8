//! SCORe's family: two phases with a coordinator.

use std::fmt::Display;

use muesli_core::contract::StateMachine as _;
use muesli_core::parts::versions::Versions;
use muesli_core::ranges::KeyRange;
use muesli_core::{Decision, NodeId, Role, SpaceId, Timestamp, TxnId};
use muesli_protocols::two_phase::message::merged_vote::MergedVote;
use muesli_protocols::two_phase::message::moves::{MovedKey, OwnedPosition};
use muesli_protocols::two_phase::message::{Answers, Found, Prepare, ReadWants, Vote};
use muesli_protocols::two_phase::{Message, Participant, Record, TwoPhase, Variant};

use crate::harness::subject::lines::{given, joined, name, text, value, writes};
use crate::harness::subject::{Names, Subject, Timer};

/// The timer by which a repository ends waits for locks.
const LOCK_TIMER: u32 = 1;
/// The timer by which a coordinator tells its bound.
const GOSSIP_TIMER: u32 = 0;

impl<V: Variant<Service: Clone>> Subject for TwoPhase<V> {
    const STRICT_UPDATES: bool =
        V::POLICIES.validation.has_reads() && !V::POLICIES.installing.may_time_warp();
    const TRIES_AGAIN: bool = false;

    fn show_message(shown: &Message<V>, names: &Names) -> String {
        message(shown, names)
    }

    fn show_record(shown: &Record<V>, names: &Names) -> String {
        record(shown, names)
    }

    fn show_participant(participant: &Participant<V>) -> String {
        let (committed, newest) = (participant.committed(), participant.newest());
        let (doubt, kept) = (participant.unfinished(), participant.remembered());
        let mut shown =
            format!("committed {committed}, newest {newest}, {doubt} in doubt, {kept} remembered");
        let ((held, waits), reads) = (participant.encounter_locks(), participant.waiting_reads());
        for (number, what) in
            [(held, "with locks"), (waits, "wait for locks"), (reads, "reads wait")]
        {
            if number > 0 {
                shown += &format!(", {number} {what}");
            }
        }
        shown
    }

    fn begins(message: &Message<V>) -> Option<TxnId> {
        match message {
            Message::Prepare(prepare) => Some(prepare.txn),
            _ => None,
        }
    }

    fn versions(participant: &Participant<V>, space: SpaceId) -> Option<&Versions> {
        participant.versions(space)
    }

    fn timer(role: Role, timer: u32) -> Timer {
        match (role, timer) {
            (Role::Repository(_), LOCK_TIMER) => Timer::Wait,
            (Role::Coordinator, GOSSIP_TIMER) => Timer::Idle,
            _ => Timer::Care,
        }
    }
}

fn range(range: &KeyRange) -> String {
    format!("[{}, {})", text(&range.lo), range.hi.as_ref().map_or("end".to_owned(), text))
}

fn found(found: &Found) -> String {
    let stale = if found.newest { "" } else { ", old" };
    format!("{} ({}{stale})", value(found.value.as_ref()), found.version)
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
    let key = |place: u32| prepare.writes.get(place as usize).map_or("?".into(), |it| text(&it.1));
    for leaving in prepare.leaving.iter() {
        line += &format!(", {} leaves for r{}", key(leaving.place), leaving.to.0);
    }
    for arriving in prepare.arriving.iter() {
        line += &format!(", {} arrives", key(arriving.place));
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
            let wanted = match read.wanted {
                ReadWants::Values => "",
                ReadWants::NewestValues => ", or the newest",
                ReadWants::Versions => ", versions alone",
            };
            let known = read.known.iter();
            let known: String =
                known.map(|it| format!(", place {} known of {}", it.place, it.version)).collect();
            format!("Read {keys} {}{wanted}{known}", snapshot(&read.snapshot, read.first))
        }
        Message::ReadReply(reply) => {
            let all = joined(reply.found.iter().map(found));
            let moved = reply.moved.iter();
            let moved: String = moved
                .map(|it| format!(", place {} is at r{} since {}", it.place, it.to.0, it.at))
                .collect();
            let known = reply.known.iter().map(|place| format!(", place {place} is as known"));
            let known: String = known.collect();
            format!("ReadReply {}: {all}{moved}{known}", served(reply.snapshot.as_ref()))
        }
        Message::Scan(scan) => {
            format!("Scan {} {}", range(&scan.range), snapshot(&scan.snapshot, scan.first))
        }
        Message::ScanReply(reply) => {
            let rows = reply.rows.iter().map(|(key, row)| format!("{}={}", text(key), found(row)));
            let moved: String = reply
                .moved
                .iter()
                .map(|it| format!(", {} at r{}", text(&it.key), it.to.0))
                .collect();
            format!("ScanReply {}: {}{moved}", served(reply.snapshot.as_ref()), joined(rows))
        }
        Message::Prepare(part) => format!("Prepare {}", prepare(part, names)),
        Message::Vote { txn, repository, vote: how, committed, .. } => {
            let at_zero = *committed == V::Snapshot::default();
            let clock = if at_zero { String::new() } else { format!(", clock {committed}") };
            format!("Vote {} r{} {}{clock}", name(*txn, names), repository.0, vote(how))
        }
        Message::Decide { txn, decision: end, .. } => {
            format!("Decide {} {}", name(*txn, names), decision(end))
        }
        Message::MergedVote(ballot) => format!("MergedVote {}", merged_vote_of(ballot, names)),
        Message::MergedDecision(ended) => {
            let all = joined(ended.participants.iter().map(|it| format!("r{}", it.0)));
            format!(
                "MergedDecision {} for {all}: {}",
                name(ended.txn, names),
                decision(&ended.decision)
            )
        }
        Message::Ended { txn, decision: end, .. } => {
            format!("Ended {} {}", name(*txn, names), decision(end))
        }
        Message::Acknowledge { txns, .. } => {
            format!("Acknowledge {}", joined(txns.iter().map(|txn| name(*txn, names))))
        }
        Message::Ran { txn, answers, violation } => {
            let why =
                violation.as_ref().map_or_else(String::new, |why| format!(" no: {}", text(why)));
            format!("Ran {}{}{why}", name(*txn, names), gave(answers))
        }
        other => rare(other, names),
    }
}

fn rare<V: Variant>(message: &Message<V>, names: &Names) -> String {
    match message {
        Message::Ask { txn } => format!("Ask {}", name(*txn, names)),
        Message::Lock(asked) => format!("Lock {}", text(&asked.key)),
        Message::Locked { refused, .. } => match refused {
            Some(reason) => format!("Locked: no, {reason:?}"),
            None => "Locked".to_owned(),
        },
        Message::Unlock { .. } => "Unlock".to_owned(),
        Message::Settled { txn } => format!("Settled below {txn}"),
        Message::Bound { bound, newest } => format!("Bound {bound}, newest {newest}"),
        Message::Watermark { low, newest } => format!("Watermark {low}, newest {newest}"),
        Message::AskDoubts { clients, .. } => format!("AskDoubts {}", until(clients)),
        Message::NoDoubts { repository, clients, .. } => {
            format!("NoDoubts r{} {}", repository.0, until(clients))
        }
        Message::Watch(watch) => {
            let reads = watch.reads.iter().map(|(_, key, at)| format!("{} ({at})", text(key)));
            let ranges = watch.scans.iter().map(range);
            format!("Watch {}", joined(reads.chain(ranges)))
        }
        Message::Unwatch { .. } => "Unwatch".to_owned(),
        Message::Changed { .. } => "Changed".to_owned(),
        Message::Waiting { waiting, .. } => format!("Waiting {}", waiting.len()),
        Message::NewOwners { moved: all } => format!("NewOwners {}", moved(all)),
        Message::KnownOwners { moved: all } => format!("KnownOwners {}", moved(all)),
        Message::AskOwned(question) => format!("AskOwned {}", position(question.from)),
        Message::Owned(page) => {
            let next = page.next.map_or_else(String::new, |it| format!(", next {}", position(it)));
            format!("Owned {}: {}{next}", position(page.question.from), moved(&page.owned))
        }
        other => unreachable!("{} is shown above", other.name()),
    }
}

fn position(it: OwnedPosition) -> String {
    format!("{:?} from {}.{}", it.part, it.space, it.slot)
}

fn moved(all: &[MovedKey]) -> String {
    joined(all.iter().map(|it| format!("{} at r{} since {}", text(&it.key), it.to.0, it.at)))
}

/// Votes on their way up: whose, and what they come to so far.
fn merged_vote_of(ballot: &MergedVote, names: &Names) -> String {
    let voters = joined(ballot.voters.iter().map(|it| format!("r{}", it.0)));
    let of = ballot.participants.len();
    let shown = match (ballot.refused, ballot.upper_bound) {
        (Some(reason), _) => format!("no, {reason:?}"),
        (None, Timestamp::MAX) => format!("yes at {}", ballot.proposal),
        (None, until) => format!("yes at {} until {until}", ballot.proposal),
    };
    format!("{} {voters} of {of}: {shown}", name(ballot.txn, names))
}

/// Clients, with the incarnations before which all is meant.
fn until(clients: &[(NodeId, u32)]) -> String {
    joined(clients.iter().map(|(node, incarnation)| format!("n{} before {incarnation}", node.0)))
}

fn record<V: Variant>(record: &Record<V>, names: &Names) -> String {
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
        Record::UpperBound { at } => format!("Ceiling {at}"),
        Record::Low { low } => format!("Low {low:?}"),
        Record::NewOwners { moved: all } => format!("NewOwners {}", moved(all)),
        Record::KnownOwners { moved: all } => format!("KnownOwners {}", moved(all)),
        Record::Rebuild { is_over: false } => "Rebuild begins".to_owned(),
        Record::Rebuild { is_over: true } => "Rebuild is over".to_owned(),
    }
}
