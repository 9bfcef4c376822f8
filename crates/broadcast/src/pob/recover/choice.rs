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
    let may_be_fast = switches.fast && switches.keeps(PobSwitch::FastRecovery);
    if may_be_fast && !promises.contains_key(&id.leader) {
        let agree = |it: &&Stored| {
            let in_first = it.accepted.is_some_and(|epoch| epoch.is_first());
            it.status == CommandStatus::Pending && in_first && it.position == it.first_position
        };
        let agreeing: Vec<_> = promises.values().filter(agree).collect();
        if agreeing.len() >= quorums.agreeing().max(1) {
            let mut dependencies = IdSet::new();
            for stored in &agreeing {
                dependencies.extend(&stored.dependencies);
            }
            return RecoveryChoice::Accept(Some(command), agreeing[0].position, dependencies);
        }
    }
    RecoveryChoice::Propose(command)
}
