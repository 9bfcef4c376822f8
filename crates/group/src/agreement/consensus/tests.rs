use super::*;
use crate::agreement::entry::ENTRY_BYTES;
use crate::agreement::ledger::Change;

const MEMBERS: usize = 3;

/// Members of a group whose messages have at most so many bytes of decided entries.
fn members(sync_bytes_max: u64) -> Vec<Consensus> {
    let configuration = Configuration::first((0..MEMBERS as u16).collect());
    let member = |it| Consensus::new(it, &configuration, Ledger::default(), sync_bytes_max);
    let mut members: Vec<_> = (0..MEMBERS as u16).map(member).collect();
    members.iter_mut().for_each(|member| member.stable_upto(u64::MAX));
    members
}

/// Carries what the members say to those of them that are `there`; what was too long to be said.
fn exchange(members: &mut [Consensus], there: &[u16]) -> Vec<u16> {
    let mut too_long = Vec::new();
    for from in there {
        for Outgoing { to, bytes, .. } in members[usize::from(*from)].outgoing() {
            match bytes {
                Some(bytes) if there.contains(&to) => {
                    assert!(members[usize::from(to)].receive(*from, bytes.as_slice(), |_| true));
                }
                Some(_) => {}
                None => too_long.push(to),
            }
        }
    }
    too_long
}

/// Who leads of these, once one does.
fn leader(members: &mut [Consensus], there: &[u16]) -> usize {
    for _ in 0..100 {
        there.iter().for_each(|it| members[usize::from(*it)].tick());
        (0..4).for_each(|_| drop(exchange(members, there)));
        if let Some(leader) = members.iter().position(|it| it.leading().is_some()) {
            return leader;
        }
    }
    panic!("nobody leads")
}

/// A third member comes that lacks so many decided entries of a byte: whether they were too long
/// for a message.
fn is_asked_to_fetch(entries: u64, sync_bytes_max: u64) -> bool {
    let mut members = members(sync_bytes_max);
    let leader = leader(&mut members, &[0, 1]);
    for _ in 0..entries {
        members[leader].append(Entry::from(vec![7]));
    }
    (0..4).for_each(|_| drop(exchange(&mut members, &[0, 1])));
    assert_eq!(members[leader].decided(), entries);
    let mut too_long = false;
    for _ in 0..50 {
        members.iter_mut().for_each(Consensus::tick);
        too_long |= exchange(&mut members, &[0, 1, 2]).contains(&2);
        if members[2].accepted() == entries {
            break;
        }
    }
    assert_eq!(members[2].accepted() == entries, !too_long);
    too_long
}

#[test]
fn decided_entries_are_counted_as_the_message_has_them() {
    const ENTRIES: u64 = 100;
    let bytes = ENTRIES * (1 + ENTRY_BYTES);
    assert!(!is_asked_to_fetch(ENTRIES, bytes));
    assert!(is_asked_to_fetch(ENTRIES, bytes - 1));
}

/// A member follows one ballot, another one leads by what was accepted under that, and much is
/// decided. Who comes back then and has fetched it all is not sent it again, and takes part; also
/// where the leader has nothing else any more.
#[test]
fn what_a_member_has_fetched_is_not_sent_to_it_again() {
    for trims in [false, true] {
        comes_back(trims);
    }
}

fn comes_back(trims: bool) {
    const ENTRIES: u64 = 100;
    let mut members = members(10 * (1 + ENTRY_BYTES));
    let first = leader(&mut members, &[0, 1, 2]);
    members[first].append(Entry::from(vec![1]));
    (0..4).for_each(|_| drop(exchange(&mut members, &[0, 1, 2])));
    let cut_off = (first + 1) % MEMBERS;
    let next = (first + 2) % MEMBERS;
    assert_eq!(members[cut_off].accepted(), 1, "under the first ballot");
    let there = [first as u16, next as u16];
    members[next].stand();
    (0..4).for_each(|_| drop(exchange(&mut members, &there)));
    assert!(members[next].leading().is_some());
    for _ in 0..ENTRIES {
        members[next].append(Entry::from(vec![2]));
    }
    (0..4).for_each(|_| drop(exchange(&mut members, &there)));
    assert_eq!(members[next].decided(), 1 + ENTRIES);
    // It fetches what is decided, and begins with that.
    let entries: Vec<Entry> =
        members[next].ledger.look(|it| it.log.range(1, 1 + ENTRIES).cloned().collect());
    let ledger = members[cut_off].ledger.clone();
    ledger.make(vec![Change::Entries(1, entries), Change::Decided(1 + ENTRIES)]);
    let configuration = members[cut_off].configuration().clone();
    members[cut_off] =
        Consensus::new(cut_off as u16, &configuration, ledger, 10 * (1 + ENTRY_BYTES));
    members[cut_off].stable_upto(u64::MAX);
    if trims {
        members[next].ledger.trim(1 + ENTRIES);
    }
    members[next].append(Entry::from(vec![3]));
    for _ in 0..50 {
        members.iter_mut().for_each(Consensus::tick);
        let too_long = exchange(&mut members, &[0, 1, 2]);
        assert!(too_long.is_empty(), "it is told to fetch what it has");
    }
    assert_eq!(members[cut_off].accepted(), 2 + ENTRIES);
    assert_eq!(members[cut_off].ledger.look(|it| it.accepted), members[next].ballot());
}

/// A member that lies about how many elections there have been would have the others count beyond
/// the end of numbers.
#[test]
fn a_ballot_that_no_election_comes_to_is_not_taken() {
    let mut members = members(u64::MAX);
    members.iter_mut().for_each(Consensus::tick);
    let bytes = loop {
        members[1].tick();
        let sent = members[1].outgoing();
        let mut to_first = sent.into_iter().filter(|it| it.to == 0);
        if let Some(Outgoing { bytes: Some(bytes), .. }) = to_first.next() {
            break bytes;
        }
    };
    assert!(members[0].receive(1, bytes.as_slice(), |_| true), "as it was sent");
    let reply = |n: u32| {
        let ballot = omnipaxos::ballot_leader_election::Ballot::with(1, n, 0, 2);
        let reply = omnipaxos::messages::ballot_leader_election::HeartbeatReply {
            round: 1,
            ballot,
            leader: ballot,
            happy: false,
        };
        let message: Message<Entry> =
            Message::BLE(BLEMessage { from: 2, to: 1, msg: HeartbeatMsg::Reply(reply) });
        postcard::to_allocvec(&message).expect("it has a form")
    };
    assert!(members[0].receive(1, &reply(7), |_| true));
    assert!(!members[0].receive(1, &reply(u32::MAX), |_| true));
}

/// A member that lies about what it knows as decided has nobody count beyond its own entries.
#[test]
fn what_is_said_to_be_decided_is_there() {
    use omnipaxos::messages::sequence_paxos::PaxosMessage;

    let mut members = members(u64::MAX);
    let leads = leader(&mut members, &[0, 1, 2]);
    let liar = (leads + 1) % MEMBERS;
    let ballot = members[leads].ballot();
    let promise = |decided_idx, accepted_idx| {
        let promise = Promise {
            n: ballot.into(),
            n_accepted: ballot.into(),
            decided_idx,
            accepted_idx,
            log_sync: None,
        };
        let (from, to) = (liar as u64 + 1, leads as u64 + 1);
        let message: Message<Entry> =
            Message::SequencePaxos(PaxosMessage { from, to, msg: PaxosMsg::Promise(promise) });
        postcard::to_allocvec(&message).expect("it has a form")
    };
    let mut send = |decided, accepted| {
        let taken = members[leads].receive(liar as u16, &promise(decided, accepted), |_| true);
        let _ = members[leads].outgoing();
        assert_eq!(members[leads].decided(), 0);
        taken
    };
    assert!(send(0, 0));
    assert!(!send(1 << 40, 0), "more than it has");
    assert!(send(1 << 40, 1 << 40), "that cannot be told");
}

/// Whether a member without state leads at some moment, where the third one led that is gone.
fn leads_without_state(is_restrained: bool) -> bool {
    let configuration = Configuration::first(vec![0, 1, 2]);
    let followed = Ballot { configuration: 1, number: 1, member: 3 };
    let new = |it| {
        let ledger = Ledger::default();
        ledger.make(vec![Change::Promise(followed), Change::Accepted(followed)]);
        Consensus::new(it, &configuration, ledger, u64::MAX)
    };
    let mut members = vec![new(0)];
    for _ in 0..100 {
        members[0].tick(); // It misses a leader already when the other one begins.
        exchange(&mut members, &[0]);
    }
    members.push(new(1).restrained(false, is_restrained));
    members.iter_mut().for_each(|member| member.stable_upto(u64::MAX));
    (0..100).any(|_| {
        members.iter_mut().for_each(Consensus::tick);
        (0..4).for_each(|_| drop(exchange(&mut members, &[0, 1])));
        members[1].restrain(false, true); // As with each tick.
        members[1].leading().is_some()
    })
}

#[test]
fn a_member_without_state_is_not_elected_with_its_first_messages_either() {
    assert!(!leads_without_state(true));
    assert!(leads_without_state(false), "they are enough");
}
