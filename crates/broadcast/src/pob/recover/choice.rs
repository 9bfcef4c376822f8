//! With what a command goes on that is taken over (algorithm 12, from line 14 on).

use std::collections::BTreeMap;

use crate::command::{Command, CommandId, MemberId};
use crate::id_set::IdSet;
use crate::pob::entry::{CommandStatus, Stored};
use crate::pob::{PobSwitch, Switches};
use crate::quorums::Quorums;

/// What is to be done with the command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RecoveryChoice {
    /// This position may be final already: it is to be accepted.
    Accept(Option<Command>, u64, IdSet),
    /// None can be: it gets a new one.
    Propose(Command),
}

/// What a quorum's promises leave. Of positions that were accepted that of the latest epoch may be
/// final. If none was, one that was decided at once is the first leader's, and so many of those
/// have it who promise; if its leader is one of these, it has decided nothing.
pub(super) fn recovered(
    id: CommandId,
    promises: &BTreeMap<MemberId, Stored>,
    quorums: &Quorums,
    switches: &Switches,
) -> RecoveryChoice {
    let accepted = promises.values().filter(|it| it.status == CommandStatus::Accepted);
    let latest = match switches.keeps(PobSwitch::AcceptedEpochs) {
        true => accepted.max_by_key(|it| it.accepted),
        false => accepted.min_by_key(|_| 0),
    };
    if let Some(stored) = latest {
        let command = stored.content.command().cloned();
        return RecoveryChoice::Accept(command, stored.position, stored.dependencies.clone());
    }
    let mut contents = promises.values().filter_map(|it| it.content.command());
    let Some(command) = contents.next().cloned() else {
        return RecoveryChoice::Accept(None, 1, IdSet::new());
    };
    match decided_at_once(id, promises, quorums, switches) {
        Some((position, dependencies)) => {
            RecoveryChoice::Accept(Some(command), position, dependencies)
        }
        None => RecoveryChoice::Propose(command),
    }
}

/// The position with which a command may have been decided at once, if it may have been, and what
/// those named who agree.
fn decided_at_once(
    id: CommandId,
    promises: &BTreeMap<MemberId, Stored>,
    quorums: &Quorums,
    switches: &Switches,
) -> Option<(u64, IdSet)> {
    let is_sought = switches.fast && switches.keeps(PobSwitch::FastRecovery);
    let knows_leader = promises.contains_key(&id.leader);
    if !is_sought || (knows_leader && switches.keeps(PobSwitch::LeaderAmongAsked)) {
        return None;
    }
    let any = !switches.keeps(PobSwitch::AgreesWithLeader);
    let agree = |it: &&Stored| {
        let in_first = it.accepted.is_some_and(|epoch| epoch.is_first());
        let is_leaders = any || it.position == it.first_position;
        it.status == CommandStatus::Pending && in_first && is_leaders
    };
    let agreeing: Vec<_> = promises.values().filter(agree).collect();
    if agreeing.len() < enough(quorums, switches).max(1) {
        return None;
    }
    let mut dependencies = IdSet::new();
    for stored in &agreeing {
        dependencies.extend(&stored.dependencies);
    }
    Some((agreeing[0].position, dependencies))
}

/// How many of those asked must agree.
fn enough(quorums: &Quorums, switches: &Switches) -> usize {
    match (switches.keeps(PobSwitch::FewAgree), switches.keeps(PobSwitch::EnoughAgree)) {
        (true, true) => quorums.agreeing(),
        (false, _) => quorums.recovery / 2 + 1,
        (true, false) => quorums.majority / 2,
    }
}
