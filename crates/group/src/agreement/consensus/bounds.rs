//! How far the numbers of a message may go: the library counts on from them, and they must not pass
//! their ends.

use omnipaxos::ballot_leader_election::Ballot;
use omnipaxos::messages::Message;
use omnipaxos::messages::ballot_leader_election::HeartbeatMsg;
use omnipaxos::messages::sequence_paxos::PaxosMsg;
use omnipaxos::util::SequenceNumber;

use crate::agreement::entry::Entry;

/// Elections of a group stay below this number: one in each tick of 20 ms reach it after a year.
const BALLOT_END: u32 = 1 << 31;
/// Sessions of a leader with a follower, and messages in each, stay below this number.
const SEQUENCE_END: u64 = 1 << 63;

/// Whether no ballot and no sequence number of a message is one that only a liar can come to.
pub(super) fn has_capacity(message: &Message<Entry>) -> bool {
    let (ballots, sequence) = numbers(message);
    let sequence = sequence.is_none_or(|it| it.session.max(it.counter) < SEQUENCE_END);
    sequence && ballots.into_iter().flatten().all(|ballot| ballot.n < BALLOT_END)
}

fn numbers(message: &Message<Entry>) -> ([Option<Ballot>; 2], Option<SequenceNumber>) {
    let alone = |ballot| ([Some(ballot), None], None);
    let numbered = |ballot, sequence| ([Some(ballot), None], Some(sequence));
    let message = match message {
        Message::SequencePaxos(message) => &message.msg,
        Message::BLE(message) => {
            return match &message.msg {
                HeartbeatMsg::Request(_) => ([None, None], None),
                HeartbeatMsg::Reply(it) => ([Some(it.ballot), Some(it.leader)], None),
            };
        }
    };
    match message {
        PaxosMsg::PrepareReq(it) => alone(it.n),
        PaxosMsg::Prepare(it) => ([Some(it.n), Some(it.n_accepted)], None),
        PaxosMsg::Promise(it) => ([Some(it.n), Some(it.n_accepted)], None),
        PaxosMsg::AcceptSync(it) => numbered(it.n, it.seq_num),
        PaxosMsg::AcceptDecide(it) => numbered(it.n, it.seq_num),
        PaxosMsg::Decide(it) => numbered(it.n, it.seq_num),
        PaxosMsg::AcceptStopSign(it) => numbered(it.n, it.seq_num),
        PaxosMsg::Accepted(it) => alone(it.n),
        PaxosMsg::NotAccepted(it) => alone(it.n),
        PaxosMsg::ProposalForward(_) | PaxosMsg::Compaction(_) | PaxosMsg::ForwardStopSign(_) => {
            ([None, None], None)
        }
    }
}
