//! What the members of a shard agree on the order of.

use std::sync::Arc;

use muesli_broadcast::{Command, ObjectSet};
use muesli_core::judgement::ensure;
use muesli_core::{Abort, Decision, NodeId, Rejection, SmallBytes, TxnId, Wire as _, wire_enum};
use muesli_core::{Timestamp, wire_struct};

use crate::certified::message::command::{CallsEnd, CertifiedCommand};
use crate::sharded::locator::ShardId;

/// The object of all commands of a shard: so each conflicts with each other one, under every
/// broadcast, and all members deliver all in one order.
const WHOLE_SHARD: u64 = 0;

/// What a shard has to do with a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionPart {
    /// What it read and writes there, or which procedures it runs there.
    pub command: CertifiedCommand,
    /// All shards that take part, in order.
    pub participants: Vec<ShardId>,
    /// Transactions of its coordinator below have ended, as that knows.
    pub settled_below: u64,
    /// The shard's clock as it was proposed.
    pub since: u64,
}

wire_struct!(TransactionPart {
    command: CertifiedCommand,
    participants: Vec<ShardId>,
    settled_below: u64,
    since: u64,
});

/// A command of a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShardCommand {
    /// A transaction is prepared: it is given a timestamp above all that were given before.
    Prepare {
        /// What is to be done here.
        part: TransactionPart,
    },
    /// A transaction takes no effect, unless it was prepared before.
    Refuse {
        /// The transaction.
        txn: TxnId,
        /// All shards that take part, in order.
        participants: Vec<ShardId>,
        /// Why.
        reason: Abort,
        /// What its procedures came to, if it had any.
        calls: Option<CallsEnd>,
    },
    /// All timestamps that are given from now on are above this counter.
    Advance {
        /// Which.
        to: u64,
    },
    /// A transaction that was prepared has ended.
    Decide {
        /// The transaction.
        txn: TxnId,
        /// How.
        decision: Decision,
    },
    /// How transactions of a client ended is forgotten.
    Forget {
        /// The client.
        client: NodeId,
    },
    /// Nothing: who has proposed it knows that all that was delivered anywhere before is before it.
    Barrier,
}

wire_enum!(ShardCommand, "command of a shard" {
    0 => Prepare { part: TransactionPart },
    1 => Refuse {
        txn: TxnId,
        participants: Vec<ShardId>,
        reason: Abort,
        calls: Option<CallsEnd>,
    },
    2 => Advance { to: u64 },
    3 => Decide { txn: TxnId, decision: Decision },
    4 => Forget { client: NodeId },
    5 => Barrier,
});

impl ShardCommand {
    /// Which transaction it prepares or refuses.
    pub fn transaction(&self) -> Option<TxnId> {
        match self {
            ShardCommand::Prepare { part } => Some(part.command.txn),
            ShardCommand::Refuse { txn, .. } => Some(*txn),
            ShardCommand::Advance { .. }
            | ShardCommand::Decide { .. }
            | ShardCommand::Forget { .. }
            | ShardCommand::Barrier => None,
        }
    }

    /// It, as it is broadcast.
    pub fn encoded(&self) -> Command {
        let mut payload = Vec::new();
        self.encode(&mut payload);
        let objects = Arc::new(ObjectSet::writes([WHOLE_SHARD]));
        Command { objects, payload: SmallBytes::from(payload) }
    }

    /// What a command says that was delivered, or is to be.
    ///
    /// # Errors
    /// It is no command of a shard, or one that no member can have proposed.
    pub fn decoded(command: &Command) -> Result<ShardCommand, Rejection> {
        let decoded = ShardCommand::decode_all(command.payload.as_slice());
        let decoded = decoded.map_err(|_| Rejection::Range)?;
        match &decoded {
            ShardCommand::Prepare { part } => {
                judge_participants(&part.participants)?;
                part.command.judge()?;
            }
            ShardCommand::Refuse { participants, .. } => judge_participants(participants)?,
            ShardCommand::Advance { to } => {
                ensure(*to <= Timestamp::FARTHEST.counter(), Rejection::Range)?;
            }
            ShardCommand::Decide { .. } | ShardCommand::Forget { .. } | ShardCommand::Barrier => {}
        }
        Ok(decoded)
    }
}

/// Whether these can be the participants of a transaction: some, in order, each once.
///
/// # Errors
/// They cannot.
pub fn judge_participants(participants: &[ShardId]) -> Result<(), Rejection> {
    let ascend = participants.is_sorted_by(|a, b| a < b);
    ensure(ascend && !participants.is_empty(), Rejection::Range)
}

/// The timestamp after all that have this counter.
pub fn end_of(counter: u64) -> Timestamp {
    Timestamp(Timestamp::new(counter + 1, muesli_core::RepositoryId(0)).0 - 1)
}
